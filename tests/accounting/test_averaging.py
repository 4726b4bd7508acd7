"""Fresh noise cancels: an analyst asks the same thing again and again, and averages (Dwork 2011)."""

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hubbub.errors import BudgetError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Keystream

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

    from hubbub.accounting.ledger import Ledger

TRUE = 1234
NOISE = Laplace(sensitivity=1, scale=Fraction(10))


def answer(desk: "Desk", ledger: "Ledger", key: str) -> int:
    """One count, charged first; a retry of a key is answered with what was recorded."""
    charge = ledger.charge(desk.request(event=NOISE.event, key=key))
    if charge.release is not None:
        return int(charge.release)
    return int(ledger.record(charge, str(NOISE.sample(TRUE, Keystream())).encode()))


@pytest.mark.row(71)
def test_without_a_ledger_ten_thousand_fresh_answers_give_the_truth_away() -> None:
    """The average of 10⁴ draws has standard deviation .141; it is beyond 5 of them with probability below 1e-6."""
    low, high = NOISE.variance
    deviation = float(high) ** 0.5 / 100
    assert 0.1410 < float(low) ** 0.5 / 100 <= deviation < 0.1415
    draws = NOISE.sample(np.full(10_000, TRUE), Keystream())
    assert abs(float(np.mean(draws)) - TRUE) < 5 * deviation
    assert round(float(np.mean(draws))) in (TRUE - 1, TRUE, TRUE + 1)


@pytest.mark.row(71)
def test_the_budget_stops_the_one_who_averages(desk: "Desk") -> None:
    """ε = 2 pays for 20 counts at ε = .1, whose average is no better than ±3.16; with fresh keys there is no 21st."""
    ledger = desk.open()
    answers: list[int] = []
    with pytest.raises(BudgetError, match="0 is left for ana on visits"):
        answers.extend(answer(desk, ledger, f"try {number}") for number in range(10_000))
    assert len(answers) == 20
    assert (float(NOISE.variance[0]) / 20) ** 0.5 > 3.1


@pytest.mark.row(71)
def test_a_replay_gives_the_same_answer_ten_thousand_times(desk: "Desk") -> None:
    ledger = desk.open()
    first = answer(desk, ledger, "the same")
    assert {answer(desk, ledger, "the same") for _ in range(10_000)} == {first}
    verification = ledger.verify()
    assert (verification.charges, verification.releases) == (1, 1)
