"""The catalog as an in-memory database that was never given any data: one for each set of declarations.

Theorem (Catalog). What a question about the catalog is answered is a function of its text, of the declarations that the
analyst may see, and of the analyst's own budget and releases.
Proof    It runs in a database of its own, which was filled from declarations and is then locked: no file, no network,
         no extension, no setting. Every table and function of a question is on a list.
Assumes  DuckDB's `enable_external_access` and `lock_configuration`.   Charges  nothing.
Tested   tests/gateway/test_catalog.py::test_a_question_reaches_nothing_outside_the_catalog
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import duckdb
from sqlglot import exp

from hubbub.answers.statements import Result as Statement
from hubbub.errors import ParameterError
from hubbub.gateway.catalog import functions
from hubbub.gateway.catalog.contents import PgTable, known_tables, rows
from hubbub.gateway.catalog.translate import Names, translate
from hubbub.gateway.result import PgResult
from hubbub.gateway.values import BOOL, DATE, FLOAT8, INT2, INT4, INT8, STRING, STRINGS, TIMESTAMP, PgType, array_of
from hubbub.gateway.variables import SETTINGS

#: Seconds that a question may take, and rows that it may give.
SECONDS, MAX_ROWS = 5.0, 100_000
#: Databases that are kept; the least recently used is closed first.
_KEPT = 8
_MEMORY = "64MB"
_PG_TYPES: dict[str, PgType] = {
    "BOOLEAN": BOOL,
    "TINYINT": INT2,
    "SMALLINT": INT2,
    "INTEGER": INT4,
    "BIGINT": INT8,
    "HUGEINT": INT8,
    "UINTEGER": INT8,
    "UBIGINT": INT8,
    "FLOAT": FLOAT8,
    "DOUBLE": FLOAT8,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
}


_CLASSES: dict[type, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "VARCHAR",
    date: "DATE",
    datetime: "TIMESTAMP",
}
_BATCH = 50
#: Gives a table of the schema hubbub, or None if there is none.
Own = Callable[[str], Statement | None]


class CatalogDatabase:
    """Answers questions about one set of declarations. Thread-safe."""

    def __init__(self, tables: Sequence[PgTable]) -> None:
        self._root = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": _MEMORY})
        self._fill(tables)
        for setting in (
            "SET max_temp_directory_size = '0B'",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._root.execute(setting)

    def _fill(self, tables: Sequence[PgTable]) -> None:
        filled = rows(tables) | {"pg_catalog.pg_settings": SETTINGS}
        statements = ["CREATE SCHEMA pgc", "CREATE SCHEMA pgi"]
        for name, columns in known_tables().items():
            schema, _, table = name.partition(".")
            written = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
            place = f'{"pgc" if schema == "pg_catalog" else "pgi"}."{table}"'
            statements.append(f"CREATE TABLE {place} ({written})")
            for row in filled.get(name, []):
                values = ", ".join(_literal(value) for value in row.values())
                names = ", ".join(f'"{column}"' for column in row)
                statements.append(f"INSERT INTO {place} ({names}) VALUES ({values})")  # noqa: S608 - of declarations
        statements += functions.macros()
        self._root.execute("BEGIN")
        self._root.execute(";\n".join(statements))
        self._root.execute("COMMIT")

    def answer(self, tree: exp.Expr, parameters: Sequence[Any], names: Names, own: Own) -> PgResult:
        """Answer a question; `own` gives the tables of the schema hubbub."""
        connection = self._root.cursor()
        try:
            sql, used = translate(tree, names, lambda name: _load(connection, name.lower(), own(name)))
        except BaseException:
            connection.close()
            raise
        stop = threading.Timer(SECONDS, connection.interrupt)
        stop.daemon = True
        stop.start()
        try:
            given = {str(place): each for place, each in enumerate(_arrays(tree, parameters), 1) if place in used}
            connection.execute(sql, given)
            described = connection.description or []
            fetched = connection.fetchmany(MAX_ROWS)
        except duckdb.Error as error:
            raise ParameterError(
                "HB810",
                f"This question about the catalog cannot be answered ({type(error).__name__}). Nothing was charged.",
                "Ask information_schema.tables, information_schema.columns, or hubbub.columns.",
            ) from None
        finally:
            stop.cancel()
            connection.close()
        columns = tuple((str(each[0]), _type(str(each[1]))) for each in described)
        return PgResult(columns, [tuple(map(_cell, row, columns)) for row in fetched])

    def close(self) -> None:
        """Close the database."""
        self._root.close()


def _arrays(tree: exp.Expr, parameters: Sequence[Any]) -> list[Any]:
    """Read the parameters that are arrays, which clients may write as text."""
    named: list[exp.Parameter] = list(tree.find_all(exp.Parameter))
    listed = {int(node.name) for node in named if node.name.isdecimal() and _in_any(node)}
    return [
        array_of(value) if place in listed and isinstance(value, str) else value
        for place, value in enumerate(parameters, 1)
    ]


def _in_any(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Cast | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Any | exp.All)


def _load(connection: duckdb.DuckDBPyConnection, name: str, table: Statement | None) -> str | None:
    """Put a table into the temporary schema of a connection; return the SQL that reads it."""
    if table is None:
        return None
    columns = ", ".join(f'"{column}" {_CLASSES[kind]}' for column, kind in table.names)
    connection.execute(f'CREATE TEMP TABLE IF NOT EXISTS "{name}" ({columns})')
    marks = ", ".join("?" for _ in table.names)
    for start in range(0, len(table.rows), _BATCH):
        part = table.rows[start : start + _BATCH]
        connection.execute(
            f'INSERT INTO temp."{name}" VALUES {", ".join(f"({marks})" for _ in part)}',  # noqa: S608 - our names
            [value for row in part for value in row],
        )
    return f'SELECT * FROM temp."{name}"'  # noqa: S608


def _type(name: str) -> PgType:
    if name.endswith("]"):
        return STRINGS
    return FLOAT8 if name.startswith("DECIMAL") else _PG_TYPES.get(name, STRING)


def _cell(value: Any, column: tuple[str, PgType]) -> Any:
    kind = column[1]
    if kind is STRINGS and value:
        return [None if each is None else str(each) for each in value]
    if value is None or isinstance(value, kind.python):
        return value
    return float(value) if kind is FLOAT8 else str(value)


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


class Catalogs:
    """The databases that were asked lately."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[PgTable, ...], CatalogDatabase] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, tables: tuple[PgTable, ...]) -> CatalogDatabase:
        """Return the database of these tables."""
        with self._lock:
            if tables not in self._kept:
                self._kept[tables] = CatalogDatabase(tables)
            self._kept.move_to_end(tables)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)  # closed when the last question that uses it has ended
            return self._kept[tables]
