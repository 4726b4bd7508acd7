"""The registry of engines: one entry per engine with its source forms, connection, schema reader and dialect."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One engine. Objects are named `module:attribute` and imported on first use, because clients are optional.

    forms        the forms of `DataSource` that it reads
    is_server    whether the data stays on a server; otherwise it is in files
    connection   the class that runs queries
    schema       the function that reads the columns of a table
    dialect      the SQL dialect, in `hubbub.sql.dialects`
    copy         the class that copies the tables first, or empty
    """

    name: str
    forms: tuple[str, ...]
    is_server: bool
    connection: str
    schema: str
    dialect: str
    copy: str = ""

    def load_connection(self) -> Any:
        """Import the class that runs queries."""
        return _load(self.connection)

    def load_copy(self) -> Any:
        """Import the class that copies the tables before it runs queries."""
        return _load(self.copy)

    def load_schema_reader(self) -> Any:
        """Import the function that reads the columns of a table."""
        return _load(self.schema)

    def load_dialect(self) -> Any:
        """Import the SQL dialect."""
        return _load(self.dialect)


ENGINES = (
    EngineEntry(
        "duckdb",
        ("csv", "parquet", "delta", "hive", "duckdb", "sqlite"),
        is_server=False,
        connection="hubbub.engines.duckdb.connection:DuckDBEngine",
        schema="hubbub.engines.duckdb.database:schema",
        dialect="hubbub.sql.dialects.duckdb:DUCKDB",
    ),
    EngineEntry(
        "postgres",
        ("postgres",),
        is_server=True,
        connection="hubbub.engines.postgres.connection:PostgresEngine",
        schema="hubbub.engines.postgres.catalog:schema",
        dialect="hubbub.sql.dialects.postgres:POSTGRES",
        copy="hubbub.engines.postgres.copied:CopiedEngine",
    ),
    EngineEntry(
        "spark",
        ("spark",),
        is_server=True,
        connection="hubbub.engines.spark.connection:SparkEngine",
        schema="hubbub.engines.spark.catalog:schema",
        dialect="hubbub.sql.dialects.spark:SPARK",
    ),
)


def engine_named(name: str) -> EngineEntry:
    """Return the engine of this name.

    >>> engine_named("postgres").is_server
    True
    """
    return next(entry for entry in ENGINES if entry.name == name)


def engine_of_form(form: str) -> EngineEntry:
    """Return the engine that reads this form of source.

    >>> engine_of_form("csv").name
    'duckdb'
    """
    return next(entry for entry in ENGINES if form in entry.forms)


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
