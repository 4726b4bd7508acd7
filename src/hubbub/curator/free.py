"""Answers for which nothing has to be charged: recorded before, computed from earlier releases, or public.

Whoever asks for one with `free=True` gets it, or a refusal. So a program can ask what a person has already paid for.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hubbub.accounting.ledger import Ledger
from hubbub.curator.history import Unseen
from hubbub.curator.question import not_free

if TYPE_CHECKING:
    from hubbub.curator import Claim


def nothing_unseen() -> Unseen:
    """Every recorded release may be shown."""
    return frozenset()


def only_recorded(ledger: Ledger, analyst: str, unseen: Callable[[], Unseen] = nothing_unseen) -> "Claim":
    """Return a claim that refuses every charge except one whose release is recorded and may be shown.

    Theorem (A free query charges nothing). A query with this claim adds no privacy cost to the ledger.
    Proof    The curator makes every charge that costs something under the name that the claim returns, and charges a
             name once. The claim returns a name only if the ledger has a charge with a release under it; entries are
             never removed, so the charge that follows finds this one. All other answers of the curator cost nothing.
    Assumes  the ledger charges a name once (`Ledger.charge_all`).
    Tested   tests/curator/test_free.py::test_a_free_query_never_charges
             tests/curator/test_free.py::test_a_release_that_must_not_show_yet_is_not_free

    `unseen` gives the charges whose releases must not show yet: whether one of them is free would tell how long its
    run took. It is read for each claim, after the ledger.
    """

    def claim(name: str) -> str:
        charge = ledger.recall(analyst, name)
        hidden = (analyst, name.rpartition(" ")[0]) in unseen()
        if charge is None or charge.release is None or hidden:
            raise not_free()
        return name

    return claim
