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


def test_intervals_hold_the_truth_as_often_as_they_say(bench: Any) -> None:
    """100 bins × 40 histograms: intervals of 95% miss less than 8 % (were it 5 %, by chance below 1e-9), planted
    half-widths miss more."""
    prepared = ranges(setting("1"), table="people", column="age")
    run = bench({"people": PEOPLE})
    exact = np.bincount(np.floor(100 * np.sqrt(np.arange(1000) / 1000.0)).astype(int), minlength=100)
    outside = narrow = 0
    for _ in range(40):
        published = prepared.run(run)
        low, high = (np.array(end) for end in (published.outputs[2].low, published.outputs[2].high))
        outside += int(((np.cumsum(exact) < low) | (np.cumsum(exact) > high)).sum())
        middle = np.cumsum(published.model["estimates"])
        narrow += int((np.abs(np.cumsum(exact) - middle) > (high - middle) / 2).sum())
    assert outside <= 0.08 * 4000
    assert narrow > 0.08 * 4000


def test_a_model_answers_ranges_and_quantiles(bench: Any) -> None:
    prepared = ranges(setting("1000"), table="people", column={"column": "age", "bins": 10})
    model = Ranges.of(released(prepared.run(bench({"people": PEOPLE}))))
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
        ({"table": "nobody"}, "HB120"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], says: str) -> None:
    asked = {"table": "people", "column": "age"} | how
    with pytest.raises((QueryError, ParameterError), match=says):
        ranges(setting(), **asked)
