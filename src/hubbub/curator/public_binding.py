"""Find unknown columns and functions of a query on public tables before it runs.

Tested in tests/curator/test_public_query.py.
"""

import re
from collections.abc import Mapping, Sequence

import duckdb

from hubbub.core.schema import Kind
from hubbub.engines.base import View, identifier
from hubbub.errors import QueryError

#: The type of a column of each kind.
TYPES: Mapping[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
_COLUMN = re.compile(r'(?:Referenced column|does not have a column named) "([^"]+)"')
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": "false",
    "enable_external_access": "false",
    "memory_limit": "200MB",
}


def check_binding(sql: str, views: Sequence[View]) -> None:
    """Raise an error that names an unknown column or function. The tables are empty, so the error contains no data."""
    with duckdb.connect(":memory:", config=_CONFIG) as connection:
        # an optimizer would compute constants, such as a very long text, without a limit on time
        connection.execute("PRAGMA disable_optimizer")
        for view in views:
            columns = ", ".join(f"{identifier(name)} {TYPES[kind]}" for name, kind in view.columns)
            connection.execute(f"CREATE TABLE {identifier(view.name)} ({columns})")
        try:
            connection.execute(f"EXPLAIN {sql}")
        except duckdb.BinderException as error:
            reason = str(error)
        except duckdb.Error:
            return  # the query itself reports it
        else:
            return
    match = _COLUMN.search(reason)
    what = (
        f"unknown column {match[1]!r}" if match else reason.splitlines()[0].removeprefix("Binder Error: ").rstrip(".")
    )
    known = "; ".join(f"{view.name} has {', '.join(name for name, _ in view.columns)}" for view in views)
    raise QueryError("HB770", f"The query on public tables cannot be read: {what}.", f"Available columns: {known}.")
