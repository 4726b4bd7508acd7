"""The running total of each cap, on which charges are decided.

Tested in tests/accounting/test_ledger.py.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import date

from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import ZERO, PrivacyCost, blocks_of_facts, cost_of_facts, cost_of_total
from hubbub.accounting.fairness import day_of, holds, less, shares
from hubbub.accounting.filters import Budget, admits
from hubbub.accounting.policy import DAY, Cap, Policy
from hubbub.accounting.refusal import Spent
from hubbub.accounting.store import Snapshot, Store, StoredTotal, stored_until
from hubbub.core.blocks import BlockSet

#: Combinations of analyst, dataset and day that are cached.
_MAX_CACHED = 10_000


class Balance:
    """The total of one cap, summed up lazily.

    Equal charges in a row are counted, and added when the total is needed: costs are exact, so k charges cost k times
    one charge. How many of them fit under the cap is computed once, for the first.
    """

    __slots__ = ("_budget", "_count", "_loss", "_room", "_total", "label", "sequence")

    def __init__(self, label: str, total: PrivacyCost, sequence: int = 0) -> None:
        self.label = label
        self.sequence = sequence
        self._total = total
        self._loss = ZERO
        self._budget: Budget | None = None
        self._count = 0
        self._room = 0  # how many more of `_loss`, after `_total`, fit into `_budget` by pure loss alone

    def admits(self, budget: Budget, loss: PrivacyCost) -> bool:
        """Give the result of `filters.admits` for the total."""
        if loss is not self._loss or budget is not self._budget:
            total = self.total()
            self._loss, self._budget = loss, budget
            self._room = _room(budget, total, loss)
        return self._count < self._room or admits(budget, self.total(), loss)

    def add(self, loss: PrivacyCost, sequence: int) -> None:
        """Add the cost of the charge with this sequence number."""
        if loss is not self._loss:
            self.total()
            self._loss, self._room = loss, 0
        self._count += 1
        self.sequence = sequence

    def total(self) -> PrivacyCost:
        """Give the total."""
        if self._count:
            self._total += self._loss if self._count == 1 else self._loss.times(self._count)
            self._room -= self._count
            self._count = 0
        return self._total


def _room(budget: Budget, spent: PrivacyCost, loss: PrivacyCost) -> int:
    """Give the largest k with spent + k·loss ≤ ε; 0 if the pure filter cannot tell."""
    if spent.pure is None or not loss.pure or spent.delta or loss.delta:
        return 0
    return max(0, (budget.epsilon - spent.pure) // loss.pure)


class Caps:
    """The caps that apply to a charge of one analyst on blocks of one dataset on one day, with their totals.

    lasting    those that the charge is added to
    _limiting  those of them that hold on the day: the caps of projects that have ended do not
    _shares    limits on the totals of others, less some more totals: see `fairness`
    """

    __slots__ = ("_alone", "_limiting", "_query", "_shares", "lasting")

    def __init__(
        self,
        query: Sequence[Cap],
        lasting: Sequence[tuple[Cap, Balance]],
        shares: Sequence[tuple[Cap, Balance, Sequence[Balance]]],
        day: date,
    ) -> None:
        self._query = query
        self._alone: PrivacyCost | None = None
        self._limiting = [(cap, balance) for cap, balance in lasting if holds(cap, day)]
        self._shares = shares
        self.lasting = lasting

    def exceeded_by(self, loss: PrivacyCost) -> Spent | None:
        """Give the narrowest cap that this cost would exceed, with its total."""
        # costs are immutable and cached, so the same object that passed the cap on single queries passes again
        if loss is not self._alone:
            for cap in self._query:
                if not admits(cap.budget, ZERO, loss):
                    return cap, ZERO
            self._alone = loss
        for cap, balance in self._limiting:
            if not balance.admits(cap.budget, loss):
                return cap, balance.total()
        for cap, total in self._shared():
            if not admits(cap.budget, total, loss):
                return cap, total
        return None

    def all(self) -> list[Spent]:
        """Give every cap with its total."""
        limiting = ((cap, balance.total()) for cap, balance in self._limiting)
        return [*((cap, ZERO) for cap in self._query), *limiting, *self._shared()]

    def _shared(self) -> list[Spent]:
        """Give every share with the total that it limits."""
        return [(cap, less(total.total(), [each.total() for each in w])) for cap, total, w in self._shares]


class Totals:
    """The totals of all caps after the newest entry.

    `ahead` has the totals that changed since they were last stored, by any process. After a failed transaction the
    ledger stops or reads the totals from the database again, so changes here are never undone.
    """

    def __init__(self, store: Store, policy: Policy) -> None:
        self.policy = policy
        self.ahead: dict[str, Balance] = {}
        self._store = store
        self._policies = {policy.hash: policy}
        self._balances: dict[str, Balance] = {}
        self._caps: dict[tuple[str, str, int, BlockSet | None], Caps] = {}
        self._due = True  # with the first charge, so that stored totals exist from then on

    def caps(self, analyst: str, dataset: str, time: int, blocks: BlockSet | None = None) -> Caps:
        """Give the caps that apply to a charge at this time."""
        caps = self._caps.get((analyst, dataset, time // DAY, blocks))
        return self._find(analyst, dataset, time, blocks) if caps is None else caps

    def _find(self, analyst: str, dataset: str, time: int, blocks: BlockSet | None) -> Caps:
        if len(self._caps) >= _MAX_CACHED:
            self._caps.clear()
            self._balances = dict(self.ahead)
        caps = self.policy.charged(analyst, dataset, blocks)
        lasting = [cap for cap in caps if cap.scope != "query"]
        balances = self.load([cap.at(time) for cap in lasting])
        query_caps = [cap for cap in caps if cap.scope == "query"]
        day, of_shares = day_of(time), []
        for cap, of, without in shares(self.policy, analyst, caps, day):
            total, *others = self.load([each.at(time) for each in (of, *without)])
            of_shares.append((cap, total, others))
        entry = Caps(query_caps, list(zip(lasting, balances, strict=True)), of_shares, day)
        self._caps[analyst, dataset, time // DAY, blocks] = entry
        return entry

    def load(self, labels: Iterable[str]) -> list[Balance]:
        """Give these totals; those not cached are read under the lock."""
        wanted = list(labels)
        missing = [label for label in wanted if label not in self._balances]
        if missing:
            stored = self._store.totals(missing)
            for label in missing:
                spent, sequence = stored.get(label, (None, 0))
                total = ZERO if spent is None else cost_of_total(spent)
                self._balances[label] = Balance(label, total, sequence)
        return [self._balances[label] for label in wanted]

    def carry(self, before: int, sequence: int) -> dict[str, StoredTotal]:
        """Give the totals to store with the entries after `before` up to `sequence`; none until they are due."""
        if not (self._due or stored_until(sequence) > before) or not self.ahead:
            return {}
        self._due = False
        due = sorted(self.ahead.items())
        self.ahead.clear()
        return {label: StoredTotal(total_text(balance.total()), balance.sequence) for label, balance in due}

    def catch_up(self, before: int, head: int, news: Sequence[Entry]) -> None:
        """Apply what other processes wrote after entry `before`, the last one known here.

        They stored totals when they passed a multiple of LAG, and with each entry that is neither charge nor release;
        older totals are read again. A stored total includes all charges up to its sequence number.
        """
        if before < stored_until(head):
            self._forget()
        for entry in news:
            if entry.kind == "charge":
                loss = self._policy_of(entry).cost(cost_of_facts(entry.facts))
                for balance in self.load(self._labels(entry)):
                    if entry.sequence > balance.sequence:
                        balance.add(loss, entry.sequence)
                        self.ahead[balance.label] = balance
            elif entry.kind != "release":
                self._forget()

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Read the committed state: everything except this transaction, while the writer lock is held."""
        return self._store.snapshot()

    def govern(self, policy: Policy) -> None:
        """Apply another policy from here on. Charges stay in the totals of their caps."""
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
        """Give the labels of the totals that a charge was added to, under the policy in force at that time."""
        caps = self._policy_of(entry).charged(entry.analyst, entry.dataset, blocks_of_facts(entry.facts))
        return [cap.at(entry.time) for cap in caps if cap.scope != "query"]

    def _policy_of(self, entry: Entry) -> Policy:
        policy = self._policies.get(entry.config)
        if policy is None:
            policy = self._policies[entry.config] = Policy.from_record(json.loads(self._store.policy(entry.config)))
        return policy


def total_text(total: PrivacyCost) -> str:
    """Write a total: the same text as `canonical(total.to_json())`, but faster.

    >>> json.loads(total_text(ZERO)) == ZERO.to_json()
    True
    """
    pure = "null" if total.pure is None else f'"{total.pure}"'
    gaussian = "" if total.gaussian is None else f",{list(total.gaussian)}"
    return f'[{pure},{list(total.renyi)},"{total.delta}"{gaussian}]'.replace(" ", "")
