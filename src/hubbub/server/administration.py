"""Governing: what the owner does with hubbub.yaml, analysts, tokens and requests; the other half of the service.

Every change of analysts, groups and caps is a change of hubbub.yaml: the one document that says who may learn what.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from hubbub.accounting import policy_config as contract
from hubbub.accounting.declarations import absent
from hubbub.accounting.filters import Budget
from hubbub.config import Config, load
from hubbub.config.summary import caps, concerns, neighbors, protected, reach
from hubbub.core import numbers
from hubbub.curator.opening import folder_of, is_postgres
from hubbub.errors import ConfigError, ParameterError
from hubbub.server import editing
from hubbub.server import settings as settings_
from hubbub.server.accounts import Accounts, Principal, Provider
from hubbub.server.attack_lab import MOST_RUNNING, Lab
from hubbub.server.current_curator import Current
from hubbub.server.editing import Draft
from hubbub.server.free_work import Desk, Doors
from hubbub.server.job_registry import JobRegistry
from hubbub.server.limits import Limit
from hubbub.server.metrics import Metrics
from hubbub.server.problems import missing, problem
from hubbub.server.query_pool import QueryPool
from hubbub.server.roles import allowed
from hubbub.server.settings import Settings
from hubbub.server.state import BudgetRequest, Role, State, Token

#: Failed attempts to sign in that one address has a minute.
_ATTEMPTS = 20
_REASON = 2000  # characters


class Governing:
    """The service's parts, and what the owner does with them."""

    def __init__(self, path: Path, settings: Settings) -> None:
        """Open everything that a hubbub.yaml names."""
        self.settings = settings
        self.current = Current(path)
        try:
            self.state = State.open(self.current.config)
        except BaseException:
            self.current.close()
            raise
        self.accounts = Accounts(self.state, analysts=self.current.analysts, oidc=_provider(settings))
        self.accounts.withdraw()
        self.current.withdraw = self.accounts.withdraw
        self._returned()
        self.requests_limit = Limit(settings.per_minute)
        self.attempts_limit = Limit(_ATTEMPTS)
        self.metrics = Metrics()
        self.work = QueryPool(workers=settings.workers, queue=settings.queue, quantum=settings.quantum)
        self.desk = Desk(threads=settings.free_workers, seconds=settings.free_seconds)
        self.doors = Doors()
        self.lab = Lab(running=max(1, min(MOST_RUNNING, settings.workers // 2)))
        self.board = JobRegistry(self.state, self.accounts.clock) if is_postgres(self.current.config) else None
        self._verifying = threading.Lock()
        self._closing = threading.Lock()
        self._closed = False

    def _returned(self) -> None:
        """Close what analysts had who were removed and added again while no server was looking."""
        with self.current.curator.ledger.snapshot() as snapshot:
            for name in self.current.config.policy.returning:
                since = absent(snapshot, name)
                if since is not None:
                    self.accounts.returned(name, since // 1_000_000)

    @classmethod
    def open(cls, path: Path, *, host: str | None = None, port: int | None = None) -> Self:
        """Open a hubbub.yaml with the settings that it, the environment and the command line give."""
        return cls(path, settings_of(path, host=host, port=port))

    # --- hubbub.yaml --------------------------------------------------------------------------------------------------

    @allowed
    def config(self, principal: Principal) -> Draft:
        """Give the text of hubbub.yaml and its hash."""
        return editing.read(self.current.path)

    @allowed
    def check(self, principal: Principal, text: str) -> dict[str, Any]:
        """Say what a new text would change and promise, or what is wrong with it; nothing is written."""
        found = self.current.check(text)
        return {
            "problems": [problem(each, "") for each in found.problems],
            "diff": found.diff,
            "promise": [] if found.config is None else promise(found.config),
            "concerns": [] if found.config is None else concerns(found.config),
        }

    @allowed
    def apply(self, principal: Principal, text: str, expected: str) -> str:
        """Go on under a new text, if hubbub.yaml is still the one with the `expected` hash; give the new hash."""
        return self.current.apply(text, expected=expected)

    # --- analysts and groups ------------------------------------------------------------------------------------------

    @allowed
    def analysts(self, principal: Principal) -> dict[str, dict[str, Budget]]:
        """List analysts with their own caps."""
        policy = self.current.config.policy
        return {name: {dataset: cap.budget for dataset, cap in own.items()} for name, own in policy.analysts.items()}

    @allowed
    def add_analyst(self, principal: Principal, name: str, caps: Mapping[str, Budget]) -> None:
        """Add an analyst with these caps, or change those that are there."""
        self.current.edit(editing.put_analyst(name, caps))

    @allowed
    def remove_analyst(self, principal: Principal, name: str) -> None:
        """Remove an analyst and close their tokens."""
        if name not in self.current.config.policy.analysts:
            raise missing(f"analyst called {name!r}")
        # tokens first: what a crash leaves must not come alive when the name is added again
        self.accounts.withdraw({name})
        self.current.edit(editing.remove_analyst(name))

    @allowed
    def groups(self, principal: Principal) -> dict[str, tuple[tuple[str, ...], dict[str, Budget]]]:
        """List groups with their members and caps."""
        found = self.current.config.policy.groups
        return {
            name: (members, {dataset: cap.budget for dataset, cap in shared.items()})
            for name, (members, shared) in found.items()
        }

    @allowed
    def set_group(self, principal: Principal, name: str, members: Sequence[str], caps: Mapping[str, Budget]) -> None:
        """Make a group what this says."""
        self.current.edit(editing.put_group(name, members, caps))

    @allowed
    def remove_group(self, principal: Principal, name: str) -> None:
        """Remove a group: its members keep their own caps."""
        if name not in self.current.config.policy.groups:
            raise missing(f"group called {name!r}")
        self.current.edit(editing.remove_group(name))

    # --- tokens -------------------------------------------------------------------------------------------------------

    @allowed
    def tokens(self, principal: Principal) -> list[Token]:
        """List tokens, never their secrets."""
        return self.state.tokens.list()

    @allowed
    def issue(
        self, principal: Principal, name: str, role: Role, days: int, streams: Sequence[str] = ()
    ) -> tuple[Token, str]:
        """Make a token; its text is shown this once."""
        return self.accounts.issue(name, role, days, streams)

    @allowed
    def revoke(self, principal: Principal, number: str) -> None:
        """Close a token for good."""
        self.accounts.revoke(number)

    # --- requests for more budget -------------------------------------------------------------------------------------

    @allowed
    def request(self, principal: Principal, dataset: str, epsilon: numbers.Number, reason: str) -> BudgetRequest:
        """Ask the owner for so much more on a dataset."""
        if len(reason) > _REASON or not reason.strip():
            raise ParameterError("HB170", f"a reason has 1 to {_REASON} characters.", "Say what it is for.")
        self.current.config.policy.caps(principal.name, dataset)  # raises where the analyst has no part in it
        more = numbers.epsilon(epsilon)
        return self.state.requests.add(principal.name, dataset, more, reason, self.accounts.clock())

    @allowed
    def requests(self, principal: Principal, *, limit: int = 100, before: int | None = None) -> list[BudgetRequest]:
        """List requests: an analyst's own, or all."""
        own = principal.name if principal.role == "analyst" else None
        return self.state.requests.list(own, limit=numbers.integer(limit, "limit", 1, 500), before=before)

    @allowed
    def grant(self, principal: Principal, number: int, note: str) -> BudgetRequest:
        """Raise the cap of who asked by what was asked for; hubbub.yaml's check keeps it within the other caps."""
        found = self.state.requests.find(number)
        if found is None:
            raise missing("such request")
        decided: list[BudgetRequest] = []

        def decide() -> None:
            # decided before the cap is raised: a crash in between costs a second request, and never raises twice
            at = self.accounts.clock()
            decided.append(self.state.requests.decide(number, "granted", by=principal.name, note=note, at=at))

        try:
            self.current.edit(editing.raise_cap(found.analyst, found.dataset, found.epsilon), before=decide)
        except ConfigError as error:
            if decided and error.code == "HB428":  # it could not be written
                self.state.requests.reopen(number)
            raise
        return decided[0]

    @allowed
    def refuse(self, principal: Principal, number: int, note: str) -> BudgetRequest:
        """Refuse a request."""
        return self.state.requests.decide(number, "refused", by=principal.name, note=note, at=self.accounts.clock())


def settings_of(path: Path, *, host: str | None = None, port: int | None = None) -> Settings:
    """Read the settings that belong to a hubbub.yaml."""
    config = load(path)
    document = contract.load(path.read_text(encoding="utf-8"))
    return settings_.read(
        document, base=path.parent, folder=folder_of(config), environment=os.environ, host=host, port=port
    )


def promise(config: Config) -> list[dict[str, Any]]:
    """Say what a hubbub.yaml promises: whom it protects, and who may learn how much."""
    found = []
    for name, dataset in config.datasets.items():
        if dataset.table.public:
            continue
        found.append(
            {
                "dataset": name,
                "protected": protected(dataset),
                "hidden": neighbors(dataset),
                "caps": [
                    {"who": who, "epsilon": str(budget.epsilon), "delta": str(budget.delta), "at_most": reach(budget)}
                    for who, budget in caps(config.policy, name)
                ],
            }
        )
    return found


def _provider(settings: Settings) -> Provider | None:
    if settings.oidc is None:
        return None
    from hubbub.server.oidc import Oidc

    return Oidc(settings.oidc)
