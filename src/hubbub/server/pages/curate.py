"""Administration page: budget requests, spending, analysts, tokens, and hubbub.yaml. Auditors can view it.

Tested in tests/server/test_pages.py.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, cast

from starlette.responses import Response

from hubbub.accounting.filters import Budget
from hubbub.answers.budget import COMPOSED, BudgetOverview, CapState
from hubbub.config.json_schema import SCHEMA
from hubbub.config.summary import protected_unit
from hubbub.core import numbers
from hubbub.core.numbers import readable, round_up
from hubbub.errors import HubbubError, ParameterError
from hubbub.server import page_plots as plots
from hubbub.server.budget_forecast import forecast
from hubbub.server.config_editor import digest
from hubbub.server.pages.frame import Visit, drawing, require_role
from hubbub.server.pages.home import spent
from hubbub.server.problems import not_found, status_of
from hubbub.server.state import Role, TokenRecord

#: Number of most recent charges in the spending plot.
_MAX_CHARGES = 500
#: Most open requests whose effect is described on the page.
_EXPLAINED = 20


def show(visit: Visit) -> Response:
    """Show the page."""
    return _page(visit)


def decide(visit: Visit) -> Response:
    """Grant or refuse a request."""
    number, note = visit.request.path_params["number"], visit.form.get("note", "").strip()[:500]
    if visit.form.get("verdict") in ("grant", "less"):
        less = visit.form.get("epsilon", "").strip() if visit.form["verdict"] == "less" else None
        return _done(
            visit,
            lambda: visit.service.administration.grant(visit.principal, number, note, less),
            "granted",
            "requests",
        )
    return _done(
        visit, lambda: visit.service.administration.refuse(visit.principal, number, note), "refused", "requests"
    )


def add_analyst(visit: Visit) -> Response:
    """Add an analyst with one cap, and create a token for them."""
    form, service = visit.form, visit.service
    name, dataset = form.get("name", "").strip(), form.get("dataset", "")
    try:
        require_role(visit, "owner")
        if name in service.administration.analysts(visit.principal):
            raise ParameterError(
                "HB144", f"An analyst named {name} already exists.", "Edit hubbub.yaml below to change their caps."
            )
        days = _days(form.get("days", ""))
        budget = Budget(numbers.epsilon(form.get("epsilon", "").strip()), _delta(visit, dataset))
        service.administration.add_analyst(visit.principal, name, {dataset: budget})
        _, text = service.administration.issue(visit.principal, name, "analyst", days)
    except HubbubError as error:
        return _page(visit, problem=error)
    return _page(visit, issued={"name": name, "text": text})


def remove_analyst(visit: Visit) -> Response:
    """Remove an analyst, after the owner has confirmed it."""
    name = visit.form.get("name", "")
    if visit.form.get("confirm") != "yes":
        require_role(visit, "owner")
        known = name in visit.service.administration.analysts(visit.principal)
        return _page(visit, removing=name if known else "", problem=None if known else not_found(f"analyst {name!r}"))
    return _done(
        visit, lambda: visit.service.administration.remove_analyst(visit.principal, name), "removed", "analysts"
    )


def restore_analyst(visit: Visit) -> Response:
    """Undo the removal of an analyst."""
    name = visit.form.get("name", "")
    return _done(
        visit, lambda: visit.service.administration.restore_analyst(visit.principal, name), "restored", "analysts"
    )


def issue(visit: Visit) -> Response:
    """Create a token and show it once."""
    form = visit.form
    name = form.get("name", "").strip()
    try:
        role = cast("Role", form.get("role", ""))  # `Accounts` rejects unknown roles
        _, text = visit.service.administration.issue(visit.principal, name, role, _days(form.get("days", "")))
    except HubbubError as error:
        return _page(visit, problem=error)
    return _page(visit, issued={"name": name, "text": text})


def revoke(visit: Visit) -> Response:
    """Revoke a token, after the owner has confirmed it."""
    number = visit.form.get("id", "")
    if visit.form.get("confirm") != "yes":
        found = [each for each in visit.service.administration.tokens(visit.principal) if each.id == number]
        return _page(visit, revoking=found, problem=None if found else not_found(f"token {number!r}"))
    return _done(visit, lambda: visit.service.administration.revoke(visit.principal, number), "revoked", "tokens")


def check(visit: Visit) -> Response:
    """Check a new hubbub.yaml and show its problems or its diff."""
    text = _text(visit)
    return _page(visit, checked=visit.service.administration.check(visit.principal, text), config_text=text)


def apply(visit: Visit) -> Response:
    """Apply a new hubbub.yaml, if its changes were shown, and the file has not changed since."""
    text, expected = _text(visit), visit.form.get("hash", "")
    if visit.form.get("checked") != digest(text):  # the owner went on editing
        return check(visit)
    try:
        visit.service.administration.apply(visit.principal, text, expected)
    except HubbubError as error:
        return _page(visit, problem=error, config_text=text)
    return visit.go("/curate#config", "applied")


def _done(visit: Visit, change: Any, notice: str, section: str) -> Response:
    try:
        change()
    except HubbubError as error:
        return _page(visit, problem=error)
    return visit.go(f"/curate#{section}", notice)


def _text(visit: Visit) -> str:
    """Return the editor's text; browsers send line ends as two characters."""
    return visit.form.get("text", "").replace("\r\n", "\n")


def _days(text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdecimal() and len(text) < 6):
        raise ParameterError(
            "HB144", "The token lifetime must be a whole number of days.", "Enter a number such as 90."
        )
    return int(text)


def _delta(visit: Visit, dataset: str) -> Fraction:
    """Return the δ of a dataset, which is the default for its caps."""
    caps = visit.service.current.config.policy.datasets.get(dataset, ())
    return next((cap.budget.delta for cap in caps if cap.scope == "dataset"), Fraction(0))


def _page(
    visit: Visit,
    *,
    problem: HubbubError | None = None,
    issued: dict[str, str] | None = None,
    checked: dict[str, Any] | None = None,
    config_text: str | None = None,
    removing: str = "",
    revoking: Sequence[TokenRecord] = (),
) -> Response:
    service, principal = visit.service, visit.principal
    require_role(visit, "owner", "auditor")
    owner = principal.role == "owner"
    draft = service.administration.config(principal) if owner else None
    views = service.catalog.budget(principal)
    names = {view.dataset for view in views} | set(service.current.config.policy.datasets)
    requests = sorted(service.administration.requests(principal), key=lambda each: each.state != "open")
    return visit.render(
        "curate.html",
        status=status_of(problem) if problem else 200,
        problem=problem,
        issued=issued,
        requests=requests,
        effects={
            each.id: service.administration.effect(principal, each.id)
            for each in requests[:_EXPLAINED]
            if each.state == "open"
        },
        spending=[spending(visit, name, views) for name in sorted(names)],
        analysts=_analysts(visit, views),
        removing=removing,
        removed=service.administration.removed_analysts(principal) if owner else (),
        private=sorted(names),
        tokens=service.administration.tokens(principal) if owner else [],
        revoking=revoking,
        schema=SCHEMA,
        checked=checked,
        checked_hash=digest(config_text) if checked and config_text is not None else "",
        diff=_diff(checked["diff"]) if checked else [],
        config_text=config_text if draft is None or config_text is not None else draft.text,
        # an edit is based on the text that its author saw
        config_hash=visit.form.get("hash") or (draft.hash if draft else ""),
    )


def _analysts(visit: Visit, views: Sequence[BudgetOverview]) -> list[dict[str, Any]]:
    found = []
    for name in visit.service.administration.analysts(visit.principal):
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
                            "cap": readable(state.epsilon),
                        }
                    )
        none = {"dataset": "–", "drawing": "", "text": "through a group only", "cap": "–"}
        found.append({"name": name, "lines": lines or [none]})
    return found


def spending(visit: Visit, dataset: str, views: Sequence[BudgetOverview]) -> dict[str, Any]:
    """Return one dataset: its budget, how long that lasts, and what each analyst has spent of their cap."""
    own = [(view.analyst, state) for view in views if view.dataset == dataset for state in view.caps]
    caps = {name: state for name, state in own if state.scope == "analyst"}
    past = visit.service.catalog.spending(visit.principal, dataset, limit=_MAX_CHARGES)
    series = {name: [(time, float(amount)) for time, amount in past.get(name, ())] for name in (*caps, *past)}
    config = visit.service.current.config
    cap = next((c for c in config.policy.datasets[dataset] if c.scope == "dataset"), None)
    total = next((state for _, state in own if state.scope == "dataset"), None)
    now, drawn = datetime.now(UTC), ""
    if past:
        start = min(points[0][0] for points in past.values())
        most = float(cap.budget.epsilon) if cap else 0.0
        drawn = drawing(plots.over_time(series, cap=most, start=start, end=now))
    people = [
        (name, spent(caps[name]) if name in caps else f"{round_up(past[name][-1][1])} spent, removed")
        for name in series
    ]
    composed = any(state.composed for state in caps.values())
    return {
        "dataset": dataset,
        "protected": protected_unit(config.datasets[dataset]),
        "bar": drawing(plots.budget(total.spent, total.epsilon)) if total else "",
        "total": _of_all(total) if total else "",
        "forecast": forecast(past, total.left, now) if total and not total.per and not total.block else "",
        "drawing": drawn,
        "people": people,
        "note": COMPOSED if composed else "",
    }


def _of_all(state: CapState) -> str:
    """Say what all analysts together have spent of the budget of a dataset."""
    when = f" this {state.per}" if state.per else f" in {state.block}" if state.block else ""
    return f"{spent(state)} by all analysts{when}"


def _diff(text: str) -> list[tuple[str, str]]:
    """Classify the lines of a diff."""
    kinds = {"+": "plus", "-": "minus", "@": "place"}
    return [(kinds.get(line[:1], "same"), line) for line in text.splitlines()]
