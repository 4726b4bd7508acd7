"""Axes from declarations, and exact counts over them that stay secret."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.analyses.base import Setting
from hubbub.analyses.tables.axes import axes, axis
from hubbub.analyses.tables.marginals import AT_ONCE, Marginal, counts, marginal
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.bounding import RenderOptions

F = Fraction
COLUMNS = (
    Column("who", Kind.INTEGER),
    Column("region", Kind.TEXT, values=("N", "S", "it's"), other="elsewhere"),
    Column("age", Kind.INTEGER, Bounds(F(0), F(9))),
    Column("pay", Kind.REAL, Bounds(F(0), F(10))),
    Column("own", Kind.BOOLEAN),
    Column("free", Kind.TEXT),
)
ROWS = (
    "SELECT * FROM (VALUES (1, 'N', 0, 0.0, TRUE), (1, 'N', 3, 2.5, FALSE), (2, 'S', 3, 2.4999, NULL),"
    " (2, 'it''s', 9, 10.0, TRUE), (3, 'X', NULL, NULL, TRUE), (3, NULL, 4, 7.5, TRUE))"
    " AS t(who, region, age, pay, own)"
)


def setting(relation: Relation = Relation.ADD_REMOVE, unit: PrivacyUnit | None = None) -> Setting:
    table = Table("t", COLUMNS, unit or PrivacyUnit(None), relation)
    return Setting({"t": table}, F(1), F(0), RenderOptions("salt"))


def exact(run: Any, marginals: list[Marginal]) -> list[list[int]]:
    found: list[list[int]] = counts(run, marginals).through(lambda vectors: [v.tolist() for v in vectors])
    return found


def planned(at: Setting, wanted: list[object], **how: Any) -> Marginal:
    return marginal(at, "t", axes(at.tables["t"], wanted) if wanted else (), **how)


@pytest.mark.parametrize(
    ("wanted", "labels", "found"),
    [
        ("region", ("N", "S", "it's", "elsewhere"), [2, 1, 1, 1]),
        ({"column": "region", "missing": True}, ("N", "S", "it's", "elsewhere", None), [2, 1, 1, 1, 1]),
        ("own", (False, True), [1, 4]),
        ("age", tuple(range(10)), [1, 0, 0, 2, 1, 0, 0, 0, 0, 1]),
        ({"column": "age", "bins": 3}, ("0–3", "4–6", "7–9"), [3, 1, 1]),
        ({"column": "age", "edges": [3, 4, 9], "missing": True}, ("3", "4–9", None), [2, 2, 1]),
        ({"column": "pay", "bins": 4}, ("[0, 2.5)", "[2.5, 5)", "[5, 7.5)", "[7.5, 10]"), [2, 1, 0, 2]),
        ({"column": "pay", "edges": [F(5, 2), 10]}, ("[2.5, 10]",), [3]),
    ],
)
def test_an_axis_counts_what_its_labels_say(bench: Any, wanted: object, labels: object, found: list[int]) -> None:
    at = setting()
    one = axis(at.tables["t"], wanted)
    assert one.labels == labels
    if isinstance(wanted, dict) and "edges" in wanted and wanted.get("missing"):
        # an age below the first edge stands in no cell, a missing one in its own
        assert sum(found) == 5
    assert exact(bench({"t": ROWS}), [planned(at, [wanted])]) == [found]


def test_marginals_of_one_text_are_those_of_many(bench: Any) -> None:
    at, run = setting(), bench({"t": ROWS})
    wanted: list[list[object]] = [["region"], ["own"], ["region", "own"], ["own", {"column": "age", "bins": 2}], []]
    many = [planned(at, wanted[place % 5]) for place in range(2 * AT_ONCE + 1)]
    together = exact(run, many)
    assert len(run.asked) == 3
    assert together == [exact(run, [each])[0] for each in many]
    assert together[4] == [6]
    joint = np.array(together[2]).reshape(4, 2)
    assert joint.sum(axis=1).tolist() != together[0]  # whose own is NULL is in no cell of the joint table


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(
    "unit", [PrivacyUnit(None), PrivacyUnit("who", groups=2, rows=1), PrivacyUnit("who", groups=1, rows=2)]
)
@pytest.mark.parametrize("count", ["rows", "units"])
def test_neighbors_move_a_marginal_by_no_more_than_its_sensitivity(
    bench: Any, relation: Relation, unit: PrivacyUnit, count: str
) -> None:
    """Every row, or every person, is taken out or replaced by each other one; both bounds hold, and one is met."""
    at = setting(relation, unit)
    worst = [0, 0]
    for wanted in (["region"], ["own"], []):
        one = planned(at, list(wanted), count=count)
        moves = [0, 0]
        key = "who" if unit.column else "rowid"
        whole = bench({"t": ROWS})
        whole.connection.execute(f"CREATE TABLE all_rows AS SELECT *, {key} AS key FROM t")
        keys = [k for (k,) in whole.connection.execute("SELECT DISTINCT key FROM all_rows").fetchall()]

        def left(out: int, one: Marginal = one, whole: Any = whole) -> np.ndarray[Any, Any]:
            whole.connection.execute(f"CREATE OR REPLACE TABLE t AS FROM all_rows WHERE key <> {out}")
            return np.array(exact(whole, [one])[0])

        vectors = {k: left(k) for k in keys}
        whole.connection.execute("CREATE OR REPLACE TABLE t AS FROM all_rows")
        full = np.array(exact(whole, [one])[0])
        pairs = (
            [full - v for v in vectors.values()]
            if relation is Relation.ADD_REMOVE
            else [a - b for a in vectors.values() for b in vectors.values()]
        )
        for move in pairs:
            moves = [max(moves[0], int(np.abs(move).sum())), max(moves[1], int((move**2).sum()))]
        assert moves[0] <= one.sensitivity.l1
        assert moves[1] <= one.sensitivity.l2_squared
        worst = [max(worst[0], moves[0] - one.sensitivity.l1), max(worst[1], moves[1] - one.sensitivity.l2_squared)]
    assert max(worst) == 0


def test_a_condition_counts_fewer_rows_and_a_comment_in_it_ends_with_it(bench: Any) -> None:
    at, run = setting(), bench({"t": ROWS})
    assert exact(run, [planned(at, ["own"], where="age >= 3 -- nothing")]) == [[1, 2]]


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (["free"], "not declared"),
        (["pay"], "not declared"),
        (["nobody"], "no column"),
        ([], "columns is empty"),
        ("region", "columns is empty"),
        (["own", "own"], "listed twice"),
        ([{"column": "region", "bins": 2}], "cannot be binned"),
        ([{"column": "age", "bins": 11}], "increasing order"),
        ([{"column": "age", "bins": 2, "edges": [0, 1]}], "must be given"),
        ([{"column": "age", "edges": [0, 5, 5, 9]}], "increasing order"),
        ([{"column": "age", "edges": [0, 10]}], "outside its bounds"),
        ([{"column": "age", "edges": "09"}], "list of numbers"),
        ([{"column": "age", "missing": 1}], "TRUE or FALSE"),
        ([{"name": "age"}], "must be given"),
    ],
)
def test_axes_that_cannot_be_are_refused(wanted: object, says: str) -> None:
    with pytest.raises(QueryError, match=says) as refusal:
        axes(setting().tables["t"], wanted)
    assert refusal.value.remedy


def test_a_unit_is_no_axis() -> None:
    with pytest.raises(QueryError, match="privacy ID column"):
        axis(setting(unit=PrivacyUnit("who")).tables["t"], "who")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"count": "pairs"}, "'rows' or 'units'"),
        ({"where": 1}, "must be a string"),
        ({"where": "own) GROUP BY age HAVING (TRUE"}, "HB5"),
        ({"where": "TRUE) UNION ALL SELECT COUNT(*) FROM t WHERE (TRUE"}, "HB754"),
    ],
)
def test_what_is_no_condition_is_refused(how: dict[str, Any], says: str) -> None:
    with pytest.raises(QueryError, match=says):
        planned(setting(), ["own"], **how)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [PrivacyUnit(None), PrivacyUnit("who", groups=2, rows=2)])
def test_neighbors_move_sums_of_cells_by_no_more_than_stated(relation: Relation, unit: PrivacyUnit) -> None:
    """All vectors that two units can have over four cells, summed into pairs and into one."""
    at = setting(relation, unit)
    one = planned(at, ["region"])
    groups, rows = (1, 1) if unit.column is None else (2, 2)
    owned = [
        np.array(u)
        for u in np.ndindex(*(rows + 1,) * 4)
        if np.count_nonzero(u) <= groups and sum(u) <= one.contribution
    ]
    for parts in ([[0, 1], [2, 3]], [[0, 1, 2, 3]], [[0], [1], [2], [3]]):
        sums = [np.array([u[part].sum() for part in parts]) for u in owned]
        pairs = [(s, 0 * s) for s in sums] if relation is Relation.ADD_REMOVE else [(a, b) for a in sums for b in sums]
        moved = one.part(len(parts))
        assert max(int(np.abs(a - b).sum()) for a, b in pairs) == moved.l1
        assert max(int(((a - b) ** 2).sum()) for a, b in pairs) <= moved.l2_squared


def test_a_column_may_have_any_name() -> None:
    """The count has a name of its own beside it."""
    for name in ("n", "count", "m0", "cell"):
        table = Table("t", (Column(name, Kind.INTEGER, Bounds(F(0), F(3))),), PrivacyUnit(None), Relation.ADD_REMOVE)
        at = Setting({"t": table}, F(1), F(0), RenderOptions("salt"))
        assert marginal(at, "t", axes(table, [name])).size == 4
