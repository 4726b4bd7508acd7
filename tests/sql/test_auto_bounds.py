"""Bounds that are found: at each of them noise covers what one unit moves, at one price, whatever the data."""

import math
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures import auto_tables as auto
from tests.fixtures.seeded_source import SeededSource
from tests.fixtures.visits_table import arrays

from hubbub.core.events import Composed, Event, LaplaceEvent, SelectionEvent, ThresholdEvent, WeightedThresholdEvent
from hubbub.core.numbers import SCALE_MAX
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import contribution_levels
from hubbub.sql import plan as plans
from hubbub.sql.auto_bounds import ChosenBound, LevelHistogram, choose_bound, levels_up_to
from hubbub.sql.bind import bind_releases
from hubbub.sql.finish import Tables, exact_results, finish
from hubbub.sql.measures import BoundedSum, UnitCount
from hubbub.sql.plan import Plan
from hubbub.sql.query import Query
from hubbub.sql.split import rho_beside_pure_losses

FULL = os.environ.get("HUBBUB_CAMPAIGN") == "full"


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with auto.connect() as made:
        yield made


# --- noise -----------------------------------------------------------------------------------------------------------


def _two_sided(scale: float, most: int) -> np.ndarray[Any, Any]:
    """Return the probabilities of −most … most under Pr[z] ∝ exp(−|z|/scale), by their closed form."""
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-most, most + 1))


@pytest.mark.parametrize("bound", [1, 2, 3, 8])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2), Fraction(4)])
def test_noise_at_a_bound_is_a_function_of_noise_at_the_bound_one(bound: int, scale: Fraction) -> None:
    """b·Z + U − U′ has the distribution of the noise at b; U is the lowest digit of a geometric number."""
    most = 200
    ratio = math.exp(-1 / (float(scale) * bound))
    digits = ratio ** np.arange(bound)
    digits /= digits.sum()
    spread = np.convolve(digits, digits[::-1])  # U − U′, from −(b − 1) to b − 1
    stretched = np.zeros(2 * most * bound + 1)
    stretched[::bound] = _two_sided(float(scale), most)
    made = np.convolve(stretched, spread)
    whole = most * bound
    expected = _two_sided(float(scale) * bound, whole)
    assert np.abs(made[bound - 1 : bound - 1 + 2 * whole + 1] - expected).max() < 1e-12
    if bound > 1:
        even = np.convolve(stretched, np.convolve(np.ones(bound) / bound, np.ones(bound) / bound))
        assert np.abs(even[bound - 1 : bound - 1 + 2 * whole + 1] - expected).max() > 1e-6, "digits are not uniform"


def _loss(event: Event) -> Fraction:
    """Return the pure loss of an event, δ aside, from its facts."""
    match event:
        case Composed(parts):
            return sum((_loss(part) * count for part, count in parts), Fraction(0))
        case LaplaceEvent(sensitivity, scale):
            return sensitivity / scale
        case SelectionEvent(_, sensitivity, monotone, rate):
            return sensitivity * rate * (1 if monotone else 2)
        case ThresholdEvent(noise):
            return _loss(noise)
        case WeightedThresholdEvent():
            return Fraction(0)  # ρ beside pure losses: see `_set_aside`
    raise AssertionError(event)


def _set_aside(made: Plan) -> Fraction:
    """Return what is left of ε for the weights of groups, and check that their ρ costs no more."""
    if made.keys is None or not isinstance(made.measures[made.keys].mechanism, Gaussian):
        return Fraction(0)
    epsilon = 1 - _loss(made.event)
    assert made.measures[made.keys].portion <= rho_beside_pure_losses(epsilon, Fraction(1, 10**6))
    return epsilon


@pytest.mark.parametrize("most", [1, 2, 8, 10_000, 10**6] if FULL else [1, 8, 10**6])
@pytest.mark.parametrize("relation", Relation)
def test_a_query_costs_its_price_at_every_bound(relation: Relation, most: int) -> None:
    for text in auto.QUERIES:
        made = auto.planned(text, relation, most)
        loss = _loss(made.event) + _set_aside(made)
        assert loss <= 1, text
        assert loss > Fraction(99, 100), f"{text}: budget is left unused"
        for bounds in auto.grid(made, 3):
            at = auto.settled(made, bounds)
            for place, (before, after) in enumerate(zip(made.measures, at.measures, strict=True)):
                if place == made.keys:
                    assert before == after
                    continue
                assert after.event is not None
                assert before.event is not None
                assert _loss(after.event) == _loss(before.event)
            for one, other in zip(made.choices, at.choices, strict=True):
                assert [_loss(event) * count for event, count in other.events] == [
                    _loss(event) * count for event, count in one.events
                ]
            assert [(each.name, each.targets) for each in at.statements] == [
                (each.name, each.targets)
                for each in auto.settled(made, [each.levels[0] for each in made.levels]).statements
            ]


# --- what one unit moves ---------------------------------------------------------------------------------------------


def _cells(made: Plan, tables: Tables, target: int, fills: str) -> Counter[Any]:
    """Return the exact integers of a measure or histogram, by statement, cell and bucket."""
    cells: Counter[Any] = Counter()
    for each in made.statements:
        if each.fills == fills and target in each.targets:
            table = tables[each.name]
            column = f"m{each.targets.index(target)}"
            keys = [np.ma.getdata(values).tolist() for name, values in table.items() if not name.startswith("m")]
            for *key, value in zip(*keys, table[column].tolist(), strict=True):
                cells[(each.place, *map(repr, key))] += value
    return cells


def _distance(one: Counter[Any], two: Counter[Any]) -> int:
    return sum(abs(one[key] - two[key]) for key in one | two)


def _excess(made: Plan, at: Plan, one: Tables, two: Tables) -> Iterator[tuple[str, Fraction]]:
    """Yield each draw of a plan and of the plan at its bounds with what moved, as a share of what its noise covers."""
    for level in made.levels:
        moved = int(np.abs(level.exact(one[level.name]) - level.exact(two[level.name])).sum())
        yield level.contribution, moved / Fraction(level.mechanism.sensitivity)
    for place, noised in enumerate(at.measures):
        moved = _distance(_cells(at, one, place, "measures"), _cells(at, two, place, "measures"))
        if isinstance(noised.mechanism, Laplace):
            yield type(noised.measure).__name__, moved / Fraction(noised.mechanism.sensitivity)
        else:
            # only the weights of groups have Gaussian noise, whose sensitivity is that of their squares
            assert place == at.keys
            one_cell, other = (_cells(at, side, place, "measures") for side in (one, two))
            squares = sum((one_cell[key] - other[key]) ** 2 for key in one_cell | other)
            assert isinstance(noised.mechanism, Gaussian)
            yield "weights", Fraction(squares, noised.mechanism.sensitivity_squared)
    for each in at.choices:
        if at.threshold is not None:
            # groups that are selected: no score moves further than all buckets together
            buckets = [_cells(at, side, each.histogram, "histogram") for side in (one, two)]
            weight = lcm(*(max(q.numerator, q.denominator - q.numerator) for q in each.choice.levels))
            yield "choice", _distance(*buckets) * weight / Fraction(each.mechanism.sensitivity * each.times)
            continue
        # a selection loses its rate times the range of the moves of its scores, in all cells together
        scores = [each.score.scores(exact_results(at, side)[1][each.histogram]) for side in (one, two)]
        moves = scores[1] - scores[0]
        ranges = np.maximum(moves.max(axis=1), 0) - np.minimum(moves.min(axis=1), 0)
        allowed = each.mechanism.sensitivity * (1 if each.mechanism.monotone else 2)
        yield "choice", Fraction(int(ranges.sum())) / (allowed * each.times)
    if at.top is not None:
        counts = [exact_results(at, side)[0][0] for side in (one, two)]
        yield "top", Fraction(int(np.abs(counts[0] - counts[1]).max()), at.top.one.sensitivity)


def _shares(
    connection: duckdb.DuckDBPyConnection, text: str, relation: Relation, most: int = 8, *, every: bool = True
) -> Generator[tuple[str, Fraction], None, None]:
    """Compare the bounds of a query (or some) on data with and without, or with another of, each unit."""
    made = auto.planned(text, relation, most)
    grid = list(auto.grid(made))
    settled = [auto.settled(made, bounds) for bounds in (grid if every else [*grid[1::3], grid[-1]])]
    auto.show(connection)
    wholes = list(_runs(connection, made, settled))
    try:
        for unit in range(auto.UNITS):
            auto.neighbor(connection, relation, unit)
            for at, whole, other in zip(settled, wholes, _runs(connection, made, settled), strict=True):
                yield from _excess(made, at, whole, other)
    finally:
        auto.show(connection)


def _runs(connection: duckdb.DuckDBPyConnection, made: Plan, settled: Sequence[Plan]) -> Iterator[Tables]:
    """Yield the tables of each settled plan, with those of the histograms, which are the same at all bounds."""
    histograms = {each.name: arrays(connection, each.sql) for each in made.levels}
    for at in settled:
        yield {**histograms, **auto.run(connection, at)}


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("text", auto.QUERIES)
def test_no_unit_contributes_more_than_the_chosen_bound(
    connection: duckdb.DuckDBPyConnection, text: str, relation: Relation
) -> None:
    assert max(share for _, share in _shares(connection, text, relation, every=FULL)) <= 1


#: Queries whose sensitivity is attained; another unit in the place of one moves sums of one sign in one cell by half.
ATTAINED = {
    "SELECT count(*) FROM t": {"rows", "RowCount"},
    "SELECT k, count(*) FROM t GROUP BY k": {"rows", "RowCount"},
    "SELECT k, count(DISTINCT u) FROM t GROUP BY k": {"cells", "UnitCount"},
    "SELECT sum(x) FROM t": {"sum", "BoundedSum"},
    "SELECT k, sum(x) FROM t GROUP BY k": {"sum", "BoundedSum"},
    "SELECT k, avg(y), sum(y) FROM t GROUP BY k": {"rows", "RowCount", "BoundedSum"},
    "SELECT k, median(x) FROM t GROUP BY k": {"rows", "choice"},
    "SELECT count(*) FROM t JOIN one ON t.u = one.u": {"RowCount"},
}


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("text", ATTAINED)
def test_the_stated_sensitivity_is_attained(
    connection: duckdb.DuckDBPyConnection, text: str, relation: Relation
) -> None:
    # two units that replace each other are at one level here where both have many rows
    missing = ATTAINED[text] - ({"rows", "cells", "sum"} if relation is Relation.REPLACE else set())
    with closing(_shares(connection, text, relation)) as shares:
        for name, share in shares:
            missing = missing - {name} if share == 1 else missing
            if not missing:
                break
    assert not missing


def test_one_unit_moves_a_histogram_of_levels_by_one(connection: duckdb.DuckDBPyConnection) -> None:
    made = auto.planned("SELECT k, count(*), count(DISTINCT u), sum(y) FROM t GROUP BY k", Relation.ADD_REMOVE)
    assert [each.contribution for each in made.levels] == ["rows", "cells", "sum"]
    auto.show(connection)
    whole = {each.name: each.exact(arrays(connection, each.sql)) for each in made.levels}
    for unit in range(auto.UNITS):
        auto.show(connection, removed=unit)
        for each in made.levels:
            fewer = each.exact(arrays(connection, each.sql))
            moved = whole[each.name] - fewer
            assert sorted(moved.tolist()) in ([0] * (len(moved) - 1) + [1], [0] * len(moved)), (
                "some have no declared key"
            )
    auto.show(connection)
    assert whole["levels0"].tolist() == [1, 0, 0, 0, 0, 3] or whole["levels0"].sum() == auto.UNITS


@pytest.mark.parametrize("relation", Relation)
def test_a_histogram_states_the_units_that_change(relation: Relation) -> None:
    for text in auto.QUERIES:
        for each in auto.planned(text, relation).levels:
            assert each.mechanism.sensitivity == relation.units_changed


# --- planted errors --------------------------------------------------------------------------------------------------


def _unscaled(of: Any, *given: Any) -> Any:
    """Noise of the bound 1 at every bound."""
    return of(*given[:-1], [1 for _ in given[-1]])


def _loose(of: Any, *given: Any) -> Any:
    """Statements at twice the bounds."""
    relation, sets, allocation, levels, bounds, options = given
    return of(relation, sets, allocation, levels, [2 * bound for bound in bounds], options)


def _per_cell(of: Any, relation: Any, cells: Any, measure: Any, bound: int, options: Any) -> Any:
    """Clip a sum in each cell instead of over all cells."""
    text = of(relation, cells, measure, bound, options)
    assert text.count("PARTITION BY u ") == 1
    return text.replace("PARTITION BY u ", "PARTITION BY u, c ")


PLANTED: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "noise not in proportion": (plans, "at_bounds", _unscaled, "SELECT k, count(*) FROM t GROUP BY k"),
    "noise of sums not in proportion": (plans, "at_bounds", _unscaled, "SELECT sum(x) FROM t"),
    "selections not in proportion": (plans, "at_bounds", _unscaled, "SELECT k, median(x) FROM t GROUP BY k"),
    "bound not applied to rows": (plans, "statements_at", _loose, "SELECT count(*) FROM t"),
    "bound not applied to cells": (plans, "statements_at", _loose, "SELECT k, count(DISTINCT u) FROM t GROUP BY k"),
    "bound not applied to sums": (plans, "statements_at", _loose, "SELECT k, sum(x) FROM t GROUP BY k"),
    "clipped in each cell": (
        contribution_levels,
        "clipped_sum",
        _per_cell,
        "SELECT k, sum(x) FROM t GROUP BY k",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_errors_are_seen(
    connection: duckdb.DuckDBPyConnection, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, function, around, text = PLANTED[name]
    of = getattr(owner, function)
    monkeypatch.setattr(owner, function, lambda *given: around(of, *given))
    with closing(_shares(connection, text, Relation.ADD_REMOVE)) as shares:
        assert any(share > 1 for _, share in shares)


def test_a_histogram_with_half_of_its_noise_is_seen(connection: duckdb.DuckDBPyConnection) -> None:
    """Planted: another unit in the place of one moves two counts, and noise for one is not enough."""
    made = auto.planned("SELECT count(*) FROM t", Relation.REPLACE)
    (level,) = made.levels
    assert isinstance(level, LevelHistogram)
    half = Laplace(sensitivity=1, scale=level.mechanism.scale / 2)
    spoiled = replace(made, levels=(replace(level, mechanism=half),))
    at = auto.settled(made, [8])
    auto.show(connection)
    (whole,) = _runs(connection, made, [at])
    auto.neighbor(connection, Relation.REPLACE, 2)
    (other,) = _runs(connection, made, [at])
    auto.show(connection)
    assert dict(_excess(spoiled, at, whole, other))["rows"] == 2
    assert dict(_excess(made, at, whole, other))["rows"] == 1


# --- the choice of a bound -------------------------------------------------------------------------------------------


def test_levels_end_at_the_maximum() -> None:
    assert levels_up_to(1) == (1,)
    assert levels_up_to(12) == (1, 2, 3, 4, 6, 8, 12)
    for maximum in (2, 3, 5, 100, 10_000, 10**6, 10_000 << 30):
        levels = levels_up_to(maximum)
        assert levels[-1] == maximum
        assert list(levels) == sorted(set(levels))
        assert len(levels) <= 80


def test_any_noisy_histogram_gives_a_bound() -> None:
    """The choice sees noise alone: it must not fail on any, as an error would be told."""
    rng = np.random.default_rng(3)
    for maximum in (2, 3, 10_000, 10_000 << 30):
        levels = levels_up_to(maximum)
        for size in (0.0, 1.0, 1e6, 1e15):
            for _ in range(50):
                noisy = np.rint(rng.normal(rng.choice((-1, 0, 1)) * size, 1 + size, len(levels)))
                chosen = choose_bound(noisy, levels, 10.0, 0.1)
                assert chosen.bound in levels
                assert 0 <= chosen.left_out <= chosen.most
                assert math.isfinite(chosen.most)
                assert 0 <= chosen.share <= 1
                assert 0 <= chosen.largest_share <= 1


@pytest.mark.parametrize("text", auto.QUERIES)
def test_a_query_on_empty_tables_is_answered(text: str) -> None:
    with duckdb.connect() as empty:
        for name in auto.PRIVATE:
            empty.execute(f"CREATE TABLE {name} (u BIGINT, k VARCHAR, x DOUBLE, y BIGINT, w VARCHAR, b BOOLEAN)")
        for name in auto.PUBLIC:
            empty.execute(f"CREATE TABLE {name} (y BIGINT, z VARCHAR)")
        made, source = auto.planned(text, Relation.ADD_REMOVE), SeededSource(5)
        tables = {each.name: arrays(empty, each.sql) for each in made.levels}
        chosen = [each.choose(tables[each.name], source) for each in made.levels]
        at = plans.settle(made, chosen) if made.levels else made
        answer = finish(at, auto.run(empty, at), source)
    assert len(answer.columns) == len(made.query.select)


def test_units_above_the_maximum_are_counted_and_cut(connection: duckdb.DuckDBPyConnection) -> None:
    made = auto.planned("SELECT count(*) FROM t", Relation.ADD_REMOVE, most=3)
    (level,) = made.levels
    assert level.levels == (1, 2, 3)
    exact = level.exact(arrays(connection, level.sql))
    assert exact.sum() == auto.UNITS
    assert exact[3] >= 2
    rows = exact_results(auto.settled(made, [3]), auto.run(connection, auto.settled(made, [3])))[0][0]
    assert rows.tolist() == [int(exact @ (1, 2, 3, 3))]


def test_a_maximum_of_one_row_needs_no_histogram() -> None:
    for text in auto.QUERIES[:20]:
        made = auto.planned(text, Relation.ADD_REMOVE, most=1)
        assert made.levels == ()
        assert made.limits is not None
        assert not made.limits.auto


def test_counts_of_units_without_groups_need_no_histogram() -> None:
    made = auto.planned("SELECT count(DISTINCT u) FROM t", Relation.REPLACE)
    assert made.levels == ()
    assert [each.measure for each in made.measures] == [UnitCount()]
    assert made.measures[0].portion == 1


def test_texts_are_shortened_where_whole_rows_are_sorted() -> None:
    """One person's long texts would make a cut slow, also where a condition reads them once."""
    text = "SELECT count(*) FROM t WHERE w <> 'p'"
    made = auto.planned(text, Relation.ADD_REMOVE)
    (statement,) = auto.settled(made, [2]).statements
    assert "4096" in statement.sql
    declared = auto.planned(text.replace("FROM t", "FROM few"), Relation.ADD_REMOVE)
    assert all("4096" not in each.sql for each in declared.statements)


def test_left_out_is_stated_by_measure() -> None:
    made = auto.planned("SELECT k, count(*), count(DISTINCT u), sum(y) FROM t GROUP BY k", Relation.ADD_REMOVE)
    chosen = [ChosenBound(2, 1.0, 2.0, 3.0, 4.0, each.contribution) for each in made.levels]
    at = plans.settle(made, chosen)
    assert {place: bound.contribution for place, bound in at.left_out.items()} == {0: "rows", 1: "cells", 2: "sum"}
    assert at.event == made.event
    assert at.levels == ()


# --- steps -----------------------------------------------------------------------------------------------------------

AMOUNTS = Table(
    "t",
    (
        Column("id", Kind.INTEGER),
        Column("doctor", Kind.INTEGER),
        Column("z", Kind.INTEGER, Bounds(Fraction(0), Fraction(10**6))),
        Column("x", Kind.REAL, Bounds(Fraction(0), Fraction(10**6))),
    ),
    PrivacyUnit("id", 10_000, 10_000, "person", auto=True),
)


@pytest.mark.parametrize("others", [(), (PrivacyUnit("doctor", 10_000, 10_000, "doctor", auto=True),)])
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
@pytest.mark.parametrize("text", ["sum(z)", "sum(x)", "sum(z), sum(x), count(*)", "count(*), sum(z) / count(*)"])
def test_rows_are_rounded_little_and_noise_at_every_bound_is_in_range(
    text: str, epsilon: Fraction, relation: Relation, others: tuple[PrivacyUnit, ...]
) -> None:
    """No interval allows for rounding, so a row of a thousandth of the bounds is off by 2% at most."""
    table = replace(AMOUNTS, relation=relation, others=others)
    query = bind_releases(f"SELECT {text} FROM t", tables={"t": table})
    assert isinstance(query, Query)
    plan = plans.plan(query, epsilon=epsilon, delta=Fraction(0), salt="s")
    sums = [each.measure for each in plan.measures if isinstance(each.measure, BoundedSum)]
    assert sums
    assert all(each.step <= 20 * 2 for each in sums)
    assert text != "sum(z)" or sums[0].step == 1
    largest = [ChosenBound(each.levels[-1], 0.0, 0.0, 1.0, 1.0, each.contribution) for each in plan.levels]
    for noised in plans.settle(plan, largest).measures:
        assert isinstance(noised.mechanism, Laplace)
        assert noised.mechanism.scale <= SCALE_MAX
