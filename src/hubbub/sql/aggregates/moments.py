"""VAR, STDDEV, COVAR, CORR, REGR_*: all from counts, sums and sums of products about the middles of the bounds.

What two aggregates of a query have in common is measured once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Floats, Formula, Grid, bounded, term, total
from hubbub.sql.expressions import Expr
from hubbub.sql.measures import Rows, Term, Total
from hubbub.sql.query import Aggregate

Moment = Callable[[Sequence[Floats]], Floats]


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


def variance(aggregate: Aggregate, grid: Grid) -> Formula:
    """VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP."""
    (x,) = aggregate.arguments
    function = aggregate.function
    sample, root = function.endswith("_samp"), function.startswith("stddev")

    def value(pair: Pair) -> Floats:
        found = np.maximum(pair.xx, 0.0) * (_bessel(pair.n) if sample else 1.0)
        return np.sqrt(found) if root else found

    reach = float(bounded(x, function.upper()).high - bounded(x, function.upper()).low) / 2
    most = reach * reach * (2.0 if sample else 1.0)
    size = reach if root else reach * reach
    return _formula(aggregate, grid, x, x, value, 0.0, sqrt(most) if root else most, size)


def covariance(aggregate: Aggregate, grid: Grid) -> Formula:
    """COVAR_POP and COVAR_SAMP."""
    y, x = aggregate.arguments
    sample = aggregate.function.endswith("_samp")

    def value(pair: Pair) -> Floats:
        return pair.xy * (_bessel(pair.n) if sample else 1.0)

    most = _reach(x) * _reach(y)
    return _formula(aggregate, grid, y, x, value, -most * (1 + sample), most * (1 + sample), most)


def correlation(aggregate: Aggregate, grid: Grid) -> Formula:
    """CORR and REGR_R2."""
    y, x = aggregate.arguments
    squared = aggregate.function == "regr_r2"

    def value(pair: Pair) -> Floats:
        with np.errstate(all="ignore"):
            found: Floats = np.clip(pair.xy / np.sqrt(np.maximum(pair.xx, 0.0) * np.maximum(pair.yy, 0.0)), -1.0, 1.0)
        return found * found if squared else found

    return _formula(aggregate, grid, y, x, value, 0.0 if squared else -1.0, 1.0, 1.0)


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
    return _formula(aggregate, grid, y, x, value, None, None, size)


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
    finish: Callable[[Pair], Floats],
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
    products = [(tx,), (tx, tx)]
    if not one:
        first, second = (tx, ty) if present[0] == x else (ty, tx)
        products += [(ty,), (first, second)]
        if aggregate.function not in ("covar_pop", "covar_samp", "regr_slope", "regr_intercept"):
            products.append((ty, ty))
        if aggregate.function in ("covar_pop", "covar_samp"):
            products.remove((tx, tx))
    totals = [total(each, present, where, grid) for each in products]
    places = {each: i + 1 for i, each in enumerate(products)}
    cx, cy = float(tx.centre), float(ty.centre)

    def value(sums: Sequence[Floats]) -> Floats:
        n = np.maximum(sums[0], 1.0)
        nothing = np.zeros_like(n)

        def mean(terms: tuple[Term, ...]) -> Floats:
            place = places.get(terms)
            if place is None:
                return nothing
            measure = totals[place - 1]
            return float(measure.offset) + sums[place] * float(measure.step) / n

        mx, my = mean((tx,)), mean((ty,))
        xy = nothing if one else mean((first, second)) - mx * my
        return finish(Pair(n, mx, my, mean((tx, tx)) - mx * mx, mean((ty, ty)) - my * my, xy, cx, cy))

    typical = [float(TYPICAL_ROWS), *(_typical(measure) for measure in totals)]
    return Formula(
        (count, *totals), value, low=low, high=high, integer=False, linear=False, typical=tuple(typical), size=size,
        count=0,
    )  # fmt: skip


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
