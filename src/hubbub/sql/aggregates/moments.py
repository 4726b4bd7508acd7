"""VAR, STDDEV, COVAR, CORR, REGR_*: all from counts, sums and sums of products about the middles of the bounds.

What two aggregates of a query have in common is measured once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Floats, Formula, Grid, Value, bounded, term, total
from hubbub.sql.expressions import Expr
from hubbub.sql.measures import Rows, Term, Total
from hubbub.sql.query import Aggregate


@dataclass(frozen=True)
class Pair:
    """The moments of (y, x) over rows where both are there; of x alone where y is the same expression."""

    n: Floats
    x: Floats  #: mean of x less its centre
    y: Floats
    xx: Floats  #: variance of x
    yy: Floats
    xy: Floats
    centre_x: float
    centre_y: float


@dataclass(frozen=True)
class Finish:
    """What an aggregate is, as a function of the moments, and what `Formula` wants to know of its bends."""

    value: Callable[[Pair], Floats]
    sure: tuple[Callable[[Pair], Floats], ...] = ()
    core: Callable[[Pair], Floats] | None = None
    image: Callable[[Floats, Floats], tuple[Floats, Floats]] | None = None


def variance(aggregate: Aggregate, grid: Grid) -> Formula:
    """VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP."""
    (x,) = aggregate.arguments
    function = aggregate.function
    sample, root = function.endswith("_samp"), function.startswith("stddev")

    def squared(pair: Pair) -> Floats:
        return pair.xx * (_bessel(pair.n) if sample else 1.0)

    reach = float(bounded(x, function.upper()).high - bounded(x, function.upper()).low) / 2
    most = reach * reach * (2.0 if sample else 1.0)
    size = reach if root else reach * reach
    if not root:
        return _formula(aggregate, grid, x, x, Finish(squared), 0.0, most, size)
    finish = Finish(lambda pair: _root(squared(pair)), core=squared, image=lambda low, high: (_root(low), _root(high)))
    return _formula(aggregate, grid, x, x, finish, 0.0, sqrt(most), size)


def covariance(aggregate: Aggregate, grid: Grid) -> Formula:
    """COVAR_POP and COVAR_SAMP."""
    y, x = aggregate.arguments
    sample = aggregate.function.endswith("_samp")

    def value(pair: Pair) -> Floats:
        return pair.xy * (_bessel(pair.n) if sample else 1.0)

    most = _reach(x) * _reach(y)
    return _formula(aggregate, grid, y, x, Finish(value), -most * (1 + sample), most * (1 + sample), most)


def correlation(aggregate: Aggregate, grid: Grid) -> Formula:
    """CORR and REGR_R2."""
    y, x = aggregate.arguments

    def r(pair: Pair) -> Floats:
        with np.errstate(all="ignore"):
            found: Floats = pair.xy / np.sqrt(np.maximum(pair.xx, 0.0) * np.maximum(pair.yy, 0.0))
        return found

    sure = (lambda pair: pair.xx, lambda pair: pair.yy)
    if aggregate.function == "corr":
        return _formula(aggregate, grid, y, x, Finish(r, sure), -1.0, 1.0, 1.0)
    finish = Finish(lambda pair: np.square(np.clip(r(pair), -1.0, 1.0)), sure, core=r, image=_squared)
    return _formula(aggregate, grid, y, x, finish, 0.0, 1.0, 1.0)


def regression(aggregate: Aggregate, grid: Grid) -> Formula:
    """REGR_SLOPE and REGR_INTERCEPT of y on x."""
    y, x = aggregate.arguments
    slope_only = aggregate.function == "regr_slope"

    def value(pair: Pair) -> Floats:
        with np.errstate(all="ignore"):
            slope = np.where(pair.xx > 0, pair.xy / np.where(pair.xx > 0, pair.xx, 1.0), np.nan)
        if slope_only:
            return slope
        return pair.centre_y + pair.y - slope * (pair.centre_x + pair.x)

    size = _reach(y) / _reach(x) if slope_only else _reach(y)
    return _formula(aggregate, grid, y, x, Finish(value, (lambda pair: pair.xx,)), None, None, size)


def _root(found: Floats) -> Floats:
    return np.sqrt(np.maximum(found, 0.0))


def _squared(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Give the ends of a square from those of what is squared."""
    ends = np.square(low), np.square(high)
    return np.where((low <= 0) & (high >= 0), 0.0, np.minimum(*ends)), np.maximum(*ends)


def _reach(expr: Expr) -> float:
    bounds = bounded(expr, "this aggregate")
    return float(bounds.high - bounds.low) / 2 or 1.0


def _bessel(n: Floats) -> Floats:
    return np.maximum(n, 2.0) / (np.maximum(n, 2.0) - 1.0)


def _formula(
    aggregate: Aggregate,
    grid: Grid,
    y: Expr,
    x: Expr,
    finish: Finish,
    low: float | None,
    high: float | None,
    size: float,
) -> Formula:
    function = aggregate.function.upper()
    one = x == y
    # one order for both of a pair, so that CORR(x, y) and REGR_SLOPE(y, x) share
    present = (x,) if one else tuple(sorted((x, y), key=repr))
    tx, ty = term(x, function, centred=True), term(y, function, centred=True)
    where = aggregate.where
    count = Rows(present, where)
    first, second = (tx, ty) if present[0] == x else (ty, tx)
    products: list[tuple[Term, ...]] = [(tx,), (tx, tx)]
    if not one:
        products += [(ty,), (first, second)]
        if aggregate.function not in ("covar_pop", "covar_samp", "regr_slope", "regr_intercept"):
            products.append((ty, ty))
        if aggregate.function in ("covar_pop", "covar_samp"):
            products.remove((tx, tx))
    totals = [total(each, present, where, grid) for each in products]
    cx, cy = float(tx.centre), float(ty.centre)

    def moment(*terms: Term) -> Callable[[Sequence[Floats], Floats], Floats]:
        """Find a mean among the sums once, so that answers are worked out without looking for it again."""
        if terms not in products:
            return lambda _, n: np.zeros_like(n)
        place = products.index(terms)
        offset, step = float(totals[place].offset), float(totals[place].step)
        return lambda sums, n: offset + sums[place + 1] * step / n

    mean_x, mean_y, square_x, square_y = moment(tx), moment(ty), moment(tx, tx), moment(ty, ty)
    product = moment(first, second)

    def pair(sums: Sequence[Floats]) -> Pair:
        n = np.maximum(sums[0], 1.0)
        mx, my = mean_x(sums, n), mean_y(sums, n)
        xy = np.zeros_like(n) if one else product(sums, n) - mx * my
        return Pair(n, mx, my, square_x(sums, n) - mx * mx, square_y(sums, n) - my * my, xy, cx, cy)

    def of(function: Callable[[Pair], Floats]) -> Value:
        return lambda sums: function(pair(sums))

    typical = [float(TYPICAL_ROWS), *(_typical(measure) for measure in totals)]
    return Formula(
        (count, *totals),
        of(finish.value),
        low=low,
        high=high,
        integer=False,
        linear=False,
        typical=tuple(typical),
        size=size,
        count=0,
        sure=tuple(of(each) for each in finish.sure),
        core=None if finish.core is None else of(finish.core),
        image=finish.image,
    )


def _typical(measure: Total) -> float:
    """Give the sum, in steps, of rows spread evenly over a half of the bounds, with a correlation of ½."""
    reach = 1.0
    for each in measure.terms:
        reach *= float(each.reach)
    if len(measure.terms) == 1:
        mean = reach / 4
    elif measure.terms[0] == measure.terms[1]:
        mean = reach * (1 / 16 + 1 / 6)
    else:
        mean = reach * (1 / 16 + 1 / 12)
    return TYPICAL_ROWS * (mean - float(measure.offset)) / float(measure.step)
