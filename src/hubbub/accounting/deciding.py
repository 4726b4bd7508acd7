"""Deciding: what becomes of each call of a group, in order, on the totals as they are under the writer's lock."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter

from hubbub.accounting.calls import Charge, Charging, Noting, Recording, Request
from hubbub.accounting.chain import Entry, append, canonical
from hubbub.accounting.filters import admits
from hubbub.accounting.policy import DAY, Cap, Policy
from hubbub.accounting.price import ZERO, Price
from hubbub.accounting.refusal import Spent
from hubbub.accounting.store import Found, Head, Store, Total
from hubbub.errors import LedgerError, ParameterError

#: Microseconds by which a clock may step back (time servers do that); further back, no charge is made.
TOLERANCE = 300_000_000

_label = itemgetter(0)


class Caps:
    """The caps that a charge of one analyst on one data set must pass on one day, with the names of their totals."""

    __slots__ = ("alone", "lasting", "query")

    def __init__(self, caps: Sequence[Cap], time: int) -> None:
        self.query = [cap for cap in caps if cap.scope == "query"]
        self.lasting = [(cap.at(time), cap) for cap in caps if cap.scope != "query"]
        self.alone: Price | None = None

    def with_totals(self, spent: Mapping[str, Price]) -> list[Spent]:
        """Give every cap with what was charged to it."""
        return [*((cap, ZERO) for cap in self.query), *((cap, spent[label]) for label, cap in self.lasting)]

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
        self._spent: dict[str, Price] = {}
        self._caps: dict[tuple[str, str, int], Caps] = {}

    def caps(self, analyst: str, dataset: str, time: int) -> Caps:
        """Give the caps that a charge at that time must pass."""
        place = (analyst, dataset, time // DAY)
        caps = self._caps.get(place)
        if caps is None:
            caps = self._caps[place] = Caps(self.policy.caps(analyst, dataset), time)
        return caps

    def load(self, labels: Iterable[str]) -> dict[str, Price]:
        """Give all totals that are known, these among them; those not remembered are read under the lock."""
        spent = self._spent
        missing = [label for label in labels if label not in spent]
        if missing:
            stored = self._store.totals(missing)
            for label in missing:
                spent[label] = Price.from_json(json.loads(stored[label])) if label in stored else ZERO
        return spent

    def forget(self) -> None:
        """Another process wrote: read again. A transaction that fails stops the ledger, and nobody asks again."""
        self._spent.clear()


class Turn:
    """One transaction in the making."""

    __slots__ = ("_behind", "_fresh", "_totals", "changed", "config", "entries", "hash", "releases", "sequence", "time")

    def __init__(self, head: Head, clock: int, totals: Totals) -> None:
        self.sequence = head.sequence
        self.hash = head.hash
        self.config = head.config
        # time stands still where the clock steps back, so that an old day's or month's budget cannot come again
        self.time = max(clock, head.time)
        self.entries: list[Entry] = []
        self.releases: dict[int, bytes] = {}
        self.changed: dict[str, int] = {}
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
        spent = self._totals.load(map(_label, caps.lasting))
        refusing = caps.refuse_alone(loss)
        if refusing is not None:
            call.refusal = (refusing, ZERO, caps.with_totals(spent))
            return
        for label, cap in caps.lasting:
            if not admits(cap.budget, spent[label], loss):
                call.refusal = (cap, spent[label], caps.with_totals(spent))
                return
        entry = append(
            self.hash, self.sequence + 1, "charge", self.time, config=self.config, facts=call.facts,
            analyst=request.analyst, dataset=request.dataset, version=request.version, query=request.query,
            key=request.key, request=call.digest,
        )  # fmt: skip
        self._add(entry)
        self._fresh[call.key] = entry
        for label, _ in caps.lasting:
            spent[label] += loss
            self.changed[label] = entry.sequence
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
        if call.kind == "policy" and self.config == config:
            return
        if call.kind == "forfeit":
            self.time = clock  # the one entry that may turn the clock back: the owner has looked at it
        self._add(append(self.hash, self.sequence + 1, call.kind, self.time, config=config, facts=call.facts))
        spent = self._totals.load(call.losses)
        for label, loss in call.losses.items():
            spent[label] += loss
            self.changed[label] = self.sequence

    def totals(self) -> dict[str, Total]:
        """Give the changed totals as they are stored."""
        spent = self._totals.load(self.changed)
        return {label: Total(total_text(spent[label]), number) for label, number in self.changed.items()}

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
