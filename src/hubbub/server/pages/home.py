"""Home: the datasets as cards, each with what is spent and what may still come."""

from fractions import Fraction
from typing import Any

from starlette.responses import Response

from hubbub.answers.budget import CapState, Overview
from hubbub.answers.estimate import significant
from hubbub.core.numbers import brief, down
from hubbub.curator.question import Question
from hubbub.errors import HubbubError
from hubbub.server import plots
from hubbub.server.pages.frame import Visit, drawing

#: What a plain count may cost; the largest of these that is still admitted is taken as the example.
_PRICES = tuple(map(Fraction, ("0.1", "0.05", "0.02", "0.01", "0.005", "0.001")))


def show(visit: Visit) -> Response:
    """Show the cards."""
    service, principal = visit.service, visit.principal
    views: dict[str, list[Overview]] = {}
    for view in service.budget(principal):
        views.setdefault(view.dataset, []).append(view)
    cards = [_card(visit, name, views.get(name, [])) for name in service.datasets(principal)]
    requests = service.requests(principal, limit=10) if principal.role == "analyst" else []
    return visit.render("home.html", cards=cards, requests=requests)


def request(visit: Visit) -> Response:
    """Ask the owner for more."""
    form = visit.form
    visit.service.request(
        visit.principal, form.get("dataset", ""), form.get("epsilon", "").strip(), form.get("reason", "")
    )
    return visit.go("/#more", "requested")


def _card(visit: Visit, name: str, views: list[Overview]) -> dict[str, Any]:
    table = visit.service.describe(visit.principal, name)
    analyst = visit.principal.role == "analyst"
    return {
        "name": name,
        "public": table["unit"] is None,
        "protected": table["protected"],
        "bars": [_bar(view, state, own=analyst) for view in views for state in _shown(view, own=analyst)],
        "outlook": _outlook(visit, table, views[0]) if analyst and views else None,
        "ask": analyst and (bool(views) or table["unit"] is None),
    }


def _shown(view: Overview, *, own: bool) -> list[CapState]:
    """Pick the caps to draw: the analyst's own ones, or the one of each analyst."""
    if own:
        return [state for state in view.caps if state.scope != "query"]
    return [state for state in view.caps if state.scope == "analyst"]


def _bar(view: Overview, state: CapState, *, own: bool) -> dict[str, Any]:
    per = f" this {state.per}" if state.per else ""
    who = {"analyst": "Yours", "group": f"Group {state.name}", "dataset": f"Everybody{per}"}.get(state.scope, "")
    return {
        "who": who if own else view.analyst,
        "text": spent(state),
        "drawing": drawing(plots.budget(state.spent, state.epsilon)),
    }


def spent(state: CapState) -> str:
    """Say how much of a cap is spent."""
    known = "an unknown part" if state.spent is None else brief(state.spent)
    return f"{known} of ε = {brief(state.epsilon)} spent"


def _outlook(visit: Visit, table: dict[str, Any], view: Overview) -> str:
    """Say what the rest is good for: so many more plain counts."""
    left = min((state.left for state in view.caps if state.scope != "query"), default=view.largest)
    price = next((price for price in _PRICES if price <= view.largest), None)
    if price is None:
        return "Nothing more can be asked: ask the owner for more budget."
    unit = table["unit"]["column"]
    counted = (
        "*"
        if unit is None or any(c["hidden"] for c in table["columns"] if c["name"] == unit)
        else f"DISTINCT {_name(unit)}"
    )
    sql = f"SELECT COUNT({counted}) AS n FROM {_name(table['name'])}"  # noqa: S608 - names in quotes, and planned alone
    question = Question(sql, epsilon=price)
    try:
        margin = visit.service.estimate(visit.principal, question).expected[0].plus_minus
    except HubbubError:
        return f"Up to ε = {down(view.largest)} in one query."
    number = int(left / price)
    return (
        f"About {number:,} more count{'' if number == 1 else 's'} at ±{significant(margin)} (ε = {brief(price)} each)."
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
