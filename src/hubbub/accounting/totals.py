"""The totals of the caps: what a charge is decided on, and when they are stored."""

import json
from collections.abc import Iterable, Mapping, Sequence

from hubbub.accounting.filters import Budget, admits
from hubbub.accounting.policy import DAY, Cap, Policy
from hubbub.accounting.price import ZERO, Price
from hubbub.accounting.refusal import Spent
from hubbub.accounting.store import Store, Total


class Balance:
    """The total of one cap, summed up only as far as the next decision needs.

    Equal charges in a row are counted, and added when the whole total is wanted: a price is exact, so the price of k
    charges is k times the price of one.
    """

    __slots__ = ("_count", "_loss", "_total", "sequence")

    def __init__(self, total: Price) -> None:
        self.sequence = 0
        self._total = total
        self._loss = ZERO
        self._count = 0

    def admits(self, budget: Budget, loss: Price) -> bool:
        """Say what `filters.admits` says of the whole total."""
        self._line_up(loss)
        spent, each, most = self._total.pure, loss.pure, budget.epsilon
        if spent is None or each is None or loss.delta or self._total.delta:
            return admits(budget, self.total(), loss)
        # spent + (count + 1)·each <= most, the first filter, without the cost of new Fractions
        above = spent.numerator * each.denominator + (self._count + 1) * each.numerator * spent.denominator
        under = spent.denominator * each.denominator
        return above * most.denominator <= most.numerator * under or admits(budget, self.total(), loss)

    def add(self, loss: Price, sequence: int) -> None:
        """Add what the entry of that number charged."""
        self._line_up(loss)
        self._count += 1
        self.sequence = sequence

    def total(self) -> Price:
        """Sum up."""
        if self._count:
            self._total += self._loss if self._count == 1 else self._loss.times(self._count)
            self._count = 0
        return self._total

    def _line_up(self, loss: Price) -> None:
        if loss is not self._loss:
            self.total()
            self._loss = loss


class Caps:
    """The caps that a charge of one analyst on one data set must pass on one day, with the names of their totals."""

    __slots__ = ("alone", "lasting", "query")

    def __init__(self, caps: Sequence[Cap], time: int) -> None:
        self.query = [cap for cap in caps if cap.scope == "query"]
        self.lasting = [(cap.at(time), cap) for cap in caps if cap.scope != "query"]
        self.alone: Price | None = None

    def with_totals(self, balances: Mapping[str, Balance]) -> list[Spent]:
        """Give every cap with what was charged to it."""
        return [*((cap, ZERO) for cap in self.query), *((cap, balances[label].total()) for label, cap in self.lasting)]

    def refuse_alone(self, loss: Price) -> Cap | None:
        """Give the cap on a single query, where it does not admit this one."""
        # a price is immutable and kept, so the one that passed last time passes again
        if loss is not self.alone:
            for cap in self.query:
                if not admits(cap.budget, ZERO, loss):
                    return cap
            self.alone = loss
        return None


class Totals:
    """The totals of the caps, remembered for as long as nobody else writes."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self.policy = policy
        self._store = store
        self._balances: dict[str, Balance] = {}
        self._caps: dict[tuple[str, str, int], Caps] = {}
        self._ahead: set[str] = set()
        self._carried = 0

    def caps(self, analyst: str, dataset: str, time: int) -> Caps:
        """Give the caps that a charge at that time must pass."""
        place = (analyst, dataset, time // DAY)
        caps = self._caps.get(place)
        if caps is None:
            caps = self._caps[place] = Caps(self.policy.caps(analyst, dataset), time)
        return caps

    def load(self, labels: Iterable[str]) -> dict[str, Balance]:
        """Give all totals that are known, these among them; those not remembered are read under the lock."""
        balances = self._balances
        missing = [label for label in labels if label not in balances]
        if missing:
            stored = self._store.totals(missing)
            for label in missing:
                balances[label] = Balance(Price.from_json(json.loads(stored[label])) if label in stored else ZERO)
        return balances

    def carry(self, changed: Iterable[str], sequence: int) -> dict[str, Total]:
        """Give the totals to be stored with the entries up to this number: none, as long as the store lets them lag."""
        self._ahead.update(changed)
        if not self._ahead or sequence - self._carried < self._store.lag:
            return {}
        self._carried = sequence
        due = {label: self._balances[label] for label in sorted(self._ahead)}
        self._ahead.clear()
        return {label: Total(total_text(balance.total()), balance.sequence) for label, balance in due.items()}

    def resume(self, ahead: Mapping[str, Total]) -> None:
        """Go on from totals that were never stored, and store them with the next entry."""
        for label, total in ahead.items():
            balance = self._balances[label] = Balance(Price.from_json(json.loads(total.spent)))
            balance.sequence = total.sequence
        self._ahead.update(ahead)

    def store_now(self) -> None:
        """Store all totals with the next entry."""
        self._carried = -self._store.lag

    def forget(self) -> None:
        """Another process wrote: read again. A transaction that fails stops the ledger, and nobody asks again."""
        self._balances.clear()
        self.store_now()  # the first charge does, so that there are totals from the first charge on


def total_text(total: Price) -> str:
    """Write a total: the same text as `canonical(total.to_json())`, in less time.

    >>> json.loads(total_text(ZERO)) == ZERO.to_json()
    True
    """
    pure = "null" if total.pure is None else f'"{total.pure}"'
    return f'[{pure},{list(total.renyi)},"{total.delta}"]'.replace(" ", "")
