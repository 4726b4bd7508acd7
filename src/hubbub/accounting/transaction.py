"""Decide each call of a batch, in order, using the totals read under the writer lock.

Tested in tests/accounting/test_ledger.py.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from hubbub.accounting.calls import (
    AnyCall,
    CapRefusal,
    Charge,
    ChargeCall,
    ChargeRequest,
    LookupCall,
    NoteCall,
    PricedRequest,
    RecordCall,
    RemarkCall,
)
from hubbub.accounting.chain import Entry, append, canonical
from hubbub.accounting.declarations import problems
from hubbub.accounting.store import ChargeRecord, Head
from hubbub.accounting.totals import Totals
from hubbub.errors import LedgerError, ParameterError

#: Microseconds by which the clock may step back (time servers do that). Beyond that, no charge is made.
TOLERANCE = 300_000_000


class Transaction:
    """The entries and releases of one database transaction."""

    __slots__ = (
        "_behind",
        "_fresh",
        "_totals",
        "config",
        "entries",
        "hash",
        "releases",
        "sequence",
        "time",
    )

    def __init__(self, head: Head, clock: int, totals: Totals) -> None:
        self.sequence = head.sequence
        self.hash = head.hash
        self.config = head.config
        # if the clock steps back, keep the last time, so that the budget of a past day or month cannot be used again
        self.time = max(clock, head.time)
        self.entries: list[Entry] = []
        self.releases: dict[int, bytes] = {}
        self._behind = head.time - clock
        self._totals = totals
        self._fresh: dict[tuple[str, str], Entry] = {}

    def serve(self, call: AnyCall, charges: Mapping[tuple[str, str], ChargeRecord], clock: int) -> None:
        """Decide a call; `charges` has the existing charges of its keys."""
        match call:
            case ChargeCall():
                self.charge(call, charges)
            case RecordCall():
                self.record(call, charges.get(call.keys[0]))
            case LookupCall():
                known = charges.get(call.keys[0])
                call.outcome = None if known is None else Charge(known.entry, known.release, replayed=True)
            case RemarkCall():
                self.remark(call)
            case NoteCall():
                self.note(call, clock)

    def charge(self, call: ChargeCall, charges: Mapping[tuple[str, str], ChargeRecord]) -> None:
        """Replay existing charges; charge all new requests of the call, or refuse them all."""
        new: list[PricedRequest] = []
        known: dict[tuple[str, str], Charge] = {}
        for priced in call.requests:
            fresh = self._fresh.get(priced.key)
            before = charges.get(priced.key) if fresh is None else ChargeRecord(fresh, None)
            if before is None:
                new.append(priced)
            elif before.entry.request == priced.digest:
                known[priced.key] = Charge(before.entry, before.release, replayed=True)
            else:
                call.error = _reused(priced.request)
                return
        if new and not self._spend(call, new):
            return
        call.outcome = [known.get(priced.key) or Charge(self._fresh[priced.key]) for priced in call.requests]

    def _spend(self, call: ChargeCall, new: Sequence[PricedRequest]) -> bool:
        """Charge all requests, or set the error or refusal: totals change only after every cap has admitted every one.

        The requests are on different datasets, so no two of them share a total.
        """
        call.error = self._unready()
        if call.error is not None:
            return False
        try:
            caps = [
                self._totals.caps(each.request.analyst, each.request.dataset, self.time, each.request.blocks)
                for each in new
            ]
        except ParameterError as error:  # the policy was changed while this call was waiting
            call.error = error
            return False
        for priced, request_caps in zip(new, caps, strict=True):
            exceeded = request_caps.exceeded_by(priced.cost)
            if exceeded is not None:
                states = [state for other in caps for state in other.all()]
                call.refusal = CapRefusal(*exceeded, priced.cost, states)
                return False
        for priced, request_caps in zip(new, caps, strict=True):
            analyst, dataset, version, _, query, key, _ = priced.request
            entry = append(
                self.hash,
                self.sequence + 1,
                "charge",
                self.time,
                config=self.config,
                facts=priced.facts,
                analyst=analyst,
                dataset=dataset,
                version=version,
                query=query,
                key=key,
                request=priced.digest,
            )
            self._add(entry)
            self._fresh[priced.key] = entry
            for _, balance in request_caps.lasting:
                balance.add(self._totals.policy.cost(priced.cost), entry.sequence)
                self._totals.ahead[balance.label] = balance
        return True

    def record(self, call: RecordCall, known: ChargeRecord | None) -> None:
        """Record the first release of a charge, and return it for every later one."""
        charge = call.charge.entry
        if known is None or known.entry != charge:
            call.error = LedgerError(
                "HB315", "The ledger has no such charge.", "Record a release only for a charge made in this ledger."
            )
            return
        release = self.releases.get(charge.sequence) if known.release is None else known.release
        if release is not None:
            call.outcome = release
            return
        facts = canonical({"bytes": len(call.body), "sha256": sha256(call.body).hexdigest()})
        self._add(
            append(
                self.hash,
                self.sequence + 1,
                "release",
                self.time,
                config=self.config,
                facts=facts,
                analyst=charge.analyst,
                dataset=charge.dataset,
                version=charge.version,
                key=charge.key,
                charge=charge.sequence,
                request=charge.request,
            )
        )
        self.releases[charge.sequence] = call.outcome = call.body

    def note(self, call: NoteCall, clock: int) -> None:
        """Add a forfeit, or a policy that is not in force yet."""
        if call.kind == "policy" and self._broken(call):
            return
        if call.policy is not None:
            self._totals.govern(call.policy)
        config = self._totals.policy.hash
        if call.kind == "policy" and self.config == config:
            return
        self._totals.store_now()
        if call.kind == "forfeit" and call.sets_clock:
            self.time = clock  # only a forfeit may set the clock back: the owner has checked it
        self._add(append(self.hash, self.sequence + 1, call.kind, self.time, config=config, facts=call.facts))
        for balance in self._totals.load(call.losses):
            balance.add(self._totals.policy.cost(call.losses[balance.label]), self.sequence)
            self._totals.ahead[balance.label] = balance

    def remark(self, call: RemarkCall) -> None:
        """Add entries that charge nothing, under the policy in force."""
        # after such an entry, other processes read all totals again, so they must be stored
        self._totals.store_now()
        for analyst, dataset, charge in call.remarks:
            self._add(
                append(
                    self.hash,
                    self.sequence + 1,
                    call.kind,
                    self.time,
                    config=self.config,
                    facts=call.facts,
                    analyst=analyst,
                    dataset=dataset,
                    charge=charge,
                )
            )

    def _broken(self, call: NoteCall) -> bool:
        """Reject a policy that breaks the guarantee of earlier charges: see `declarations`."""
        policy = self._totals.policy if call.policy is None else call.policy
        if policy.hash != self.config:
            with self._totals.snapshot() as snapshot:
                call.error = next(iter(problems(snapshot, policy, self.entries)), None)
        return call.error is not None

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.sequence, self.hash, self.config = entry.sequence, entry.hash, entry.config

    def _unready(self) -> LedgerError | None:
        """Give the error if no charge can be made now."""
        if self.config != self._totals.policy.hash:
            return LedgerError(
                "HB312",
                "Another process opened this ledger with a different policy. Nothing was charged.",
                "Restart hubbub with the same hubbub.yaml.",
            )
        if self._behind > TOLERANCE:
            return LedgerError(
                "HB311",
                f"The system clock is {self._behind // 60_000_000} minutes behind the latest ledger entry. "
                "Nothing was charged.",
                "Correct the clock. If the entry's timestamp is wrong, run `hubbub admin forfeit --epsilon …` to "
                "continue.",
            )
        return None


def _reused(request: ChargeRequest) -> ParameterError:
    return ParameterError(
        "HB124",
        f"{request.analyst} already used this key for a different request. Nothing was charged.",
        "Use a new key for a new request. The old key returns the old result.",
    )
