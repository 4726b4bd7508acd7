"""Read the tables of a DuckDB file with their constraints from its catalog, never a value.

Tested in tests/cli/test_init_database.py.
"""

from pathlib import Path

import duckdb

from hubbub.engines.base import DataSource, identifier
from hubbub.engines.constraints import CatalogTable, ForeignKey, read_checks
from hubbub.engines.duckdb.database import schema
from hubbub.errors import ConfigError


def read_tables(path: Path) -> list[CatalogTable]:
    """Read all tables of the main schema of a database file."""
    try:
        with duckdb.connect(str(path), read_only=True, config={"python_enable_replacements": "false"}) as connection:
            names = connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal ORDER BY 1"
            ).fetchall()
            rows = connection.execute(
                "SELECT table_name, constraint_type, constraint_column_names, referenced_table,"
                " referenced_column_names, expression FROM duckdb_constraints() WHERE schema_name = 'main'"
                " ORDER BY constraint_type <> 'PRIMARY KEY', constraint_index"
            ).fetchall()
    except duckdb.Error:
        raise ConfigError(
            "HB411", f"{path} is not a readable duckdb file.", "Check the path, and close other programs that write it."
        ) from None
    return [_table(path, name, [row[1:] for row in rows if row[0] == name]) for (name,) in names]


def _table(path: Path, name: str, rows: list[tuple[object, ...]]) -> CatalogTable:
    fields = schema(DataSource("duckdb", path, name))
    keys: list[tuple[str, ...]] = []
    references: list[ForeignKey] = []
    checks: list[str] = []
    required: set[str] = set()
    for kind, columns, target, others, text in rows:
        listed = tuple(columns) if isinstance(columns, list) else ()
        if kind in ("PRIMARY KEY", "UNIQUE"):
            keys.append(listed)
        elif kind == "NOT NULL":
            required |= set(listed)
        elif kind == "FOREIGN KEY":
            references.append(ForeignKey(listed, str(target), tuple(others) if isinstance(others, list) else ()))
        elif isinstance(text, str):
            checks.append(text)
    # the type of an enum lists its labels: ENUM('a', 'b')
    enums = [f"{identifier(f.name)} IN {f.type.removeprefix('ENUM')}" for f in fields if f.type.startswith("ENUM(")]
    values, bounds = read_checks([*checks, *enums], "duckdb")
    return CatalogTable(name, fields, tuple(keys), tuple(references), frozenset(required), values, bounds)
