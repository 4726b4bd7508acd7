"""Explain and audit: what ε means, what is promised here, and whether the ledger is sound."""

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.core.overview import CapState
from hubbub.errors import HubbubError, ParameterError
from hubbub.semantics.odds import PRESETS, factor, guess, percent, times
from hubbub.server import plots
from hubbub.server.pages.frame import Visit, drawing
from hubbub.server.problems import status_of


def show(visit: Visit) -> Response:
    """Show what an ε means."""
    return _page(visit)


def verify(visit: Visit) -> Response:
    """Derive everything in the ledger again, and say whether it agrees."""
    return _page(visit, verified=visit.service.verify(visit.principal))


def report(visit: Visit) -> Response:
    """Show everything that a privacy officer files, to be printed."""
    service, principal = visit.service, visit.principal
    return visit.render(
        "report.html", made=datetime.now(UTC), verified=service.verify(principal), promises=promises(visit),
        releases=service.releases(principal, limit=50), config_hash=service.current.config.hash,
    )  # fmt: skip


def _page(visit: Visit, verified: dict[str, Any] | None = None) -> Response:
    query = visit.request.query_params
    form = {"epsilon": query.get("epsilon", "1"), "delta": query.get("delta", ""), "prior": query.get("prior", "50")}
    form["people"] = query.get("people", "")
    found, problem = None, None
    try:
        people = form["people"].strip()
        if people and not (people.isascii() and people.isdecimal() and int(people[:12]) > 0 and len(people) <= 12):
            raise ParameterError("HB103", "the number of people is not a whole number.", "Write one such as 5000.")
        found = visit.service.meaning(
            visit.principal, epsilon=form["epsilon"].strip(), delta=form["delta"].strip() or 0,
            prior=numbers.exact(form["prior"].strip() or "50", "the belief") / 100,
            people=int(people) if people else None,
        )  # fmt: skip
    except HubbubError as error:
        problem = error
    return visit.render(
        "explain.html", status=status_of(problem) if problem else 200, form=form, problem=problem, meaning=found,
        icons=drawing(plots.icons(found.of_a_hundred)) if found else "",
        presets=[{"epsilon": brief(each), "factor": times(factor(each))} for each in PRESETS],
        promises=promises(visit), verified=verified,
    )  # fmt: skip


def promises(visit: Visit) -> list[dict[str, Any]]:
    """Say of each data set whom it protects, and what each cap allows and has given away."""
    service, principal = visit.service, visit.principal
    found = []
    views = service.budget(principal)
    for name in service.datasets(principal):
        described = service.describe(principal, name)
        if described["unit"] is None:
            continue
        caps: dict[str, CapState] = {}
        for view in views:
            if view.dataset == name:
                for state in view.caps:
                    caps.setdefault(view.whose(state), state)
        found.append({
            "dataset": name,
            "protected": described["protected"],
            "hidden": described["neighbours"],
            "caps": [_cap(who, state) for who, state in sorted(caps.items(), key=lambda item: _ORDER[item[1].scope])],
        })  # fmt: skip
    return found


_ORDER = {"dataset": 0, "group": 1, "analyst": 2, "query": 3}


def _cap(who: str, state: CapState) -> dict[str, str]:
    at_most = percent(guess(epsilon=state.epsilon, delta=Fraction(0)))
    spent = "?" if state.spent is None else brief(state.spent)
    return {
        "who": who,
        "epsilon": brief(state.epsilon),
        "spent": "–" if state.scope == "query" else spent,
        "at_most": at_most + (f", but for a chance of {brief(state.delta)}" if state.delta else ""),
    }
