"""Multiplicative weights, with a selection in each round."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Setting
from hubbub.analyses.synthetic.mwem import Mwem, mwem, reweighted, summed
from hubbub.analyses.tables.marginals import counts
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.bounding import RenderOptions

F = Fraction
COLUMNS = (
    Column("who", Kind.INTEGER),
    Column("kind", Kind.TEXT, values=("a", "b", "c")),
    Column("own", Kind.BOOLEAN),
    Column("age", Kind.INTEGER, Bounds(F(0), F(9))),
    Column("year", Kind.INTEGER, Bounds(F(0), F(9999))),
)
ROWS = (
    "SELECT i AS who, ['a', 'b', 'c'][1 + i % 3] AS kind, i % 3 = 0 AS own, CAST((i % 3) * 3 AS INTEGER) AS age"
    " FROM range(9000) AS t(i)"
)


def prepared(
    epsilon: str = "1", unit: PrivacyUnit | None = None, relation: Relation = Relation.ADD_REMOVE, **how: Any
) -> Mwem:
    at = Setting(
        {"t": Table("t", COLUMNS, unit or PrivacyUnit(None), relation)}, F(epsilon), F(0), RenderOptions("salt")
    )
    arguments: dict[str, Any] = {"columns": ["kind", "own", "age"]} | how
    return mwem(at, table="t", **arguments)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [PrivacyUnit(None), PrivacyUnit("who", 2, 3)])
@pytest.mark.parametrize("rounds", [1, 4])
def test_multiplicative_weights_cost_what_they_say(relation: Relation, unit: PrivacyUnit, rounds: int) -> None:
    made = prepared("1/2", unit, relation, rounds=rounds)
    loss = privacy_cost(made.event).pure
    assert loss is not None
    assert F(499, 1000) <= loss <= F(1, 2)
    assert len(made.derivation) == 4


@pytest.mark.parametrize("relation", list(Relation))
def test_neighbors_move_a_score_by_no_more_than_its_sensitivity(bench: Any, relation: Relation) -> None:
    """A unit with more rows than it may have, all over the cells, against none or another such."""
    made = prepared("1", PrivacyUnit("who", 2, 3), relation)
    rest = "SELECT 0 AS who, 'b' AS kind, TRUE AS own, 4 AS age"
    one, other = (
        f"SELECT {who} AS who, ['a', 'b', 'c'][1 + i % 3] AS kind, i % 2 = {who % 2} AS own,"
        " CAST(i % 10 AS INTEGER) AS age FROM range(100) AS t(i)"
        for who in (1, 2)
    )
    base = f"{rest} UNION ALL {other}" if relation is Relation.REPLACE else rest
    told = {each: np.full(summed(np.zeros((3, 2, 10)), each).shape, 2) for each in made.workload}

    def found(rows: str) -> Any:
        return counts(bench({"t": rows}), [made.marginal]).through(lambda tables: made.scores(tables[0], told))

    apart = np.abs(found(f"{rest} UNION ALL {one}") - found(base))
    assert 0 < apart.max() <= made.measured.sensitivity
    assert made.selection.sensitivity == made.measured.sensitivity


def test_rows_are_like_the_data_where_noise_is_small(bench: Any) -> None:
    run = bench({"t": ROWS})
    published = prepared("200", rounds=4, size=900).run(run)
    kind, own, age = (np.array(output.values, dtype=object) for output in published.outputs)
    assert len(kind) == 900
    assert ((kind == "a") == own).mean() > 0.9
    assert (age[kind == "c"] == 6).mean() > 0.9
    assert abs(published.model["total"] - 9000) < 10
    assert len(published.model["measured"]) == 4
    assert [done for done, _ in run.steps] == sorted(done for done, _ in run.steps)


def test_mended_weights_agree_better_and_keep_their_total() -> None:
    weights = np.full((2, 3), 100 / 6)
    noisy = np.array([[50.0, 0, 0], [0, 0, 50]])
    before = np.abs(weights - noisy).sum()
    after = weights
    for _ in range(5):
        after = reweighted(after, [((0, 1), noisy)], 100.0)
    assert after.sum() == pytest.approx(100)
    assert np.abs(after - noisy).sum() < before / 5


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"columns": ["year", "age", "kind"]}, "at most"),
        ({"ways": 4}, "ways"),
        ({"rounds": 0}, "rounds"),
        ({"size": 0}, "size"),
        ({"columns": ["nobody"]}, "no column"),
    ],
)
def test_what_is_too_large_is_refused_with_a_remedy(how: dict[str, Any], words: str) -> None:
    with pytest.raises((QueryError, ParameterError), match=words) as refusal:
        prepared(**how)
    assert refusal.value.remedy
