"""Explain and audit page: what ε means, the privacy guarantees, and verification of the ledger."""

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from hubbub.answers.budget import CapState
from hubbub.attacks.screens import SCREENS
from hubbub.core import numbers
from hubbub.core.numbers import brief, round_up
from hubbub.core.odds import factor, times
from hubbub.errors import HubbubError, ParameterError
from hubbub.semantics.explanation import FAMILY_MAX, Explanation
from hubbub.semantics.odds import EVEN, PRESETS, certainty
from hubbub.semantics.reference_points import REFERENCE_POINTS
from hubbub.semantics.tradeoff import approximate
from hubbub.server import page_plots as plots
from hubbub.server.pages.frame import Visit, drawing
from hubbub.server.problems import status_of


def show(visit: Visit) -> Response:
    """Show the page."""
    return _page(visit)


def verify(visit: Visit) -> Response:
    """Verify the ledger and show the result."""
    return _page(visit, verified=visit.service.audit.verify(visit.principal))


def report(visit: Visit) -> Response:
    """Show the printable privacy report."""
    service, principal = visit.service, visit.principal
    return visit.render(
        "report.html",
        made=datetime.now(UTC),
        verified=service.audit.verify(principal),
        guarantees=guarantees(visit),
        releases=service.catalog.releases(principal, limit=50),
        config_hash=service.current.config.hash,
    )


def _page(visit: Visit, verified: dict[str, Any] | None = None) -> Response:
    query = visit.request.query_params
    form = {"epsilon": query.get("epsilon", "1"), "delta": query.get("delta", ""), "prior": query.get("prior", "50")}
    form |= {"people": query.get("people", ""), "family": query.get("family", "4")}
    found, problem = None, None
    try:
        meaning = visit.service.catalog.meaning(
            visit.principal,
            epsilon=form["epsilon"].strip(),
            delta=form["delta"].strip() or 0,
            prior=numbers.exact(form["prior"].strip() or "50", "The prior probability") / 100,
            people=_whole(form["people"], "The number of people", 10**12),
        )
        found = Explanation(meaning, _whole(form["family"], "The group size", FAMILY_MAX) or 4)
    except HubbubError as error:
        problem = error
    promised = guarantees(visit)
    curves = _curves(found, promised)
    return visit.render(
        "explain.html",
        status=status_of(problem) if problem else 200,
        form=form,
        problem=problem,
        explained=found,
        icons=drawing(plots.icons(found.meaning.of_a_hundred)) if found else "",
        curves=curves,
        drawn=drawing(plots.tradeoff(curves)),
        presets=[{"epsilon": brief(each), "factor": times(factor(each))} for each in PRESETS],
        familiar=REFERENCE_POINTS,
        screens=SCREENS.values(),
        guarantees=promised,
        verified=verified,
    )


def _whole(text: str, what: str, most: int) -> int | None:
    """Read a positive whole number; None if the field is empty."""
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 0 < int(text) <= most):
        raise ParameterError(
            "HB103", f"{what} must be a whole number from 1 to {most}.", "Enter a number such as 4 or 5000."
        )
    return int(text)


def _curves(
    found: Explanation | None, promised: list[dict[str, Any]]
) -> dict[str, tuple[tuple[Fraction, Fraction], ...]]:
    """Return trade-off curves: of the parameters shown, and of all charges so far on each dataset."""
    curves = {}
    if found is not None:
        curves[found.heading] = approximate(epsilon=found.meaning.epsilon, delta=found.meaning.delta).curve()
    for each in promised:
        for state in each["states"]:
            if state.scope == "dataset" and state.per is None and state.spent:
                curves[f"{each['dataset']} so far"] = approximate(epsilon=state.spent, delta=state.delta).curve()
    return curves


def guarantees(visit: Visit) -> list[dict[str, Any]]:
    """Return the guarantees of each dataset: its privacy unit, and each cap with its spending."""
    service, principal = visit.service, visit.principal
    found = []
    views = service.catalog.budget(principal)
    for name in service.catalog.datasets(principal):
        described = service.catalog.describe(principal, name)
        if described["unit"] is None:
            continue
        caps: dict[str, CapState] = {}
        for view in views:
            if view.dataset == name:
                for state in view.caps:
                    caps.setdefault(view.describe_cap(state), state)
        found.append(
            {
                "dataset": name,
                "protected": described["protected"],
                "hidden": described["neighbors"],
                "states": tuple(caps.values()),
                "caps": [
                    _cap(who, state) for who, state in sorted(caps.items(), key=lambda item: _ORDER[item[1].scope])
                ],
            }
        )
    return found


_ORDER = {"dataset": 0, "group": 1, "rest": 2, "project": 3, "share": 4, "analyst": 5, "query": 6}


def _cap(who: str, state: CapState) -> dict[str, Any]:
    spent = "?" if state.spent is None else round_up(state.spent)
    so_far = "?" if state.spent is None else _so_far(state.spent, state.delta)
    cumulative = state.scope != "query"
    return {
        "who": who,
        "cumulative": cumulative,
        "epsilon": brief(state.epsilon),
        "spent": spent if cumulative else "–",
        "so_far": so_far if cumulative else "–",
        "at_most": certainty(EVEN, epsilon=state.epsilon, delta=state.delta),
    }


def _so_far(spent: Fraction, delta: Fraction) -> str:
    """Return how sure someone who starts at 50% can have become at most."""
    return certainty(EVEN, epsilon=spent, delta=delta) if spent else "50%"
