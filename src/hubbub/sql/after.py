"""Run a query over released tables in a locked, empty, in-memory database.

The database is given the noisy results and small public tables, and nothing else. Types and names are checked before
the charge on empty tables. After the charge no value can make it fail where SQL has a NULL for it: casts that fail,
and integers that overflow, become NULL.

Tested in tests/sql/test_after.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from threading import Event, Thread
from typing import Any, cast

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from hubbub.core.schema import Column, Kind, Table
from hubbub.errors import QueryError
from hubbub.sql.after_intervals import COPY, ROW, ROW_ID
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.ordinary_sql import check_ordinary, kind_of
from hubbub.sql.query import After, ReleasedTable, Replicas
from hubbub.sql.text import SourceText, quote

#: Names of columns with the ± of noisy values, while copies are made.
HALF = "$half"
#: Maximum number of seconds, and of memory, of a query over released rows.
MAX_SECONDS = 20
MEMORY = "512MB"

_CASTS = {"boolean": "BOOLEAN", "integer": "BIGINT", "real": "DOUBLE", "date": "DATE", "timestamp": "TIMESTAMP"}


def after(
    tree: exp.Expr,
    released: Sequence[ReleasedTable],
    public: Sequence[Table],
    source: SourceText,
    replicas: Replicas | None = None,
) -> After:
    """Check a query over released tables and describe its result, without any row."""
    _refuse_own_names(tree, released, source)

    def tried(node: exp.Expr) -> exp.Expr:
        return exp.TryCast(**node.args) if type(node) is exp.Cast else node

    sql = duckdb_sql(tree.transform(tried), source, identify=True)
    names = [table.name for table in released] + [table.name for table in public]
    check_ordinary(sql, names, source)
    checked = After(sql, tuple(released), tuple(public), ())
    empty = {table.name: {name: np.zeros(0, dtype=object) for name, _ in table.columns} for table in released}
    with _database(checked, empty) as connection:
        try:
            described = connection.execute(f"DESCRIBE {sql}").fetchall()
        except duckdb.Error as error:
            # the text of a query on empty tables: it depends on the query and the declarations alone
            raise source.error(
                None,
                "HB756",
                f"The part of the query that reads noisy results is not valid: {_first_line(error)}",
                "Check its columns and types.",
            ) from None
    outputs = tuple((str(name), str(kind)) for name, kind, *_ in described)
    if replicas is not None and replicas.sql:
        check_ordinary(replicas.sql, names, source)
    return After(sql, tuple(released), tuple(public), outputs, replicas)


def _refuse_own_names(tree: exp.Expr, released: Sequence[ReleasedTable], source: SourceText) -> None:
    """Reject names that hubbub gives itself: a WITH item would hide a release, and a column the number of its rows."""
    columns = [name for table in released for name, _ in table.columns]
    taken = [name for name in columns if name.lower() in (ROW, COPY) or name.lower().startswith(HALF)]
    taken += [cte.alias for cte in tree.find_all(exp.CTE) if cte.alias.lower().startswith("$release")]
    if taken:
        raise source.error(
            None,
            "HB781",
            f"The name {quote(taken[0])} is used by hubbub itself in queries over noisy results.",
            "Choose another name.",
        )


def run_after(query: After, tables: Mapping[str, Mapping[str, NDArray[Any]]], *, most: int) -> list[NDArray[Any]]:
    """Run a query over released rows; return its columns with at most so many rows. NULL is masked."""
    shown = ", ".join(
        f"{_shown(_position(place), kind_of(kind))} AS c{place}" for place, (_, kind) in enumerate(query.outputs)
    )
    names = ", ".join(_position(place) for place in range(len(query.outputs)))
    text = f"SELECT {shown} FROM ({query.sql}) AS answer({names}) LIMIT {most}"
    with _database(query, tables) as connection:
        try:
            connection.execute(text)
        except duckdb.OutOfRangeException:  # integers that are too large: compute with floating-point numbers
            return run_after(_with_reals(query), tables, most=most)
        columns = cast("dict[str, NDArray[Any]]", connection.fetchnumpy())
    return [_typed(columns[f"c{place}"], kind_of(kind)) for place, (_, kind) in enumerate(query.outputs)]


def _shown(column: str, kind: str) -> str:
    """Write an output in the type of its kind; dates and times outside of the years 1 to 9999 are NULL."""
    text = f"TRY_CAST({column} AS {_CASTS.get(kind, 'VARCHAR')})"
    if kind not in ("date", "timestamp"):
        return text
    return f"CASE WHEN {text} >= DATE '0001-01-01' AND {text} < DATE '9999-12-31' + 1 THEN {text} END"


def numbered(table: Table) -> Table:
    """Return a small public table with the numbers of its rows as a column."""
    size = len(next(iter(table.rows.values())))
    return replace(
        table, columns=(*table.columns, Column(ROW, Kind.INTEGER)), rows={**table.rows, ROW: tuple(range(size))}
    )


def chosen_rows(
    table: Table, select: Callable[[Table], str], others: Sequence[Table], source: SourceText
) -> list[bool] | None:
    """Tell for each row of a small public table whether a query selects its number; it may read other public tables.

    `select` writes the query for the numbered table. None if it cannot be computed, whatever the reason, except for
    limits of time and memory: these are refusals, so that no plan depends on how busy a machine is.
    """
    size = len(next(iter(table.rows.values())))
    tables = {each.name: each for each in others} | {table.name: numbered(table)}
    try:
        query = After(select(tables[table.name]), (), tuple(tables.values()), ((ROW, "BIGINT"),))
        (found,) = run_after(query, {}, most=size)
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        raise source.error(
            None,
            "HB785",
            "The conditions on public tables, which decide the keys of a subquery, take too long to compute.",
            "Simplify them.",
        ) from None
    except (duckdb.Error, QueryError):
        return None
    chosen = np.zeros(size, dtype=bool)
    chosen[np.asarray(found, dtype=np.int64)] = True
    return chosen.tolist()


def run_replicas(
    query: After, tables: Mapping[str, Mapping[str, NDArray[Any]]], halves: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Give the smooth outputs and divisors of each output row, each with the root of the sum of its squared moves.

    Each noisy value of the columns in `halves` is moved up and down by its ± in a copy of the released rows.
    """
    if query.replicas is None:
        raise AssertionError("only a query with intervals has copies")
    (table,) = query.released
    count = sum(len(places) for places in query.replicas.divisors) + len(query.replicas.smooth)
    values = {**tables[table.name], **{f"{HALF}{i}": each for i, each in enumerate(halves.values())}}
    kinds = (*((name, Kind.REAL if kind is Kind.INTEGER else kind) for name, kind in table.columns),)
    columns = (*kinds, *((f"{HALF}{i}", Kind.REAL) for i in range(len(halves))))
    wide = replace(query, released=(replace(table, columns=columns),))
    with _database(wide, {table.name: values}, lock=False) as connection:
        name = DUCKDB.identifier(table.name)
        moved = {column: f"{HALF}{i}" for i, column in enumerate(halves)}
        chosen = ", ".join(
            _moved(column, list(halves).index(column), moved) if column in moved else _q(column)
            for column, _ in table.columns
        )
        connection.execute(f"""
            CREATE TABLE moves AS SELECT 2 * (c * n + r) + s AS {_q(COPY)}, c, r, 3 - 2 * s AS sign
            FROM range({len(halves)}) AS a(c), (SELECT count(*) AS n FROM {name}),
            (SELECT {_q(ROW)} AS r FROM {name}), (VALUES (1), (2)) AS b(s)
            UNION ALL SELECT 0, -1, -1, 0""")
        connection.execute(f"CREATE TABLE copies AS SELECT {chosen}, {_q(ROW)}, {_q(COPY)} FROM {name}, moves")
        connection.execute(f"DROP TABLE {name}; ALTER TABLE copies RENAME TO {name}; SET lock_configuration = true")
        text = _moves_query(query.replicas.sql, count)
        return cast("dict[str, NDArray[Any]]", connection.execute(text).fetchnumpy())


def _moves_query(sql: str, count: int) -> str:
    """Write the query that adds up the moves: copies 2t − 1 and 2t move the same value up and down."""
    copy, key, places = _q(COPY), _q(ROW_ID), range(count)
    real = ", ".join(f"TRY_CAST(o{i} AS DOUBLE) AS o{i}" for i in places)
    signed = [f"sum(CASE WHEN {copy} % 2 = 1 THEN o{i} ELSE -o{i} END) / 2" for i in places]
    pairs = ", ".join(
        f"CASE count(o{i}) WHEN 2 THEN {move} WHEN 1 THEN 'inf'::DOUBLE END AS d{i}" for i, move in enumerate(signed)
    )
    sizes = ", ".join(f"sqrt(sum(d{i} * d{i})) AS h{i}" for i in places)
    outputs = ", ".join(f"o{i}, h{i}" for i in places)
    return (
        f"WITH r AS (SELECT {copy}, {key}, {real} FROM ({sql})), "
        f"d AS (SELECT {key}, ({copy} + 1) // 2 AS t, {pairs} FROM r WHERE {copy} > 0 GROUP BY 1, 2), "
        f"s AS (SELECT {key}, {sizes} FROM d GROUP BY 1) "
        f"SELECT r.{key}, {outputs} FROM r JOIN s USING ({key}) WHERE r.{copy} = 0 ORDER BY 1"
    )


def _moved(column: str, place: int, halves: Mapping[str, str]) -> str:
    half = _q(halves[column])
    return f"{_q(column)} + CASE WHEN c = {place} AND r = {_q(ROW)} THEN sign * {half} ELSE 0 END AS {_q(column)}"


def _q(name: str) -> str:
    return DUCKDB.identifier(name)


def _with_reals(query: After) -> After:
    tables = tuple(
        replace(
            table, columns=tuple((name, Kind.REAL if kind is Kind.INTEGER else kind) for name, kind in table.columns)
        )
        for table in query.released
    )
    if tables == query.released:
        raise duckdb.Error("an integer is too large")
    return replace(query, released=tables)


def _typed(column: NDArray[Any], kind: str) -> NDArray[Any]:
    return column.astype("datetime64[D]") if kind == "date" else column


def _position(place: int) -> str:
    return f'"${place}"'


def _first_line(error: duckdb.Error) -> str:
    return "".join(c for c in str(error).partition("\n")[0][:200] if c.isprintable())


@contextmanager
def _database(
    query: After, tables: Mapping[str, Mapping[str, NDArray[Any]]], *, lock: bool = True
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a locked database with the released tables and the public ones, and stop it when it takes too long."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": MEMORY,
        "enable_external_access": False,
        "python_enable_replacements": False,
        "error_on_division_by_zero": False,
    }
    with duckdb.connect(":memory:", config=config) as connection:
        for table in query.released:
            _load(connection, table.name, dict(table.columns), tables[table.name], numbered=True)
        for public in query.public:
            kinds = {column.name: column.kind for column in public.columns if not column.hidden}
            arrays = {name: np.array([as_text(v) for v in public.rows[name]], dtype=object) for name in kinds}
            _load(connection, public.name, kinds, arrays, numbered=False)
        if lock:
            connection.execute("SET lock_configuration = true")
        with _time_limit(connection):
            yield connection


def as_text(value: object) -> str | None:
    """Write a value as text, which is cast to its type exactly; a fraction is the double that queries read."""
    if isinstance(value, Fraction):
        return repr(float(value))
    return value if value is None or isinstance(value, str) else str(value)


def _load(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    kinds: Mapping[str, Kind],
    columns: Mapping[str, NDArray[Any]],
    *,
    numbered: bool,
) -> None:
    """Create a table of typed columns, with the `numbered` rows; numbers that are not finite become NULL."""
    count = len(next(iter(columns.values()), ()))
    arrays = {f"c{place}": _with_none(columns[column]) for place, column in enumerate(kinds)}
    casts = [_cast(f"c{place}", kind) for place, kind in enumerate(kinds.values())]
    connection.register("arrays", arrays | {ROW: np.arange(count)})
    names = [DUCKDB.identifier(column) for column in kinds]
    row = DUCKDB.identifier(ROW)
    chosen = [f"{each} AS {written}" for each, written in zip(casts, names, strict=True)] + [row] * numbered
    connection.execute(
        f"CREATE TABLE {DUCKDB.identifier(name)} AS SELECT {', '.join(chosen)} FROM arrays ORDER BY arrays.{row}"
    )
    connection.unregister("arrays")


def _cast(column: str, kind: Kind) -> str:
    # an integer is one here too, so that its text is `3` and not `3.0`
    text = f"TRY_CAST({column} AS {'BIGINT' if kind is Kind.INTEGER else DUCKDB.types[kind]})"
    return f"CASE WHEN isfinite({text}) THEN {text} END" if kind is Kind.REAL else text


def _with_none(column: NDArray[Any]) -> NDArray[Any]:
    if isinstance(column, np.ma.MaskedArray):
        plain = column.data.astype(object)
        plain[np.ma.getmaskarray(column)] = None
        return plain
    return column


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    ended = Event()

    def watch() -> None:
        if not ended.wait(MAX_SECONDS):
            while not ended.wait(0.05):
                connection.interrupt()

    watcher = Thread(target=watch, name="hubbub-after", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
