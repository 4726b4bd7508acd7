"""Compare a receipt with the ledger that it names, which the receipt checker alone cannot do."""

import json
from dataclasses import dataclass, field
from typing import Any

from hubbub.accounting.chain import Entry, canonical
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.audit.receipt import split_document
from hubbub.audit.receipt_derived import check_sources
from hubbub.audit.receipt_loss import ReceiptError


@dataclass
class LedgerComparison:
    """The result of a comparison: what matches, and what differs."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def compare_with_ledger(document: object, snapshot: Snapshot) -> LedgerComparison:
    """Compare a document that passed the receipt checker with the release that the ledger recorded.

    Theorem (Recorded release). A document without problems here has, byte for byte in canonical form, the answer and
    receipt (or, where it has no answer, the receipt) that the ledger keeps for the first charge that it names.
    Proof    That is what is compared. The kept bytes have the hash that the chain holds for this charge, which
             `verify` checks of the whole ledger.
    Assumes  the ledger verifies; the document has the form of a receipt.
    Tested   tests/audit/test_ledger_check.py::test_a_changed_answer_that_was_hashed_again_is_found
             tests/audit/test_ledger_check.py::test_every_change_of_a_value_is_found
    """
    paper, answer = split_document(document)
    comparison = LedgerComparison()
    for named in paper["ledger"]:
        entry = _charge(snapshot, named["sequence"])
        if entry is None:
            comparison.problems.append(f"This ledger has no charge {named['sequence']}.")
        elif not _matches(named, entry):
            comparison.problems.append(f"Charge {named['sequence']} of this ledger does not match the receipt.")
    if comparison.problems:
        return comparison
    number = paper["ledger"][0]["sequence"]
    body = snapshot.body(number)
    if body is None:
        comparison.problems.append(f"This ledger has no release for charge {number}.")
    elif answer is not None and canonical({"answer": answer, "receipt": paper}).encode() == body:
        comparison.lines.append(f"answer and receipt match the release of charge {number} in the ledger")
    elif answer is None and canonical(json.loads(body)["receipt"]) == canonical(paper):
        comparison.lines.append(f"the receipt matches the release of charge {number} in the ledger")
    else:
        comparison.problems.append(f"This differs from the release of charge {number} in the ledger: it was changed.")
    if "derived" in paper and not comparison.problems:
        compare_sources(paper, snapshot, comparison)
    return comparison


def compare_sources(paper: dict[str, Any], snapshot: Snapshot, comparison: LedgerComparison) -> None:
    """Add up the released sums that a derived answer names, as the ledger has them, with its weights."""
    sources = {}
    for named in paper["derived"]["sources"]:
        entry, body = _charge(snapshot, named["charge"]), snapshot.body(named["charge"])
        if entry is None or body is None or entry.hash.hex() != named["hash"]:
            comparison.problems.append(f"Charge {named['charge']}, a source of this answer, is not in this ledger.")
        elif entry.sequence >= paper["ledger"][0]["sequence"]:
            comparison.problems.append(f"Charge {named['charge']}, a source of this answer, is later than it.")
        else:
            sources[named["charge"]] = json.loads(body)["receipt"]
    if comparison.problems:
        return
    try:
        comparison.lines += check_sources(paper, sources)
    except ReceiptError as wrong:
        comparison.problems.append(str(wrong))


def _charge(snapshot: Snapshot, number: int) -> Entry | None:
    return next(snapshot.entries(EntryFilter(kind="charge", before=number + 1), after=number - 1), None)


def _matches(named: dict[str, Any], entry: Entry) -> bool:
    stated = (named["sequence"], named["dataset"], named["hash"], named["policy"], named["time"])
    return stated == (entry.sequence, entry.dataset, entry.hash.hex(), entry.config.hex(), entry.time)
