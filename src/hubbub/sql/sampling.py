"""The sampling error of each result, from released sums and declared bounds alone.

The rows are taken as independent draws from a population, and their number as Poisson. Then a count of n varies by √n
between samples, and every other result by the delta method. Where a moment that this needs was not released, the
declared bounds limit it: the sampling error is then an upper bound, and says so. Nothing here is read from the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.schema import Kind
from hubbub.sql.aggregates.formula import Floats
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.measures import BoundedSum, Measure, RowCount, UnitCount
from hubbub.sql.plan import Plan
from hubbub.sql.public_rows import never_null
from hubbub.sql.query import Aggregate

#: The half width of a 95% interval in standard errors.
NORMAL = 1.959964
#: Counts and variances must exceed this many standard deviations of their noise.
_SURE = 4.0


@dataclass(frozen=True)
class SamplingError:
    """The ± at 95% of a result between samples, in every cell; NaN where it is unknown."""

    half: Floats
    at_most: bool = False  #: whether it is an upper bound


@dataclass(frozen=True)
class _Moments:
    """Mean and variance of an argument over the rows of each cell, and its declared bounds."""

    mean: Floats
    variance: Floats
    low: float
    high: float
    at_most: bool  #: whether the variance is an upper bound
    two_valued: bool  #: whether every value is one of the bounds

    @property
    def reach(self) -> Floats:
        """The largest distance of a value from the mean."""
        return np.maximum(self.mean - self.low, self.high - self.mean)


@dataclass(frozen=True)
class _NoisySum:
    measure: BoundedSum
    deviation: float


def sampling_error(plan: Plan, name: str, sums: Sequence[Floats]) -> SamplingError | None:
    """Return the sampling error of one aggregate; None if what is released does not determine it.

    Theorem (Sampling errors from released moments). Let the rows of a cell be independent draws, Poisson in number, and
    let T be a smooth function of their sums. As the number grows, T varies by the root of E[ψ²]/n, where ψ is the
    influence of one row. With x within [a, b], mean μ, variance σ² and M = max(μ − a, b − μ):
    COUNT √n; SUM √Σx², Σx² ≤ (a + b)Σx − ab·n; AVG σ/√n, σ² ≤ (μ − a)(b − μ); VAR √((M²σ² − σ⁴)/n) at most; COVAR at
    most √((min(M²τ², N²σ²) − c²)/n) for y of variance τ² and reach N; CORR, with M and N in standard deviations, at
    most √((M + N)²/4 · (1 + |r|)(1 − r²)/n); a slope at most M·√(τ²(1 − r²)/n)/σ².
    Proof    The influences are 1, x, x − μ, (x − μ)² − σ², (x − μ)(y − ν) − c, u²(1 − r)/4 − v²(1 + r)/4 where u and v
             are the sum and the difference of the standardized values, and (x − μ)e/σ² with the residual e. A count and
             a sum of a Poisson number of rows have variance n and Σx². (x − a)(b − x) ≥ 0 gives the bounds of SUM and
             AVG; |x − μ| ≤ M gives those of products; E[ψ²] ≤ max|ψ|·E|ψ| with E u² = 2(1 + r), E v² = 2(1 − r) gives
             that of CORR. Each is an equality where x takes no value but a and b, or where the moment was released.
    Assumes  released sums that are large beside their noise; results of others are left out.
    Charges  nothing: this is post-processing.
    Tested   tests/sql/test_sampling.py::test_sampling_errors_are_those_of_repeated_samples
    """
    aggregate = next(each for each in plan.query.aggregates if each.name == name)
    count = plan.formulas[name].count
    with np.errstate(all="ignore"):
        found = _error(plan, aggregate, sums)
        if found is None:
            return None
        half = np.where((found.half > 0) & np.isfinite(found.half), found.half, np.nan)
        if count is not None and aggregate.function not in ("count", "count_units"):
            place = plan.place(plan.formulas[name].measures[count])
            half = np.where(sums[place] >= _SURE * plan.measures[place].deviation, half, np.nan)
    return SamplingError(half, found.at_most)


def _error(plan: Plan, aggregate: Aggregate, sums: Sequence[Floats]) -> SamplingError | None:
    function, arguments = aggregate.function, aggregate.arguments
    if function in ("count", "count_units"):
        return _of_count(plan, aggregate, sums)
    if function.endswith("_distinct"):
        return None
    n = _count(plan, arguments, aggregate, sums)
    if function == "sum":
        return _of_sum(plan, aggregate, sums, n)
    if n is None:
        return None
    x = _moments(plan, arguments[-1], aggregate, sums, n)
    if x is None:
        return None
    if len(arguments) == 2:
        return _of_pair(plan, aggregate, sums, n, x)
    root_n = np.sqrt(n)
    if function == "avg":
        return SamplingError(NORMAL * np.sqrt(x.variance) / root_n, x.at_most)
    # of two values the fourth moment follows from the mean; of others it is limited by the bounds
    width, share = x.high - x.low, x.variance / max(x.high - x.low, 1e-300) ** 2
    fourth = width**4 * share * (1 - 3 * share) if x.two_valued else x.reach**2 * x.variance
    spread = NORMAL * np.sqrt(np.maximum(fourth - x.variance**2, 0.0)) / root_n
    if function.startswith("stddev"):
        spread = spread / (2 * np.sqrt(x.variance))
    return SamplingError(spread, not x.two_valued)


def _of_count(plan: Plan, aggregate: Aggregate, sums: Sequence[Floats]) -> SamplingError | None:
    place = plan.place(plan.formulas[aggregate.name].measures[0])
    if plan.measures[place].event is None:
        return None  # a number that is public is the same in every sample
    return SamplingError(NORMAL * np.sqrt(np.maximum(sums[place], 1.0)))


def _of_sum(plan: Plan, aggregate: Aggregate, sums: Sequence[Floats], n: Floats | None) -> SamplingError | None:
    (x,) = aggregate.arguments
    formula, bounds = plan.formulas[aggregate.name], facts(x).bounds
    if bounds is None:
        return None
    moments = None if n is None else _moments(plan, x, aggregate, sums, n)
    if moments is not None and n is not None and not moments.at_most:
        return SamplingError(NORMAL * np.sqrt(n * (moments.variance + moments.mean**2)))
    low, high = float(bounds.low), float(bounds.high)
    if n is None and low * high:
        return None
    total = formula.value([sums[plan.place(measure)] for measure in formula.measures])
    squares = (low + high) * total - (low * high * n if n is not None else 0.0)
    return SamplingError(NORMAL * np.sqrt(squares), not _two_valued(x))


def _of_pair(plan: Plan, aggregate: Aggregate, sums: Sequence[Floats], n: Floats, x: _Moments) -> SamplingError | None:
    """Bound the sampling error of COVAR, CORR and REGR of (y, x)."""
    y = _moments(plan, aggregate.arguments[0], aggregate, sums, n)
    product = _mean(plan, aggregate.arguments, aggregate, sums, n)
    if y is None or product is None:
        return None
    function, covariance = aggregate.function, product - x.mean * y.mean
    if function.startswith("covar"):
        fourth = np.minimum(x.reach**2 * y.variance, y.reach**2 * x.variance)
        return SamplingError(NORMAL * np.sqrt(np.maximum(fourth - covariance**2, 0.0) / n), at_most=True)
    residual = np.maximum(y.variance - covariance**2 / x.variance, 0.0)
    if function == "regr_slope":
        return SamplingError(NORMAL * x.reach * np.sqrt(residual / n) / x.variance, at_most=True)
    if function == "regr_intercept":
        ends = [np.abs(1 - x.mean * (end - x.mean) / x.variance) for end in (x.low, x.high)]
        return SamplingError(NORMAL * np.maximum(*ends) * np.sqrt(residual / n), at_most=True)
    r = np.clip(covariance / np.sqrt(x.variance * y.variance), -1.0, 1.0)
    reach = x.reach / np.sqrt(x.variance) + y.reach / np.sqrt(y.variance)
    half = NORMAL * np.sqrt(reach**2 / 4 * (1 + np.abs(r)) * (1 - r**2) / n)
    if function == "regr_r2":
        half = 2 * np.abs(r) * half + half**2
    return SamplingError(half, at_most=True)


def _moments(plan: Plan, x: Expr, aggregate: Aggregate, sums: Sequence[Floats], n: Floats) -> _Moments | None:
    """Return the mean and the variance of one argument, if its sum was released."""
    bounds, mean = facts(x).bounds, _mean(plan, (x,), aggregate, sums, n)
    if bounds is None or mean is None:
        return None
    low, high = float(bounds.low), float(bounds.high)
    mean = np.clip(mean, low, high)
    square = _mean(plan, (x, x), aggregate, sums, n)
    largest, two_valued = (mean - low) * (high - mean), _two_valued(x)
    if square is None or two_valued:
        return _Moments(mean, largest, low, high, not two_valued, two_valued)
    variance = np.minimum(square - mean**2, largest)
    # about the centers, so that the noise of the mean counts as little as it does in the variance itself
    centre = next(float(each.measure.terms[0].centre) for each in _released(plan, (x,), aggregate))
    first, second = (_noise(plan, part, aggregate, n) for part in ((x,), (x, x)))
    sure = variance >= _SURE * np.hypot(second, 2 * (mean - centre) * first)
    return _Moments(mean, np.where(sure, variance, np.nan), low, high, at_most=False, two_valued=False)


def _mean(
    plan: Plan, factors: Sequence[Expr], aggregate: Aggregate, sums: Sequence[Floats], n: Floats
) -> Floats | None:
    """Return the mean of a product of one or two expressions over the rows of an aggregate, from released sums."""
    place = next((i for i, each in enumerate(plan.measures) if _sums(each.measure, factors, aggregate)), None)
    if place is None:
        return None
    measure = plan.measures[place].measure
    if not isinstance(measure, BoundedSum):
        raise AssertionError("a mean is that of a sum")
    centred = float(measure.offset) + sums[place] * float(measure.step) / n
    centres = [float(term.centre) for term in measure.terms]
    if len(centres) == 1:
        return centred + centres[0]
    # the sum is about the centers: E[xy] = E[(x − a)(y − b)] + a·E[y] + b·E[x] − ab
    means = [_mean(plan, (term.expr,), aggregate, sums, n) for term in measure.terms]
    if means[0] is None or means[1] is None:
        return None
    return centred + centres[0] * means[1] + centres[1] * means[0] - centres[0] * centres[1]


def _released(plan: Plan, factors: Sequence[Expr], aggregate: Aggregate) -> list[_NoisySum]:
    """Return the released sums of a product."""
    return [
        _NoisySum(each.measure, each.deviation)
        for each in plan.measures
        if isinstance(each.measure, BoundedSum) and _sums(each.measure, factors, aggregate)
    ]


def _noise(plan: Plan, factors: Sequence[Expr], aggregate: Aggregate, n: Floats) -> Floats:
    """Return the standard deviation of the noise of a mean."""
    (released, *_) = _released(plan, factors, aggregate)
    return released.deviation * float(released.measure.step) / n


def _sums(measure: Measure, factors: Sequence[Expr], aggregate: Aggregate) -> bool:
    """Return whether a measure sums a product of these factors over the rows of an aggregate."""
    if not isinstance(measure, BoundedSum) or measure.where != aggregate.where:
        return False
    terms = [term.expr for term in measure.terms]
    return sorted(map(repr, terms)) == sorted(map(repr, factors)) and set(measure.present) == set(aggregate.arguments)


def _count(plan: Plan, present: Sequence[Expr], aggregate: Aggregate, sums: Sequence[Floats]) -> Floats | None:
    """Return the released number of rows of an aggregate, if there is one."""
    for place, each in enumerate(plan.measures):
        measure = each.measure
        if isinstance(measure, UnitCount) or measure.where != aggregate.where:
            continue
        whole = each.event is None and all(map(never_null, present))
        if isinstance(measure, RowCount) and (set(measure.present) == set(present) or whole):
            return np.maximum(sums[place], 1.0)
    return None


def _two_valued(x: Expr) -> bool:
    known = facts(x)
    if known.bounds is None:
        return False
    low, high = known.bounds.low, known.bounds.high
    step = known.step if known.step is not None else 1 if x.kind is Kind.INTEGER else None
    # a value between two multiples of the step occurs only where a bound is not a multiple itself
    return step is not None and high - low == step and not low % step
