"""Scheduled queries: a list with a form, and for each query its growing table, charts over time and an export.

Tested in tests/server/test_schedules.py.
"""

import csv
import io
from typing import get_args

from starlette.responses import Response

from hubbub.answers.over_time import MAX_CURVES, charts, growing_table
from hubbub.core.blocks import BlockLength
from hubbub.errors import HubbubError, ParameterError
from hubbub.server.pages.frame import Visit, drawing
from hubbub.server.pages.releases import without_formulas
from hubbub.server.problems import status_of
from hubbub.server.schedule_service import ScheduleAnswers

#: Rows of the table on the page; the export has all.
_ROWS = 500
_FORM = {"name": "", "sql": "", "epsilon": "0.1", "every": "month", "first": "", "wait": "1", "analyst": ""}


def index(visit: Visit) -> Response:
    """List the scheduled queries."""
    return _list(visit, _FORM)


def _list(visit: Visit, form: dict[str, str], problem: HubbubError | None = None) -> Response:
    return visit.render(
        "schedules.html",
        status=200 if problem is None else status_of(problem),
        schedules=visit.service.schedules.entries(visit.principal),
        lengths=get_args(BlockLength),
        form=form,
        problem=problem,
    )


def add(visit: Visit) -> Response:
    """Schedule a query."""
    form = {name: visit.form.get(name, given).strip() for name, given in _FORM.items()}
    try:
        if not form["wait"].isdecimal() or len(form["wait"]) > 3:
            raise ParameterError("HB799", "The days to wait are not a number.", "Write a number from 0 to 366.")
        added = visit.service.schedules.add(
            visit.principal,
            name=form["name"],
            sql=form["sql"],
            every=form["every"],
            epsilon=form["epsilon"],
            analyst=form["analyst"] or None,
            first=form["first"] or None,
            wait=int(form["wait"]),
        )
    except HubbubError as error:
        return _list(visit, form, error)
    return visit.go(f"/schedules/{added.schedule.analyst}/{added.schedule.name}", "scheduled")


def show(visit: Visit) -> Response:
    """Show the answers of one query over time."""
    found = _answers(visit)
    head, *rows = [*csv.reader(io.StringIO(found.table()))] or [[]]
    return visit.render(
        "schedule.html",
        view=found.view,
        blocks=[each for each in reversed(found.blocks) if each.release is None],
        charts=[drawing(svg) for svg in charts(found.releases).values()],
        curves=MAX_CURVES,
        head=head,
        rows=rows[-_ROWS:],
        hidden=max(0, len(rows) - _ROWS),
    )


def export(visit: Visit) -> Response:
    """Download all answers of a query as one CSV table."""
    found = _answers(visit)
    text = growing_table({block: without_formulas(release) for block, release in found.releases.items()})
    disposition = f'attachment; filename="schedule-{visit.principal.role}.csv"'
    return Response(text, media_type="text/csv; charset=utf-8", headers={"Content-Disposition": disposition})


def remove(visit: Visit) -> Response:
    """Remove a scheduled query."""
    values = visit.request.path_params
    visit.service.schedules.remove(visit.principal, values["analyst"], values["name"])
    return visit.go("/schedules", "unscheduled")


def _answers(visit: Visit) -> ScheduleAnswers:
    values = visit.request.path_params
    return visit.service.schedules.show(visit.principal, values["analyst"], values["name"])
