"""Counts as sums of cells: held against the engine's own counts, on columns with NULL and values nobody declared."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import duckdb
import numpy as np
import pytest

from hubbub.analyses.tables.shared_counts import counted_table
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.linear_counts import LinearQuestion, linear_question
from hubbub.sql.plan import Plan, plan

TABLE = Table(
    "t",
    (
        Column("k", Kind.TEXT, values=("a", "b", "c")),
        Column("i", Kind.INTEGER, Bounds(Fraction(0), Fraction(9))),
        Column("f", Kind.BOOLEAN),
        Column("x", Kind.REAL, Bounds(Fraction(0), Fraction(1))),
    ),
    PrivacyUnit(None),
)
ROWS = [*product(("a", "b", "c", "z", None), (-1, 0, 3, 4, 9, 12, None), (True, False, None)), ("a", 3, True)]


def _plan(text: str) -> Plan:
    return plan(bind(text, tables={"t": TABLE}), epsilon=Fraction(1), delta=Fraction(0), salt="s")


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("CREATE TABLE t (k VARCHAR, i BIGINT, f BOOLEAN, x DOUBLE)")
        made.executemany("INSERT INTO t VALUES (?, ?, ?, 0.5)", ROWS)
        yield made


def _engine(engine: duckdb.DuckDBPyConnection, planned: Plan) -> list[int]:
    """Run the statements of a plan and put the exact counts in order: measures one after the other."""
    out = [np.zeros(planned.size, dtype=np.int64) for _ in planned.measures]
    offsets = np.cumsum([0, *(each.size for each in planned.cells)])
    for statement in planned.statements:
        found = {name: np.asarray(each) for name, each in engine.execute(statement.sql).fetchnumpy().items()}
        for column, target in enumerate(statement.targets):
            np.add.at(out[target], found["cell"] + offsets[statement.place], found[f"m{column}"].astype(np.int64))
    return [int(each) for each in np.concatenate(out)]


def _added(engine: duckdb.DuckDBPyConnection, question: LinearQuestion) -> list[int]:
    """Add up cells of the table, which the engine counts by all columns of the question."""
    names = sorted(question.columns)
    columns = [question.columns[name] for name in names]
    counted = counted_table(TABLE, columns, {"t": TABLE}, RenderOptions("s"))
    found = {name: np.asarray(each) for name, each in engine.execute(counted.sql).fetchnumpy().items()}
    x = np.zeros(counted.cells.size, dtype=np.int64)
    x[found["cell"]] = found["m0"].astype(np.int64)
    assert x.sum() == len(ROWS), "each row has a cell"
    x = x.reshape(counted.shape)
    parts = []
    for measure in question.measures:
        for count in measure:
            left = [name for name in names if name not in count.matrices]
            whole = x.sum(axis=tuple(names.index(name) for name in left))
            axes = [name for name in names if name not in left]
            whole = whole.transpose([axes.index(name) for name in count.matrices])
            for axis, matrix in enumerate(count.matrices.values()):
                whole = np.moveaxis(np.tensordot(matrix, whole, axes=(1, axis)), 0, axis)
            parts.append(whole.reshape(-1))
    return [int(each) for each in np.concatenate(parts)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM t WHERE i < 4",
        "SELECT COUNT(*) FROM t WHERE i BETWEEN 3 AND 9 AND k = 'a'",
        "SELECT COUNT(*) FROM t WHERE i < 4 OR i > 8",
        "SELECT COUNT(*) FROM t WHERE NOT (i < 4)",
        "SELECT COUNT(*) FROM t WHERE k <> 'a' AND f IS NOT TRUE",
        "SELECT COUNT(*) FROM t WHERE k IS NULL",
        "SELECT k, COUNT(*) FROM t GROUP BY k",
        "SELECT f, k, COUNT(*), COUNT(i), COUNT(*) FILTER (WHERE i > 3) FROM t GROUP BY f, k",
        "SELECT i // 4 AS q, COUNT(*) FROM t WHERE k IN ('a', 'c') GROUP BY i // 4",
        "SELECT i, COUNT(*) FROM t WHERE i < 4 GROUP BY i",
        "SELECT k, f, COUNT(*) FROM t GROUP BY ROLLUP (k, f)",
    ],
)
def test_the_matrices_add_up_cells_to_what_the_engine_counts(engine: duckdb.DuckDBPyConnection, text: str) -> None:
    planned = _plan(text)
    question = linear_question(planned)
    assert question is not None
    assert _added(engine, question) == _engine(engine, planned)
    assert sum(_engine(engine, planned)) > 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(i) FROM t",
        "SELECT COUNT(DISTINCT i) FROM t",
        "SELECT COUNT(*) FROM t WHERE x < 0.5",
        "SELECT COUNT(*) FROM t WHERE i < 4 OR k = 'a'",
        "SELECT MEDIAN(i) FROM t",
        "SELECT i, i // 2 AS h, COUNT(*) FROM t GROUP BY i, i // 2",
    ],
)
def test_what_is_no_sum_of_cells_is_left_to_a_draw_of_its_own(text: str) -> None:
    assert linear_question(_plan(text)) is None
