"""Verify a ledger: derive everything it claims from its entries.

This covers the hash chain and sequence numbers; the anchor; the total of each cap, from the cost of every charge under
the policy in force at that time; the hash of each request; one charge per key; and each release with its charge. The
entries are read once, in order; a million of them take some seconds (docs/decisions/0005-ledger.md).
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Literal

from hubbub.accounting.chain import NO_HASH, Entry, Mark, canonical, genesis, link, request_hash
from hubbub.accounting.cost import ZERO, PrivacyCost, blocks_of_facts, cost_of_facts, privacy_cost
from hubbub.accounting.declarations import Declaration, broken_guarantee
from hubbub.accounting.policy import DAY, Policy
from hubbub.accounting.store import EntryFilter, Snapshot, StoredTotal, stored_until
from hubbub.core.events import ResponseEvent
from hubbub.errors import HubbubError, LedgerError

Facts = Mapping[str, object]
Part = Literal["database", "chain", "policy", "charge", "release", "totals", "anchor"]

#: What reading a damaged record can raise.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)

_MAX_PROBLEMS = 20  # more of them would not help to understand what happened

#: The neighbor relation under which a charge was made; None if none was declared.
_RELATIONS = (None, "add_remove", "replace")

#: Policy, analyst, dataset, day and facts: charges that agree in these are counted together.
ChargeKind = tuple[bytes, str, str, int, str]


@dataclass(frozen=True, slots=True)
class LedgerProblem:
    """One problem of a ledger."""

    part: Part
    text: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification. `ahead` has the totals with the newest charges, which are not stored yet.

    `moved` is the entry that closed the ledger because its deployment went elsewhere; 0 if there is none.
    """

    ledger: str
    head: Mark
    anchor: Mark | None
    entries: int
    charges: int
    releases: int
    caps: int
    problems: tuple[LedgerProblem, ...]
    ahead: Mapping[str, StoredTotal] = field(default_factory=dict)
    moved: int = 0

    @property
    def sound(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    @property
    def intact(self) -> bool:
        """Whether the database is consistent, though its latest entries may be missing."""
        return all(problem.part == "anchor" for problem in self.problems)

    def report(self) -> str:
        """Format the result for people.

        >>> head = Mark("f3", 2, bytes(32))
        >>> print(Verification("f3", head, head, 2, 1, 0, 3, ()).report())
        ledger f3: verified
          2 entries, the newest with hash 000000000000…
          1 charge, 1 of them without a release
          3 totals recomputed from the entries
          anchor at entry 2
        """
        count = f"{self.charges} charge{'' if self.charges == 1 else 's'}"
        lines = [
            f"ledger {self.ledger}: {'verified' if self.sound else 'NOT VERIFIED'}",
            f"  {self.entries} entries, the newest with hash {self.head.hash.hex()[:12]}…",
            f"  {count}, {self.charges - self.releases} of them without a release",
            f"  {self.caps} totals recomputed from the entries",
            "  no anchor" if self.anchor is None else f"  anchor at entry {self.anchor.sequence}",
            *([f"  closed by entry {self.moved}: the deployment was moved elsewhere"] if self.moved else []),
        ]
        return "\n".join(lines + [f"  problem ({problem.part}): {problem.text}" for problem in self.problems])

    def refuse(self, where: str) -> None:
        """Raise LedgerError if there is a problem; `where` is the location of the anchor."""
        if self.sound and self.moved:
            raise LedgerError(
                "HB894",
                f"This ledger is closed: entry {self.moved} records that the deployment was moved elsewhere. "
                "Nothing was charged.",
                "Use it at its new place. If its archive is lost, nothing of the budgets is left: `hubbub admin "
                "forfeit` records that and lets it start, and the owner may then set new budgets.",
            )
        if self.sound:
            return
        first = self.problems[0]
        more = f" ({len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        if first.part == "anchor" and self.anchor is None:
            raise LedgerError(
                "HB308",
                f"The ledger failed verification: {first.text} (expected at {where}). Nothing was charged.",
                "Restore the anchor. If the ledger was moved on purpose (to another machine, container, user or path), "
                "and no older copy was restored, run `hubbub admin anchor`. Otherwise charges may be missing: run "
                "`hubbub admin forfeit` to write off the budget.",
            )
        if first.part == "anchor":
            more = f"{more} (anchor: {where})"
        raise LedgerError(
            "HB307",
            f"The ledger failed verification: {first.text}{more}. Nothing was charged.",
            "Restore the newest database and anchor (`hubbub verify ledger` shows details). If they are lost, run "
            "`hubbub admin forfeit` to write off the budget that they may have recorded.",
        )


@dataclass(slots=True)
class _ChargeSums:
    """What a range of entries adds to the totals."""

    charged: Counter[ChargeKind] = field(default_factory=Counter)
    forfeited: list[tuple[int, dict[str, PrivacyCost]]] = field(default_factory=list)
    newest: dict[ChargeKind, int] = field(default_factory=dict)

    def totals(self, policies: Mapping[bytes, Policy]) -> dict[str, tuple[PrivacyCost, int]]:
        """Give the total of each cap, and its last entry."""
        totals: dict[str, tuple[PrivacyCost, int]] = {}

        def add(label: str, loss: PrivacyCost, sequence: int) -> None:
            before, last = totals.get(label, (ZERO, 0))
            totals[label] = (before + loss, max(last, sequence))

        for kind, count in self.charged.items():
            config, analyst, dataset, day, facts = kind
            loss = policies[config].cost(cost_of_facts(facts)).times(count)
            for cap in policies[config].charged(analyst, dataset, blocks_of_facts(facts)):
                if cap.scope != "query":
                    add(cap.at(day * DAY), loss, self.newest[kind])
        for sequence, losses in self.forfeited:
            for label, loss in losses.items():
                add(label, loss, sequence)
        return totals


@dataclass(slots=True)
class _Progress:
    """What one pass over the entries collects.

    `stored` is the newest entry that the stored totals include, and `first_later` the first charge after it.
    """

    problems: list[LedgerProblem] = field(default_factory=list)
    last: bytes = NO_HASH
    sequence: int = 0
    anchored: bytes | None = None
    config: bytes = NO_HASH
    policies: dict[bytes, Policy] = field(default_factory=dict)
    stored: int = 0
    first_later: int = 0
    until: _ChargeSums = field(default_factory=_ChargeSums)
    later: _ChargeSums = field(default_factory=_ChargeSums)
    is_charge: bytearray = field(default_factory=lambda: bytearray(1))
    keys: set[int] = field(default_factory=set)
    released: dict[int, str] = field(default_factory=dict)
    ahead: dict[str, StoredTotal] = field(default_factory=dict)
    moved: int = 0
    caps: int = 0
    charged_under: dict[str, tuple[bytes, int]] = field(
        default_factory=dict
    )  # the policy, and an index into _RELATIONS
    guarantees: dict[str, Declaration] = field(default_factory=dict)
    relation: bytearray = field(default_factory=lambda: bytearray(1))

    def add(self, part: Part, text: str) -> None:
        self.problems.append(LedgerProblem(part, text))

    def sums(self, sequence: int) -> _ChargeSums:
        return self.until if sequence <= self.stored else self.later


def verify(snapshot: Snapshot, anchor: Mark | None) -> Verification:
    """Verify a ledger. Read the anchor before opening the snapshot.

    Theorem (Rollback evidence). Let the anchor hold (n, h) of a ledger. A database of the same identity passes only if
    its first n entries are those of the ledger when it wrote (n, h), unless a collision of SHA-256 is at hand: it must
    have an entry n with hash h, and a hash determines all entries before it (see the hash chain). An honest database
    always passes: it was durable before the anchor was written, and only grows.
    Assumes  collision resistance of SHA-256; the anchor itself was not changed together with the database.
    Tested   tests/accounting/test_anchor.py::test_an_older_copy_of_the_database_is_refused
             tests/accounting/test_anchor.py::test_an_anchor_behind_the_database_is_accepted
    """
    progress = _Progress(last=genesis(snapshot.ledger))
    whole = False
    try:
        progress.stored = max((total.sequence for total in snapshot.totals().values()), default=0)
        whole = _walk(snapshot, progress, -1 if anchor is None else anchor.sequence)
        if whole:
            _check_releases(snapshot, progress)
            _check_totals(snapshot, progress)
    except (HubbubError, *_UNREADABLE) as error:
        progress.add("database", f"a record cannot be read ({type(error).__name__})")
    if whole:  # otherwise report only the first problem, not its consequences
        progress.problems += [LedgerProblem("database", text) for text in snapshot.problems()]
    head = Mark(snapshot.ledger, progress.sequence, progress.last)
    if whole:  # otherwise the end of the chain was not reached
        progress.problems += _check_anchor(anchor, progress.anchored, head)
    return Verification(
        snapshot.ledger,
        head,
        anchor,
        progress.sequence,
        sum(progress.is_charge),
        len(progress.released),
        progress.caps,
        tuple(progress.problems),
        progress.ahead,
        progress.moved,
    )


def derived_totals(snapshot: Snapshot) -> dict[str, StoredTotal]:
    """Compute the total of each cap from all entries of an intact ledger, whatever totals are stored."""
    progress = _Progress(last=genesis(snapshot.ledger), stored=snapshot.head().sequence)
    _walk(snapshot, progress, -1)
    totals = progress.until.totals(progress.policies)
    return {label: StoredTotal(_text(cost), sequence) for label, (cost, sequence) in totals.items()}


def _walk(snapshot: Snapshot, progress: _Progress, watched: int) -> bool:
    """Follow the chain, and say whether its end was reached; fast, because startup waits for it."""
    time, last, sequence = 0, progress.last, 0
    if watched == 0:
        progress.anchored = last
    for entry in snapshot.entries(EntryFilter()):
        number, kind, stamp, analyst, dataset, version, facts, query, key, charge, request, config, previous, digest = (
            entry
        )
        sequence += 1
        progress.sequence, progress.last = sequence - 1, last
        if number != sequence:
            progress.add("chain", f"entry {sequence} is missing; entry {number} is in its place")
            return False
        if previous != last or digest != link(
            previous, config, request, number, kind, stamp, analyst, dataset, version, facts, query, key, charge
        ):
            progress.add("chain", f"entry {number} was changed, or does not follow the previous one")
            return False
        last = digest
        if stamp < time and kind != "forfeit":
            progress.add("chain", f"entry {number} is older than the previous one")
        time = stamp
        if number == watched:
            progress.anchored = digest
        if kind == "charge":
            _charge(entry, progress)
        else:
            _other(entry, progress)
        if len(progress.problems) > _MAX_PROBLEMS:
            return False
    progress.sequence, progress.last = sequence, last
    if len(progress.keys) != sum(progress.is_charge):
        _check_keys(snapshot, progress)
    return True


def _charge(entry: Entry, progress: _Progress) -> None:
    """Process a charge."""
    progress.is_charge.append(1)
    sums = progress.sums(entry.sequence)
    if entry.sequence > progress.stored and not progress.first_later:
        progress.first_later = entry.sequence
    kind = (entry.config, entry.analyst, entry.dataset, entry.time // DAY, entry.facts)
    sums.charged[kind] += 1
    sums.newest[kind] = entry.sequence
    progress.keys.add(hash((entry.analyst, entry.key)))
    if entry.config != progress.config or entry.request != request_hash(entry.dataset, entry.facts, entry.query):
        progress.add("charge", f"the policy or request of charge {entry.sequence} does not match its hash")
        progress.relation.append(0)
        return
    config, relation = progress.charged_under.get(entry.dataset, (NO_HASH, 0))
    if config != entry.config:
        relation = _check_guarantee(entry, progress)
        progress.charged_under[entry.dataset] = entry.config, relation
    progress.relation.append(relation)


def _check_guarantee(entry: Entry, progress: _Progress) -> int:
    """Compare the guarantee of the first charge under a policy with that of earlier charges on its dataset."""
    now = progress.policies[entry.config].declarations.get(entry.dataset)
    if now is None:
        return 0
    why = broken_guarantee(progress.guarantees.get(entry.dataset, now), now)
    if why is not None:
        progress.add("charge", f"charge {entry.sequence} breaks the guarantee of earlier charges: {why}")
    progress.guarantees[entry.dataset] = now
    return _RELATIONS.index(now.get("relation"))


def _other(entry: Entry, progress: _Progress) -> None:
    """Process an entry that is not a charge."""
    progress.is_charge.append(0)
    progress.relation.append(0)
    facts = json.loads(entry.facts)
    if canonical(facts) != entry.facts:
        progress.add("chain", f"entry {entry.sequence} is not in canonical form")
    if entry.kind == "policy":
        policy = Policy.from_record(facts)
        if policy.text != entry.facts or policy.hash != entry.config:
            progress.add("policy", f"the policy of entry {entry.sequence} does not match its hash")
        progress.config = entry.config
        progress.policies[entry.config] = policy
    elif entry.config != progress.config:
        progress.add("policy", f"entry {entry.sequence} names a policy that is not in force")
    elif entry.kind in _KINDS:
        _KINDS[entry.kind](entry, facts, progress)
    else:
        progress.add("chain", f"entry {entry.sequence} has an unknown kind")


def _release(entry: Entry, facts: Facts, progress: _Progress) -> None:
    if not _of_a_charge(entry, progress):
        progress.add("release", f"the release of entry {entry.sequence} belongs to no charge")
    elif entry.charge in progress.released:
        progress.add("release", f"charge {entry.charge} has two releases")
    progress.released[entry.charge] = str(facts["sha256"])


def _forfeit(entry: Entry, facts: Facts, progress: _Progress) -> None:
    policy = progress.policies[entry.config]
    costs = {label: policy.cost(cost) for label, cost in forfeited_costs(facts).items()}
    progress.sums(entry.sequence).forfeited.append((entry.sequence, costs))
    if "closed" not in facts:  # that of a block
        progress.moved = entry.sequence if "moved" in facts else 0


def _failure(entry: Entry, facts: Facts, progress: _Progress) -> None:  # noqa: ARG001 - the common signature
    if not _of_a_charge(entry, progress):
        progress.add("charge", f"the failure of entry {entry.sequence} belongs to no charge")


def _reviewed(entry: Entry, facts: Facts, progress: _Progress) -> None:
    if not entry.analyst or not entry.dataset or not str(facts["by"]).strip():
        progress.add("chain", f"the review of entry {entry.sequence} does not name reviewer, analyst and dataset")


def _decision(entry: Entry, facts: Facts, progress: _Progress) -> None:
    named = all(str(facts[name]).strip() for name in ("by", "approved")) and isinstance(facts["reason"], str)
    if not _of_a_charge(entry, progress) or not named:
        progress.add("chain", f"the decision of entry {entry.sequence} does not name a charge, a person and a reason")


def _publication(entry: Entry, facts: Facts, progress: _Progress) -> None:
    named = all(str(facts[name]).strip() for name in ("act", "by", "text")) and isinstance(facts["reason"], str)
    if not _of_a_charge(entry, progress) or not named:
        progress.add("chain", f"entry {entry.sequence} does not name a release, an act, a person and a text")


def _of_a_charge(entry: Entry, progress: _Progress) -> bool:
    return 0 < entry.charge < entry.sequence and bool(progress.is_charge[entry.charge])


#: How each kind of entry is processed, except charges (for speed) and policies (which apply to later entries).
_KINDS: Mapping[str, Callable[[Entry, Facts, _Progress], None]] = {
    "release": _release,
    "forfeit": _forfeit,
    "failure": _failure,
    "reviewed": _reviewed,
    "decision": _decision,
    "publication": _publication,
}


def forfeited_costs(facts: Facts) -> dict[str, PrivacyCost]:
    """Give the cost that a forfeit charged to each cap: that of any (ε, δ)-DP mechanism."""
    charged = facts["charged"]
    if not isinstance(charged, dict):
        raise TypeError("charged")
    return {cap: cost_of_budget(Fraction(epsilon), Fraction(delta)) for cap, (epsilon, delta) in charged.items()}


def cost_of_budget(epsilon: Fraction, delta: Fraction) -> PrivacyCost:
    """Give the cost of an unknown (ε, δ)-DP mechanism.

    It is post-processing of randomized response that, with probability δ, reveals everything instead (Kairouz, Oh and
    Viswanath 2015), so it costs as much as randomized response, plus δ.
    """
    response = privacy_cost(ResponseEvent(answers=2, epsilon=epsilon))
    return replace(response, delta=delta)


def _check_keys(snapshot: Snapshot, progress: _Progress) -> None:
    """Compare the keys themselves, after their hashes collided."""
    seen: set[tuple[str, str]] = set()
    for entry in snapshot.entries(EntryFilter(kind="charge")):
        if (entry.analyst, entry.key) in seen:
            progress.add("charge", f"charge {entry.sequence} repeats a key of {entry.analyst}")
        seen.add((entry.analyst, entry.key))


def _check_releases(snapshot: Snapshot, progress: _Progress) -> None:
    expected = dict(progress.released)
    for charge, body in snapshot.releases():
        if expected.pop(charge, None) != sha256(body).hexdigest():
            progress.add("release", f"the stored release of charge {charge} does not match the recorded hash")
        # in canonical JSON, no string contains these bytes: quotes in strings are escaped
        relation = _RELATIONS[progress.relation[charge]] if charge < len(progress.relation) else None
        if relation is not None and b'"relation":' in body and f'"relation":"{relation}"'.encode() not in body:
            progress.add("release", f"the receipt of charge {charge} states a neighbor relation that was not declared")
    for charge in expected:
        progress.add("release", f"the release of charge {charge} is missing")


def _check_totals(snapshot: Snapshot, progress: _Progress) -> None:
    """Compare the stored totals with the entries that they include, and compute what later entries add.

    Totals are stored at intervals (see `store.LAG`), so they lack only a few of the newest charges, and never all: if
    no totals are stored, they were removed.
    """
    derived = progress.until.totals(progress.policies)
    stored = snapshot.totals()
    for label in sorted(derived.keys() | stored.keys()):
        if label not in derived or label not in stored or stored[label].spent != _text(derived[label][0]):
            progress.add("totals", f"the total of {label} is not the sum of its charges")
    for label, (loss, sequence) in progress.later.totals(progress.policies).items():
        before, _ = derived.get(label, (ZERO, 0))
        progress.ahead[label] = StoredTotal(_text(before + loss), sequence)
    progress.caps = len(derived.keys() | progress.ahead.keys())
    if 0 < progress.first_later <= stored_until(progress.sequence) or (progress.ahead and not stored):
        progress.add("totals", "the totals were removed, or are older than hubbub leaves them")


def _text(total: PrivacyCost) -> str:
    return canonical(total.to_json())


def _check_anchor(anchor: Mark | None, anchored: bytes | None, head: Mark) -> list[LedgerProblem]:
    if anchor is None:
        if head.sequence == 0:
            return []
        return [LedgerProblem("anchor", "its anchor is missing, so entries may be missing too")]
    if anchor.ledger != head.ledger:
        return [LedgerProblem("anchor", "its anchor belongs to another ledger, so the database was replaced")]
    if anchor.sequence > head.sequence:
        missing = anchor.sequence - head.sequence
        return [LedgerProblem("anchor", f"its anchor is {missing} entries ahead, so the database is an older copy")]
    if anchored != anchor.hash:
        return [LedgerProblem("anchor", f"entry {anchor.sequence} does not match the anchor")]
    return []
