"""A mean from a noisy sum and a noisy count."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.mean import NoisyMean

AGES = NoisyMean.from_epsilon(lower=18, upper=90, rows=1, relation=Relation.ADD_REMOVE, epsilon=1)
LEVEL = Fraction(95, 100)


@given(st.lists(st.integers(18, 90), min_size=1, max_size=300), st.data())
def test_interval_holds_the_mean_wherever_the_noise_is_within_its_widths(ages: list[int], data: st.DataObject) -> None:
    each = 1 - (1 - LEVEL) / 2
    wide, long = int(AGES.total.error(each)), int(AGES.count.error(each))
    total = sum(age - AGES.center for age in ages) + data.draw(st.integers(-wide, wide))
    count = len(ages) + data.draw(st.integers(-long, long))
    low, high = AGES.interval((total, count), LEVEL)
    assert 18 <= low <= Fraction(sum(ages), len(ages)) <= high <= 90
    assert low <= AGES.answer((total, count)) <= high or count < 1


def test_widths_hold_together_with_the_stated_probability() -> None:
    """The two noises are independent, so their levels multiply, and stay above the level that was asked for."""
    each = 1 - (1 - LEVEL) / 2
    total, count = AGES.total, AGES.count
    inside = [1 - 2 * mechanism.noise.tail(int(mechanism.error(each)) + 1).enclosure[1] for mechanism in (total, count)]
    assert inside[0] * inside[1] >= LEVEL


def test_bounds_about_the_centre_need_less_noise() -> None:
    assert AGES.center == 54
    assert AGES.total == Laplace(sensitivity=36, scale=Fraction(72))
    replaced = NoisyMean.from_epsilon(lower=18, upper=90, rows=2, relation=Relation.REPLACE, epsilon=1)
    assert replaced.total.event.sensitivity == 2 * 72  # type: ignore[union-attr]
    assert replaced.count.event.sensitivity == 2  # type: ignore[union-attr]


def test_mean_of_many_is_near_and_of_none_is_the_centre() -> None:
    exact = (1000 * (40 - 54), 1000)
    assert AGES.answer(exact) == 40
    low, high = AGES.interval(exact, LEVEL)
    assert 39 < low < 40 < high < 41
    assert AGES.answer((7, 0)) == AGES.answer((7, -3)) == 54
    assert AGES.interval((7, -30), LEVEL) == (Fraction(18), Fraction(90))


def test_any_level_that_is_taken_is_kept() -> None:
    nearly_sure = 1 - Fraction(1, 10**12)
    assert AGES.interval((-14_000, 1000), nearly_sure)[0] < AGES.interval((-14_000, 1000), LEVEL)[0]
    for bad in (0, 1, float("nan"), True):
        with pytest.raises(ParameterError):
            AGES.interval((0, 1), bad)  # type: ignore[arg-type]


def test_two_noises_are_of_one_kind() -> None:
    gaussian, laplace = Gaussian.from_rho(sensitivity_squared=1, rho=1), Laplace.from_epsilon(sensitivity=1, epsilon=1)
    with pytest.raises(ParameterError):
        NoisyMean(lower=0, upper=1, total=gaussian, count=laplace)
    for lower, upper in ((1, 1), (2, 1), (0, True), (0.5, 1), (0, 10**40)):
        with pytest.raises(ParameterError):
            NoisyMean(lower=lower, upper=upper, total=laplace, count=laplace)  # type: ignore[arg-type]
