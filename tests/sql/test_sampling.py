"""Sampling errors that follow from released sums are those of repeated samples, for every aggregate."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.visits_table import COST, bounds, query, visits

from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.sql import sampling
from hubbub.sql.aggregates.table import AGGREGATES
from hubbub.sql.estimates import CellKeys
from hubbub.sql.expressions import Col, Facts, FunctionCall, Literal
from hubbub.sql.measures import BoundedSum, RowCount, UnitCount
from hubbub.sql.plan import Plan, plan
from hubbub.sql.presentation import present
from hubbub.sql.query import Aggregate

Reals = NDArray[np.float64]

X = Col("cost", Kind.REAL, Facts(bounds=bounds(-50, 200), step=Fraction(1, 8)))
Y = Col("other", Kind.REAL, Facts(bounds=bounds(0, 64), step=Fraction(1, 8)))
BIT = Col("bit", Kind.INTEGER, Facts(bounds=bounds(0, 1), step=Fraction(1)))

#: Samples of each simulation. The standard deviation of results is then known to 2.2% (one standard error), and a
#: tolerance of 12% is 5.4 of them: a false alarm has probability 7e-8 for each of 20 comparisons.
SAMPLES, ROWS, TOLERANCE = 1000, 400, 0.12


def sample(generator: np.random.Generator) -> dict[str, Reals]:
    """Draw a Poisson number of skewed, correlated rows."""
    n = generator.poisson(ROWS)
    x = np.round(np.clip(generator.exponential(30.0, n) - 20, -50, 200) * 8) / 8
    y = np.round(np.clip(20 + x / 8 + generator.normal(0, 6, n), 0, 64) * 8) / 8
    return {"cost": x, "other": y, "bit": (generator.random(n) < 0.2).astype(float)}


DATA = [sample(np.random.default_rng(seed)) for seed in range(SAMPLES)]


def exact_sums(planned: Plan, data: dict[str, Reals]) -> list[float]:
    """Add up the measures of a plan over a sample, without noise."""
    sums = []
    for noised in planned.measures:
        measure = noised.measure
        if isinstance(measure, RowCount | UnitCount):
            sums.append(float(len(data["cost"])))
        elif isinstance(measure, BoundedSum):
            product = np.prod([data[t.expr.name] - float(t.centre) for t in measure.terms], axis=0)  # type: ignore[union-attr]
            sums.append(float(np.rint((product - float(measure.offset)) / float(measure.step)).sum()))
    return sums


STATISTICS: dict[str, Callable[[Reals, Reals], float]] = {
    "count": lambda x, _: len(x),
    "count_units": lambda x, _: len(x),
    "sum": lambda x, _: float(x.sum()),
    "avg": lambda x, _: float(x.mean()),
    "var_pop": lambda x, _: float(x.var()),
    "var_samp": lambda x, _: float(x.var(ddof=1)),
    "stddev_pop": lambda x, _: float(x.std()),
    "stddev_samp": lambda x, _: float(x.std(ddof=1)),
    "covar_pop": lambda x, y: float(np.cov(x, y, ddof=0)[0, 1]),
    "covar_samp": lambda x, y: float(np.cov(x, y, ddof=1)[0, 1]),
    "corr": lambda x, y: float(np.corrcoef(x, y)[0, 1]),
    "regr_r2": lambda x, y: float(np.corrcoef(x, y)[0, 1] ** 2),
    "regr_slope": lambda x, y: float(np.polyfit(x, y, 1)[0]),
    "regr_intercept": lambda x, y: float(np.polyfit(x, y, 1)[1]),
}


def stated(
    aggregates: list[Aggregate], select: list[tuple[str, Col | FunctionCall]] | None = None
) -> list[tuple[float, bool] | None]:
    """Return the sampling errors of each output at the mean of the sums of a hundred samples."""
    asked = query(visits(PrivacyUnit(None)), aggregates, also=[Y, BIT], select=select)
    made = plan(asked, epsilon=Fraction(100), delta=Fraction(0), salt="s")
    sums = [exact_sums(made, each) for each in DATA[:100]]
    means = [np.array([round(total)], dtype=np.int64) for total in np.mean(sums, axis=0)]
    answer = present(made, CellKeys(1, {}, {}), means, [], raw=False)
    return [None if each is None else (float(each.half[0]), each.at_most) for each in answer.sampling]


def known(error: tuple[float, bool] | None) -> tuple[float, bool]:
    assert error is not None
    return error


def spread_of(function: str, x: str = "cost") -> float:
    """Return the 95% half width of a statistic between samples, by simulation."""
    values = [STATISTICS[function](each[x], each["other"]) for each in DATA]
    return 1.959964 * float(np.std(values))


@pytest.mark.row(68)
@pytest.mark.parametrize("function", STATISTICS)
def test_sampling_errors_are_those_of_repeated_samples(function: str) -> None:
    """Exact where the moments are released (AVG beside STDDEV), upper bounds elsewhere; SAMPLES states false alarms."""
    pair = function.startswith(("covar", "corr", "regr"))
    arguments = (Y, X) if pair else () if function.startswith("count") else (X,)
    aggregates = [Aggregate("a", function, arguments)]
    if function in ("sum", "avg"):
        aggregates.append(Aggregate("s", "stddev_pop", (X,)))
    half, at_most = known(stated(aggregates)[0])
    truth = spread_of(function)
    if function in ("count", "count_units", "sum", "avg"):
        assert not at_most
        assert half == pytest.approx(truth, rel=TOLERANCE)
    else:
        assert at_most
        assert truth * (1 - TOLERANCE) <= half <= 40 * truth


@pytest.mark.row(68)
def test_averages_and_sums_alone_are_bounded_from_declared_bounds() -> None:
    for function in ("avg", "sum"):
        errors = stated([Aggregate("a", function, (X,)), Aggregate("n", "count", (X,))])
        half, at_most = known(errors[0])
        assert at_most
        assert spread_of(function) * (1 - TOLERANCE) <= half <= 8 * spread_of(function)


def test_a_sum_alone_with_negative_values_has_no_sampling_error() -> None:
    """Σx² ≤ (a + b)Σx − ab·n needs the number of rows, unless a bound is 0."""
    assert stated([Aggregate("a", "sum", (X,))]) == [None]
    half, at_most = known(stated([Aggregate("a", "sum", (Y,))])[0])
    assert at_most
    assert half >= 1.96 * float(np.std([each["other"].sum() for each in DATA])) * (1 - TOLERANCE)


@pytest.mark.parametrize("function", ["sum", "avg", "var_pop", "stddev_pop"])
def test_two_valued_columns_are_exact(function: str) -> None:
    half, at_most = known(stated([Aggregate("a", function, (BIT,))])[0])
    assert not at_most
    assert half == pytest.approx(spread_of(function, "bit"), rel=TOLERANCE)


def test_expressions_over_one_aggregate_scale_its_sampling_error() -> None:
    total = Col("a", Kind.REAL)
    thousandth = FunctionCall("div", (total, Literal(Fraction(1000), Kind.REAL)), Kind.REAL)
    both = FunctionCall("div", (total, Col("n", Kind.REAL)), Kind.REAL)
    select: list[tuple[str, Col | FunctionCall]] = [("a", total), ("t", thousandth), ("b", both)]
    whole, scaled, quotient = stated([Aggregate("a", "sum", (Y,)), Aggregate("n", "count")], select)
    assert known(scaled)[0] == pytest.approx(known(whole)[0] / 1000)
    assert quotient is None


def test_every_aggregate_has_a_sampling_error_or_is_known_to_have_none() -> None:
    over_values = {f"{name}_distinct" for name in ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")}
    assert set(AGGREGATES) - set(STATISTICS) == {"count_distinct", "quantile", "min", "max", "mode"} | over_values


def test_a_yardstick_of_the_hidden_count_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error of old: 1.96·√n, whatever is printed."""
    monkeypatch.setattr(
        sampling,
        "_error",
        lambda _plan, _aggregate, sums: sampling.SamplingError(1.96 * np.sqrt(np.maximum(sums[0], 1.0))),
    )
    for function in ("sum", "avg"):
        with pytest.raises(AssertionError):
            test_sampling_errors_are_those_of_repeated_samples(function)


def test_the_average_of_a_column_without_step_uses_its_bounds() -> None:
    half, at_most = known(stated([Aggregate("a", "avg", (COST,))])[0])
    assert at_most
    assert half > 0
