"""Compare a receipt with the ledger that it names: what the checker of receipts cannot know from the paper alone."""

import json
from dataclasses import dataclass, field
from typing import Any

from hubbub.accounting.chain import Entry, canonical
from hubbub.accounting.store import Filter, Snapshot
from hubbub.audit.receipt import parts


@dataclass
class Comparison:
    """What was compared, and what differs."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def compare(document: object, snapshot: Snapshot) -> Comparison:
    """Compare a document that the checker found sound with the release that the ledger recorded for its charges.

    Theorem (Recorded release). A document without problems here has, byte for byte in canonical form, the answer and
    receipt (or, where it has no answer, the receipt) that the ledger keeps for the first charge that it names.
    Proof    That is what is compared. The kept bytes have the hash that the chain holds for this charge, which
             `verify` checks of the whole ledger.
    Assumes  the ledger verifies; the document has the form of a receipt.
    Tested   tests/audit/test_ledger_check.py::test_a_changed_answer_that_was_hashed_again_is_found
             tests/audit/test_ledger_check.py::test_every_change_of_a_value_is_found
    """
    paper, answer = parts(document)
    comparison = Comparison()
    for named in paper["ledger"]:
        entry = _charge(snapshot, named["sequence"])
        if entry is None:
            comparison.problems.append(f"this ledger has no charge {named['sequence']}")
        elif not _same(named, entry):
            comparison.problems.append(
                f"charge {named['sequence']} of this ledger is another one than the receipt says"
            )
    if comparison.problems:
        return comparison
    number = paper["ledger"][0]["sequence"]
    body = snapshot.body(number)
    if body is None:
        comparison.problems.append(f"this ledger has recorded no release for charge {number}")
    elif answer is not None and canonical({"answer": answer, "receipt": paper}).encode() == body:
        comparison.lines.append(f"answer and receipt are those that the ledger recorded for charge {number}")
    elif answer is None and canonical(json.loads(body)["receipt"]) == canonical(paper):
        comparison.lines.append(f"the receipt is the one that the ledger recorded for charge {number}")
    else:
        comparison.problems.append(f"this is not what the ledger recorded for charge {number}: it was changed")
    return comparison


def _charge(snapshot: Snapshot, number: int) -> Entry | None:
    return next(snapshot.entries(Filter(kind="charge", before=number + 1), after=number - 1), None)


def _same(named: dict[str, Any], entry: Entry) -> bool:
    stated = (named["sequence"], named["dataset"], named["hash"], named["policy"], named["time"])
    return stated == (entry.sequence, entry.dataset, entry.hash.hex(), entry.config.hex(), entry.time)
