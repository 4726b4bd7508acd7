"""Purchase of a stream: everything that could prevent its start is checked before the charge.

    lock the analyst's folder → name, limit, disk → note the purchase → charge → start → remove the note

After a crash the note remains, and repeating the purchase continues under the same key of the ledger: one charge, and
one stream for it.
"""

from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers.release import Release
from hubbub.config import Config
from hubbub.core import call as calls
from hubbub.curator.question import Question
from hubbub.errors import HubbubError, LedgerError, RunError, StreamError
from hubbub.noise.source import system

if TYPE_CHECKING:
    from hubbub.curator import Curator


def streams_of(config: Config) -> Path:
    """Give the folder of the streams of a hubbub.yaml."""
    return config.path.parent / "hubbub-streams"


def buys_stream(question: Question) -> bool:
    """Return whether a query is CALL stream(…)."""
    return calls.is_call(question.sql) and calls.parse_call(question.sql).name == "stream"


def buy(
    curator: "Curator", planned: PreparedAnalysis, *, analyst: str, key: str | None, charge: Callable[[str], Release]
) -> Release:
    """Charge a stream and start it, or refuse it before the charge.

    Theorem (A charged stream begins). A purchase that is refused was not charged. One that is charged begins, now or
    when it is made again, and is charged once.
    Proof    While the analyst's folder is held nobody else can take the name or the last place, and the folder can be
             written. The note of the purchase, with its key in the ledger, is durable before the charge; whoever makes
             the same purchase again finds it and charges under that key, which the ledger charges once. Another
             purchase of that name is refused as long as the note is there.
    Assumes  every buyer uses this folder; charges are refused by errors other than RunError and LedgerError.
    Tested   tests/analyses/streams/test_lifecycle.py::test_a_purchase_that_cannot_begin_is_refused_before_the_charge
             tests/analyses/streams/test_lifecycle.py::test_a_charge_whose_stream_did_not_begin_is_used_by_the_same_purchase
             tests/analyses/streams/test_lifecycle.py::test_two_purchases_at_once_share_no_name_and_pass_no_limit
    """
    from hubbub.analyses.streams import folders, purchase
    from hubbub.curator.opening import folder_of

    if not isinstance(planned, purchase.StreamPurchase):
        raise TypeError("not the purchase of a stream")
    terms, dataset, root = planned.terms, planned.table.name, streams_of(curator.config)
    with folders.lock_folder(root, analyst) as folder:
        standing = folders.find_stream(root, analyst, terms.name)
        if standing is not None:
            if (standing.terms, standing.dataset) != (terms, dataset) or standing.paid is None:
                raise purchase.name_taken(terms.name)
            return curator.release(standing.paid["charge"], analyst=analyst)
        note = folder / f"{terms.name}.bought"
        pending = folders.PendingPurchase.read(note)
        if pending is not None and (pending.terms, pending.dataset) != (terms, dataset):
            raise StreamError(
                "HB660",
                f"Another purchase of a stream called {terms.name} was interrupted.",
                "Repeat that purchase, which is charged only once, or drop it with `hubbub stream end NAME`.",
            )
        folders.check_stream_count(root, folder, analyst, terms.name)
        if pending is None:
            pending = folders.PendingPurchase(terms, dataset, key or f"stream {token_hex(16)}")
            pending.write(note)
        try:
            release = charge(pending.key)
        except (RunError, LedgerError):
            raise  # the charge may have been made
        except HubbubError:
            note.unlink()
            raise
        purchase.begin(folder, folder_of(curator.config), release, analyst=analyst, source=system())
        note.unlink()
    return release
