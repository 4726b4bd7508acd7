"""Publication of releases to people outside, as entries of the chain: requested, approved or declined, made, withdrawn.

Tested in tests/server/test_publication_approval.py.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from hubbub.accounting.calls import Remark, RemarkCall
from hubbub.accounting.chain import Entry, canonical
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.policy import Policy
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.errors import ReviewError

Act = Literal["requested", "approved", "declined", "published", "withdrawn"]
MAX_REASON = 2000


@dataclass(frozen=True, slots=True)
class Publication:
    """What the chain says about publishing one release.

    state      the last act that was not an approval; empty if there is none
    by         who asked for the publication
    text       the hash of the title and introduction that were asked for
    approvals  who approved this text
    """

    state: Act | Literal[""] = ""
    by: str = ""
    text: str = ""
    approvals: tuple[str, ...] = ()


def text_hash(title: str, notes: str) -> str:
    """Hash what a page says besides the release, so that an approval is of this text alone."""
    return sha256(canonical([title, notes]).encode()).hexdigest()


def publication(snapshot: Snapshot, number: int) -> Publication:
    """Read the state of one release from the chain."""
    entries = snapshot.entries(EntryFilter(kind="publication"), after=number)
    return _state(entry for entry in entries if entry.charge == number)


def _state(entries: Iterable[Entry]) -> Publication:
    found = Publication()
    for entry in entries:
        facts = json.loads(entry.facts)
        act: Act = facts["act"]
        if act == "requested":
            found = Publication(act, facts["by"], facts["text"])
        elif act == "approved" and found.state == "requested" and facts["text"] == found.text:
            found = replace(found, approvals=(*found.approvals, facts["by"]))
        elif act != "approved":
            found = replace(found, state=act)
    return found


def waiting(snapshot: Snapshot) -> tuple[int, ...]:
    """List the releases whose publication waits for approval, the longest wait first."""
    numbers = dict.fromkeys(entry.charge for entry in snapshot.entries(EntryFilter(kind="publication")))
    return tuple(number for number in numbers if publication(snapshot, number).state == "requested")


def people_needed(policy: Policy, datasets: Iterable[str]) -> int:
    """Say how many people must approve a publication: as many as the review rule of a dataset says; 0 without one."""
    return max((policy.reviews[name].people for name in datasets if name in policy.reviews), default=0)


def note(ledger: Ledger, charge: Entry, act: Act, *, by: str, text: str, reason: str = "") -> None:
    """Add an act to the chain."""
    facts = canonical({"act": act, "by": by, "text": text, "reason": reason})
    ledger.remark(RemarkCall("publication", [Remark(charge.analyst, charge.dataset, charge.sequence)], facts))


def decide(ledger: Ledger, charge: Entry, *, approve: bool, by: str, text: str, reason: str, people: int) -> bool:
    """Record a person's decision on a publication; return whether as many people as needed have approved it.

    `text` is the hash of what the person read: the decision is about this text and no other.

    Theorem (No publication before its approval). Where a dataset of a release has a review rule, its page is public
    only after as many different people as the rule says approved this title and introduction. Neither who asked for the
    publication nor who asked the question is one of them.
    Proof    The caller makes the page public only where this returns true. It counts names in the chain, after the
             newest request, for the text of that request; a request of another text starts again at none. A decision
             names the text that was read, so one that comes after another text was asked for is refused.
    Assumes  names belong to different people, and the server's own tables are the operator's.
    Tested   tests/server/test_publication_approval.py::test_a_page_is_public_after_the_approvals_of_its_text_alone
             tests/server/test_publication_approval.py::test_nobody_approves_their_own
             tests/server/test_publication_approval.py::test_a_decision_is_about_the_text_that_was_read
    """
    with ledger.snapshot() as snapshot:
        found = publication(snapshot, charge.sequence)
    if found.state != "requested" or found.text != text:
        raise ReviewError(
            "HB867",
            f"No publication of release {charge.sequence} with this text waits for a decision.",
            "The owner may have asked for another text: read it on the page Reviews, or with"
            " GET /api/v1/publications/waiting.",
        )
    if by in (found.by, charge.analyst, *found.approvals):
        why = "approved it before" if by in found.approvals else "asked for it, or asked the question"
        raise ReviewError("HB868", f"{by} cannot decide about this publication: {by} {why}.", "Ask another person.")
    if len(reason) > MAX_REASON or "\0" in reason or not (approve or reason):
        raise ReviewError(
            "HB869",
            f"A publication is declined with a reason, of at most {MAX_REASON:,} characters.",
            "Say why: the reason is recorded in the ledger.",
        )
    note(ledger, charge, "approved" if approve else "declined", by=by, text=text, reason=reason)
    with ledger.snapshot() as snapshot:
        now = publication(snapshot, charge.sequence)
    return (now.state, now.text) == ("requested", text) and len(set(now.approvals)) >= people
