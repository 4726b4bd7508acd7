"""What people type becomes the rational they mean, or is refused; these tests try to get something else through."""

import enum
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core import numbers
from hubbub.errors import ParameterError

BORDERS = [numbers.epsilon, numbers.delta, numbers.scale, numbers.confidence]
NOT_NUMBERS: list[Any] = [
    True,
    False,
    None,
    b"1",
    [1],
    (1,),
    {1},
    1j,
    object(),
    np.bool_(1),
    np.array(0.5),
    np.int64(1),
    enum.Enum,
]
NOT_FINITE: list[Any] = [
    float("nan"),
    -float("nan"),
    float("inf"),
    -float("inf"),
    np.float64("nan"),
    np.float64("inf"),
    Decimal("NaN"),
    Decimal("-NaN"),
    Decimal("sNaN"),
    Decimal("NaN123"),
    Decimal("Infinity"),
    Decimal("-Infinity"),
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "snan",
    "1e",
    "e5",
    "",
    " ",
    ".",
    "+",
    "-",
    "1..2",
    "0x1p-3",
    "1_000",
    "٠.٥",
    "１",
    "½",
    "²",
    "0.5 0.5",
    "0,5",
    "1/0",
    "0/0",
    "1/2/3",
    "1/-2",
    "--1",
    "1\n2",
    "1\x00",
    "None",
    "True",
    "1e9999",
    "1e-9999",
    "9" * 41,
    "0." + "3" * 41,
    Decimal("1e-9999"),
    Decimal("1E+999999"),
    Decimal(1).scaleb(-9999),
]
OUT_OF_RANGE: list[Any] = [
    0,
    -0.0,
    0.0,
    "0",
    "-0",
    Decimal(0),
    Decimal("-0"),
    Fraction(0),
    -1,
    -0.5,
    "-0.5",
    "-1e-3",
    Fraction(-1, 3),
    10**30,
    1e300,
    "1e300",
    Fraction(10**40),
    5e-324,
    "1e-300",
    Fraction(1, 10**300),
    Decimal("1e-300"),
]
ABSURD: list[Any] = [
    10**5000,
    -(10**5000),
    Fraction(10**5000),
    Fraction(1, 10**5000),
    Fraction(10**5000 + 1, 10**5000),
    Fraction(10**5000, 10**5000 + 1) / 3,
]


def kind(x: object) -> str:
    """Name a case; its repr may hold an address, which differs between the workers that run the tests."""
    return type(x).__name__


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("bad", NOT_NUMBERS, ids=kind)
def test_what_is_no_number_is_refused_by_name_of_its_type(border: Any, bad: Any) -> None:
    with pytest.raises(ParameterError) as refusal:
        border(bad)
    assert refusal.value.code == "HB101"


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("bad", NOT_FINITE, ids=kind)
def test_what_is_no_finite_decimal_is_refused(border: Any, bad: Any) -> None:
    with pytest.raises(ParameterError) as refusal:
        border(bad)
    assert refusal.value.code in ("HB102", "HB103")


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("bad", OUT_OF_RANGE, ids=kind)
def test_zero_negatives_and_extremes_are_refused(border: Any, bad: Any) -> None:
    with pytest.raises(ParameterError) as refusal:
        border(bad)
    assert refusal.value.code == "HB103"


@pytest.mark.parametrize("border", [*BORDERS, lambda x: numbers.integer(x, "n", 0, 5)])
@pytest.mark.parametrize("bad", ABSURD, ids=range(len(ABSURD)))
def test_a_number_of_absurd_length_is_refused_even_inside_the_range(border: Any, bad: Any) -> None:
    with pytest.raises(ParameterError) as refusal:
        border(bad)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("given_as", "meant"),
    [
        *((x, Fraction(1, 10)) for x in (0.1, np.float64(0.1), "0.1", " 0.1 ", Decimal("0.1"), ".1", "1e-1", "+1E-01")),
        ("1/10", Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        ("1/3", Fraction(1, 3)),
        (1, Fraction(1)),
        (1.0, Fraction(1)),
        ("1.", Fraction(1)),
        (1e22, Fraction(10**22)),
        (0.1 + 0.2, Fraction("0.30000000000000004")),
        (Decimal("1E+2"), Fraction(100)),
        (5e-324, Fraction(5, 10**324)),
    ],
)
def test_a_number_is_taken_as_the_decimal_that_a_person_reads(given_as: numbers.Number, meant: Fraction) -> None:
    taken = numbers.exact(given_as, "x")
    assert taken == meant
    assert type(taken) is Fraction


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_is_the_decimal_it_prints_and_comes_back(x: float) -> None:
    taken = numbers.exact(x, "x")
    assert taken == Fraction(repr(x))
    assert float(taken) == x


@given(
    st.one_of(st.text(), st.text("0123456789.eE+-/ _٣nanif"), st.floats(), st.decimals(), st.fractions(), st.integers())
)
def test_nothing_gets_past_a_guard_but_a_fraction_in_range(x: Any) -> None:
    for border, low, high in (
        (numbers.epsilon, numbers.EPSILON_MIN, numbers.EPSILON_MAX),
        (numbers.delta, numbers.DELTA_MIN, numbers.DELTA_MAX),
        (numbers.scale, numbers.SCALE_MIN, numbers.SCALE_MAX),
    ):
        try:
            taken = border(x)
        except ParameterError:
            continue
        assert type(taken) is Fraction
        assert low <= taken <= high


@pytest.mark.parametrize(
    ("border", "low", "high"),
    [
        (numbers.epsilon, numbers.EPSILON_MIN, numbers.EPSILON_MAX),
        (numbers.delta, numbers.DELTA_MIN, numbers.DELTA_MAX),
        (numbers.scale, numbers.SCALE_MIN, numbers.SCALE_MAX),
    ],
)
def test_the_ends_of_a_range_are_in_and_one_step_beyond_is_out(border: Any, low: Fraction, high: Fraction) -> None:
    step = Fraction(1, 10**31)
    assert border(low) == low
    assert border(high) == high
    for outside in (low - step, high + step):
        with pytest.raises(ParameterError):
            border(outside)


def test_a_priced_number_must_be_a_short_decimal_or_a_small_fraction() -> None:
    assert numbers.epsilon("1/997") == Fraction(1, 997)
    assert numbers.epsilon(Fraction(1, 10**9)) == Fraction(1, 10**9)
    for awkward in (Fraction(1, 1009), Fraction(1, 10**9) + Fraction(1, 10**31), "1/1009"):
        with pytest.raises(ParameterError) as refusal:
            numbers.epsilon(awkward)
        assert refusal.value.code == "HB104"


@given(st.lists(st.fractions(Fraction(1, 1000), Fraction(10), max_denominator=1000), min_size=1, max_size=50))
def test_the_sum_of_any_prices_stays_short(prices: list[Fraction]) -> None:
    # the least common multiple of 1, …, 1000 has 1,438 bits
    assert sum(map(numbers.epsilon, prices), Fraction(0)).denominator.bit_length() <= 1438 + 100


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 1.0, "1", Fraction(1), Decimal(1), float("nan")], ids=kind)
def test_an_integer_parameter_takes_ints_only(bad: Any) -> None:
    with pytest.raises(ParameterError):
        numbers.integer(bad, "n", 0, 5)


def test_an_integer_parameter_is_held_to_its_range() -> None:
    assert [numbers.integer(n, "n", 0, 5) for n in (0, 5)] == [0, 5]
    assert numbers.sensitivity(numbers.SENSITIVITY_MAX) == numbers.SENSITIVITY_MAX
    for bad in (-1, 6):
        with pytest.raises(ParameterError):
            numbers.integer(bad, "n", 0, 5)
    for bad in (0, -1, numbers.SENSITIVITY_MAX + 1):
        with pytest.raises(ParameterError):
            numbers.sensitivity(bad)


def test_a_refusal_names_the_parameter_and_never_prints_more_than_a_line() -> None:
    with pytest.raises(ParameterError) as refusal:
        numbers.epsilon("9" * 10**6, "budget.epsilon")
    assert "budget.epsilon" in refusal.value.message
    assert len(refusal.value.message) < 200


@given(st.fractions())
def test_brief_is_near_the_number_it_shows(x: Fraction) -> None:
    assert abs(Fraction(numbers.brief(x)) - x) <= abs(x) / 10**5


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (Fraction(10**400), "1.00000e+400"),
        (Fraction(-1, 3 * 10**400), "-3.33333e-401"),
        (Fraction(0), "0"),
        (Fraction(1, 10), "0.1"),
        (Fraction(10**12), "1e+12"),
    ],
)
def test_brief_shows_what_a_float_cannot_hold(x: Fraction, shown: str) -> None:
    assert numbers.brief(x) == shown
