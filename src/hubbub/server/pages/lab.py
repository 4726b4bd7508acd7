"""Attack lab pages: choose an attack, a table, protections, and ε; watch the run; and download the report.

Tested in tests/server/test_pages.py.
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from hubbub.attacks import report
from hubbub.attacks.base import AttackStudy
from hubbub.attacks.catalogue import Attack
from hubbub.attacks.report_plot import plot
from hubbub.attacks.study_worker import BUNDLED, MADE_UP, UPLOAD
from hubbub.attacks.upload import MAX_BYTES, MAX_ROWS
from hubbub.errors import AttackError, HubbubError
from hubbub.server.attack_lab import MAX_EPSILONS, SECONDS, StudyRequest, StudyRun
from hubbub.server.pages.frame import Visit, drawing
from hubbub.server.problems import not_found, status_of

_EPSILONS = "0.1, 0.5, 1, 2, 5"
_SET = "set-"
#: The protections to show: all, those with a privacy guarantee, or those without.
SHOWN: Mapping[str, str] = {
    "all": "All protections",
    "promise": "With a privacy guarantee",
    "none": "Without a guarantee",
}
_FORMS = ("html", "pdf", "svg", "json")


def show(visit: Visit) -> Response:
    """Show the form, filled in from the query string."""
    return _page(visit, visit.request.query_params)


def begin(visit: Visit) -> Response:
    """Queue a study and redirect to its page."""
    form = visit.form
    chosen = form.get("table", MADE_UP)
    # browsers send an empty file if none was chosen
    sent = (visit.files.get("file") or None) if chosen == UPLOAD else None
    epsilons = [part.strip() for part in form.get("epsilons", "").split(",")]
    settings = {name.removeprefix(_SET): value for name, value in form.items() if name.startswith(_SET)}
    try:
        if any(not part for part in epsilons):
            raise AttackError(
                "HB643", "The list of ε values is empty or has an extra comma.", f"Enter values such as {_EPSILONS}."
            )
        request = StudyRequest(form.get("attack", ""), tuple(epsilons), chosen, sent, _changed(visit, form, settings))
        study_run = visit.service.attacks.begin(visit.principal, request)
    except HubbubError as error:
        return _page(visit, form, problem=error)
    return visit.go(f"/explain/lab/{study_run.id}?{urlencode({'show': _shown(form)})}")


def run(visit: Visit) -> Response:
    """Show a study: its progress or its results."""
    found = _run(visit)
    every = () if found.study is None else found.study.findings
    shown = {**SHOWN, **{f"={each.target}": f"Only: {each.target}" for each in every}}
    chosen = _shown(visit.request.query_params, shown)
    study = _filtered(found.study, chosen) if found.state == "done" and found.study is not None else None
    findings = () if study is None else study.findings
    again = {"attack": found.attack.name, "epsilons": found.epsilon_text, "show": chosen}
    again |= {f"{_SET}{name}": str(value) for name, value in found.settings.items()}
    return visit.render(
        "lab_run.html",
        run=found,
        study=study,
        shown=shown,
        chosen=chosen,
        problem=found.problem,
        heading=found.study.title if found.study is not None else f"Attack: {found.attack.name}",
        gist="" if study is None else report.summarize(study),
        plot="" if study is None else drawing(plot(study)),
        columns=report.COLUMNS,
        rows=[*map(report.row, findings)],
        facts=[(each.label, report.facts(each)) for each in findings if each.facts],
        broken=study is not None and bool(report.exceeding_findings(study)),
        alarm=report.ALARM,
        reading=report.READING,
        terms=found.terms(),
        again=urlencode(again),
        pdf=find_spec("matplotlib") is not None,
    )


def state(visit: Visit) -> Response:
    """Return the progress of a study as JSON, for the script of its page."""
    found = _run(visit)
    done, what = found.progress or (0.0, "")
    return JSONResponse({"state": found.state, "done": done, "what": what})


def cancel(visit: Visit) -> Response:
    """Cancel a study."""
    number = visit.request.path_params["number"]
    visit.service.attacks.cancel(visit.principal, number)
    return visit.go(f"/explain/lab/{number}")


def export(visit: Visit) -> Response:
    """Download a report."""
    found, form = _run(visit), visit.request.path_params["form"]
    if form not in _FORMS or found.state != "done" or found.study is None:
        raise not_found("report of this study in this format")
    study = _filtered(found.study, visit.request.query_params.get("show", "all"))
    kind, write = report.FORMS[form]
    name = f'attachment; filename="hubbub-{found.attack.name}.{form}"'
    content = write(study, report.ReportContext(terms=found.terms()))
    return Response(content, media_type=kind, headers={"Content-Disposition": name})


def _run(visit: Visit) -> StudyRun:
    return visit.service.attacks.run(visit.principal, visit.request.path_params["number"])


def _shown(given: Mapping[str, str], known: Mapping[str, str] = SHOWN) -> str:
    return given["show"] if given.get("show") in known else "all"


def _filtered(study: AttackStudy, chosen: str) -> AttackStudy:
    """Keep the chosen findings; the sentences stay, because they are about all findings."""
    kept = {
        "all": study.findings,
        "promise": [each for each in study.findings if each.ceiling is not None],
        "none": [each for each in study.findings if each.ceiling is None],
    }.get(chosen, [each for each in study.findings if f"={each.target}" == chosen])
    return replace(study, findings=tuple(kept or study.findings))


def _changed(visit: Visit, form: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that differ from the defaults, so that the report lists only those."""
    known = {each.name: each for each in visit.service.attacks.catalog(visit.principal)}
    attack = known.get(form.get("attack", ""))
    usual = {} if attack is None else {name: _text(value) for name, value in attack.settings.items()}
    return {name: value.strip() for name, value in settings.items() if value.strip() != usual.get(name)}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _about(attack: Attack) -> list[list[str]]:
    """Return the description of an attack in paragraphs; in each, every second part is code."""
    paragraphs = attack.about.split("Theorem (")[0].split("\n\n")
    return [" ".join(each.split()).split("`") for each in paragraphs if each.strip()]


def _fields(attack: Attack, given: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{_SET}{name}",
            "label": name.replace("_", " ").capitalize(),
            "value": given.get(f"{_SET}{name}", _text(usual)),
            "changed": given.get(f"{_SET}{name}", _text(usual)) != _text(usual),
            "choice": isinstance(usual, bool),
        }
        for name, usual in attack.settings.items()
    ]


def _page(visit: Visit, given: Mapping[str, str], problem: HubbubError | None = None) -> Response:
    attacks = visit.service.attacks.catalog(visit.principal)
    known = {each.name: each for each in attacks}
    attack = known.get(given.get("attack", "")) or attacks[0]
    tables = {} if attack.table == "must" else {MADE_UP: "Simulated by the attack"}
    if attack.table != "no":
        tables |= {name: f"{name} (bundled public data)" for name in BUNDLED}
        tables |= {UPLOAD: "Upload a CSV file"}
    chosen = given.get("table", "")
    return visit.render(
        "lab.html",
        status=status_of(problem) if problem else 200,
        problem=problem,
        attacks=attacks,
        attack=attack,
        about=_about(attack),
        tables=tables,
        table=chosen if chosen in tables else next(iter(tables)),
        upload=UPLOAD,
        epsilons=given.get("epsilons", _EPSILONS),
        shown=SHOWN,
        chosen=_shown(given),
        fields=_fields(attack, given),
        runs=visit.service.attacks.runs(visit.principal),
        most=f"{MAX_BYTES >> 20} MB",
        rows=f"{MAX_ROWS:,}",
        most_epsilons=MAX_EPSILONS,
        seconds=SECONDS,
    )
