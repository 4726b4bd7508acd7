"""Histograms for ranges and prefixes: what is drawn, what comes out, and how far it is off."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Published, Setting
from hubbub.analyses.tables.ranges import Ranges, ranges
from hubbub.answers.release import Release
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.bounding import RenderOptions

#: 1,000 people; ages are spread so that every bin of ten years has its own count.
PEOPLE = "SELECT i AS who, CAST(floor(100 * sqrt(i / 1000.0)) AS INTEGER) AS age FROM range(1000) AS t(i)"


def setting(epsilon: str = "1", delta: str = "0", relation: Relation = Relation.ADD_REMOVE) -> Setting:
    columns = (Column("who", Kind.INTEGER), Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(99))))
    table = Table("people", columns, PrivacyUnit("who", 1, 1), relation)
    return Setting({"people": table}, Fraction(epsilon), Fraction(delta), RenderOptions("salt"))


def released(published: Published) -> Release:
    return Release(published.outputs, [None] * 100, Fraction(1), Fraction(0), {}, None, model=published.model)


@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
@pytest.mark.parametrize(("delta", "noise"), [("0", "laplace"), ("1/1000000", "gaussian")])
def test_a_histogram_is_whole_non_negative_and_near(bench: Any, workload: Any, delta: str, noise: str) -> None:
    """At ε = 50 no count is off by much: a sum of noises beyond ten deviations has a chance below 1e-9."""
    prepared = ranges(setting("50", delta), table="people", column="age", workload=workload, noise=noise)
    published = prepared.run(bench({"people": PEOPLE}))
    bins, count, up_to = published.outputs
    assert list(bins.values) == list(range(100))
    values = np.array(count.values)
    assert values.dtype == np.int64
    assert (values >= 0).all()
    assert list(up_to.values) == np.cumsum(values).tolist()
    exact = np.bincount(np.floor(100 * np.sqrt(np.arange(1000) / 1000.0)).astype(int), minlength=100)
    half = prepared.expected[0].plus_minus
    assert np.abs(values - exact).max() <= 8 * half + 1
    for output in (count, up_to):
        assert all(lo <= v <= hi for v, lo, hi in zip(output.values, output.low or (), output.high or (), strict=True))  # type: ignore[operator]


@pytest.mark.parametrize("relation", list(Relation))
def test_the_event_costs_what_was_asked(relation: Relation) -> None:
    pure = ranges(setting("0.3", relation=relation), table="people", column="age")
    assert privacy_cost(pure.event).pure == Fraction(3, 10)
    assert pure.delta == 0
    # at a small ε the shorter columns of Gaussian strategies do not make up for the larger noise
    assert ranges(setting("1", "1/1000000", relation), table="people", column="age").noise == "laplace"
    with_delta = ranges(setting("1", "1/1000000", relation), table="people", column="age", noise="gaussian")
    assert with_delta.delta == Fraction(1, 10**6)
    assert privacy_cost(with_delta.event).pure is None


def test_intervals_are_as_wide_as_the_estimates_are_off(bench: Any) -> None:
    """Running totals are off as the whole matrix says, and their intervals are 1.95 deviations wide or more.

    Totals of one histogram are alike: the mean square of their standard scores over 40 histograms has about 86 degrees
    of freedom. It is between 0.35 and 2.6 but for a chance below 1e-6; deviations that are too small by half make it 4.
    """
    prepared: Any = ranges(setting("1"), table="people", column="age")
    run = bench({"people": PEOPLE})
    chosen = prepared.publish.args[0]
    measured = chosen.strategy.matrix.astype(float)
    upto = np.tril(np.ones((100, 100)))
    deviations = chosen.deviation * np.sqrt(np.diag(upto @ np.linalg.inv(measured.T @ measured) @ upto.T))
    exact = np.cumsum(np.bincount(np.floor(100 * np.sqrt(np.arange(1000) / 1000.0)).astype(int), minlength=100))
    squares = 0.0
    for _ in range(40):
        published = prepared.run(run)
        low, high = (np.array(end) for end in (published.outputs[2].low, published.outputs[2].high))
        middle = np.cumsum(published.model["estimates"])
        squares += float(np.mean(((middle - exact) / deviations) ** 2)) / 40
        assert (high >= middle + 1.95 * deviations - 0.1).all()
        assert (low <= np.maximum(middle - 1.95 * deviations, 0) + 0.1).all()
    assert 0.35 < squares < 2.6


def test_a_model_answers_ranges_and_quantiles(bench: Any) -> None:
    prepared = ranges(setting("1000"), table="people", column={"column": "age", "bins": 10})
    model = Ranges.of(released(prepared.run(bench({"people": PEOPLE}))))
    assert isinstance(model, Ranges)
    value, low, high = model.between("0–9", "90–99")
    assert low <= value <= high
    assert value == pytest.approx(1000, abs=5)
    assert model.between("0–9", "40–49")[0] == pytest.approx(250, abs=5)
    assert model.quantile(0.25) == pytest.approx(50, abs=2)
    assert "10 bins" in repr(model)
    for wrong in (("40–49", "0–9"), ("0–9", "100–109")):
        with pytest.raises(ParameterError, match="HB171"):
            model.between(*wrong)
    with pytest.raises(ParameterError, match="HB171"):
        model.quantile(math.nan)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"workload": "pairs"}, "HB589"),
        ({"strategy": "wavelet"}, "HB589"),
        ({"noise": "uniform"}, "HB587"),
        ({"noise": "gaussian"}, "HB553"),
        ({"column": {"column": "age", "missing": True}}, "HB589"),
        ({"column": None}, "HB589"),
        ({"table": "nobody"}, "HB120"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], says: str) -> None:
    asked = {"table": "people", "column": "age"} | how
    with pytest.raises((QueryError, ParameterError), match=says):
        ranges(setting(), **asked)


def test_empty_bins_do_not_add_up(bench: Any) -> None:
    """All 1,000 people in one of 256 bins: counts add up to the total that least squares gives.

    Cut off at zero without keeping the total, the noise of 255 empty bins raises it by dozens.
    """
    column = Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(255)))
    table = Table("people", (Column("who", Kind.INTEGER), column), PrivacyUnit("who", 1, 1))
    known = Setting({"people": table}, Fraction(1), Fraction(0), RenderOptions("salt"))
    prepared = ranges(known, table="people", column="age")
    model = prepared.run(bench({"people": "SELECT i AS who, 100 AS age FROM range(1000) AS t(i)"})).model
    assert min(model["counts"]) == 0
    assert sum(model["counts"]) == pytest.approx(sum(model["estimates"]), abs=1)
