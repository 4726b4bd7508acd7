"""An output checker's checklist for one release: what the release and the ledger say, and what a person must judge.

Tested in tests/reports/test_checklist.py.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction

from hubbub.accounting.chain import Entry
from hubbub.accounting.reviews import Reviewed, Reviews
from hubbub.accounting.store import EntryFilter
from hubbub.answers.release import Output, Release
from hubbub.audit.receipt import check_receipt
from hubbub.config import Config
from hubbub.core.numbers import brief
from hubbub.curator import history as past
from hubbub.curator import receipt as receipts
from hubbub.curator.opening import store_of
from hubbub.reports.document import Document, DocumentItem, Section, told
from hubbub.reports.facts import Deployment, moment


@dataclass(frozen=True, slots=True)
class CheckedRelease:
    """One release as the ledger has it.

    others  how many other charges its analyst has on the same datasets
    """

    number: int
    charge: Entry
    release: Release
    review: Reviewed | None
    others: int


def read_release(config: Config, number: int) -> CheckedRelease:
    """Read a release, and who decided about it, from the ledger."""
    with closing(store_of(config, read_only=True)) as store, store.snapshot() as snapshot:
        stored = receipts.decode(past.find_release(snapshot, number, None))
        charge = past.find_charge(snapshot, number, None)
        if charge is None:
            raise AssertionError("a release has a charge")
        reviews = Reviews()
        reviews.take_in(snapshot)
        datasets = {each["dataset"] for each in stored.receipt["data"]}
        mine = snapshot.entries(EntryFilter(kind="charge", analyst=charge.analyst))
        others = sum(entry.dataset in datasets and entry.query != charge.query for entry in mine)
    epsilon, delta = (Fraction(stored.receipt["charge"][name]) for name in ("epsilon", "delta"))
    facts = (stored.outputs, stored.ratio, epsilon, delta, stored.receipt)
    return CheckedRelease(number, charge, Release(*facts, model=stored.model), reviews.of(charge), others)


def checklist(deployment: Deployment, checked: CheckedRelease, about: Mapping[str, str]) -> Document:
    """Write the checklist of a release; what nobody has judged stays open."""
    sections = (
        Section("The question", tuple(_question(checked))),
        Section("The guarantee", tuple(_guarantee(deployment, checked))),
        Section("The table", tuple(_table(checked))),
        Section("Who decided", tuple(_decisions(checked))),
        Section("For the checker", tuple(told(name, text, about) for name, text in _JUDGED.items())),
    )
    return Document("checklist", f"Checklist for release {checked.number}", deployment, sections)


#: What only a person can judge.
_JUDGED: Mapping[str, str] = {
    "purpose": "Is the question within the purpose that was agreed?",
    "sensitive_groups": "Can the table harm a group as a group, whoever is in it?",
    "misreading": "Are titles, names of columns and units such that the table is not misread?",
    "noise_is_said": "Will the intervals be shown beside the numbers, or the size of the noise be stated?",
    "published_beside": "What else is published about the same people, by this or by other organisations?",
    "checked_by": "Who checked this, and when?",
}


def _question(checked: CheckedRelease) -> Iterator[DocumentItem]:
    paper, entry = checked.release.receipt, f"ledger entry {checked.number}"
    yield DocumentItem("query", "What was asked?", (paper["query"],), (entry,))
    asked = f"{checked.charge.analyst}, on {moment(checked.charge):%Y-%m-%d %H:%M} UTC"
    yield DocumentItem("who", "Who asked, and when?", (asked,), (entry,))
    data = tuple(f"{each['dataset']}, version {each['version']}; protected: {each['unit']}" for each in paper["data"])
    yield DocumentItem(
        "data", "Which data was read, and what is protected in it?", data, (f"receipt {checked.number}",)
    )
    count = f"{checked.others:,} other charge{'' if checked.others == 1 else 's'} on the same data"
    yield DocumentItem("others", "What else did this analyst ask?", (count,), ("charges in the ledger",))


def _guarantee(deployment: Deployment, checked: CheckedRelease) -> Iterator[DocumentItem]:
    release = checked.release
    cost = f"ε = {brief(release.epsilon)}" + (f", δ = {brief(release.delta)}" if release.delta else ", δ = 0")
    yield DocumentItem("cost", "What did it cost?", (cost,), (f"ledger entry {checked.number}",))
    found = check_receipt(release.document())
    said = [f"The independent checker found a problem: {problem}" for problem in found.problems]
    said = said or ["The independent checker derived the privacy loss from the receipt again."]
    yield DocumentItem("receipt", "Does the receipt prove its privacy loss?", tuple(said), ("hubbub verify",))
    broken = deployment.verification.problems
    chain = tuple(f"The ledger has a problem: {each.text}" for each in broken) or ("The ledger's chain is intact.",)
    yield DocumentItem("ledger", "Is the ledger intact?", chain, ("hubbub audit ledger",))


def _table(checked: CheckedRelease) -> Iterator[DocumentItem]:
    release, proof = checked.release, (f"release {checked.number}",)
    noisy = [output for output in release.outputs if output.low is not None]
    size = f"{len(release.ratio):,} rows; {len(noisy)} of {len(release.outputs)} columns have intervals"
    yield DocumentItem("size", "What is in the table?", (size,), proof)
    smallest = tuple(f"{output.name}: {low:,.6g}" for output in noisy if (low := _smallest(output)) is not None)
    yield DocumentItem(
        "smallest", "What is the smallest number of each noisy column?", smallest, proof if smallest else ()
    )
    drowned = tuple(f"{output.name}: {_mostly_noise(output):,} of {len(release.ratio):,}" for output in noisy)
    question = "How many numbers are not larger than their margin of error?"
    yield DocumentItem("noise", question, drowned, proof if drowned else ())
    rules = release.disclosure or "The dataset has no rule for small numbers or rounding."
    yield DocumentItem("rules", "Which rules for small numbers and rounding were applied?", (rules,), proof)
    notes = tuple(note for note in release.notes if note not in (release.sandbox, release.disclosure))
    left_out = () if release.left_out is None else (release.left_out.sentence(),)
    stated = (*left_out, *notes, f"± values: {release.intervals_note}.")
    yield DocumentItem("stated", "What does the answer say about itself?", stated, proof)


def _decisions(checked: CheckedRelease) -> Iterator[DocumentItem]:
    review, question = checked.review, "Was the answer reviewed before its analyst could read it?"
    if review is None:
        yield DocumentItem("review", question, ("No rule names this answer.",), ("policies in the ledger",))
        return
    said = tuple(
        f"{'approved' if each.approved else 'declined'} by {each.by}" + (f": {each.reason}" if each.reason else "")
        for each in review.decisions
    )
    state = f"{review.state}; {review.approvals} of {review.people} people approved it"
    yield DocumentItem("review", question, (state, *said), ("decisions in the ledger",))


def _smallest(output: Output) -> float | None:
    numbers = [float(cell) for cell in output.values if isinstance(cell, int | float)]
    return min(numbers, default=None)


def _mostly_noise(output: Output) -> int:
    """Count the numbers that are not larger than half of their interval."""
    ends = zip(output.values, output.low or (), output.high or (), strict=True)
    return sum(
        isinstance(cell, int | float) and (low is None or high is None or abs(cell) <= (high - low) / 2)
        for cell, low, high in ends
    )
