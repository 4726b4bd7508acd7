"""Home page: a card for each dataset with its spent and remaining budget.

Tested in tests/server/test_pages.py.
"""

from fractions import Fraction
from typing import Any

from starlette.responses import Response

from hubbub.answers.budget import BudgetOverview, CapState
from hubbub.answers.estimate import significant
from hubbub.core.numbers import brief, readable, round_down, round_up
from hubbub.curator.question import Question
from hubbub.errors import HubbubError
from hubbub.server import page_plots as plots
from hubbub.server.pages.frame import Visit, drawing

#: Costs of a count; the largest one within budget is used as the example.
_COSTS = tuple(map(Fraction, ("0.1", "0.05", "0.02", "0.01", "0.005", "0.001")))


def show(visit: Visit) -> Response:
    """Show the page."""
    service, principal = visit.service, visit.principal
    if principal.role == "steward":
        return visit.go("/reviews")
    views: dict[str, list[BudgetOverview]] = {}
    for view in service.catalog.budget(principal):
        views.setdefault(view.dataset, []).append(view)
    cards = [_card(visit, name, views.get(name, [])) for name in service.catalog.datasets(principal)]
    requests = service.administration.requests(principal, limit=10) if principal.role == "analyst" else []
    changes = service.news.changes(principal) if principal.role == "analyst" else None
    return visit.render("home.html", cards=cards, requests=requests, changes=changes)


def request(visit: Visit) -> Response:
    """Send a request for more budget to the data owner."""
    form = visit.form
    visit.service.administration.request(
        visit.principal, form.get("dataset", ""), form.get("epsilon", "").strip(), form.get("reason", "")
    )
    return visit.go("/#more", "requested")


def _card(visit: Visit, name: str, views: list[BudgetOverview]) -> dict[str, Any]:
    table = visit.service.catalog.describe(visit.principal, name)
    analyst = visit.principal.role == "analyst"
    return {
        "name": name,
        "public": table["unit"] is None,
        "protected": table["protected"],
        "bars": [_bar(view, state, own=analyst) for view in views for state in _shown(view, own=analyst)],
        "outlook": _outlook(visit, table, views[0]) if analyst and views else None,
        "ask": analyst and (bool(views) or table["unit"] is None),
    }


def _shown(view: BudgetOverview, *, own: bool) -> list[CapState]:
    """Return the caps to draw: all that apply to the analyst, or each analyst's individual cap."""
    if own:
        return [state for state in view.caps if state.scope != "query"]
    return [state for state in view.caps if state.scope == "analyst"]


def _bar(view: BudgetOverview, state: CapState, *, own: bool) -> dict[str, Any]:
    per = f" this {state.per}" if state.per else ""
    who = {
        "analyst": "Your budget",
        "share": f"Your fair share of {state.name}",
        "project": f"Project {state.name}",
        "rest": f"Group {state.name}, outside of its projects",
        "group": f"Group {state.name}",
        "dataset": f"All analysts{per}",
    }.get(state.scope, "")
    who = who if own else view.analyst
    return {
        "who": f"{who} in {state.block}" if state.block else who,
        "text": spent(state),
        "drawing": drawing(plots.budget(state.spent, state.epsilon)),
    }


def spent(state: CapState) -> str:
    """Return how much of a cap is spent, as text."""
    amount = "an unknown part" if state.spent is None else round_up(state.spent)
    return f"{amount} of ε = {readable(state.epsilon)} spent"


def _outlook(visit: Visit, table: dict[str, Any], view: BudgetOverview) -> str:
    """Return what the remaining budget is enough for, in counts of rows."""
    if view.blocks:
        return f"Up to ε = {round_down(view.largest)} in {view.next_query}."
    left = min((state.left for state in view.caps if state.scope != "query"), default=view.largest)
    cost = next((cost for cost in _COSTS if cost <= view.largest), None)
    if cost is None:
        return "Your budget is used up. Request more from the data owner."
    # counts rows, as most queries do: its noise depends on the contribution bounds of this dataset
    sql = f"SELECT COUNT(*) AS n FROM {_name(table['name'])}"  # noqa: S608 - quoted names, and only planned
    question = Question(sql, epsilon=cost)
    try:
        expected = visit.service.queries.estimate(visit.principal, question).expected
    except HubbubError:
        expected = ()
    if not expected:  # a count of rows that is public has no error
        return f"Up to ε = {round_down(view.largest)} in one query."
    number = int(left / cost)
    return (
        f"Enough for about {number:,} count{'' if number == 1 else 's'} of rows with a margin of error of"
        f" ±{significant(expected[0].plus_minus)} (ε = {brief(cost)} each)."
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
