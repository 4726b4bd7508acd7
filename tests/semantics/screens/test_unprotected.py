"""Noise on one side, and a part of the rows in the clear: no ε, whatever the parameters are."""

import math
from fractions import Fraction

import pytest

from hubbub.mechanisms.enumeration import delta_at, total_variation, worst_ratio
from hubbub.semantics.screens.unprotected import SCREENS, cut_noise, one_sided_noise, subsamples

HALF = Fraction(1, 2)
ONE_SIDED, SUBSAMPLE = SCREENS


@pytest.mark.row(39)
@pytest.mark.parametrize("shift", [0, 3, 50])
def test_noise_on_one_side_has_no_epsilon_whatever_the_shift(shift: int) -> None:
    """A count never below the truth, but for a shift: the least answer of one is impossible for the next."""
    one, two = (one_sided_noise(count, HALF, shift) for count in (100, 101))
    assert min(one.mass) == 100 - shift
    assert worst_ratio(one, two) == (math.inf, math.inf)
    assert delta_at(one, two, Fraction(100))[0] == HALF
    reading = ONE_SIDED.read({"shift": str(shift)})
    assert reading.rows[0] == ("one-sided geometric", "∞", "63.2%")  # 1 − 1/e
    assert reading.rows[2] == ("two-sided (hubbub)", "1", "0%")


@pytest.mark.row(39)
def test_cut_noise_needs_the_delta_of_its_end() -> None:
    """Pr[|Z| cut at c] = q^c/(1 + q): the atom at the end of one count is impossible for the next, at every ε."""
    q = math.exp(-1)
    for most in (1, 3, 10):
        one, two = (cut_noise(count, Fraction(1), most) for count in (0, 1))
        assert worst_ratio(one, two)[0] == math.inf
        assert float(delta_at(one, two, Fraction(50))[1]) == pytest.approx(q**most / (1 + q))


@pytest.mark.row(70)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_part_of_the_rows_in_the_clear_has_no_epsilon(size: int) -> None:
    """However rarely a row is drawn: where it is drawn, its owner was in the data."""
    people = tuple(range(10))
    listed = subsamples(people, size)
    assert len(listed.mass) == math.comb(10, size)
    for other in ((*people[:-1], 99), people[:-1]):
        assert worst_ratio(listed, subsamples(other, size)) == (math.inf, math.inf)
    assert total_variation(listed, subsamples((*people[:-1], 99), size)) == (Fraction(size, 10),) * 2
    assert SUBSAMPLE.read({"size": str(size)}).rows[0] == (f"{size} of 10 rows, in the clear", "∞", f"{size / 10:g}")


def test_a_private_answer_about_a_sample_costs_less() -> None:
    rows = SUBSAMPLE.read({"n": "10000", "size": "100", "epsilon": "1"}).rows
    assert float(rows[1][1]) == pytest.approx(math.log(1 + 0.01 * (math.e - 1)), rel=1e-3)
    assert rows[0][0] == "1 of 10 rows, in small, in the clear"
