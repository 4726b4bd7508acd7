"""Review of answers before they leave: which charges need it, and who approved or declined them.

A dataset with `review` in hubbub.yaml keeps the answers that the rule names until somebody approved them. The rule is
part of the policy, so each charge is bound to the rule in force when it was made. Decisions are entries of the kind
`decision`. The charge stands either way.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from threading import Lock
from typing import Literal

from hubbub.accounting.calls import Remark, RemarkCall
from hubbub.accounting.chain import Entry, canonical
from hubbub.accounting.cost import PrivacyCost, event_of_facts, privacy_cost
from hubbub.accounting.disclosure import approximate_cost
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.policy import Policy
from hubbub.accounting.review_rule import ReviewRule
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.core.events import Event
from hubbub.core.wire import Json
from hubbub.errors import ReviewError

ReviewState = Literal["waiting", "approved", "declined"]


#: Keys of the owner's profiles start with this word. An analyst's keys start with "key", "replay" or "plan".
PUBLISHED = "profile"

MAX_REASON = 2000  #: characters

#: A charge by its analyst and its key without the dataset's name: a query over several tables has one name.
ChargeName = tuple[str, str]


def name_of(charge: Entry) -> ChargeName:
    """Give the name of a charge."""
    return charge.analyst, charge.key.removesuffix(f" {charge.dataset}")


@dataclass(frozen=True, slots=True)
class Decision:
    """What one person decided, when (microseconds since 1970), and why."""

    approved: bool
    by: str
    reason: str
    time: int


@dataclass(slots=True)
class Reviewed:
    """An answer that needs review.

    config     the hash of the policy that its charges name
    charges    its charges that a rule names, one for each dataset
    people     how many must approve
    decisions  in the order of the chain; those after the last one that counted are not kept
    """

    analyst: str
    name: str
    config: bytes
    charges: dict[int, Entry] = field(default_factory=dict)
    people: int = 1
    decisions: list[Decision] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The first charge that needs review: the number of the review."""
        return min(self.charges)

    @property
    def query(self) -> str:
        """The query in canonical form."""
        return self.charges[self.number].query

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets whose rules name the answer."""
        return tuple(entry.dataset for _, entry in sorted(self.charges.items()))

    @property
    def approvals(self) -> int:
        """How many different people approved it."""
        return len({each.by for each in self.decisions if each.approved})

    @property
    def state(self) -> ReviewState:
        """Whether it may leave: declined by one person, or approved by as many different ones as the rule asks for."""
        if any(not each.approved for each in self.decisions):
            return "declined"
        return "approved" if self.approvals >= self.people else "waiting"

    def to_json(self) -> Json:
        """Return it as JSON values, without the answer."""
        return {
            "number": self.number,
            "analyst": self.analyst,
            "datasets": list(self.datasets),
            "query": self.query,
            "people": self.people,
            "state": self.state,
            "decisions": [asdict(each) for each in self.decisions],
        }


class Reviews:
    """All answers that need or needed review. Thread-safe; an update reads only the newer entries.

    Theorem (No answer before its review). Let a release be shown to an analyst only where `held_in` does not have
    its charge. Then no analyst reads an answer that the rule of a dataset names before the people of that rule approved
    it.
    Proof    A charge is made only under the policy that is newest in the chain, and names it by hash (`HB312`), so the
             rule that applies follows from the entry alone. A release comes after its charge in the chain, so a
             snapshot that has the release, or a later one, has the charge. Answers that cost nothing are functions of
             releases that may be shown.
    Assumes  every path to a release asks `held_in` with the snapshot that it reads, or with a later one. Profiles that
             the owner publishes, the owner's own process, and roles that may read everybody's releases are exempt.
    Tested   tests/curator/test_review.py::test_no_path_shows_an_answer_before_its_review
             tests/curator/test_review.py::test_another_process_cannot_derive_what_waits
             tests/curator/test_review.py::test_shared_answers_wait_too
    """

    def __init__(self) -> None:
        self._rules: dict[bytes, Mapping[str, ReviewRule]] = {}
        self._deltas: dict[bytes, Mapping[str, Fraction]] = {}
        self._by_name: dict[ChargeName, list[Reviewed]] = {}
        self._by_charge: dict[int, Reviewed] = {}
        self._held: frozenset[ChargeName] = frozenset()
        self._read = 0
        self._lock = Lock()

    def take_in(self, snapshot: Snapshot) -> None:
        """Read the entries that were written since the last update."""
        newest = snapshot.head().sequence
        with self._lock:
            if newest <= self._read:
                return
            for entry in snapshot.entries(EntryFilter(kind="policy"), after=self._read):
                self._note_policy(entry)
            if any(self._rules.values()):
                for entry in snapshot.entries(EntryFilter(kind="charge"), after=self._read):
                    self._note_charge(entry)
                for entry in snapshot.entries(EntryFilter(kind="decision"), after=self._read):
                    self._note_decision(entry)
                self._held = frozenset(
                    name for name, named in self._by_name.items() if any(each.state != "approved" for each in named)
                )
            self._read = newest

    def held_in(self, snapshot: Snapshot) -> frozenset[ChargeName]:
        """Give the answers of a snapshot that must not be shown: not reviewed yet, or declined."""
        self.take_in(snapshot)
        return self._held

    def of_charge(self, number: int) -> Reviewed | None:
        """Give the review of a charge, if a rule names it."""
        return self._by_charge.get(number)

    def of(self, entry: Entry) -> Reviewed | None:
        """Give the review of the query that a charge belongs to, if it needs one; one that is not approved first.

        A query over several datasets is held by the rule of any of them, whichever of its charges has the release.
        """
        named = self._by_name.get(name_of(entry), ())
        own = [each for each in named if each.query == entry.query]
        return next((each for each in (*own, *named) if each.state != "approved"), own[0] if own else None)

    def all(self) -> tuple[Reviewed, ...]:
        """Give all answers that need or needed review, newest first."""
        with self._lock:
            return tuple(sorted(itertools.chain(*self._by_name.values()), key=lambda each: -each.number))

    def _note_policy(self, entry: Entry) -> None:
        record = json.loads(entry.facts)
        rules = record.get("reviews", {})
        self._rules[entry.config] = {name: ReviewRule.from_record(rule) for name, rule in rules.items()}
        self._deltas[entry.config] = (
            {name: Policy.from_record(record).delta_of(name) for name in rules} if rules else {}
        )

    def _note_charge(self, entry: Entry) -> None:
        rule = self._rules.get(entry.config, {}).get(entry.dataset)
        if rule is None or entry.key.startswith(f"{PUBLISHED} "):
            return
        cost = privacy_cost(event_of_facts(entry.facts))
        if not needs_review(rule, cost, entry.query, self._deltas[entry.config][entry.dataset]):
            return
        # an analyst can give one key to queries on different datasets: a decision is on one query alone
        named = self._by_name.setdefault(name_of(entry), [])
        review = next((each for each in named if (each.query, each.config) == (entry.query, entry.config)), None)
        if review is None:
            review = Reviewed(*name_of(entry), entry.config)
            named.append(review)
        review.charges[entry.sequence] = entry
        review.people = max(review.people, rule.people)
        self._by_charge[entry.sequence] = review

    def _note_decision(self, entry: Entry) -> None:
        review = self._by_charge.get(entry.charge)
        if review is not None and review.state == "waiting":
            facts = json.loads(entry.facts)
            review.decisions.append(Decision(facts["approved"], facts["by"], facts["reason"], entry.time))


def needs_review(rule: ReviewRule, cost: PrivacyCost, query: str, delta: Fraction) -> bool:
    """Say whether an answer needs review; one that costs nothing is computed from what may be shown."""
    return cost.pure != 0 and rule.names(query, approximate_cost(cost, delta=delta)[0])


def decide(ledger: Ledger, number: int, *, approve: bool, by: str, reason: str = "") -> Reviewed:
    """Record a person's decision on an answer, and return the review as it stands then."""
    reviews = Reviews()
    review = _find(ledger, reviews, number)
    if review.state != "waiting":
        raise ReviewError(
            "HB913",
            f"Answer {number} was {review.state} before. Nothing was changed.",
            "A decision is final. To get the answer after it was declined, its analyst has to pay for a new one.",
        )
    name, text = by.strip(), reason.strip()
    if not name or not name.isprintable() or len(name) > 100 or len(text) > MAX_REASON or "\0" in text:
        raise ReviewError(
            "HB914",
            f"A decision needs the name of a person, and a reason of at most {MAX_REASON:,} characters.",
            "Pass your name, which is recorded.",
        )
    if not approve and not text:
        raise ReviewError("HB914", "An answer is declined with a reason.", "Say why: the analyst reads it.")
    if name == review.analyst:
        raise ReviewError(
            "HB915",
            f"{name} asked this question, and cannot decide whether its answer leaves.",
            "Ask another person to review it.",
        )
    if any(each.by == name for each in review.decisions):
        raise ReviewError(
            "HB915",
            f"{name} approved answer {number} before; {review.people} different people have to.",
            "Ask another person to review it.",
        )
    facts = canonical({"approved": approve, "by": name, "reason": text})
    ledger.remark(RemarkCall("decision", [Remark(review.analyst, review.charges[number].dataset, number)], facts))
    return _find(ledger, reviews, number)


def _find(ledger: Ledger, reviews: Reviews, number: int) -> Reviewed:
    with ledger.snapshot() as snapshot:
        reviews.take_in(snapshot)
    review = reviews.of_charge(number)
    if review is None:
        raise ReviewError("HB912", f"Answer {number} needs no review.", "List the answers that wait: `hubbub review`.")
    return review


def review_sentence(policy: Policy, datasets: Iterable[str], event: Event, query: Callable[[], str]) -> str:
    """Say who must approve the answer of a planned query before it is shown; empty if nobody must."""
    rules = [(name, policy.reviews[name]) for name in datasets if name in policy.reviews]
    if not rules:
        return ""  # the usual case, without writing the query
    cost, text = privacy_cost(event), query()
    asked = [rule for name, rule in rules if needs_review(rule, cost, text, policy.delta_of(name))]
    if not asked:
        return ""
    people = max(rule.people for rule in asked)
    count = "one person" if people == 1 else f"{people} people"
    return f"review: {count} must approve the answer before you can read it; the charge stands either way"


def refuse_held(review: Reviewed | None) -> None:
    """Raise an error for an analyst whose answer has not been approved."""
    if review is None or review.state == "approved":
        return
    if review.state == "declined":
        why = next(each.reason for each in review.decisions if not each.approved)
        raise ReviewError(
            "HB911",
            f"The answer to this query (number {review.number}) was declined: {why}",
            "It was charged, and the charge stands. Ask another question, or talk to the data owner.",
        )
    count = "one person" if review.people == 1 else f"{review.people} people"
    raise ReviewError(
        "HB910",
        f"The answer to this query (number {review.number}) waits for review: {count} must approve it before it is "
        "shown. It was charged, and the charge stands whatever is decided.",
        f"Repeat the same query later, which costs nothing, or read release {review.number}.",
    )
