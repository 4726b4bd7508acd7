"""Reject views of DuckDB files whose rows can change although the file does not: now(), random(), samples.

Tested in tests/engines/test_views.py.
"""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import duckdb

from hubbub.engines.base import UnreachableError, unsteady_view

#: Keywords that are functions where no column has their name.
_KEYWORDS = frozenset(
    {
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
        *("current_user", "current_role", "session_user", "user", "current_catalog", "current_schema"),
    }
)
#: Functions that make tables from their arguments alone.
_TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest"})


def check_views(connection: duckdb.DuckDBPyConnection, catalog: str, table: str) -> None:
    """Raise an error if a table or view of an attached database gives different rows on the same file."""
    _DuckDBViews(connection, catalog).check_table(table)


class _DuckDBViews:
    """The views, macros and generated columns of one attached database."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, catalog: str) -> None:
        self._connection = connection
        rows = connection.execute("SELECT view_name, sql FROM duckdb_views() WHERE database_name = ?", [catalog])
        self._views = {name.lower(): sql for name, sql in rows.fetchall()}
        columns = connection.execute(
            "SELECT table_name, column_name, generation_expression FROM duckdb_columns() WHERE database_name = ?",
            [catalog],
        ).fetchall()
        self._columns = {column.lower() for _, column, _ in columns}
        self._generated: dict[str, list[str]] = {}
        for table, _, expression in columns:
            self._generated.setdefault(table.lower(), []).extend([expression] if expression else [])
        self._catalog = catalog
        self._seen: set[str] = set()

    @cached_property
    def _functions(self) -> dict[str, tuple[set[str | None], list[str]]]:
        """The stability of each function and the texts of each macro; only a view or a generated column needs them."""
        rows = self._connection.execute(
            "SELECT function_name, stability, macro_definition FROM duckdb_functions()"
            " WHERE database_name IN (?, 'system') AND function_type IN ('scalar', 'aggregate', 'macro')",
            [self._catalog],
        ).fetchall()
        functions: dict[str, tuple[set[str | None], list[str]]] = {}
        for name, stability, definition in rows:
            known, definitions = functions.setdefault(name.lower(), (set(), []))
            known.add("CONSISTENT" if definition else stability)
            definitions.extend([definition] if definition else [])
        return functions

    def check_table(self, name: str) -> None:
        """Check a table with its generated columns, or a view with everything that it reads."""
        name = name.lower()
        if name in self._seen:
            return
        self._seen.add(name)
        sql = self._views.get(name)
        if sql is not None:
            self._check_text(sql.partition(" AS ")[2].rstrip("; \n"))
        for expression in self._generated.get(name, ()):
            self._check_text(f"SELECT {expression}")

    def _check_text(self, text: str) -> None:
        row = self._connection.execute("SELECT json_serialize_sql(?)", [text]).fetchone()
        tree = json.loads(row[0]) if row is not None else {"error": True}
        if tree["error"]:
            raise UnreachableError("its view cannot be checked for functions such as now()", "Copy it into a table.")
        nodes = list(_nodes(tree))
        ctes = {str(node["key"]).lower() for node in nodes if {"key", "value"} <= node.keys()}
        table_functions = [node["function"] for node in nodes if node.get("type") == "TABLE_FUNCTION"]
        for function in table_functions:
            if str(function["function_name"]).lower() not in _TABLE_FUNCTIONS:
                raise unsteady_view(f"{function['function_name']}()")
        for node in nodes:
            if node.get("sample"):
                raise unsteady_view("TABLESAMPLE")
            if node.get("type") == "BASE_TABLE":
                self._check_source(node, ctes)
            elif node.get("class") == "COLUMN_REF":
                word = str(node["column_names"][-1]).lower()
                if len(node["column_names"]) == 1 and word in _KEYWORDS - self._columns:
                    raise unsteady_view(word.upper())
            elif "function_name" in node and not any(node is function for function in table_functions):
                self._check_function(node)

    def _check_source(self, node: dict[str, Any], ctes: set[str]) -> None:
        name = str(node["table_name"]).lower()
        if name in self._generated and not node["catalog_name"]:
            self.check_table(name)
        elif name not in ctes:
            raise UnreachableError(
                "its view reads something that is not a table of the same file", "Copy the view into a table."
            )

    def _check_function(self, node: dict[str, Any]) -> None:
        name = str(node["function_name"]).lower()
        arguments = node.get("arguments", node.get("children", ()))
        # DuckDB calls age(x) consistent, but it is the time from x until now
        stability, definitions = self._functions.get(name, (set[str | None](), []))
        if stability != {"CONSISTENT"} or (name == "age" and len(arguments) < 2):
            raise unsteady_view(f"{name}()")
        if name not in self._seen:
            self._seen.add(name)
            for definition in definitions:
                self._check_text(f"SELECT {definition}")


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for part in tree.values():
            yield from _nodes(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)
