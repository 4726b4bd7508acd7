"""Past charges and their releases, read from the ledger for free."""

from collections.abc import Set
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice

from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import event_of_facts, privacy_cost
from hubbub.accounting.disclosure import approximate_cost
from hubbub.accounting.policy import Policy
from hubbub.accounting.reviews import Reviewed, Reviews
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.answers.budget import PastCharge
from hubbub.core import chunked_json as pieces
from hubbub.errors import ParameterError

#: A query over several private tables charges each, one after the other; few other charges can come between.
_NEAR = 1000

#: Charges whose release must not be shown yet, by analyst and by key without the dataset's name.
Unseen = Set[tuple[str, str]]


def list_charges(
    snapshot: Snapshot, which: EntryFilter, limit: int, policy: Policy, unseen: Unseen, reviews: Reviews
) -> tuple[PastCharge, ...]:
    """List the newest charges that match a filter; only lists of everybody's have answers before their review."""
    if which.analyst is not None:
        unseen = unseen | reviews.held_in(snapshot)
    else:
        reviews.take_in(snapshot)
    entries = list(islice(snapshot.entries(which, newest_first=True), limit))
    return tuple(_past(snapshot, entry, policy, unseen, reviews.of(entry)) for entry in entries)


def find_charge(snapshot: Snapshot, number: int, analyst: str | None) -> Entry | None:
    """Find a charge of this analyst, or of any analyst if None."""
    which = EntryFilter(kind="charge", analyst=analyst, before=number + 1)
    return next(snapshot.entries(which, after=number - 1), None)


def find_release(snapshot: Snapshot, number: int, analyst: str | None, unseen: Unseen = frozenset()) -> bytes:
    """Find the stored release of a charge of this analyst, or of any analyst if None."""
    entry = find_charge(snapshot, number, analyst)
    holder = None if entry is None else _holder(snapshot, entry, unseen)
    stored = None if holder is None else snapshot.body(holder)
    if stored is None:
        # the same error for another analyst's charge, for one without an answer and for none
        raise ParameterError(
            "HB146",
            f"There is no release number {number}.",
            "A release has the number of its charge. List them with `releases` or `hubbub audit ledger`.",
        )
    return stored


def _holder(snapshot: Snapshot, entry: Entry, unseen: Unseen) -> int | None:
    """Find the charge that the release is stored with: this one, or the first one of the same query."""
    if (entry.analyst, entry.key.removesuffix(f" {entry.dataset}")) in unseen:
        return None
    if snapshot.released(entry.sequence, entry.sequence):
        return entry.sequence
    name = entry.key.removesuffix(f" {entry.dataset}")
    near = EntryFilter(kind="charge", analyst=entry.analyst, before=entry.sequence)
    for other in snapshot.entries(near, after=max(0, entry.sequence - _NEAR), newest_first=True):
        same = (other.key, other.query, other.facts) == (f"{name} {other.dataset}", entry.query, entry.facts)
        if same and snapshot.released(other.sequence, other.sequence):
            return other.sequence
    return None


def _past(snapshot: Snapshot, entry: Entry, policy: Policy, unseen: Unseen, review: Reviewed | None) -> PastCharge:
    loss, holder = privacy_cost(event_of_facts(entry.facts)), _holder(snapshot, entry, unseen)
    stored = None if holder is None or loss.pure is not None else snapshot.body(holder)
    if stored is None:
        epsilon, delta = approximate_cost(loss, delta=policy.delta_of(entry.dataset))
    else:  # the loss is a curve: show the charged (ε, δ)
        paid = pieces.loads(stored)["receipt"]["charge"]
        epsilon, delta = Fraction(paid["epsilon"]), Fraction(paid["delta"])
    time = datetime.fromtimestamp(entry.time / 1_000_000, UTC)
    state = "" if review is None else review.state
    facts = (entry.analyst, entry.dataset, entry.query, epsilon, delta, holder is not None, state)
    return PastCharge(entry.sequence, time, *facts)
