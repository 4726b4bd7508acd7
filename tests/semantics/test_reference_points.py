"""Reference values of ε: their order, their sources, and the comparison."""

from fractions import Fraction

import mpmath
import pytest

from hubbub.semantics.reference_points import REFERENCE_POINTS, compare


@pytest.mark.row(4)
def test_the_usual_values_of_papers_are_reference_points() -> None:
    """.01, .1, ln 2 and ln 3 (Dwork 2011), the last two rounded up, as odds of 1.01, 1.1, 2 and 3."""
    usual = [each.epsilon for each in REFERENCE_POINTS if "Dwork 2011" in each.source]
    assert [round(float(mpmath.exp(float(epsilon))), 2) for epsilon in usual] == [1.01, 1.11, 2.0, 3.0]
    assert usual[2] >= Fraction(str(mpmath.log(2)))
    assert usual[3] >= Fraction(str(mpmath.log(3)))


def test_reference_points_are_in_order_and_have_sources() -> None:
    assert [each.epsilon for each in REFERENCE_POINTS] == sorted(each.epsilon for each in REFERENCE_POINTS)
    assert all(each.source and each.unit for each in REFERENCE_POINTS)
    for each in REFERENCE_POINTS:
        e = mpmath.exp(float(each.epsilon))
        exact = 100 * e / (e + 1)
        if each.guesses == "almost 100":
            assert exact > 99.9
        else:
            assert 0 <= float(each.guesses) - exact < 0.1


@pytest.mark.parametrize(
    ("epsilon", "low", "high"),
    [
        ("0.001", None, "0.01"),
        ("0.05", "0.01", "0.1"),
        ("1", "0.6932", "1.0987"),
        ("3", "2", "4"),
        ("30", "12.2", None),
    ],
)
def test_an_epsilon_is_placed_between_its_neighbors(epsilon: str, low: str | None, high: str | None) -> None:
    said = compare(Fraction(epsilon))
    known = [each.epsilon for each in REFERENCE_POINTS]
    below = max((each for each in known if each < Fraction(epsilon)), default=None)
    above = min((each for each in known if each > Fraction(epsilon)), default=None)
    assert below == (None if low is None else Fraction(low))
    assert above == (None if high is None else Fraction(high))
    assert said.startswith(f"ε = {epsilon} ")
    assert all(f" {end} (" in said for end in (low, high) if end is not None)
    assert ("lies between" in said) is (low is not None and high is not None)


def test_a_reference_point_is_named() -> None:
    assert compare(Fraction(4)) == "ε = 4 is the value for emoji usage on iPhones."
