"""The totals of the caps: what a charge is decided on, and when they are stored."""

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import ZERO, PrivacyCost, priced
from hubbub.accounting.filters import Budget, admits
from hubbub.accounting.policy import DAY, Cap, Policy
from hubbub.accounting.refusal import Spent
from hubbub.accounting.store import Snapshot, Store, Total, stored_until

#: How many analysts, datasets and days are remembered at once.
_REMEMBERED = 10_000


class Balance:
    """The total of one cap, summed up only as far as the next decision needs.

    Equal charges in a row are counted, and added when the whole total is wanted: a price is exact, so the price of k
    charges is k times the price of one. How many of them the cap holds is found with the first; then they are counted.
    """

    __slots__ = ("_budget", "_count", "_loss", "_room", "_total", "label", "sequence")

    def __init__(self, label: str, total: PrivacyCost, sequence: int = 0) -> None:
        self.label = label
        self.sequence = sequence
        self._total = total
        self._loss = ZERO
        self._budget: Budget | None = None
        self._count = 0
        self._room = 0  # as many more of `_loss`, after `_total`, pass `_budget` by their pure loss alone

    def admits(self, budget: Budget, loss: PrivacyCost) -> bool:
        """Say what `filters.admits` says of the whole total."""
        if loss is not self._loss or budget is not self._budget:
            total = self.total()
            self._loss, self._budget = loss, budget
            self._room = _room(budget, total, loss)
        return self._count < self._room or admits(budget, self.total(), loss)

    def add(self, loss: PrivacyCost, sequence: int) -> None:
        """Add what the entry of that number charged."""
        if loss is not self._loss:
            self.total()
            self._loss, self._room = loss, 0
        self._count += 1
        self.sequence = sequence

    def total(self) -> PrivacyCost:
        """Sum up."""
        if self._count:
            self._total += self._loss if self._count == 1 else self._loss.times(self._count)
            self._room -= self._count
            self._count = 0
        return self._total


def _room(budget: Budget, spent: PrivacyCost, loss: PrivacyCost) -> int:
    """Give the largest k, or 0 where the pure filter does not say, with spent + k·loss ≤ ε."""
    if spent.pure is None or not loss.pure or spent.delta or loss.delta:
        return 0
    return max(0, (budget.epsilon - spent.pure) // loss.pure)


class Caps:
    """The caps that a charge of one analyst on one dataset must pass on one day, with their totals."""

    __slots__ = ("_alone", "_query", "lasting")

    def __init__(self, query: Sequence[Cap], lasting: Sequence[tuple[Cap, Balance]]) -> None:
        self._query = query
        self._alone: PrivacyCost | None = None
        self.lasting = lasting

    def refusing(self, loss: PrivacyCost) -> Spent | None:
        """Give the narrowest cap that does not admit this, with its total."""
        # a price is immutable and kept, so the one that passed the cap on a single query last time passes again
        if loss is not self._alone:
            for cap in self._query:
                if not admits(cap.budget, ZERO, loss):
                    return cap, ZERO
            self._alone = loss
        for cap, balance in self.lasting:
            if not balance.admits(cap.budget, loss):
                return cap, balance.total()
        return None

    def all(self) -> list[Spent]:
        """Give every cap with what was charged to it."""
        return [*((cap, ZERO) for cap in self._query), *((cap, balance.total()) for cap, balance in self.lasting)]


class Totals:
    """The totals of the caps, as the newest entry left them.

    `ahead` has those that were charged since they were stored, by whichever process. After a transaction that fails the
    ledger stops or makes these anew from the database, so what is remembered here need never be taken back.
    """

    def __init__(self, store: Store, policy: Policy) -> None:
        self.policy = policy
        self.ahead: dict[str, Balance] = {}
        self._store = store
        self._policies = {policy.hash: policy}
        self._balances: dict[str, Balance] = {}
        self._caps: dict[tuple[str, str, int], Caps] = {}
        self._due = True  # with the first charge, so that there are stored totals from the first charge on

    def caps(self, analyst: str, dataset: str, time: int) -> Caps:
        """Give the caps that a charge at that time must pass."""
        caps = self._caps.get((analyst, dataset, time // DAY))
        return self._find(analyst, dataset, time) if caps is None else caps

    def _find(self, analyst: str, dataset: str, time: int) -> Caps:
        if len(self._caps) >= _REMEMBERED:
            self._caps.clear()
            self._balances = dict(self.ahead)
        caps = self.policy.caps(analyst, dataset)
        lasting = [cap for cap in caps if cap.scope != "query"]
        balances = self.load([cap.at(time) for cap in lasting])
        found = Caps([cap for cap in caps if cap.scope == "query"], list(zip(lasting, balances, strict=True)))
        self._caps[analyst, dataset, time // DAY] = found
        return found

    def load(self, labels: Iterable[str]) -> list[Balance]:
        """Give these totals; those not remembered are read under the lock."""
        wanted = list(labels)
        missing = [label for label in wanted if label not in self._balances]
        if missing:
            stored = self._store.totals(missing)
            for label in missing:
                spent, sequence = stored.get(label, (None, 0))
                total = ZERO if spent is None else PrivacyCost.from_json(json.loads(spent))
                self._balances[label] = Balance(label, total, sequence)
        return [self._balances[label] for label in wanted]

    def carry(self, before: int, sequence: int) -> dict[str, Total]:
        """Give the totals to be stored with the entries after `before` up to `sequence`: none, until it is time."""
        if not (self._due or stored_until(sequence) > before) or not self.ahead:
            return {}
        self._due = False
        due = sorted(self.ahead.items())
        self.ahead.clear()
        return {label: Total(total_text(balance.total()), balance.sequence) for label, balance in due}

    def catch_up(self, before: int, head: int, news: Sequence[Entry]) -> None:
        """Take in what others wrote after entry `before`, the last that is remembered here.

        Others stored totals when they passed a multiple of LAG, and with each entry that is no charge and no release.
        What is remembered from before that is read again; a stored total holds all of its charges up to the newest that
        is in it.
        """
        if before < stored_until(head):
            self._forget()
        for entry in news:
            if entry.kind == "charge":
                loss = priced(entry.facts)
                for balance in self.load(self._labels(entry)):
                    if entry.sequence > balance.sequence:
                        balance.add(loss, entry.sequence)
                        self.ahead[balance.label] = balance
            elif entry.kind != "release":
                self._forget()

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Look at what is committed: all there is, but for this transaction, while the writer's lock is held."""
        return self._store.snapshot()

    def govern(self, policy: Policy) -> None:
        """Decide under another policy from here on. What was charged to a cap stays charged to it."""
        self.policy = self._policies[policy.hash] = policy
        self._caps.clear()

    def store_now(self) -> None:
        """Store all totals with the next entry."""
        self._due = True

    def _forget(self) -> None:
        self._balances.clear()
        self._caps.clear()
        self.ahead.clear()

    def _labels(self, entry: Entry) -> list[str]:
        """Name the totals that a charge was added to, under the policy that it was made under."""
        policy = self._policies.get(entry.config)
        if policy is None:
            policy = self._policies[entry.config] = Policy.from_record(json.loads(self._store.policy(entry.config)))
        return [cap.at(entry.time) for cap in policy.caps(entry.analyst, entry.dataset) if cap.scope != "query"]


def total_text(total: PrivacyCost) -> str:
    """Write a total: the same text as `canonical(total.to_json())`, in less time.

    >>> json.loads(total_text(ZERO)) == ZERO.to_json()
    True
    """
    pure = "null" if total.pure is None else f'"{total.pure}"'
    return f'[{pure},{list(total.renyi)},"{total.delta}"]'.replace(" ", "")
