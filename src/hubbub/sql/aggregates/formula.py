"""Formulas: how an aggregate is computed from noisy sums. Everything here is post-processing.

Tested in tests/sql/test_aggregates.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.answers import estimate
from hubbub.core.schema import Bounds, Kind
from hubbub.errors import QueryError
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.measures import BoundedSum, Measure, Term
from hubbub.sql.query import Aggregate

Floats = NDArray[np.float64]
Value = Callable[[Sequence[Floats]], Floats]
#: What an aggregate needs to know about its arguments: nothing, bounds, or a finite list of values.
Argument = Literal["any", "bounded", "listed"]

#: The size of a typical group, for which errors are estimated before the data is read.
TYPICAL_ROWS = estimate.TYPICAL_ROWS


@dataclass(frozen=True)
class Formula:
    """One aggregate over the cells.

    value     the estimate from the sums of the measures (in steps, noisy or not), cell by cell; NaN where undefined
    low, high the range of the result, from the declared bounds; None: unbounded
    integer   whether the result is an integer
    linear    whether the result is a weighted sum of the measures, so that its error does not depend on the data
    typical   the sums of a group of TYPICAL_ROWS rows, to estimate errors before the data is read
    size      the magnitude at the typical group to which an error is compared
    count     the position of the measure that counts the rows
    sure      divisors and radicands: the result is nearly linear in the noise only where they exceed their noise
    core      a smooth estimate that `image` maps to the result; its interval is computed, then mapped
    image     maps the ends of the core's interval to those of the result
    core_range  the range of the core, if it has one
    always    whether the ranges hold for all values, and not only for those within bounds
    """

    measures: tuple[Measure, ...]
    value: Value
    low: float | None
    high: float | None
    integer: bool
    linear: bool
    typical: tuple[float, ...]
    size: float
    count: int | None
    sure: tuple[Value, ...] = ()
    core: Value | None = None
    image: Callable[[Floats, Floats], tuple[Floats, Floats]] | None = None
    core_range: tuple[float, float] | None = None
    always: bool = False

    def range(self, *, found: bool) -> tuple[float, float]:
        """Return the range of the result; where bounds of values were `found`, values beyond them may leave it."""
        least = -np.inf if self.low is None else self.low
        most = np.inf if self.high is None else self.high
        return (least, most) if self.always or not found else _signs(least, most)

    def range_of_core(self, *, found: bool) -> tuple[float, float]:
        """Return the same for the core, or for the result if it is the core."""
        if self.core_range is None:
            return self.range(found=found)
        return self.core_range if self.always or not found else _signs(*self.core_range)


def _signs(least: float, most: float) -> tuple[float, float]:
    """Keep of a range only the sign, which follows from declarations."""
    return 0.0 if least >= 0 else -np.inf, 0.0 if most <= 0 else np.inf


@dataclass(frozen=True, slots=True)
class Resolution:
    """The resolution of sums: the largest number of steps that a row can add to any of them."""

    max_steps: int


class AggregateFunction(ABC):
    """An aggregate of SQL."""

    name: str
    argument: Argument = "bounded"
    counts_rows: bool = False  #: whether it measures the number of rows where its argument is not NULL
    groups_by_value: bool = False  #: whether the engine groups rows by the value of its argument

    def kind(self, aggregate: Aggregate) -> Kind:  # noqa: ARG002
        """Return the kind of the result."""
        return Kind.REAL


class FormulaAggregate(AggregateFunction):
    """An aggregate that is computed from noisy sums."""

    @abstractmethod
    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:
        """Return the formula; `counted` means that another aggregate of the query counts the same rows."""


def spread(value: Value, sums: Sequence[Floats], deviations: Sequence[float]) -> Floats:
    """Estimate the standard deviation of a value from those of the measures, using secants of that width."""
    total = np.zeros_like(sums[0])
    for place, deviation in enumerate(deviations):
        total += secant(value, sums, place, deviation) ** 2
    return np.sqrt(total)


def secant(value: Value, sums: Sequence[Floats], place: int, deviation: float) -> Floats:
    """Return half of the change of a value when one measure moves by its deviation to each side."""
    up, down = list(sums), list(sums)
    up[place], down[place] = sums[place] + deviation, sums[place] - deviation
    with np.errstate(all="ignore"):
        return (value(up) - value(down)) / 2


def bounded(expr: Expr, function: str) -> Bounds:
    """Return the bounds of an argument, or raise an error."""
    bounds = facts(expr).bounds
    if bounds is None:
        raise QueryError(
            "HB552",
            f"{function} needs bounds: without them one row could change the result by any amount.",
            "Declare bounds for the column in hubbub.yaml, or clamp it in the query: LEAST(GREATEST(x, low), high).",
        )
    return bounds


def term(expr: Expr, function: str, *, centred: bool) -> Term:
    """Center an argument on the middle of its bounds, or on 0."""
    bounds = bounded(expr, function)
    if not centred:
        return Term(expr, bounds, Fraction(0))
    middle, step = (bounds.low + bounds.high) / 2, facts(expr).step
    return Term(expr, bounds, middle if step is None else round(middle / step) * step)


def total(terms: tuple[Term, ...], present: tuple[Expr, ...], where: Expr | None, resolution: Resolution) -> BoundedSum:
    """Sum a term, or a product of two, on a grid that is exact if the steps are known and few enough."""
    reach = Fraction(1)
    natural: Fraction | None = Fraction(1)
    for factor in terms:
        reach *= factor.reach
        step = facts(factor.expr).step
        natural = None if natural is None or step is None or factor.centre % step else natural * step
    square = len(terms) == 2 and terms[0] == terms[1]
    least, most = (Fraction(0), reach) if square else (-reach, reach)
    if len(terms) == 1:
        least, most = terms[0].bounds.low - terms[0].centre, terms[0].bounds.high - terms[0].centre
    offset = Fraction(0)
    if square:
        # subtract the middle of [0, reach²], which halves what a row can add
        offset = reach / 2 if natural is None else round(reach / 2 / natural) * natural
        least, most = least - offset, most - offset
    span = max(abs(least), abs(most)) or Fraction(1)
    step = natural if natural is not None and natural > 0 else power_of_two(span / resolution.max_steps)
    while span / step > resolution.max_steps:
        step *= 2
    return BoundedSum(terms, present, where, offset, step, round(least / step), round(most / step))


def power_of_two(least: Fraction) -> Fraction:
    """Return the smallest power of two that is at least the given number.

    >>> power_of_two(Fraction(3)), power_of_two(Fraction(1, 5)), power_of_two(Fraction(1))
    (Fraction(4, 1), Fraction(1, 4), Fraction(1, 1))
    """
    power = Fraction(2) ** (least.numerator.bit_length() - least.denominator.bit_length() - 1)
    while power < least:
        power *= 2
    return power
