"""Explain and audit: what ε means, what is promised here, and whether the ledger is sound."""

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from hubbub.answers.budget import CapState
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import HubbubError, ParameterError
from hubbub.semantics.examples import TITLES, Story, tell
from hubbub.semantics.explained import FAMILY_MAX, Explanation
from hubbub.semantics.familiar import FAMILIAR
from hubbub.semantics.odds import PRESETS, but_for, factor, guess, percent, times
from hubbub.semantics.tradeoff import approximate
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
        "report.html",
        made=datetime.now(UTC),
        verified=service.verify(principal),
        promises=promises(visit),
        releases=service.releases(principal, limit=50),
        config_hash=service.current.config.hash,
    )


def _page(visit: Visit, verified: dict[str, Any] | None = None) -> Response:
    query = visit.request.query_params
    form = {"epsilon": query.get("epsilon", "1"), "delta": query.get("delta", ""), "prior": query.get("prior", "50")}
    form |= {"people": query.get("people", ""), "family": query.get("family", "4")}
    found, problem = None, None
    try:
        meaning = visit.service.meaning(
            visit.principal,
            epsilon=form["epsilon"].strip(),
            delta=form["delta"].strip() or 0,
            prior=numbers.exact(form["prior"].strip() or "50", "the belief") / 100,
            people=_whole(form["people"], "the number of people", 10**12),
        )
        found = Explanation(meaning, _whole(form["family"], "the family", FAMILY_MAX) or 4)
    except HubbubError as error:
        problem = error
    promised = promises(visit)
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
        familiar=FAMILIAR,
        stories=TITLES,
        story=_story(query.get("example", "")),
        promises=promised,
        verified=verified,
    )


def _whole(text: str, what: str, most: int) -> int | None:
    """Read a whole number from 1 on; None where nothing was written."""
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 0 < int(text) <= most):
        raise ParameterError("HB103", f"{what} is not a whole number.", "Write one such as 4 or 5000.")
    return int(text)


def _story(name: str) -> Story | None:
    return tell(name) if name in TITLES else None


def _curves(
    found: Explanation | None, promised: list[dict[str, Any]]
) -> dict[str, tuple[tuple[Fraction, Fraction], ...]]:
    """Bound the best test against the promise, and against what everybody has asked so far of each dataset."""
    curves = {}
    if found is not None:
        curves[found.heading] = approximate(epsilon=found.meaning.epsilon, delta=found.meaning.delta).curve()
    for each in promised:
        for state in each["states"]:
            if state.scope == "dataset" and state.per is None and state.spent:
                curves[f"{each['dataset']} so far"] = approximate(epsilon=state.spent, delta=state.delta).curve()
    return curves


def promises(visit: Visit) -> list[dict[str, Any]]:
    """Say of each dataset whom it protects, and what each cap allows and has given away."""
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


_ORDER = {"dataset": 0, "group": 1, "analyst": 2, "query": 3}


def _cap(who: str, state: CapState) -> dict[str, str]:
    spent = "?" if state.spent is None else brief(state.spent)
    so_far = "?" if state.spent is None else _surest(state.spent, state.delta if state.spent else Fraction(0))
    asked = state.scope != "query"
    return {
        "who": who,
        "epsilon": brief(state.epsilon),
        "spent": spent if asked else "–",
        "so_far": so_far if asked else "–",
        "at_most": _surest(state.epsilon, state.delta),
    }


def _surest(epsilon: Fraction, delta: Fraction) -> str:
    """Say how sure somebody gets from 50/50 at most."""
    return percent(guess(epsilon=epsilon, delta=Fraction(0))) + but_for(delta)
