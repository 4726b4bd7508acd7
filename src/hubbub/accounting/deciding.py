"""Deciding: what becomes of each call of a group, in order, on the totals as they are under the writer's lock."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter

from hubbub.accounting.calls import Charge, Charging, Noting, Recording, Request
from hubbub.accounting.chain import Entry, append, canonical
from hubbub.accounting.filters import Budget, admits
from hubbub.accounting.policy import DAY, Cap, Policy
from hubbub.accounting.price import ZERO, Price
from hubbub.accounting.refusal import Spent
from hubbub.accounting.store import Found, Head, Store, Total
from hubbub.errors import LedgerError, ParameterError

#: Microseconds by which a clock may step back (time servers do that); further back, no charge is made.
TOLERANCE = 300_000_000

_label = itemgetter(0)


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


class Turn:
    """One transaction in the making."""

    __slots__ = (
        "_behind", "_changed", "_fresh", "_totals", "config", "entries", "hash", "releases", "sequence", "time",
    )  # fmt: skip

    def __init__(self, head: Head, clock: int, totals: Totals) -> None:
        self.sequence = head.sequence
        self.hash = head.hash
        self.config = head.config
        # time stands still where the clock steps back, so that an old day's or month's budget cannot come again
        self.time = max(clock, head.time)
        self.entries: list[Entry] = []
        self.releases: dict[int, bytes] = {}
        self._changed: set[str] = set()
        self._behind = head.time - clock
        self._totals = totals
        self._fresh: dict[tuple[str, str], Entry] = {}

    def charge(self, call: Charging, found: Found | None) -> None:
        """Replay, refuse or charge."""
        fresh = self._fresh.get(call.key)
        if fresh is not None:
            found = Found(fresh, None)
        if found is not None:
            if found.entry.request == call.digest:
                call.outcome = Charge(found.entry, found.release, replayed=True)
            else:
                call.error = _reused(call.request)
            return
        call.error = self._unready()
        if call.error is not None:
            return
        request, loss = call.request, call.price
        caps = self._totals.caps(request.analyst, request.dataset, self.time)
        balances = self._totals.load(map(_label, caps.lasting))
        refusing = caps.refuse_alone(loss)
        if refusing is not None:
            call.refusal = (refusing, ZERO, caps.with_totals(balances))
            return
        for label, cap in caps.lasting:
            if not balances[label].admits(cap.budget, loss):
                call.refusal = (cap, balances[label].total(), caps.with_totals(balances))
                return
        entry = append(
            self.hash, self.sequence + 1, "charge", self.time, config=self.config, facts=call.facts,
            analyst=request.analyst, dataset=request.dataset, version=request.version, query=request.query,
            key=request.key, request=call.digest,
        )  # fmt: skip
        self._add(entry)
        self._fresh[call.key] = entry
        for label, _ in caps.lasting:
            balances[label].add(loss, entry.sequence)
            self._changed.add(label)
        call.outcome = Charge(entry)

    def record(self, call: Recording, found: Found | None) -> None:
        """Keep the first release of a charge, and answer every later one with it."""
        charge = call.charge.entry
        if found is None or found.entry != charge:
            call.error = LedgerError(
                "HB315", "this charge is not in the ledger.", "Record what a charge here paid for."
            )
            return
        kept = self.releases.get(charge.sequence) if found.release is None else found.release
        if kept is not None:
            call.outcome = kept
            return
        facts = canonical({"bytes": len(call.body), "sha256": sha256(call.body).hexdigest()})
        self._add(append(
            self.hash, self.sequence + 1, "release", self.time, config=self.config, facts=facts, analyst=charge.analyst,
            dataset=charge.dataset, version=charge.version, key=charge.key, charge=charge.sequence,
            request=charge.request,
        ))  # fmt: skip
        self.releases[charge.sequence] = call.outcome = call.body

    def note(self, call: Noting, clock: int) -> None:
        """Add a policy, where it is not the one in force, or a forfeit."""
        config = self._totals.policy.hash
        if call.ahead:
            call.outdated = call.at is None or (self.sequence, self.hash) != (call.at.sequence, call.at.hash)
            if call.outdated:
                return
            self._totals.resume(call.ahead)
        elif call.kind == "policy" and self.config == config:
            return
        self._totals.store_now()
        if call.kind == "forfeit":
            self.time = clock  # the one entry that may turn the clock back: the owner has looked at it
        self._add(append(self.hash, self.sequence + 1, call.kind, self.time, config=config, facts=call.facts))
        balances = self._totals.load(call.losses)
        for label, loss in call.losses.items():
            balances[label].add(loss, self.sequence)
            self._changed.add(label)

    def totals(self) -> dict[str, Total]:
        """Give the totals that are to be stored now."""
        return self._totals.carry(self._changed, self.sequence)

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.sequence, self.hash, self.config = entry.sequence, entry.hash, entry.config

    def _unready(self) -> LedgerError | None:
        """Say why no charge at all can be made now."""
        if self.config != self._totals.policy.hash:
            return LedgerError(
                "HB312", "another process opened this ledger with another policy. Nothing was charged.",
                "Restart with the same hubbub.yaml.",
            )  # fmt: skip
        if self._behind > TOLERANCE:
            return LedgerError(
                "HB311",
                f"the clock stands {self._behind // 60_000_000} minutes before the newest entry. Nothing was charged.",
                "Set the clock. If the entry has the wrong time: hubbub admin forfeit --epsilon … goes on from here.",
            )
        return None


def total_text(total: Price) -> str:
    """Write a total: the same text as `canonical(total.to_json())`, in less time.

    >>> total_text(ZERO) == canonical(ZERO.to_json())
    True
    """
    pure = "null" if total.pure is None else f'"{total.pure}"'
    return f'[{pure},{list(total.renyi)},"{total.delta}"]'.replace(" ", "")


def _reused(request: Request) -> ParameterError:
    return ParameterError(
        "HB124", f"the key {request.key!r} was used by {request.analyst} for another request. Nothing was charged.",
        "Take a new key for a new request; keep the old one to get the old answer again.",
    )  # fmt: skip
