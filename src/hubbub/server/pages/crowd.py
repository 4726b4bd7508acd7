"""Pages of the crowd sanitizers: choose a study, run it, and see its table and plot. Nothing there is private.

Tested in tests/server/test_crowd_pages.py.
"""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from hubbub.core.settings import Setting
from hubbub.crowd.disclaimers import NOT_PRIVATE
from hubbub.crowd.studies.catalogue import StudyEntry
from hubbub.errors import HubbubError
from hubbub.server.attack_lab import SECONDS, CrowdRequest, CrowdRun
from hubbub.server.pages.frame import Visit, drawing
from hubbub.server.problems import not_found, status_of

_SET = "set-"


def show(visit: Visit) -> Response:
    """Show the form, filled in from the query string."""
    return _page(visit, visit.request.query_params)


def begin(visit: Visit) -> Response:
    """Queue a study and redirect to its page."""
    form = visit.form
    entry = _entry(visit, form)
    usual = {name: _text(value) for name, value in entry.settings.items()}
    given = {name.removeprefix(_SET): value.strip() for name, value in form.items() if name.startswith(_SET)}
    changed = {name: value for name, value in given.items() if value != usual.get(name)}
    try:
        run = visit.service.crowd.begin(visit.principal, CrowdRequest(form.get("study", ""), changed))
    except HubbubError as error:
        return _page(visit, form, problem=error)
    return visit.go(f"/explain/crowd/{run.id}")


def run(visit: Visit) -> Response:
    """Show a study: its progress or its results."""
    study_run = _run(visit)
    study = study_run.study if study_run.state == "done" else None
    again = {"study": study_run.entry.name} | {
        f"{_SET}{name}": str(value) for name, value in study_run.settings.items()
    }
    return visit.render(
        "crowd_run.html",
        run=study_run,
        study=study,
        problem=study_run.problem,
        heading=study.title if study is not None else study_run.entry.name,
        words=[] if study is None else [text.split("`") for text in study.words],
        plots=[] if study is None else [drawing(plot.svg()) for plot in study.plots],
        settings=", ".join(f"{name} = {value}" for name, value in study_run.settings.items()) or "defaults",
        warning=NOT_PRIVATE,
        again=urlencode(again),
    )


def state(visit: Visit) -> Response:
    """Return the progress of a study as JSON, for the script of its page."""
    study_run = _run(visit)
    done, what = study_run.progress or (0.0, "")
    return JSONResponse({"state": study_run.state, "done": done, "what": what})


def cancel(visit: Visit) -> Response:
    """Cancel a study."""
    number = visit.request.path_params["number"]
    visit.service.crowd.cancel(visit.principal, number)
    return visit.go(f"/explain/crowd/{number}")


def export(visit: Visit) -> Response:
    """Download the plot of a study."""
    study_run = _run(visit)
    if study_run.state != "done" or study_run.study is None:
        raise not_found("plot of this study")
    name = f'attachment; filename="hubbub-{study_run.entry.name}.svg"'
    headers = {"Content-Disposition": name}
    return Response(study_run.study.plots[0].svg(), media_type="image/svg+xml", headers=headers)


def _run(visit: Visit) -> CrowdRun:
    return visit.service.crowd.run(visit.principal, visit.request.path_params["number"])


def _text(value: Setting) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _entry(visit: Visit, given: Mapping[str, str]) -> StudyEntry:
    entries = visit.service.crowd.catalog(visit.principal)
    return next((entry for entry in entries if entry.name == given.get("study")), entries[0])


def _about(entry: StudyEntry) -> list[list[str]]:
    """Return the description of a study in paragraphs; in each, every second part is code."""
    paragraphs = entry.about.split("Theorem (")[0].split("\n\n")
    return [" ".join(text.split()).split("`") for text in paragraphs if text.strip()]


def _page(visit: Visit, given: Mapping[str, str], problem: HubbubError | None = None) -> Response:
    entry = _entry(visit, given)
    fields = [
        {
            "name": f"{_SET}{name}",
            "label": name.replace("_", " ").capitalize(),
            "value": given.get(f"{_SET}{name}", _text(usual)),
        }
        for name, usual in entry.settings.items()
    ]
    return visit.render(
        "crowd.html",
        status=status_of(problem) if problem else 200,
        problem=problem,
        entries=visit.service.crowd.catalog(visit.principal),
        entry=entry,
        about=_about(entry),
        fields=fields,
        changed=any(given.get(f"{_SET}{name}", _text(usual)) != _text(usual) for name, usual in entry.settings.items()),
        runs=visit.service.crowd.runs(visit.principal),
        warning=NOT_PRIVATE,
        seconds=SECONDS,
    )
