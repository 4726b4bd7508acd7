"""Expressions over noisy answers, run in a scratch database in memory that has never seen anything else.

The same rules as in the engine hold for every function, whatever engine holds the data.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.sql import render
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Expr
from hubbub.sql.query import Order

Columns = Mapping[str, tuple[NDArray[Any], Kind]]

_LOCAL = threading.local()


def _connection() -> duckdb.DuckDBPyConnection:
    found: duckdb.DuckDBPyConnection | None = getattr(_LOCAL, "connection", None)
    if found is None:
        found = _LOCAL.connection = duckdb.connect(
            ":memory:", config={"threads": 1, "enable_external_access": False, "python_enable_replacements": False}
        )
    return found


def evaluate(answers: Columns, expressions: Sequence[Expr]) -> list[NDArray[Any]]:
    """Compute each expression for every row of the answers, in their order."""
    outputs = ", ".join(f"{render.expression(expr)} AS e{i}" for i, expr in enumerate(expressions))
    found = _run(answers, f'SELECT {outputs} FROM answers ORDER BY "$row"')
    return [found[f"e{i}"] for i in range(len(expressions))]


def arrange(answers: Columns, having: Expr | None, order: Sequence[Order], limit: int | None) -> NDArray[np.int64]:
    """Give the rows that are shown, in their order; ties stay in the order of the cells."""
    text = 'SELECT "$row" AS r FROM answers'
    if having is not None:
        text += f" WHERE {render.expression(having)}"
    terms = [
        f"{render.expression(each.expr)} {'DESC' if each.descending else 'ASC'} "
        f"NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in order
    ]
    text += f" ORDER BY {', '.join([*terms, chr(34) + '$row' + chr(34)])}"
    if limit is not None:
        text += f" LIMIT {limit}"
    return np.asarray(_run(answers, text)["r"], dtype=np.int64)


def _run(answers: Columns, text: str) -> dict[str, NDArray[Any]]:
    arrays = {name: array for name, (array, _) in answers.items()}
    arrays["$row"] = np.arange(len(next(iter(arrays.values()))), dtype=np.int64)
    casts = [
        f"CAST({DUCKDB.identifier(name)} AS {DUCKDB.types[kind]}) AS {DUCKDB.identifier(name)}"
        for name, (_, kind) in answers.items()
    ]
    casts.append('"$row"')
    connection = _connection()
    connection.register("arrays", arrays)
    try:
        found = connection.execute(f"WITH answers AS (SELECT {', '.join(casts)} FROM arrays) {text}").fetchnumpy()
        # no column is an ENUM, which would come as a Categorical
        return cast("dict[str, NDArray[Any]]", found)
    finally:
        connection.unregister("arrays")
