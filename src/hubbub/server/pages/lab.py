"""The Attack lab: choose an attack, a table, a protection and ε; watch how often it is right, and take the report."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from hubbub.attacks import report
from hubbub.attacks.base import Study
from hubbub.attacks.catalogue import Attack
from hubbub.attacks.report_plot import plot
from hubbub.attacks.study_worker import BUNDLED, MADE_UP, UPLOAD
from hubbub.attacks.upload import MOST_BYTES, MOST_ROWS
from hubbub.errors import AttackError, HubbubError
from hubbub.server.attack_lab import MOST_EPSILONS, SECONDS, Run, Wanted
from hubbub.server.pages.frame import Visit, drawing
from hubbub.server.problems import missing, status_of

_EPSILONS = "0.1, 0.5, 1, 2, 5"
_SET = "set-"
#: Which protections a study shows: all of them, those that promise an ε, or those that promise nothing.
SHOWN: Mapping[str, str] = {
    "all": "Every protection, side by side",
    "promise": "Only with a promise of ε",
    "none": "Only without a promise",
}
_FORMS = ("html", "pdf", "svg", "json")


def show(visit: Visit) -> Response:
    """Show the form, filled in as the address says."""
    return _page(visit, visit.request.query_params)


def begin(visit: Visit) -> Response:
    """Put a study in line, and go on to its page."""
    form = visit.form
    chosen = form.get("table", MADE_UP)
    # a browser sends an empty file where none was chosen
    sent = (visit.files.get("file") or None) if chosen == UPLOAD else None
    epsilons = [part.strip() for part in form.get("epsilons", "").split(",")]
    settings = {name.removeprefix(_SET): value for name, value in form.items() if name.startswith(_SET)}
    try:
        if any(not part for part in epsilons):
            raise AttackError("HB643", "no ε is given, or a comma too many.", f"Write them as {_EPSILONS}.")
        wanted = Wanted(form.get("attack", ""), tuple(epsilons), chosen, sent, _changed(visit, form, settings))
        found = visit.service.begin_attack(visit.principal, wanted)
    except HubbubError as error:
        return _page(visit, form, problem=error)
    return visit.go(f"/explain/lab/{found.id}?{urlencode({'show': _shown(form)})}")


def run(visit: Visit) -> Response:
    """Show a study: how far it is, or what came of it."""
    found = _run(visit)
    every = () if found.study is None else found.study.findings
    shown = {**SHOWN, **{f"={each.target}": f"Only: {each.target}" for each in every}}
    chosen = _shown(visit.request.query_params, shown)
    study = _filtered(found.study, chosen) if found.state == "done" and found.study is not None else None
    findings = () if study is None else study.findings
    again = {"attack": found.attack.name, "epsilons": found.prices, "show": chosen}
    again |= {f"{_SET}{name}": str(value) for name, value in found.settings.items()}
    return visit.render(
        "lab_run.html",
        run=found,
        study=study,
        shown=shown,
        chosen=chosen,
        problem=found.problem,
        heading=found.study.title if found.study is not None else f"Attack: {found.attack.name}",
        gist="" if study is None else report.gist(study),
        plot="" if study is None else drawing(plot(study)),
        columns=report.COLUMNS,
        rows=[*map(report.row, findings)],
        facts=[(each.label, report.facts(each)) for each in findings if each.facts],
        broken=study is not None and bool(report.broken(study)),
        alarm=report.ALARM,
        reading=report.READING,
        terms=found.terms(),
        again=urlencode(again),
        pdf=find_spec("matplotlib") is not None,
    )


def state(visit: Visit) -> Response:
    """Say how far a study is, for the script of its page."""
    found = _run(visit)
    done, what = found.progress or (0.0, "")
    return JSONResponse({"state": found.state, "done": done, "what": what})


def cancel(visit: Visit) -> Response:
    """Stop a study."""
    number = visit.request.path_params["number"]
    visit.service.cancel_attack(visit.principal, number)
    return visit.go(f"/explain/lab/{number}")


def export(visit: Visit) -> Response:
    """Give a report to take away."""
    found, form = _run(visit), visit.request.path_params["form"]
    if form not in _FORMS or found.state != "done" or found.study is None:
        raise missing("such report")
    study = _filtered(found.study, visit.request.query_params.get("show", "all"))
    kind, write = report.FORMS[form]
    name = f'attachment; filename="hubbub-{found.attack.name}.{form}"'
    content = write(study, report.Made(terms=found.terms()))
    return Response(content, media_type=kind, headers={"Content-Disposition": name})


def _run(visit: Visit) -> Run:
    return visit.service.attack_run(visit.principal, visit.request.path_params["number"])


def _shown(given: Mapping[str, str], known: Mapping[str, str] = SHOWN) -> str:
    return given["show"] if given.get("show") in known else "all"


def _filtered(study: Study, chosen: str) -> Study:
    """Keep the findings that were asked for; its sentences stay, since they speak of all."""
    kept = {
        "all": study.findings,
        "promise": [each for each in study.findings if each.ceiling is not None],
        "none": [each for each in study.findings if each.ceiling is None],
    }.get(chosen, [each for each in study.findings if f"={each.target}" == chosen])
    return replace(study, findings=tuple(kept or study.findings))


def _changed(visit: Visit, form: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is as it comes, so that a report says what somebody chose."""
    known = {each.name: each for each in visit.service.attacks(visit.principal)}
    attack = known.get(form.get("attack", ""))
    usual = {} if attack is None else {name: _text(value) for name, value in attack.settings.items()}
    return {name: value.strip() for name, value in settings.items() if value.strip() != usual.get(name)}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _about(attack: Attack) -> list[list[str]]:
    """Give what an attack does, paragraph by paragraph; in each, every second part is code."""
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
    attacks = visit.service.attacks(visit.principal)
    known = {each.name: each for each in attacks}
    attack = known.get(given.get("attack", "")) or attacks[0]
    tables = {} if attack.table == "must" else {MADE_UP: "Made up by the attack"}
    if attack.table != "no":
        tables |= {name: f"{name}: comes with hubbub, public" for name in BUNDLED}
        tables |= {UPLOAD: "My own, sent along as a CSV file"}
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
        runs=visit.service.attack_runs(visit.principal),
        most=f"{MOST_BYTES >> 20} MB",
        rows=f"{MOST_ROWS:,}",
        most_epsilons=MOST_EPSILONS,
        seconds=SECONDS,
    )
