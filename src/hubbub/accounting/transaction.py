"""Deciding: what becomes of each call of a group, in order, on the totals as they are under the writer's lock."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from hubbub.accounting.calls import (
    AnyCall,
    Asked,
    Charge,
    ChargeCall,
    LookupCall,
    NoteCall,
    RecordCall,
    Refusal,
    Remarking,
    Request,
)
from hubbub.accounting.chain import Entry, append, canonical
from hubbub.accounting.declarations import problems
from hubbub.accounting.store import Found, Head
from hubbub.accounting.totals import Totals
from hubbub.errors import LedgerError, ParameterError

#: Microseconds by which a clock may step back (time servers do that); further back, no charge is made.
TOLERANCE = 300_000_000


class Transaction:
    """One transaction in the making."""

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
        # time stands still where the clock steps back, so that an old day's or month's budget cannot come again
        self.time = max(clock, head.time)
        self.entries: list[Entry] = []
        self.releases: dict[int, bytes] = {}
        self._behind = head.time - clock
        self._totals = totals
        self._fresh: dict[tuple[str, str], Entry] = {}

    def serve(self, call: AnyCall, found: Mapping[tuple[str, str], Found], clock: int) -> None:
        """Decide what becomes of a call; `found` has the charges that its keys belong to."""
        match call:
            case ChargeCall():
                self.charge(call, found)
            case RecordCall():
                self.record(call, found.get(call.keys[0]))
            case LookupCall():
                known = found.get(call.keys[0])
                call.outcome = None if known is None else Charge(known.entry, known.release, replayed=True)
            case Remarking():
                self.remark(call)
            case NoteCall():
                self.note(call, clock)

    def charge(self, call: ChargeCall, found: Mapping[tuple[str, str], Found]) -> None:
        """Replay, refuse or charge: what is not there yet is charged whole, or not at all."""
        new: list[Asked] = []
        known: dict[tuple[str, str], Charge] = {}
        for asked in call.asked:
            fresh = self._fresh.get(asked.key)
            before = found.get(asked.key) if fresh is None else Found(fresh, None)
            if before is None:
                new.append(asked)
            elif before.entry.request == asked.digest:
                known[asked.key] = Charge(before.entry, before.release, replayed=True)
            else:
                call.error = _reused(asked.request)
                return
        if new and not self._spend(call, new):
            return
        call.outcome = [known.get(asked.key) or Charge(self._fresh[asked.key]) for asked in call.asked]

    def _spend(self, call: ChargeCall, new: Sequence[Asked]) -> bool:
        """Charge all of these, or say why none: no total is touched before every cap of every one has admitted it.

        They are on different datasets, so no two of them share a total.
        """
        call.error = self._unready()
        if call.error is not None:
            return False
        try:
            caps = [self._totals.caps(asked.request.analyst, asked.request.dataset, self.time) for asked in new]
        except ParameterError as error:  # the policy was changed while this call was in line, and no longer knows them
            call.error = error
            return False
        for asked, each in zip(new, caps, strict=True):
            refusing = each.refusing(asked.cost)
            if refusing is not None:
                call.refusal = Refusal(*refusing, asked.cost, [state for one in caps for state in one.all()])
                return False
        for asked, each in zip(new, caps, strict=True):
            request = asked.request
            analyst, dataset, version, _, query, key = request
            entry = append(
                self.hash,
                self.sequence + 1,
                "charge",
                self.time,
                config=self.config,
                facts=asked.facts,
                analyst=analyst,
                dataset=dataset,
                version=version,
                query=query,
                key=key,
                request=asked.digest,
            )
            self._add(entry)
            self._fresh[asked.key] = entry
            for _, balance in each.lasting:
                balance.add(asked.cost, entry.sequence)
                self._totals.ahead[balance.label] = balance
        return True

    def record(self, call: RecordCall, found: Found | None) -> None:
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
        """Add a policy, where it is not the one in force, or a forfeit."""
        if call.kind == "policy" and self._broken(call):
            return
        if call.policy is not None:
            self._totals.govern(call.policy)
        config = self._totals.policy.hash
        if call.kind == "policy" and self.config == config:
            return
        self._totals.store_now()
        if call.kind == "forfeit":
            self.time = clock  # the one entry that may turn the clock back: the owner has looked at it
        self._add(append(self.hash, self.sequence + 1, call.kind, self.time, config=config, facts=call.facts))
        for balance in self._totals.load(call.losses):
            balance.add(call.losses[balance.label], self.sequence)
            self._totals.ahead[balance.label] = balance

    def remark(self, call: Remarking) -> None:
        """Add entries that spend nothing, under the policy in force."""
        # a process that does not know the kind reads all totals again after it: they must be there to be read
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
        """Refuse a policy that breaks what was promised: see `declared`."""
        policy = self._totals.policy if call.policy is None else call.policy
        if policy.hash != self.config:
            with self._totals.snapshot() as snapshot:
                call.error = next(iter(problems(snapshot, policy, self.entries)), None)
        return call.error is not None

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.sequence, self.hash, self.config = entry.sequence, entry.hash, entry.config

    def _unready(self) -> LedgerError | None:
        """Say why no charge at all can be made now."""
        if self.config != self._totals.policy.hash:
            return LedgerError(
                "HB312",
                "another process opened this ledger with another policy. Nothing was charged.",
                "Restart with the same hubbub.yaml.",
            )
        if self._behind > TOLERANCE:
            return LedgerError(
                "HB311",
                f"the clock stands {self._behind // 60_000_000} minutes before the newest entry. Nothing was charged.",
                "Set the clock. If the entry has the wrong time: hubbub admin forfeit --epsilon … goes on from here.",
            )
        return None


def _reused(request: Request) -> ParameterError:
    return ParameterError(
        "HB124",
        f"the key {request.key!r} was used by {request.analyst} for another request. Nothing was charged.",
        "Take a new key for a new request; keep the old one to get the old answer again.",
    )
