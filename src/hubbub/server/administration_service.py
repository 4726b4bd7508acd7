"""What the data owner manages: hubbub.yaml, analysts, groups, tokens, and requests for more budget.

Every change of analysts, groups, and caps is an edit of hubbub.yaml, the only document that grants access.

Tested in tests/server/test_administration.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.accounting.filters import Budget
from hubbub.config import Config
from hubbub.config.summary import caps, guarantee, hidden_fact, protected_unit, warnings
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import BudgetError, ConfigError, ParameterError
from hubbub.server import config_editor
from hubbub.server.accounts import Accounts, Principal
from hubbub.server.config_editor import Draft
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.problems import not_found, problem
from hubbub.server.request_effect import request_effect
from hubbub.server.roles import allowed
from hubbub.server.state import BudgetRequest, Role, State, TokenRecord

_MAX_REASON = 2000  # characters
#: Charges of an analyst whose median price tells what a request buys.
_MEDIAN_OF = 50


class AdministrationService:
    """Owners manage; auditors may view analysts and groups; analysts may request more budget."""

    def __init__(self, current: CurrentCurator, state: State, accounts: Accounts) -> None:
        self._current = current
        self._state = state
        self._accounts = accounts

    # --- hubbub.yaml --------------------------------------------------------------------------------------------------

    @allowed("owner")
    def config(self, principal: Principal) -> Draft:
        """Return the text of hubbub.yaml and its hash."""
        return config_editor.read(self._current.path)

    @allowed("owner")
    def check(self, principal: Principal, text: str) -> dict[str, Any]:
        """Check a new text: its problems, its diff, and the guarantees it would give; nothing is written."""
        result = self._current.check(text)
        return {
            "problems": [problem(error, "") for error in result.problems],
            "diff": result.diff,
            "promise": [] if result.config is None else guarantees(result.config),
            "concerns": [] if result.config is None else warnings(result.config),
        }

    @allowed("owner")
    def apply(self, principal: Principal, text: str, expected: str) -> str:
        """Apply a new text if hubbub.yaml still has the `expected` hash; return the new hash."""
        return self._current.apply(text, expected=expected)

    # --- analysts and groups ------------------------------------------------------------------------------------------

    @allowed("owner", "auditor")
    def analysts(self, principal: Principal) -> dict[str, dict[str, Budget]]:
        """List analysts with their individual caps."""
        policy = self._current.config.policy
        return {name: {dataset: cap.budget for dataset, cap in own.items()} for name, own in policy.analysts.items()}

    @allowed("owner")
    def add_analyst(self, principal: Principal, name: str, caps: Mapping[str, Budget]) -> None:
        """Add an analyst with these caps, or replace these caps of an existing one."""
        self._current.edit(config_editor.put_analyst(name, caps))

    @allowed("owner")
    def remove_analyst(self, principal: Principal, name: str) -> None:
        """Remove an analyst and revoke their tokens."""
        if name not in self._current.config.policy.analysts:
            raise not_found(f"analyst {name!r}")
        # tokens first: after a crash in between, no token may revive when the name is added again
        self._accounts.withdraw({name})
        self._current.edit(config_editor.remove_analyst(name))

    @allowed("owner")
    def removed_analysts(self, principal: Principal) -> tuple[str, ...]:
        """List the analysts whom the last change of hubbub.yaml removed: they can be restored."""
        before = config_editor.previous(self._current.path).get("analysts") or {}
        return tuple(name for name in before if name not in self._current.config.policy.analysts)

    @allowed("owner")
    def restore_analyst(self, principal: Principal, name: str) -> None:
        """Undo the removal of an analyst: caps and groups are as before, and old tokens stay revoked."""
        if name not in self.removed_analysts(principal):
            raise not_found(f"analyst {name!r} who was removed by the last change")
        self._current.edit(config_editor.restore_analyst(name, config_editor.previous(self._current.path)))

    @allowed("owner", "auditor")
    def groups(self, principal: Principal) -> dict[str, tuple[tuple[str, ...], dict[str, Budget]]]:
        """List groups with their members and caps."""
        groups = self._current.config.policy.groups
        return {
            name: (members, {dataset: cap.budget for dataset, cap in shared.items()})
            for name, (members, shared) in groups.items()
        }

    @allowed("owner")
    def set_group(self, principal: Principal, name: str, members: Sequence[str], caps: Mapping[str, Budget]) -> None:
        """Create or replace a group."""
        self._current.edit(config_editor.put_group(name, members, caps))

    @allowed("owner")
    def remove_group(self, principal: Principal, name: str) -> None:
        """Remove a group; its members keep their individual caps."""
        if name not in self._current.config.policy.groups:
            raise not_found(f"group {name!r}")
        self._current.edit(config_editor.remove_group(name))

    # --- tokens -------------------------------------------------------------------------------------------------------

    @allowed("owner")
    def tokens(self, principal: Principal) -> list[TokenRecord]:
        """List tokens without their secrets."""
        return self._state.tokens.list()

    @allowed("owner")
    def issue(
        self, principal: Principal, name: str, role: Role, days: int, streams: Sequence[str] = ()
    ) -> tuple[TokenRecord, str]:
        """Create a token; its text is shown only once."""
        return self._accounts.issue(name, role, days, streams)

    @allowed("owner")
    def revoke(self, principal: Principal, number: str) -> None:
        """Revoke a token permanently."""
        self._accounts.revoke(number)

    # --- requests for more budget -------------------------------------------------------------------------------------

    @allowed("analyst")
    def request(self, principal: Principal, dataset: str, epsilon: numbers.Number, reason: str) -> BudgetRequest:
        """Request an increase of ε on a dataset from the owner."""
        if len(reason) > _MAX_REASON or not reason.strip():
            raise ParameterError(
                "HB170",
                f"The reason must have 1 to {_MAX_REASON} characters.",
                "Describe what you need the budget for.",
            )
        self._current.config.policy.caps(principal.name, dataset)  # raises if the analyst has no access to it
        more = numbers.epsilon(epsilon)
        return self._state.requests.add(principal.name, dataset, more, reason, self._accounts.clock())

    @allowed("owner", "analyst", "auditor")
    def requests(self, principal: Principal, *, limit: int = 100, before: int | None = None) -> list[BudgetRequest]:
        """List requests: an analyst's own, or all."""
        analyst = principal.name if principal.role == "analyst" else None
        return self._state.requests.list(analyst, limit=numbers.integer(limit, "limit", 1, 500), before=before)

    @allowed("owner", "auditor")
    def effect(self, principal: Principal, number: int) -> tuple[str, ...]:
        """Describe what a request would buy, and what it would do to the promise."""
        request = self._state.requests.find(number)
        if request is None:
            raise not_found("request with this number")
        with self._current.using() as curator:
            past = curator.releases(request.analyst, limit=_MEDIAN_OF)
            return request_effect(curator.config.policy, request.analyst, request.dataset, request.epsilon, past)

    @allowed("owner")
    def grant(
        self, principal: Principal, number: int, note: str, epsilon: numbers.Number | None = None
    ) -> BudgetRequest:
        """Raise the analyst's cap by the requested ε, or by less; the check of hubbub.yaml keeps other caps."""
        request = self._state.requests.find(number)
        if request is None:
            raise not_found("request with this number")
        more = request.epsilon if epsilon is None else numbers.epsilon(epsilon)
        if more > request.epsilon:
            raise BudgetError(
                "HB204",
                f"The request is for ε = {brief(request.epsilon)}, and ε = {brief(more)} was to be approved.",
                "Approve what was requested, or less.",
            )
        if more < request.epsilon:
            note = f"Approved ε = {brief(more)} of {brief(request.epsilon)}. {note}".strip()
        decided: list[BudgetRequest] = []

        def decide() -> None:
            # decide before raising the cap: a crash in between costs a second request and never raises twice
            at = self._accounts.clock()
            decided.append(self._state.requests.decide(number, "granted", by=principal.name, note=note, at=at))

        try:
            self._current.edit(config_editor.raise_cap(request.analyst, request.dataset, more), before=decide)
        except ConfigError as error:
            if decided and error.code == "HB428":  # hubbub.yaml could not be written
                self._state.requests.reopen(number)
            raise
        return decided[0]

    @allowed("owner")
    def refuse(self, principal: Principal, number: int, note: str) -> BudgetRequest:
        """Refuse a request."""
        return self._state.requests.decide(number, "refused", by=principal.name, note=note, at=self._accounts.clock())


def guarantees(config: Config) -> list[dict[str, Any]]:
    """Summarize the privacy guarantees of a hubbub.yaml: privacy units and caps of each dataset."""
    summary = []
    for name, dataset in config.datasets.items():
        if dataset.table.public:
            continue
        summary.append(
            {
                "dataset": name,
                "protected": protected_unit(dataset),
                "hidden": hidden_fact(dataset),
                "caps": [
                    {
                        "who": who,
                        "epsilon": str(budget.epsilon),
                        "delta": str(budget.delta),
                        "at_most": guarantee(budget),
                    }
                    for who, budget in caps(config.policy, name)
                ],
            }
        )
    return summary
