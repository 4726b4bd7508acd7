"""Curate: the owner's page. Requests, spending, analysts, tokens and hubbub.yaml; an auditor may look."""

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, cast

from starlette.responses import Response

from hubbub.accounting.filters import Budget
from hubbub.answers.budget import Overview, Past
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import HubbubError, ParameterError
from hubbub.server import plots
from hubbub.server.pages.frame import Visit, drawing, only
from hubbub.server.pages.home import spent
from hubbub.server.problems import status_of
from hubbub.server.state import Role

#: Charges that the drawing of spending reads, the newest of all.
_DRAWN = 500


def show(visit: Visit) -> Response:
    """Show everything."""
    return _page(visit)


def decide(visit: Visit) -> Response:
    """Grant or refuse a request."""
    number, note = visit.request.path_params["number"], visit.form.get("note", "").strip()[:500]
    if visit.form.get("verdict") == "grant":
        return _done(visit, lambda: visit.service.grant(visit.principal, number, note), "granted", "requests")
    return _done(visit, lambda: visit.service.refuse(visit.principal, number, note), "refused", "requests")


def add_analyst(visit: Visit) -> Response:
    """Add an analyst with one cap, and make a token for them."""
    form, service = visit.form, visit.service
    name, dataset = form.get("name", "").strip(), form.get("dataset", "")
    try:
        only(visit, "owner")
        if name in service.analysts(visit.principal):
            raise ParameterError("HB144", f"there is an analyst called {name} already.", "Edit hubbub.yaml below.")
        days = _days(form.get("days", ""))
        budget = Budget(numbers.epsilon(form.get("epsilon", "").strip()), _delta(visit, dataset))
        service.add_analyst(visit.principal, name, {dataset: budget})
        _, text = service.issue(visit.principal, name, "analyst", days)
    except HubbubError as error:
        return _page(visit, problem=error)
    return _page(visit, issued={"name": name, "text": text})


def remove_analyst(visit: Visit) -> Response:
    """Remove an analyst."""
    name = visit.form.get("name", "")
    return _done(visit, lambda: visit.service.remove_analyst(visit.principal, name), "removed", "analysts")


def issue(visit: Visit) -> Response:
    """Make a token, and show it this once."""
    form = visit.form
    name = form.get("name", "").strip()
    try:
        role = cast("Role", form.get("role", ""))  # what is no role is refused by the accounts
        _, text = visit.service.issue(visit.principal, name, role, _days(form.get("days", "")))
    except HubbubError as error:
        return _page(visit, problem=error)
    return _page(visit, issued={"name": name, "text": text})


def revoke(visit: Visit) -> Response:
    """Close a token."""
    number = visit.form.get("id", "")
    return _done(visit, lambda: visit.service.revoke(visit.principal, number), "revoked", "tokens")


def check(visit: Visit) -> Response:
    """Say what a new hubbub.yaml would change, and what is wrong with it."""
    text = _text(visit)
    found = visit.service.check(visit.principal, text)
    return _page(visit, checked=found, config_text=text)


def apply(visit: Visit) -> Response:
    """Go on under a new hubbub.yaml, if nobody changed it since it was looked at."""
    text, expected = _text(visit), visit.form.get("hash", "")
    try:
        visit.service.apply(visit.principal, text, expected)
    except HubbubError as error:
        return _page(visit, problem=error, config_text=text)
    return visit.go("/curate#config", "applied")


def _done(visit: Visit, work: Any, notice: str, place: str) -> Response:
    try:
        work()
    except HubbubError as error:
        return _page(visit, problem=error)
    return visit.go(f"/curate#{place}", notice)


def _text(visit: Visit) -> str:
    """Read the editor: browsers send the ends of lines as two characters."""
    return visit.form.get("text", "").replace("\r\n", "\n")


def _days(text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdecimal() and len(text) < 6):
        raise ParameterError("HB144", "the days are not a whole number.", "Write one such as 90.")
    return int(text)


def _delta(visit: Visit, dataset: str) -> Fraction:
    """Give the δ of a dataset: a cap on it that says nothing of δ has this one."""
    caps = visit.service.current.config.policy.datasets.get(dataset, ())
    return next((cap.budget.delta for cap in caps if cap.scope == "dataset"), Fraction(0))


def _page(
    visit: Visit,
    *,
    problem: HubbubError | None = None,
    issued: dict[str, str] | None = None,
    checked: dict[str, Any] | None = None,
    config_text: str | None = None,
) -> Response:
    service, principal = visit.service, visit.principal
    only(visit, "owner", "auditor")
    owner = principal.role == "owner"
    draft = service.config(principal) if owner else None
    views = service.budget(principal)
    names = {view.dataset for view in views} | set(service.current.config.policy.datasets)
    past = service.releases(principal, limit=_DRAWN)
    requests = sorted(service.requests(principal), key=lambda each: each.state != "open")
    return visit.render(
        "curate.html",
        status=status_of(problem) if problem else 200,
        problem=problem,
        issued=issued,
        requests=requests,
        spending=[_spending(visit, name, past, views) for name in sorted(names)],
        analysts=_analysts(visit, views),
        private=sorted(names),
        tokens=service.tokens(principal) if owner else [],
        checked=checked,
        diff=_diff(checked["diff"]) if checked else [],
        config_text=config_text if draft is None or config_text is not None else draft.text,
        # an edit starts from the text that its reader saw
        config_hash=visit.form.get("hash") or (draft.hash if draft else ""),
    )


def _analysts(visit: Visit, views: Sequence[Overview]) -> list[dict[str, Any]]:
    found = []
    for name in visit.service.analysts(visit.principal):
        lines = []
        for view in views:
            for state in view.caps if view.analyst == name else ():
                if state.scope == "analyst":
                    drawn = drawing(plots.budget(state.spent, state.epsilon))
                    lines.append(
                        {
                            "dataset": view.dataset,
                            "drawing": drawn,
                            "text": spent(state),
                            "cap": brief(state.epsilon),
                        }
                    )
        none = {"dataset": "–", "drawing": "", "text": "by a group's cap alone", "cap": "–"}
        found.append({"name": name, "lines": lines or [none]})
    return found


def _spending(visit: Visit, dataset: str, past: Sequence[Past], views: Sequence[Overview]) -> dict[str, Any]:
    """Draw the charges of each analyst added up, in time."""
    mine = sorted((each for each in past if each.dataset == dataset), key=lambda each: each.id)
    own = [(view.analyst, state) for view in views if view.dataset == dataset for state in view.caps]
    caps = {name: state.epsilon for name, state in own if state.scope == "analyst"}
    series: dict[str, list[tuple[datetime, float]]] = {name: [] for name in caps}
    for each in mine:
        points = series.setdefault(each.analyst, [])
        points.append((each.time, (points[-1][1] if points else 0.0) + float(each.epsilon or 0)))
    cap = next((c for c in visit.service.current.config.policy.datasets[dataset] if c.scope == "dataset"), None)
    end = datetime.now(UTC)
    drawn = ""
    if mine:
        most = float(cap.budget.epsilon) if cap else 0.0
        drawn = drawing(plots.over_time(series, cap=most, start=mine[0].time, end=end))
    totals = [
        (name, f"{points[-1][1] if points else 0:.4g}" + (f" of ε = {brief(caps[name])}" if name in caps else ""))
        for name, points in series.items()
    ]
    return {"dataset": dataset, "drawing": drawn, "totals": totals}


def _diff(text: str) -> list[tuple[str, str]]:
    """Sort the lines of a difference by what they do."""
    kinds = {"+": "plus", "-": "minus", "@": "place"}
    return [(kinds.get(line[:1], "same"), line) for line in text.splitlines()]
