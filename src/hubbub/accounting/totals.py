"""The totals of the caps: what a charge is decided on, and when they are stored."""

import json
from collections.abc import Iterable, Mapping, Sequence

from hubbub.accounting.filters import Budget, admits
from hubbub.accounting.policy import DAY, Cap, Policy
from hubbub.accounting.price import ZERO, Price
from hubbub.accounting.refusal import Spent
from hubbub.accounting.store import Store, Total

#: How many analysts, data sets and days are remembered at once.
_REMEMBERED = 10_000


class Balance:
    """The total of one cap, summed up only as far as the next decision needs.

    Equal charges in a row are counted, and added when the whole total is wanted: a price is exact, so the price of k
    charges is k times the price of one.
    """

    __slots__ = ("_count", "_loss", "_total", "label", "sequence")

    def __init__(self, label: str, total: Price, sequence: int = 0) -> None:
        self.label = label
        self.sequence = sequence
        self._total = total
        self._loss = ZERO
        self._count = 0

    def admits(self, budget: Budget, loss: Price) -> bool:
        """Say what `filters.admits` says of the whole total."""
        if loss is not self._loss:
            self.total()
            self._loss = loss
        spent, each, most = self._total.pure, loss.pure, budget.epsilon
        if spent is None or each is None or loss.delta or self._total.delta:
            return admits(budget, self.total(), loss)
        # spent + (count + 1)·each <= most, the first filter, without the cost of new Fractions
        over, under = spent.denominator, each.denominator
        sum_ = spent.numerator * under + (self._count + 1) * each.numerator * over
        return sum_ * most.denominator <= most.numerator * over * under or admits(budget, self.total(), loss)

    def add(self, loss: Price, sequence: int) -> None:
        """Add what the entry of that number charged."""
        if loss is not self._loss:
            self.total()
            self._loss = loss
        self._count += 1
        self.sequence = sequence

    def total(self) -> Price:
        """Sum up."""
        if self._count:
            self._total += self._loss if self._count == 1 else self._loss.times(self._count)
            self._count = 0
        return self._total


class Caps:
    """The caps that a charge of one analyst on one data set must pass on one day, with their totals."""

    __slots__ = ("_alone", "_query", "lasting")

    def __init__(self, query: Sequence[Cap], lasting: Sequence[tuple[Cap, Balance]]) -> None:
        self._query = query
        self._alone: Price | None = None
        self.lasting = lasting

    def refusing(self, loss: Price) -> Spent | None:
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
    """The totals of the caps, remembered for as long as nobody else writes.

    `ahead` has those that were charged since they were stored. A transaction that fails stops the ledger, so what is
    remembered here need never be taken back.
    """

    def __init__(self, store: Store, policy: Policy) -> None:
        self.policy = policy
        self.ahead: dict[str, Balance] = {}
        self._store = store
        self._balances: dict[str, Balance] = {}
        self._caps: dict[tuple[str, str, int], Caps] = {}
        self._carried = 0

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
                total = Price.from_json(json.loads(stored[label])) if label in stored else ZERO
                self._balances[label] = Balance(label, total)
        return [self._balances[label] for label in wanted]

    def carry(self, sequence: int) -> dict[str, Total]:
        """Give the totals to be stored with the entries up to this number: none, as long as the store lets them lag."""
        if not self.ahead or sequence - self._carried < self._store.lag:
            return {}
        self._carried = sequence
        due = sorted(self.ahead.items())
        self.ahead.clear()
        return {label: Total(total_text(balance.total()), balance.sequence) for label, balance in due}

    def resume(self, ahead: Mapping[str, Total]) -> None:
        """Go on from totals that were never stored, and store them with the next entry."""
        for label, total in ahead.items():
            balance = Balance(label, Price.from_json(json.loads(total.spent)), total.sequence)
            self._balances[label] = self.ahead[label] = balance
        self._caps.clear()

    def govern(self, policy: Policy) -> None:
        """Decide under another policy from here on. What was charged to a cap stays charged to it."""
        self.policy = policy
        self._caps.clear()

    def store_now(self) -> None:
        """Store all totals with the next entry."""
        self._carried = -self._store.lag

    def forget(self) -> None:
        """Another process wrote: read again."""
        self._balances.clear()
        self._caps.clear()
        self.store_now()  # the first charge does, so that there are totals from the first charge on


def total_text(total: Price) -> str:
    """Write a total: the same text as `canonical(total.to_json())`, in less time.

    >>> json.loads(total_text(ZERO)) == ZERO.to_json()
    True
    """
    pure = "null" if total.pure is None else f'"{total.pure}"'
    return f'[{pure},{list(total.renyi)},"{total.delta}"]'.replace(" ", "")
