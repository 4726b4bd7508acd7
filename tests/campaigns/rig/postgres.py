"""Copy DuckDB tables to a real PostgreSQL, and open an engine on them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import psycopg
from tests.accounting.postgres_server import Server

from hubbub.core.schema import Table
from hubbub.engines.base import DataSource, EngineLimits, View, identifier, locate
from hubbub.engines.postgres.connection import PostgresEngine

TYPES = {
    "BIGINT": "bigint",
    "INTEGER": "integer",
    "SMALLINT": "smallint",
    "TINYINT": "smallint",
    "DOUBLE": "float8",
    "FLOAT": "float4",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}


def address(server: Server, database: str, table: str, role: str = "hubbub") -> str:
    """Return the source of a table as in hubbub.yaml."""
    return f"postgresql://{role}@/{database}/{table}?host={server.home}"


def place(server: Server, database: str, table: str) -> DataSource:
    """Return the data source of a table."""
    return locate(address(server, database, table), "source", base=Path(), name=table)


def copied(source: duckdb.DuckDBPyConnection, names: Iterable[str], server: Server, database: str) -> None:
    """Copy tables; values that PostgreSQL cannot store (zero bytes, distant dates) become the nearest ones."""
    with psycopg.connect(server.dsn(database), autocommit=True) as target, TemporaryDirectory() as folder:
        for name in names:
            described = source.execute(f"DESCRIBE {identifier(name)}").fetchall()
            types = {column: TYPES.get(kind, "numeric") for column, kind, *_ in described}
            columns = ", ".join(f"{identifier(column)} {kind}" for column, kind in types.items())
            shown = ", ".join(_shown(identifier(column), kind) for column, kind in types.items())
            target.execute(f"DROP TABLE IF EXISTS {identifier(name)}".encode())
            target.execute(f"CREATE TABLE {identifier(name)} ({columns})".encode())
            path = Path(folder) / "rows.csv"
            source.execute(
                f"COPY (SELECT {shown} FROM {identifier(name)}) TO '{path}' (FORMAT csv, HEADER false, NULLSTR '\\N')"
            )
            with (
                target.cursor().copy(f"COPY {identifier(name)} FROM STDIN (FORMAT csv, NULL '\\N')".encode()) as copy,
                path.open("rb") as rows,
            ):
                while block := rows.read(1 << 20):
                    copy.write(block)
            target.execute(f"ANALYZE {identifier(name)}".encode())


def _shown(column: str, kind: str) -> str:
    if kind == "text":
        return f"replace({column}, chr(0), chr(1))"
    if kind in ("date", "timestamp"):
        last = "5874897-12-31" if kind == "date" else "294276-12-31 23:59:59.999999"
        return (
            f"CASE WHEN isfinite({column}) AND year({column}) < 1 THEN '4713-01-01 BC' "
            f"WHEN isfinite({column}) AND year({column}) > 9999 THEN '{last}' ELSE CAST({column} AS VARCHAR) END"
        )
    return column


def engine(tables: Mapping[str, Table], server: Server, database: str) -> PostgresEngine:
    """Open the engine on copied tables."""
    views = []
    for name, table in tables.items():
        unit = table.unit.column if table.unit else None
        shown = tuple(
            (column.name, column.kind) for column in table.columns if not column.hidden or column.name == unit
        )
        views.append(View(name, place(server, database, f"public.{name}"), shown))
    return PostgresEngine(views, limits=EngineLimits(seconds=120))
