"""Synthetic rows: what they cost, what one unit moves, and how near they are."""

from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Published, Setting
from hubbub.analyses.synthetic.columns import asked, levels
from hubbub.analyses.synthetic.junction_tree import JunctionTree, calibrated
from hubbub.analyses.synthetic.model import Model, independent, marginal, spread
from hubbub.analyses.synthetic.noise import root_below
from hubbub.analyses.synthetic.select import Candidate, candidates, forest, scores, small_enough
from hubbub.analyses.synthetic.synthetic import synthetic
from hubbub.analyses.synthetic.utility import Synthetic, distances, k_marginal
from hubbub.analyses.tables.marginals import counts
from hubbub.answers.release import Release
from hubbub.core.events import Composed, GaussianEvent, SelectionEvent
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.split import zcdp_budget

F = Fraction
ROWS = (
    "SELECT i AS who, ['a', 'b', 'c'][1 + i % 3] AS kind, i % 3 = 0 AS own, CAST(i % 100 AS INTEGER) AS age,"
    " (i % 3) * 30 + (i % 7) * 1.5 AS pay, CASE WHEN i % 5 = 0 THEN NULL ELSE DATE '2020-01-01' + CAST(i % 300 AS"
    " INTEGER) END AS day FROM range(3000) AS t(i)"
)
COLUMNS = (
    Column("who", Kind.INTEGER),
    Column("kind", Kind.TEXT, values=("a", "b", "c")),
    Column("own", Kind.BOOLEAN),
    Column("age", Kind.INTEGER, Bounds(F(0), F(99))),
    Column("pay", Kind.REAL, Bounds(F(0), F(100)), step=F(1, 2)),
    Column("day", Kind.DATE, Bounds(F(18262), F(18627))),
    Column("free", Kind.TEXT),
    Column("seen", Kind.TIMESTAMP),
)
MIXED: list[object] = ["kind", "own", {"column": "age", "bins": 10}, "pay", {"column": "day", "missing": True}]


def setting(
    epsilon: str = "1", delta: str = "0", unit: PrivacyUnit | None = None, relation: Relation = Relation.ADD_REMOVE
) -> Setting:
    table = Table("t", COLUMNS, unit or PrivacyUnit(None), relation)
    return Setting({"t": table}, F(epsilon), F(delta), RenderOptions("salt"))


def given(published: Published) -> Release:
    rows = len(published.outputs[0].values)
    return Release(published.outputs, [None] * rows, F(1), F(0), {}, None, model=published.model)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [PrivacyUnit(None), PrivacyUnit("who", 1, 1), PrivacyUnit("who", 3, 4)])
@pytest.mark.parametrize("delta", ["0", "1/1000000000"])
@pytest.mark.parametrize("columns", [["kind"], ["kind", "own"], ["kind", "own", "age"]])
def test_synthetic_rows_cost_what_they_say(
    relation: Relation, unit: PrivacyUnit, delta: str, columns: list[object]
) -> None:
    prepared = synthetic(setting("1", delta, unit, relation), table="t", columns=columns)
    event = prepared.event
    assert isinstance(event, Composed)
    assert sum(count for _, count in event.parts) == 2 * prepared.noises.pairs + len(columns) + min(2, len(columns))
    if delta == "0":
        pure = privacy_cost(event).pure
        assert pure is not None
        assert F(999, 1000) <= pure <= 1
        assert prepared.delta == 0
        return
    rho = F(0)
    for part, count in event.parts:
        if isinstance(part, GaussianEvent):
            # the Gaussian pair of discrete noise: its variance less 1, 2 or 10
            less = 1 if part.variance < 100 else 2 if part.variance < 10_000 else 10
            rho += count * part.sensitivity_squared / (2 * (part.variance - less))
        else:
            assert isinstance(part, SelectionEvent)
            # that of a range ε has the variance (11/28)·ε²
            rho += count * (2 * part.rate * part.sensitivity) ** 2 * F(11, 56)
    assert F(999, 1000) * zcdp_budget(F(1), F(delta)) <= rho <= zcdp_budget(F(1), F(delta))


def test_neighbors_move_a_score_by_no_more_than_its_sensitivity() -> None:
    """Move one count, or take one away and add another: no score moves by more than that, for 200 random models."""
    some = np.random.default_rng(3)
    listed = [
        Candidate((0, 1), (np.arange(4), np.arange(5))),
        Candidate((0, 1), (np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2, 2]))),
        Candidate((0, 1), (np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0, 1]))),
    ]
    worst = 0
    for _ in range(200):
        model, true = {(0, 1): some.dirichlet(np.ones(20)).reshape(4, 5)}, some.integers(0, 9, (4, 5))
        more = true.copy()
        more[some.integers(4), some.integers(5)] += 1
        how: dict[str, Any] = {"listed": listed, "model": model, "total": 80.0, "noise": 3.7}
        apart = np.abs(scores({(0, 1): true}, **how) - scores({(0, 1): more}, **how))
        assert apart.max() <= 1
        worst = max(worst, int(apart.max()))
        more[some.integers(4), some.integers(5)] -= 1
        assert np.abs(scores({(0, 1): true}, **how) - scores({(0, 1): more}, **how)).max() <= 2
    assert worst == 1


@pytest.mark.parametrize("relation", list(Relation))
def test_neighbors_move_coarse_pairs_by_no_more_than_their_noise_is_made_for(bench: Any, relation: Relation) -> None:
    """A unit with rows in neighboring cells adds up in a coarse one: L2 must be that of the sums, not of the cells."""
    at = setting("1", "1/1000000", PrivacyUnit("who", 3, 4), relation)
    prepared = synthetic(at, table="t", columns=["kind", "own"])
    one = "SELECT 1 AS who, ['a', 'b', 'c'][1 + i % 3] AS kind, TRUE AS own FROM range(60) AS t(i)"
    other = "SELECT 2 AS who, 'a' AS kind, FALSE AS own FROM range(60)"
    without = "SELECT 3 AS who, 'b' AS kind, TRUE AS own FROM range(2)"
    coarse = Candidate((0, 1), (np.array([0, 0, 0]), np.array([0, 1])))

    def sums(rows: str) -> Any:
        found = counts(bench({"t": rows}), prepared.noises.twos).through(lambda tables: tables[0].reshape(3, 2))
        return coarse.sums(found)

    base = without if relation is Relation.ADD_REMOVE else f"{without} UNION ALL {other}"
    apart = sums(f"{without} UNION ALL {one}") - sums(base)
    squared = int((apart**2).sum())
    assert squared <= prepared.noises.sensitivity.l2_squared
    assert int(np.abs(apart).sum()) <= prepared.noises.sensitivity.l1
    assert (
        squared > prepared.noises.twos[0].sensitivity.l2_squared
    )  # the noise of single cells would have been too small


def test_rows_of_every_kind_are_like_the_data_where_noise_is_small(bench: Any) -> None:
    run = bench({"t": ROWS})
    published = synthetic(setting("1000"), table="t", columns=MIXED, pairs=4, rounds=1, size=30_000).run(run)
    assert [output.kind for output in published.outputs] == ["text", "boolean", "integer", "real", "date"]
    kind, own, age, pay, day = (np.array(output.values, dtype=object) for output in published.outputs)
    assert len(kind) == 30_000
    assert ((kind == "a") == own).mean() > 0.99
    assert set(kind) == {"a", "b", "c"}
    assert 0.19 < np.mean(day == None) < 0.21  # noqa: E711 - element by element
    assert all(isinstance(each, date) and date(2020, 1, 1) <= each <= date(2020, 10, 27) for each in day if each)
    ages = age.astype(np.int64)
    assert np.abs(np.bincount(ages // 10, minlength=10) / 30_000 - 0.1).max() < 0.01
    assert (ages >= 0).all()
    assert (ages <= 99).all()
    wages = pay.astype(np.float64)
    assert (np.mod(wages * 2, 1) == 0).all()
    parts = [0.25, 0.5, 0.75]
    exact = [(i % 3) * 30 + (i % 7) * 1.5 for i in range(3000)]
    assert np.abs(np.quantile(wages, parts) - np.quantile(exact, parts)).max() < 4
    assert np.mean(wages[kind == "a"]) < 15 < 45 < np.mean(wages[kind == "c"])
    assert [done for done, _ in run.steps] == sorted(done for done, _ in run.steps)
    found = Synthetic.of(given(published))
    assert all(each.alone < 0.05 and each.pairs is not None and each.pairs < 0.2 for each in found.utility)
    assert len(found.to_pandas()) == 30_000
    assert "30,000 rows of 5" in repr(found)


def test_the_report_says_how_far_the_rows_are_off(bench: Any) -> None:
    """One column that is all one value in the data, with rows from noise alone: the report must not praise them.

    The report's noise has a deviation below 0.02 here; the bounds are 10 of these away, so a false alarm is far rarer
    than 1e-6.
    """
    rows = "SELECT 'a' AS kind FROM range(40000)"
    good = synthetic(setting("1"), table="t", columns=["kind"]).run(bench({"t": rows}))
    assert Synthetic.of(given(good)).utility[0].alone < 0.05
    half = good.model["utility"][0]["alone_half"]
    assert 0 < half < 0.02
    found = Synthetic.of(given(good))
    assert found.utility[0].pairs is None
    assert "–" in found.report()


def test_a_report_of_wrong_rows_is_bad() -> None:
    from hubbub.analyses.synthetic.utility import column_utilities

    fares = column_utilities(["a", "b"], np.array([1000, 10]), np.array([3000, 20]), [4.0, 8.0], 1000.0)
    assert (fares[0].alone, fares[0].pairs) == (0.5, 1.0)
    assert (fares[1].alone, fares[1].alone_half, fares[1].pairs_half) == (0.005, 0.002, 0.004)


def test_a_plot_shows_each_column_beside_what_was_measured(bench: Any, tmp_path: Any) -> None:
    published = synthetic(setting("1"), table="t", columns=["age"]).run(bench({"t": ROWS}))
    figure = Synthetic.of(given(published)).plot()
    assert len(figure.axes[0].patches) == 100
    figure.savefig(tmp_path / "age.png")
    assert (tmp_path / "age.png").stat().st_size > 1000


def test_tables_of_a_calibrated_tree_are_the_marginals_of_their_product() -> None:
    sizes, some = (2, 3, 4, 2, 3), np.random.default_rng(1)
    cliques, links = [(0, 1), (1, 2), (1, 3), (4,)], [(0, 1), (0, 2)]
    logs = [some.normal(size=[sizes[c] for c in clique]) for clique in cliques]
    joint = np.ones(sizes)
    for clique, table in zip(cliques, logs, strict=True):
        joint = joint * np.exp(table).reshape([sizes[c] if c in clique else 1 for c in range(5)])
    joint /= joint.sum()
    tables, _ = calibrated(JunctionTree(tuple(cliques), tuple(links)), [np.exp(table) for table in logs])
    every = tuple(range(5))
    for clique, table in zip(cliques, tables, strict=True):
        assert np.allclose(table, marginal(joint, every, clique))
    model = Model(sizes, tuple(cliques), tables, tuple(links))
    for (i, j), table in model.pairs().items():
        assert np.allclose(table, marginal(joint, every, (i, j))), (i, j)
    rows = model.rows(100_000, some)
    for (i, j), table in model.pairs().items():
        made = np.bincount(rows[:, i] * sizes[j] + rows[:, j], minlength=table.size).reshape(table.shape) / 100_000
        assert np.abs(made - table).max() < 0.02


def test_rows_of_a_group_are_spread_evenly() -> None:
    some = np.random.default_rng(2)
    shares = np.array([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    at = np.repeat([0, 1, 2], [1000, 7, 300])
    found = spread(shares, some.permutation(at), some)
    assert len(found) == 1307
    found = spread(shares, at, some)
    assert np.abs(np.bincount(found[:1000], minlength=3) - [500, 300, 200]).max() <= 1
    assert (found[1000:1007] == 2).all()
    assert np.abs(np.bincount(found[1007:], minlength=3) - 100).max() <= 1


def test_columns_are_independent_where_nothing_ties_them() -> None:
    model = independent([2, 3], [np.array([1.0, 3.0]), np.array([1.0, 1.0, 2.0])])
    assert np.allclose(model.pairs()[0, 1], np.outer([0.25, 0.75], [0.25, 0.25, 0.5]))


def test_quantiles_are_made_of_noisy_counts() -> None:
    (each,) = asked(setting().tables["t"], [{"column": "pay", "quantiles": 4}])
    noisy = np.zeros(256, dtype=np.int64)
    noisy[[0, 10, 20, 30]] = 100
    found = levels(each, noisy, 400.0)
    assert found.size == 4
    assert np.allclose(found.sums, 100)
    values = found.values(np.array([0, 1, 2, 3] * 50), np.random.default_rng(0))
    assert all(isinstance(value, float) for value in values)
    assert [len(groups) for groups in found.groupings()] == [4, 4]
    assert len(candidates([found, found])) == 4


def test_quantiles_of_days_are_days() -> None:
    (each,) = asked(setting().tables["t"], [{"column": "day", "quantiles": 4}])
    found = levels(each, np.full(366, 10), 3660.0)
    assert found.size == 4
    assert found.labels()[0].startswith("2020-01-01 … 2020-04-")
    first = found.values(np.zeros(100, dtype=np.int64), np.random.default_rng(0))
    assert all(isinstance(value, date) and date(2020, 1, 1) <= value < date(2020, 4, 5) for value in first)


def test_a_first_turn_makes_a_tree_and_a_model_stays_small() -> None:
    assert forest([], (0, 1))
    assert forest([(0, 1), (2, 3)], (1, 2))
    assert not forest([(0, 1), (1, 2)], (0, 2))
    sizes = [10, 10, 10]
    assert small_enough(sizes, [(0, 1), (1, 2)], [(0, 2), (0, 1)], 500) == {(0, 1)}
    assert small_enough(sizes, [(0, 1), (1, 2)], [(0, 2), (0, 1)], 1000) == {(0, 1), (0, 2)}


def test_a_root_is_never_above() -> None:
    for square in (F(1, 3), F(2), F(10**9, 7)):
        assert root_below(square) ** 2 <= square
    with pytest.raises(QueryError, match="HB593"):
        root_below(F(1, 10**30))


def test_owners_can_compare_exactly() -> None:
    data = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert k_marginal(distances(data, data, [2, 2])) == 1000
    assert k_marginal(distances(data, np.array([[0, 0]]), [2, 2])) == pytest.approx(250)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"columns": []}, "columns is empty"),
        ({"columns": "kind"}, "columns is empty"),
        ({"columns": ["kind", "kind"]}, "listed twice"),
        ({"columns": ["kind"] * 33}, "at most 32"),
        ({"columns": ["free"]}, "not declared"),
        ({"columns": ["seen"]}, "not declared"),
        ({"columns": ["nothing"]}, "no column"),
        ({"columns": ["kind"], "size": 0}, "size"),
        ({"columns": ["kind"], "size": 10**7}, "size"),
        ({"columns": ["kind", "own"], "pairs": 0}, "pairs"),
        ({"columns": ["kind", "own"], "rounds": 11}, "rounds"),
        ({"columns": [{"column": "pay", "quantiles": 1}]}, "quantiles"),
        ({"columns": [{"column": "kind", "quantiles": 4}]}, "no order"),
        ({"columns": [{"column": "seen", "quantiles": 4}]}, "not declared"),
        ({"columns": ["kind"], "noise": "loud"}, "noise"),
    ],
)
def test_what_cannot_be_made_is_refused_with_a_remedy(how: dict[str, Any], words: str) -> None:
    with pytest.raises((QueryError, ParameterError), match=words) as refusal:
        synthetic(setting(), table="t", **how)
    assert refusal.value.remedy
