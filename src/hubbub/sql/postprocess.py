"""Evaluate expressions over noisy results in an in-memory database that contains nothing else.

Every function has the same semantics here as in the engine that holds the data.

Tested in tests/sql/test_finish.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.sql import local_database, render
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Expr
from hubbub.sql.query import OrderTerm

Columns = Mapping[str, tuple[NDArray[Any], Kind]]


def evaluate(answers: Columns, expressions: Sequence[Expr]) -> list[NDArray[Any]]:
    """Evaluate expressions for every row of the results, in order."""
    outputs = ", ".join(f"{render.expression(expr)} AS e{i}" for i, expr in enumerate(expressions))
    columns = _run(answers, f'SELECT {outputs} FROM answers ORDER BY "$row"')
    return [columns[f"e{i}"] for i in range(len(expressions))]


def arrange(answers: Columns, having: Expr | None, order: Sequence[OrderTerm]) -> NDArray[np.int64]:
    """Return the indices of the output rows in order; ties keep the order of the cells."""
    text = 'SELECT "$row" AS r FROM answers'
    if having is not None:
        text += f" WHERE {render.expression(having)}"
    terms = [
        f"{render.expression(term.expr)} {'DESC' if term.descending else 'ASC'} "
        f"NULLS {'FIRST' if term.nulls_first else 'LAST'}"
        for term in order
    ]
    text += f" ORDER BY {', '.join([*terms, chr(34) + '$row' + chr(34)])}"
    return np.asarray(_run(answers, text)["r"], dtype=np.int64)


def _run(answers: Columns, text: str) -> dict[str, NDArray[Any]]:
    arrays = {name: array for name, (array, _) in answers.items()}
    arrays["$row"] = np.arange(len(next(iter(arrays.values()))), dtype=np.int64)
    casts = [
        f"CAST({DUCKDB.identifier(name)} AS {DUCKDB.types[kind]}) AS {DUCKDB.identifier(name)}"
        for name, (_, kind) in answers.items()
    ]
    casts.append('"$row"')
    connection = local_database.connection("answers")
    connection.register("arrays", arrays)
    try:
        columns = connection.execute(f"WITH answers AS (SELECT {', '.join(casts)} FROM arrays) {text}").fetchnumpy()
        # no column is an ENUM, which DuckDB would return as a Categorical
        return cast("dict[str, NDArray[Any]]", columns)
    finally:
        connection.unregister("arrays")
