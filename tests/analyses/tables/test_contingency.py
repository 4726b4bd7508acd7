"""Contingency tables: marginals that agree, noise that is shared well, and what it costs."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Published, Setting
from hubbub.analyses.tables import contingency as tables
from hubbub.analyses.tables.consistency import non_negative, project_to_totals, round_to_totals
from hubbub.analyses.tables.contingency import tabulate
from hubbub.analyses.tables.lattice import Lattice, closure, shares, subsets
from hubbub.answers.release import Release
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.bounding import RenderOptions

ROWS = (
    "SELECT i AS who, ['a', 'b', 'c'][1 + i % 3] AS kind, CAST(i % 20 AS INTEGER) AS age, i % 7 < 2 AS own,"
    " i % 11 AS score FROM range(2000) AS t(i)"
)
COLUMNS = (
    Column("who", Kind.INTEGER),
    Column("kind", Kind.TEXT, values=("a", "b", "c")),
    Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(19))),
    Column("own", Kind.BOOLEAN),
    Column("score", Kind.INTEGER, Bounds(Fraction(0), Fraction(10))),
)


def setting(
    epsilon: str = "1", delta: str = "0", unit: PrivacyUnit | None = None, relation: Relation = Relation.ADD_REMOVE
) -> Setting:
    table = Table("t", COLUMNS, unit or PrivacyUnit("who", 1, 1), relation)
    return Setting({"t": table}, Fraction(epsilon), Fraction(delta), RenderOptions("salt"))


def model(published: Published) -> tables.ContingencyTable:
    rows = len(published.outputs[0].values)
    return tables.ContingencyTable.of(
        Release(published.outputs, [None] * rows, Fraction(1), Fraction(0), {}, None, model=published.model)
    )


@pytest.mark.parametrize("delta", ["0", "1/1000000"])
@pytest.mark.parametrize("whole", [True, False])
def test_published_marginals_agree_with_each_other(bench: Any, delta: str, *, whole: bool) -> None:
    prepared = tabulate(setting("0.5", delta), table="t", columns=["kind", "age", "own"], whole=whole)
    published = prepared.run(bench({"t": ROWS}))
    name, kind, age, own, count = (np.array(output.values, dtype=object) for output in published.outputs)
    assert (count >= 0).all()
    total = count[name == "total"][0]
    for table in ("kind", "age", "own", "kind × age", "age × own", "kind × own", "kind × age × own"):
        assert count[name == table].sum() == pytest.approx(total, abs=0 if whole else 1e-3)
    for label in ("a", "b", "c"):
        alone = count[(name == "kind") & (kind == label)][0]
        assert count[(name == "kind × own") & (kind == label)].sum() == pytest.approx(alone, abs=0 if whole else 1e-3)
    for year in range(20):
        alone = count[(name == "age") & (age == year)][0]
        assert count[(name == "age × own") & (age == year)].sum() == pytest.approx(alone, abs=0 if whole else 1e-3)
    assert own[name == "kind"].tolist() == [None] * 3
    assert published.outputs[-1].kind == ("integer" if whole else "real")


def test_counts_are_those_of_the_data_where_noise_is_small(bench: Any) -> None:
    published = tabulate(setting("1000"), table="t", columns=["kind", "own"]).run(bench({"t": ROWS}))
    i = np.arange(2000)
    exact = np.zeros((3, 2))
    np.add.at(exact, (i % 3, (i % 7 < 2).astype(int)), 1)
    found = model(published)
    assert found.cells.tolist() == exact.tolist()
    assert found.marginal("own", "kind").tolist() == exact.T.tolist()
    assert found.marginal().tolist() == 2000
    assert "6 cells" in repr(found)
    with pytest.raises(ParameterError, match="HB171"):
        found.marginal("age")


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [PrivacyUnit("who", 1, 1), PrivacyUnit("who", 3, 2), PrivacyUnit(None)])
def test_the_event_costs_no_more_than_was_asked_and_nearly_all_of_it(unit: PrivacyUnit, relation: Relation) -> None:
    prepared = tabulate(setting("0.7", unit=unit, relation=relation), table="t", columns=["kind", "age", "score"])
    pure = privacy_cost(prepared.event).pure
    assert pure is not None
    assert Fraction(7, 10) - Fraction(1, 10**20) <= pure <= Fraction(7, 10)
    assert len(prepared.mechanisms) >= 2


def brute(sizes: tuple[int, ...], variances: dict[tuple[int, ...], float]) -> np.ndarray[Any, Any]:
    """The covariance of all cells by weighted least squares on the design matrix itself."""
    cells = list(product(*map(range, sizes)))
    rows, weights = [], []
    for axes, variance in variances.items():
        for key in product(*(range(sizes[i]) for i in axes)):
            rows.append([float(all(cell[i] == k for i, k in zip(axes, key, strict=True))) for cell in cells])
            weights.append(1 / variance)
    design = np.array(rows)
    return np.linalg.pinv(design.T @ (np.array(weights)[:, None] * design))


@pytest.mark.parametrize(
    "variances",
    [
        {(0, 1, 2): 3.0, (0,): 1.0, (): 0.5, (1, 2): 2.0},
        {(0, 1): 1.0, (1, 2): 4.0},
        {(0, 1, 2): 1.0},
    ],
)
def test_the_error_per_cell_is_that_of_least_squares(variances: dict[tuple[int, ...], float]) -> None:
    sizes = (2, 3, 4)
    lattice, covariance = Lattice(sizes, variances), brute(sizes, variances)
    cells = list(product(*map(range, sizes)))
    for wanted in closure(variances):
        row = np.array([float(all(cell[i] == 0 for i in wanted)) for cell in cells])
        assert lattice.variance(wanted) == pytest.approx(float(row @ covariance @ row))


def test_what_is_told_is_the_least_squares_estimate() -> None:
    sizes, variances = (2, 3), {(0, 1): 2.0, (0,): 1.0, (): 0.25}
    chance = np.random.default_rng(1)
    noisy = {axes: chance.normal(size=[sizes[i] for i in axes]) for axes in variances}
    told = Lattice(sizes, variances).estimate(noisy, [(0, 1), (0,), ()])
    cells = list(product(*map(range, sizes)))
    rows, seen, weights = [], [], []
    for axes, table in noisy.items():
        for key in np.ndindex(table.shape):
            rows.append([float(all(cell[i] == k for i, k in zip(axes, key, strict=True))) for cell in cells])
            seen.append(table[key])
            weights.append(variances[axes] ** -0.5)
    scaled = np.array(weights)
    found = np.linalg.lstsq(np.array(rows) * scaled[:, None], np.array(seen) * scaled, rcond=None)[0].reshape(sizes)
    assert told[0, 1] == pytest.approx(found)
    assert told[0,] == pytest.approx(found.sum(axis=1))
    assert float(told[()]) == pytest.approx(found.sum())


@pytest.mark.parametrize("power", [1, 2])
def test_shares_beat_an_even_split_and_the_whole_table_alone(power: int) -> None:
    sizes = (10, 12, 8)
    wanted = subsets((0, 1, 2))
    spreads = dict.fromkeys(wanted, 1.0)

    def error(found: dict[tuple[int, ...], float]) -> float:
        lattice = Lattice(sizes, {axes: share**-power for axes, share in found.items()})
        return sum(lattice.variance(axes) for axes in wanted)

    best = shares(sizes, wanted, spreads, power=power)
    assert sum(best.values()) == pytest.approx(1)
    assert error(best) < error(dict.fromkeys(wanted, 1 / len(wanted)))
    assert error(best) < 0.5 * error({(0, 1, 2): 1.0})
    # where only the whole table matters, nothing else is measured
    assert shares(sizes, [(0, 1, 2)], spreads, power=power)[0, 1, 2] > 0.9


def test_noisy_tables_are_as_far_off_as_they_say(bench: Any) -> None:
    """Means over 30 tables of 3 × 20 cells, far from zero: the root mean squared error of a cell
    is within a quarter of the stated deviation (1,800 noises for the cells; below 1e-6 that it is not), and a planted
    deviation of half that is not."""
    prepared = tabulate(setting("1"), table="t", columns=["kind", "age"], whole=False)
    run, errors = bench({"t": ROWS}), []
    i = np.arange(2000)
    exact = np.zeros((3, 20))
    np.add.at(exact, (i % 3, i % 20), 1)
    for _ in range(30):
        errors.append(model(prepared.run(run)).cells - exact)
    measured = float(np.sqrt((np.array(errors) ** 2).mean()))
    stated = {each.name: each.plus_minus for each in prepared.expected}["kind × age"] / (np.log(20) / np.sqrt(2))
    assert 0.75 * stated < measured < 1.25 * stated
    assert not measured < 1.25 * stated / 2


def test_projection_and_rounding_keep_totals_and_signs() -> None:
    chance = np.random.default_rng(4)
    for _ in range(200):
        values = chance.normal(2, 6, size=(5, 7))
        totals = chance.integers(0, 30, size=5)
        near = project_to_totals(values, totals.astype(float))
        assert near.sum(axis=1) == pytest.approx(totals)
        assert (near >= 0).all()
        whole = round_to_totals(near, totals)
        assert whole.sum(axis=1).tolist() == totals.tolist()
        assert (whole >= 0).all()
        assert np.abs(whole - near).max() < 1
    # numbers that do not add up to their total are still brought to it, without a negative one
    assert round_to_totals(np.array([[5.0, 1.0, 0.0]]), np.array([2])).tolist() == [[2, 0, 0]]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"marginals": []}, "lists of columns"),
        ({"marginals": ["kind"]}, "does not have"),
        ({"marginals": [["who"]]}, "does not have"),
        ({"whole": 1}, "TRUE or FALSE"),
        ({"columns": ["who"]}, "privacy ID column"),
        ({"noise": "none"}, "noise must be"),
        ({"columns": [f"c{i}" for i in range(9)]}, "no column"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], says: str) -> None:
    asked: dict[str, Any] = {"table": "t", "columns": ["kind", "own"]} | how
    with pytest.raises(QueryError, match=says) as refusal:
        tabulate(setting(), **asked)
    assert refusal.value.remedy


def test_only_the_marginals_that_are_asked_for_are_published_and_paid_for(bench: Any) -> None:
    prepared = tabulate(setting("1"), table="t", columns=["kind", "age", "own"], marginals=[["own"], []])
    published = prepared.run(bench({"t": ROWS}))
    assert published.outputs[0].values == ["total", "own", "own"]
    assert all("age" not in line for line in prepared.derivation[2:])


def test_cutting_at_zero_does_not_make_a_sparse_table_larger() -> None:
    """A thousand empty cells: what noise leaves above zero would add up, were the total not kept."""
    noisy = np.random.default_rng(3).normal(0, 5, 1000)
    noisy[0] += 2000
    total = float(noisy.sum())
    kept = non_negative(noisy, lambda x: x - noisy, 1.0, total=total)
    assert (kept >= 0).all()
    assert kept.sum() == pytest.approx(total)
    assert non_negative(noisy, lambda x: x - noisy, 1.0).sum() > total + 1500
    assert np.abs(kept - np.r_[2000, np.zeros(999)]).sum() < 0.1 * np.abs(noisy - np.r_[2000, np.zeros(999)]).sum()
