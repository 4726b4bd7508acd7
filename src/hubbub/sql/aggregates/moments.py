"""VAR, STDDEV, COVAR, CORR and REGR_*: computed from counts, sums, and sums of products about centers.

Measures that two aggregates of a query have in common are measured once.

Tested in tests/sql/test_aggregates.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from hubbub.sql.aggregates.formula import (
    TYPICAL_ROWS,
    Floats,
    Formula,
    FormulaAggregate,
    Resolution,
    Value,
    bounded,
    term,
    total,
)
from hubbub.sql.expressions import Expr
from hubbub.sql.measures import BoundedSum, RowCount, Term
from hubbub.sql.query import Aggregate


@dataclass(frozen=True)
class Moments:
    """The moments of (y, x) over the rows where both are present; those of x alone if y is the same expression."""

    n: Floats
    x: Floats  #: mean of x minus its center
    y: Floats
    xx: Floats  #: variance of x
    yy: Floats
    xy: Floats
    centre_x: float
    centre_y: float


@dataclass(frozen=True)
class Shape:
    """A result as a function of the moments, with its range and the fields of `Formula` that describe its shape."""

    value: Callable[[Moments], Floats]
    low: float | None
    high: float | None
    size: float
    sure: tuple[Callable[[Moments], Floats], ...] = ()
    core: Callable[[Moments], Floats] | None = None
    image: Callable[[Floats, Floats], tuple[Floats, Floats]] | None = None
    core_range: tuple[float, float] | None = None
    squares: tuple[bool, bool] = (True, True)  #: whether the variances of x and of y are needed
    always: bool = False


@dataclass(frozen=True)
class Variance(FormulaAggregate):
    """VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP of x."""

    name: str
    sample: bool = False
    root: bool = False
    counts_rows: bool = True

    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:  # noqa: ARG002
        """Compute the variance or its root from the moments."""
        (x,) = aggregate.arguments
        bounds = bounded(x, self.name.upper())
        reach = float(bounds.high - bounds.low) / 2
        most = reach * reach * (2.0 if self.sample else 1.0)

        def squared(moments: Moments) -> Floats:
            return moments.xx * (_bessel(moments.n) if self.sample else 1.0)

        shape = Shape(squared, 0.0, most, reach * reach)
        if self.root:
            shape = Shape(
                lambda moments: _root(squared(moments)),
                0.0,
                sqrt(most),
                reach,
                core=squared,
                image=lambda low, high: (_root(low), _root(high)),
                core_range=(0.0, most),
            )
        return _formula(aggregate, resolution, x, x, shape)


@dataclass(frozen=True)
class CovarianceAggregate(FormulaAggregate):
    """COVAR_POP and COVAR_SAMP of (y, x)."""

    name: str
    sample: bool = False

    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:  # noqa: ARG002
        """Compute the covariance from the moments."""
        y, x = aggregate.arguments

        def value(moments: Moments) -> Floats:
            return moments.xy * (_bessel(moments.n) if self.sample else 1.0)

        size = _reach(x) * _reach(y)
        most = size * (1 + self.sample)
        return _formula(aggregate, resolution, y, x, Shape(value, -most, most, size, squares=(False, False)))


@dataclass(frozen=True)
class Correlation(FormulaAggregate):
    """CORR and REGR_R2 of (y, x)."""

    name: str
    squared: bool = False

    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:  # noqa: ARG002
        """Compute the correlation or its square from the moments."""
        y, x = aggregate.arguments

        def r(moments: Moments) -> Floats:
            with np.errstate(all="ignore"):
                quotient: Floats = moments.xy / np.sqrt(np.maximum(moments.xx, 0.0) * np.maximum(moments.yy, 0.0))
            return quotient

        sure = (lambda moments: moments.xx, lambda moments: moments.yy)
        shape = Shape(r, -1.0, 1.0, 1.0, sure, always=True)
        if self.squared:
            shape = Shape(
                lambda moments: np.square(np.clip(r(moments), -1.0, 1.0)),
                0.0,
                1.0,
                1.0,
                sure,
                core=r,
                image=_squared,
                core_range=(-1.0, 1.0),
                always=True,
            )
        return _formula(aggregate, resolution, y, x, shape)


@dataclass(frozen=True)
class Regression(FormulaAggregate):
    """REGR_SLOPE and REGR_INTERCEPT of y on x."""

    name: str
    intercept: bool = False

    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:  # noqa: ARG002
        """Compute the slope or the intercept from the moments."""
        y, x = aggregate.arguments

        def value(moments: Moments) -> Floats:
            with np.errstate(all="ignore"):
                slope = np.where(moments.xx > 0, moments.xy / np.where(moments.xx > 0, moments.xx, 1.0), np.nan)
            if not self.intercept:
                return slope
            return moments.centre_y + moments.y - slope * (moments.centre_x + moments.x)

        size = _reach(y) if self.intercept else _reach(y) / _reach(x)
        shape = Shape(value, None, None, size, (lambda moments: moments.xx,), squares=(True, False))
        return _formula(aggregate, resolution, y, x, shape)


def _root(values: Floats) -> Floats:
    return np.sqrt(np.maximum(values, 0.0))


def _squared(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the squares of an interval."""
    ends = np.square(low), np.square(high)
    return np.where((low <= 0) & (high >= 0), 0.0, np.minimum(*ends)), np.maximum(*ends)


def _reach(expr: Expr) -> float:
    bounds = bounded(expr, "this aggregate")
    return float(bounds.high - bounds.low) / 2 or 1.0


def _bessel(n: Floats) -> Floats:
    return np.maximum(n, 2.0) / (np.maximum(n, 2.0) - 1.0)


def _formula(aggregate: Aggregate, resolution: Resolution, y: Expr, x: Expr, shape: Shape) -> Formula:
    function = aggregate.function.upper()
    one = x == y
    # use one order for both arguments, so that CORR(x, y) and REGR_SLOPE(y, x) share measures
    present = (x,) if one else tuple(sorted((x, y), key=repr))
    tx, ty = term(x, function, centred=True), term(y, function, centred=True)
    first, second = (tx, ty) if present[0] == x else (ty, tx)
    products: list[tuple[Term, ...]] = [(tx,)]
    if one or shape.squares[0]:
        products.append((tx, tx))
    if not one:
        products += [(ty,), (first, second)]
        if shape.squares[1]:
            products.append((ty, ty))
    totals = [total(terms, present, aggregate.where, resolution) for terms in products]
    cx, cy = float(tx.centre), float(ty.centre)

    def moment(*terms: Term) -> Callable[[Sequence[Floats], Floats], Floats]:
        """Look up a mean among the sums once, not on every evaluation."""
        if terms not in products:
            return lambda _, n: np.zeros_like(n)
        place = products.index(terms)
        offset, step = float(totals[place].offset), float(totals[place].step)
        return lambda sums, n: offset + sums[place + 1] * step / n

    mean_x, mean_y, square_x, square_y = moment(tx), moment(ty), moment(tx, tx), moment(ty, ty)
    product = moment(first, second)

    def moments(sums: Sequence[Floats]) -> Moments:
        n = np.maximum(sums[0], 1.0)
        mx, my = mean_x(sums, n), mean_y(sums, n)
        xy = np.zeros_like(n) if one else product(sums, n) - mx * my
        return Moments(n, mx, my, square_x(sums, n) - mx * mx, square_y(sums, n) - my * my, xy, cx, cy)

    def of(function: Callable[[Moments], Floats]) -> Value:
        return lambda sums: function(moments(sums))

    return Formula(
        (RowCount(present, aggregate.where), *totals),
        of(shape.value),
        low=shape.low,
        high=shape.high,
        integer=False,
        linear=False,
        typical=(float(TYPICAL_ROWS), *map(_typical, totals)),
        size=shape.size,
        count=0,
        sure=tuple(map(of, shape.sure)),
        core=None if shape.core is None else of(shape.core),
        image=shape.image,
        core_range=shape.core_range,
        always=shape.always,
    )


def _typical(measure: BoundedSum) -> float:
    """Return the sum, in steps, of rows that are spread evenly over half of the bounds, with a correlation of ½."""
    reach = 1.0
    for factor in measure.terms:
        reach *= float(factor.reach)
    if len(measure.terms) == 1:
        mean = reach / 4
    elif measure.terms[0] == measure.terms[1]:
        mean = reach * (1 / 16 + 1 / 6)
    else:
        mean = reach * (1 / 16 + 1 / 12)
    return TYPICAL_ROWS * (mean - float(measure.offset)) / float(measure.step)
