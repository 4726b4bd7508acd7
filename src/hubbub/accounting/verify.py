"""Verification: everything that the ledger claims, derived again from its entries.

The chain and the numbers of the entries; the anchor; the total of each cap, from the price of every charge under the
policy it was made under; the hash of each request; one charge for each key; each release and the charge that paid for
it. The entries are read once, in order; a million of them take some seconds (docs/decisions/0005-ledger.md).
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Literal

from hubbub.accounting.chain import NO_HASH, Entry, Mark, canonical, genesis, link, request_hash
from hubbub.accounting.cost import ZERO, PrivacyCost, priced, privacy_cost
from hubbub.accounting.declarations import Declaration, weakened
from hubbub.accounting.policy import DAY, Policy
from hubbub.accounting.store import Filter, Snapshot, Total, stored_until
from hubbub.core.events import ResponseEvent
from hubbub.errors import HubbubError, LedgerError

Facts = Mapping[str, object]
Part = Literal["database", "chain", "policy", "charge", "release", "totals", "anchor"]

#: What reading a record can raise that was not written by us.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)

_ENOUGH = 20  # problems: a ledger with so many is no better understood with more

#: What a declaration says of a charge; None where it was made under none.
_RELATIONS = (None, "add_remove", "replace")

#: Charges that are alike: the policy they were made under, who, on what dataset and day, with which mechanism.
Alike = tuple[bytes, str, str, int, str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it must be."""

    part: Part
    text: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found. `ahead` has the totals that were not yet stored with the newest charges, as they must be."""

    ledger: str
    head: Mark
    anchor: Mark | None
    entries: int
    charges: int
    releases: int
    caps: int
    problems: tuple[Problem, ...]
    ahead: Mapping[str, Total] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def intact(self) -> bool:
        """Whether what is in the database is right in itself, though its end may be missing."""
        return all(problem.part == "anchor" for problem in self.problems)

    def report(self) -> str:
        """Say it in words.

        >>> head = Mark("f3", 2, bytes(32))
        >>> print(Verification("f3", head, head, 2, 1, 0, 3, ()).report())
        ledger f3: sound
          2 entries, the newest with hash 000000000000…
          1 charge, 1 of them without a release
          3 totals re-derived from the entries
          anchor at entry 2
        """
        count = f"{self.charges} charge{'' if self.charges == 1 else 's'}"
        lines = [
            f"ledger {self.ledger}: {'sound' if self.sound else 'NOT SOUND'}",
            f"  {self.entries} entries, the newest with hash {self.head.hash.hex()[:12]}…",
            f"  {count}, {self.charges - self.releases} of them without a release",
            f"  {self.caps} totals re-derived from the entries",
            "  no anchor" if self.anchor is None else f"  anchor at entry {self.anchor.sequence}",
        ]
        return "\n".join(lines + [f"  problem ({problem.part}): {problem.text}" for problem in self.problems])

    def refuse(self, where: str) -> None:
        """Raise LedgerError where something is wrong; `where` is the anchor's place."""
        if self.sound:
            return
        first = self.problems[0]
        more = f" ({len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        if first.part == "anchor" and self.anchor is None:
            raise LedgerError(
                "HB308",
                f"the ledger must not be trusted: {first.text} (looked for at {where}). Nothing was charged.",
                "Put the anchor back. If the ledger was moved on purpose (to another machine, container, user or path) "
                "and no older copy was restored: hubbub admin anchor. Otherwise charges may be missing: hubbub admin "
                "forfeit writes off the budget and goes on.",
            )
        if first.part == "anchor":
            more = f"{more} (anchor: {where})"
        code = "HB307"
        raise LedgerError(
            code,
            f"the ledger must not be trusted: {first.text}{more}. Nothing was charged.",
            "Put back the newest database and anchor (hubbub verify ledger says more). If they are lost, so is what "
            "they recorded: hubbub admin forfeit writes off the budget and goes on.",
        )


@dataclass(slots=True)
class _Sums:
    """What a part of the entries adds to the totals."""

    charged: Counter[Alike] = field(default_factory=Counter)
    forfeited: list[tuple[int, dict[str, PrivacyCost]]] = field(default_factory=list)
    newest: dict[Alike, int] = field(default_factory=dict)

    def totals(self, policies: Mapping[bytes, Policy]) -> dict[str, tuple[PrivacyCost, int]]:
        """Give what was charged to each cap, and by which entry last."""
        totals: dict[str, tuple[PrivacyCost, int]] = {}

        def add(label: str, loss: PrivacyCost, sequence: int) -> None:
            before, last = totals.get(label, (ZERO, 0))
            totals[label] = (before + loss, max(last, sequence))

        for alike, count in self.charged.items():
            config, analyst, dataset, day, facts = alike
            loss = priced(facts).times(count)
            for cap in policies[config].caps(analyst, dataset):
                if cap.scope != "query":
                    add(cap.at(day * DAY), loss, self.newest[alike])
        for sequence, losses in self.forfeited:
            for label, loss in losses.items():
                add(label, loss, sequence)
        return totals


@dataclass(slots=True)
class _Pass:
    """What one pass over the entries collects.

    `stored` is the newest entry that the stored totals hold, and `first_later` the first charge that they do not.
    """

    problems: list[Problem] = field(default_factory=list)
    last: bytes = NO_HASH
    sequence: int = 0
    anchored: bytes | None = None
    config: bytes = NO_HASH
    policies: dict[bytes, Policy] = field(default_factory=dict)
    stored: int = 0
    first_later: int = 0
    until: _Sums = field(default_factory=_Sums)
    later: _Sums = field(default_factory=_Sums)
    is_charge: bytearray = field(default_factory=lambda: bytearray(1))
    keys: set[int] = field(default_factory=set)
    released: dict[int, str] = field(default_factory=dict)
    ahead: dict[str, Total] = field(default_factory=dict)
    caps: int = 0
    charged_under: dict[str, tuple[bytes, int]] = field(default_factory=dict)  # the policy, and _RELATIONS' index
    promised: dict[str, Declaration] = field(default_factory=dict)
    relation: bytearray = field(default_factory=lambda: bytearray(1))

    def add(self, part: Part, text: str) -> None:
        self.problems.append(Problem(part, text))

    def sums(self, sequence: int) -> _Sums:
        return self.until if sequence <= self.stored else self.later


def verify(snapshot: Snapshot, anchor: Mark | None) -> Verification:
    """Derive everything again. The anchor must have been read before the snapshot was taken.

    Theorem (Rollback evidence). Let the anchor hold (n, h) of a ledger. A database of the same identity passes only if
    its first n entries are those of the ledger when it wrote (n, h), unless a collision of SHA-256 is at hand: it must
    have an entry n with hash h, and a hash determines all entries before it (see the hash chain). An honest database
    always passes: it was durable before the anchor was written, and only grows.
    Assumes  collision resistance of SHA-256; the anchor itself was not changed together with the database.
    Tested   tests/accounting/test_anchor.py::test_an_older_copy_of_the_database_is_refused
             tests/accounting/test_anchor.py::test_an_anchor_behind_the_database_is_accepted
    """
    found = _Pass(last=genesis(snapshot.ledger))
    whole = False
    try:
        found.stored = max((total.sequence for total in snapshot.totals().values()), default=0)
        whole = _walk(snapshot, found, -1 if anchor is None else anchor.sequence)
        if whole:
            _check_releases(snapshot, found)
            _check_totals(snapshot, found)
    except (HubbubError, *_UNREADABLE) as error:
        found.add("database", f"something in it cannot be read ({type(error).__name__})")
    if whole:  # else one thing is said, and not what follows from it
        found.problems += [Problem("database", text) for text in snapshot.problems()]
    head = Mark(snapshot.ledger, found.sequence, found.last)
    if whole:  # else the end was not reached, and nothing can be said of it
        found.problems += _check_anchor(anchor, found.anchored, head)
    return Verification(
        snapshot.ledger,
        head,
        anchor,
        found.sequence,
        sum(found.is_charge),
        len(found.released),
        found.caps,
        tuple(found.problems),
        found.ahead,
    )


def _walk(snapshot: Snapshot, found: _Pass, watched: int) -> bool:
    """Follow the chain to its end, and say whether that was reached; lean, because a start waits for it."""
    time, last, sequence = 0, found.last, 0
    if watched == 0:
        found.anchored = last
    for entry in snapshot.entries(Filter()):
        number, kind, stamp, analyst, dataset, version, facts, query, key, charge, request, config, previous, digest = (
            entry
        )
        sequence += 1
        found.sequence, found.last = sequence - 1, last
        if number != sequence:
            found.add("chain", f"entry {sequence} is missing, and entry {number} stands in its place")
            return False
        if previous != last or digest != link(
            previous, config, request, number, kind, stamp, analyst, dataset, version, facts, query, key, charge
        ):
            found.add("chain", f"entry {number} was changed, or does not follow the one before it")
            return False
        last = digest
        if stamp < time and kind != "forfeit":
            found.add("chain", f"entry {number} is older than the one before it")
        time = stamp
        if number == watched:
            found.anchored = digest
        if kind == "charge":
            _charge(entry, found)
        else:
            _other(entry, found)
        if len(found.problems) > _ENOUGH:
            return False
    found.sequence, found.last = sequence, last
    if len(found.keys) != sum(found.is_charge):
        _check_keys(snapshot, found)
    return True


def _charge(entry: Entry, found: _Pass) -> None:
    """Take in a charge."""
    found.is_charge.append(1)
    sums = found.sums(entry.sequence)
    if entry.sequence > found.stored and not found.first_later:
        found.first_later = entry.sequence
    alike = (entry.config, entry.analyst, entry.dataset, entry.time // DAY, entry.facts)
    sums.charged[alike] += 1
    sums.newest[alike] = entry.sequence
    found.keys.add(hash((entry.analyst, entry.key)))
    if entry.config != found.config or entry.request != request_hash(entry.dataset, entry.facts, entry.query):
        found.add("charge", f"charge {entry.sequence} has another policy or request than it says")
        found.relation.append(0)
        return
    config, relation = found.charged_under.get(entry.dataset, (NO_HASH, 0))
    if config != entry.config:
        relation = _promise(entry, found)
        found.charged_under[entry.dataset] = entry.config, relation
    found.relation.append(relation)


def _promise(entry: Entry, found: _Pass) -> int:
    """Compare what the first charge under a policy promises with what charges on its dataset promised before."""
    now = found.policies[entry.config].declarations.get(entry.dataset)
    if now is None:
        return 0
    why = weakened(found.promised.get(entry.dataset, now), now)
    if why is not None:
        found.add("charge", f"charge {entry.sequence} breaks what earlier charges promised: {why}")
    found.promised[entry.dataset] = now
    return _RELATIONS.index(now.get("relation"))


def _other(entry: Entry, found: _Pass) -> None:
    """Take in an entry that is no charge."""
    found.is_charge.append(0)
    found.relation.append(0)
    facts = json.loads(entry.facts)
    if canonical(facts) != entry.facts:
        found.add("chain", f"entry {entry.sequence} is not in canonical form")
    if entry.kind == "policy":
        policy = Policy.from_record(facts)
        if policy.text != entry.facts or policy.hash != entry.config:
            found.add("policy", f"the policy of entry {entry.sequence} has another hash than it says")
        found.config = entry.config
        found.policies[entry.config] = policy
    elif entry.config != found.config:
        found.add("policy", f"entry {entry.sequence} names another policy than the one in force")
    elif entry.kind in _KINDS:
        _KINDS[entry.kind](entry, facts, found)
    else:
        found.add("chain", f"entry {entry.sequence} is of no known kind")


def _release(entry: Entry, facts: Facts, found: _Pass) -> None:
    if not _of_a_charge(entry, found):
        found.add("release", f"the release of entry {entry.sequence} belongs to no charge")
    elif entry.charge in found.released:
        found.add("release", f"charge {entry.charge} has two releases")
    found.released[entry.charge] = str(facts["sha256"])


def _forfeit(entry: Entry, facts: Facts, found: _Pass) -> None:
    found.sums(entry.sequence).forfeited.append((entry.sequence, forfeited(facts)))


def _failure(entry: Entry, facts: Facts, found: _Pass) -> None:  # noqa: ARG001 - as the others have it
    if not _of_a_charge(entry, found):
        found.add("charge", f"the failure of entry {entry.sequence} belongs to no charge")


def _reviewed(entry: Entry, facts: Facts, found: _Pass) -> None:
    if not entry.analyst or not entry.dataset or not str(facts["by"]).strip():
        found.add("chain", f"the review of entry {entry.sequence} does not say who looked at what")


def _of_a_charge(entry: Entry, found: _Pass) -> bool:
    return 0 < entry.charge < entry.sequence and bool(found.is_charge[entry.charge])


#: How each kind is taken in, but charges (there are many) and policies (they change what comes after them).
_KINDS: Mapping[str, Callable[[Entry, Facts, _Pass], None]] = {
    "release": _release,
    "forfeit": _forfeit,
    "failure": _failure,
    "reviewed": _reviewed,
}


def forfeited(facts: Facts) -> dict[str, PrivacyCost]:
    """Price what a forfeit wrote off: for each cap, anything that is (ε, δ)-private."""
    charged = facts["charged"]
    if not isinstance(charged, dict):
        raise TypeError("charged")
    return {cap: loss_of(Fraction(epsilon), Fraction(delta)) for cap, (epsilon, delta) in charged.items()}


def loss_of(epsilon: Fraction, delta: Fraction) -> PrivacyCost:
    """Price an unknown (ε, δ)-private mechanism.

    It is post-processing of randomized response that, with probability δ, shows everything instead (Kairouz, Oh and
    Viswanath 2015), so it costs what randomized response does, and δ.
    """
    response = privacy_cost(ResponseEvent(answers=2, epsilon=epsilon))
    return PrivacyCost(response.pure, response.renyi, delta)


def _check_keys(snapshot: Snapshot, found: _Pass) -> None:
    """Look exactly: the first look compared only hashes of keys."""
    seen: set[tuple[str, str]] = set()
    for entry in snapshot.entries(Filter(kind="charge")):
        if (entry.analyst, entry.key) in seen:
            found.add("charge", f"charge {entry.sequence} repeats a key of {entry.analyst}")
        seen.add((entry.analyst, entry.key))


def _check_releases(snapshot: Snapshot, found: _Pass) -> None:
    expected = dict(found.released)
    for charge, body in snapshot.releases():
        if expected.pop(charge, None) != sha256(body).hexdigest():
            found.add("release", f"the stored release of charge {charge} is not the one that was recorded")
        # canonical JSON, whose texts cannot hold these bytes: a quote in a text has a backslash before it
        relation = _RELATIONS[found.relation[charge]] if charge < len(found.relation) else None
        if relation is not None and b'"relation":' in body and f'"relation":"{relation}"'.encode() not in body:
            found.add("release", f"the receipt of charge {charge} states another relation than was declared")
    for charge in expected:
        found.add("release", f"the release of charge {charge} is missing")


def _check_totals(snapshot: Snapshot, found: _Pass) -> None:
    """Compare the stored totals with those of the entries they hold, and derive what the later ones add.

    Totals are stored now and then (see `store.LAG`); the newest charges are in the entries alone. These are at most a
    few, and never all: totals that hold nothing at all were removed.
    """
    derived = found.until.totals(found.policies)
    stored = snapshot.totals()
    for label in sorted(derived.keys() | stored.keys()):
        if label not in derived or label not in stored or stored[label].spent != _text(derived[label][0]):
            found.add("totals", f"the total of {label} is not the sum of its charges")
    for label, (loss, sequence) in found.later.totals(found.policies).items():
        before, _ = derived.get(label, (ZERO, 0))
        found.ahead[label] = Total(_text(before + loss), sequence)
    found.caps = len(derived.keys() | found.ahead.keys())
    if 0 < found.first_later <= stored_until(found.sequence) or (found.ahead and not stored):
        found.add("totals", "the totals were removed, or are older than a server leaves them")


def _text(total: PrivacyCost) -> str:
    return canonical(total.to_json())


def _check_anchor(anchor: Mark | None, anchored: bytes | None, head: Mark) -> list[Problem]:
    if anchor is None:
        if head.sequence == 0:
            return []
        return [Problem("anchor", "its anchor is missing, so nobody can say whether this is all of it")]
    if anchor.ledger != head.ledger:
        return [Problem("anchor", "its anchor belongs to another ledger: the database was replaced")]
    if anchor.sequence > head.sequence:
        gone = anchor.sequence - head.sequence
        return [Problem("anchor", f"its anchor is {gone} entries ahead: the database is an older copy")]
    if anchored != anchor.hash:
        return [Problem("anchor", f"entry {anchor.sequence} is not the one that the anchor remembers")]
    return []
