"""Past charges and their releases, read from the ledger for free."""

from collections.abc import Set
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice

from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import event_of_facts, privacy_cost
from hubbub.accounting.disclosure import approximate_cost
from hubbub.accounting.policy import Policy
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.answers.budget import PastCharge
from hubbub.core import chunked_json as pieces
from hubbub.errors import ParameterError

#: A query over several private tables charges each, one after the other; few other charges can come between.
_NEAR = 1000

#: The δ at which a Gaussian charge is expressed if its dataset has no δ any more.
_COMMON_DELTA = Fraction(1, 10**9)

#: Charges whose release must not be shown yet, by analyst and by key without the dataset's name.
Unseen = Set[tuple[str, str]]


def list_charges(
    snapshot: Snapshot, which: EntryFilter, limit: int, policy: Policy, unseen: Unseen = frozenset()
) -> tuple[PastCharge, ...]:
    """List the newest charges that match a filter."""
    entries = list(islice(snapshot.entries(which, newest_first=True), limit))
    return tuple(_past(snapshot, entry, policy, unseen) for entry in entries)


def find_release(snapshot: Snapshot, number: int, analyst: str | None, unseen: Unseen = frozenset()) -> bytes:
    """Find the stored release of a charge of this analyst, or of any analyst if None."""
    which = EntryFilter(kind="charge", analyst=analyst, before=number + 1)
    entry = next(snapshot.entries(which, after=number - 1), None)
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


def _past(snapshot: Snapshot, entry: Entry, policy: Policy, unseen: Unseen) -> PastCharge:
    loss, holder = privacy_cost(event_of_facts(entry.facts)), _holder(snapshot, entry, unseen)
    stored = None if holder is None or loss.pure is not None else snapshot.body(holder)
    if stored is None:
        epsilon, delta = approximate_cost(loss, delta=_delta(policy, entry.dataset))
    else:  # the loss is a curve: show the charged (ε, δ)
        paid = pieces.loads(stored)["receipt"]["charge"]
        epsilon, delta = Fraction(paid["epsilon"]), Fraction(paid["delta"])
    time = datetime.fromtimestamp(entry.time / 1_000_000, UTC)
    return PastCharge(
        entry.sequence, time, entry.analyst, entry.dataset, entry.query, epsilon, delta, holder is not None
    )


def _delta(policy: Policy, dataset: str) -> Fraction:
    """Give the δ of a dataset, or a common one if it has none now."""
    caps = policy.datasets.get(dataset, ())
    return next((cap.budget.delta for cap in caps if cap.scope == "dataset" and cap.budget.delta), _COMMON_DELTA)
