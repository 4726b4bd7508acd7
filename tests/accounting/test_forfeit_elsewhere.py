"""A forfeit that another process writes counts at once for whoever has the ledger open."""

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from hubbub.accounting.calls import NoteCall
from hubbub.accounting.chain import canonical
from hubbub.accounting.refusal import CapError
from hubbub.accounting.verify import cost_of_budget

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk


def test_a_forfeit_of_another_process_is_not_ignored(desk: "Desk") -> None:
    """The dataset has ε = 6. One process remembers 0.5 of it as spent; another writes off 5.4: 0.1 is left."""
    facts = canonical({"by": "olga", "reason": "why not", "charged": {"dataset/visits": ["27/5", "0"]}})
    losses = {"dataset/visits": cost_of_budget(Fraction(27, 5), Fraction(0))}
    with desk.open() as mine, desk.open() as others:
        desk.spend(mine, "0.5")
        others.note(NoteCall("forfeit", facts, losses))
        with pytest.raises(CapError):
            desk.spend(mine, "0.11")
        desk.spend(mine, "0.09")
        with pytest.raises(CapError):
            desk.spend(mine, "0.02")
        desk.spend(mine, "0.01")
