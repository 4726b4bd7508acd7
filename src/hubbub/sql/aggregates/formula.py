"""What an aggregate is made of: noisy sums in, an estimate out; everything here is post-processing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Bounds
from hubbub.errors import QueryError
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.measures import Measure, Term, Total

Floats = NDArray[np.float64]
Value = Callable[[Sequence[Floats]], Floats]

#: A group of so many rows stands for all where an error must be told before the data is seen.
TYPICAL_ROWS = 1000


@dataclass(frozen=True)
class Formula:
    """One aggregate over the cells.

    value     the estimate from the measures' sums (in steps, noisy or not), cell by cell; NaN where it is undefined
    low, high the answer lies between them, by the declared bounds; None: no limit
    integer   the answer is a whole number
    linear    the answer is a weighted sum of the measures, so its error does not depend on the data
    typical   sums of a group of TYPICAL_ROWS rows, to tell errors before the data is seen
    size      what an error of this answer is compared with, at the typical group
    count     the place of the measure that counts the rows behind it
    sure      what is divided by, or has a root taken: the answer is near to linear in the noise only where these are
              well above theirs
    core      an estimate without a bend, of which the answer is the image: its interval is told, and mapped
    image     the ends of the answer's interval from those of the core's
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


def spread(value: Value, sums: Sequence[Floats], deviations: Sequence[float]) -> Floats:
    """Estimate the standard deviation of a value from those of the measures, by secants of their own width."""
    total = np.zeros_like(sums[0])
    for place, deviation in enumerate(deviations):
        total += secant(value, sums, place, deviation) ** 2
    return np.sqrt(total)


def secant(value: Value, sums: Sequence[Floats], place: int, deviation: float) -> Floats:
    """Say by how much a value changes with one measure, over the width of its own deviation to both sides."""
    up, down = list(sums), list(sums)
    up[place], down[place] = sums[place] + deviation, sums[place] - deviation
    with np.errstate(all="ignore"):
        return (value(up) - value(down)) / 2


@dataclass(frozen=True, slots=True)
class Grid:
    """How fine sums are counted: a row adds at most so many steps to any of them."""

    most_steps: int


def bounded(expr: Expr, function: str) -> Bounds:
    """Give the bounds of an argument, or refuse."""
    bounds = facts(expr).bounds
    if bounds is None:
        raise QueryError(
            "HB552",
            f"{function} needs bounds: without them one row could move the answer by any amount.",
            "Declare bounds for the column in hubbub.yaml, or write least(greatest(x, low), high) in the query.",
        )
    return bounds


def term(expr: Expr, function: str, *, centred: bool) -> Term:
    """Take an argument from the middle of its bounds, or from 0."""
    bounds = bounded(expr, function)
    if not centred:
        return Term(expr, bounds, Fraction(0))
    middle, step = (bounds.low + bounds.high) / 2, facts(expr).step
    return Term(expr, bounds, middle if step is None else round(middle / step) * step)


def total(terms: tuple[Term, ...], present: tuple[Expr, ...], where: Expr | None, grid: Grid) -> Total:
    """Sum a term, or a product of two, on a grid that is exact where the steps are known and few enough."""
    reach = Fraction(1)
    natural: Fraction | None = Fraction(1)
    for each in terms:
        reach *= each.reach
        step = facts(each.expr).step
        natural = None if natural is None or step is None or each.centre % step else natural * step
    square = len(terms) == 2 and terms[0] == terms[1]
    least, most = (Fraction(0), reach) if square else (-reach, reach)
    if len(terms) == 1:
        least, most = terms[0].bounds.low - terms[0].centre, terms[0].bounds.high - terms[0].centre
    offset = Fraction(0)
    if square:
        # counted from the middle of [0, reach²], which halves what a row can add
        offset = reach / 2 if natural is None else round(reach / 2 / natural) * natural
        least, most = least - offset, most - offset
    span = max(abs(least), abs(most)) or Fraction(1)
    step = natural if natural is not None and natural > 0 else power_of_two(span / grid.most_steps)
    while span / step > grid.most_steps:
        step *= 2
    return Total(terms, present, where, offset, step, round(least / step), round(most / step))


def power_of_two(least: Fraction) -> Fraction:
    """Give the smallest power of two that is at least so large.

    >>> power_of_two(Fraction(3)), power_of_two(Fraction(1, 5)), power_of_two(Fraction(1))
    (Fraction(4, 1), Fraction(1, 4), Fraction(1, 1))
    """
    power = Fraction(2) ** (least.numerator.bit_length() - least.denominator.bit_length() - 1)
    while power < least:
        power *= 2
    return power
