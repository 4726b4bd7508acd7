"""The SQLAlchemy dialect `hubbub+http://` (and `hubbub+https://`): read only, over `hubbub.dbapi`.

    create_engine("hubbub+https://:hub_…@data.example.org?epsilon=0.1")

The token is the password. Settings of the connection, such as `epsilon`, follow the question mark.

Tested in tests/client/test_sqlalchemy.py.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from sqlalchemy import types
from sqlalchemy.engine import default
from sqlalchemy.engine.url import URL
from sqlalchemy.sql.compiler import SQLCompiler

from hubbub.client import dbapi
from hubbub.core.schema import Table
from hubbub.errors import ParameterError

_TYPES: Mapping[str, type[types.TypeEngine[Any]]] = {
    "boolean": types.Boolean,
    "integer": types.BigInteger,
    "real": types.Float,
    "text": types.String,
    "date": types.Date,
    "timestamp": types.DateTime,
}


class HubbubCompiler(SQLCompiler):  # type: ignore[misc]  # its types are not read
    """Writes LIMIT as a number, because a query has a fixed number of rows before it runs."""

    def limit_clause(self, select: Any, **options: Any) -> str:
        """Write LIMIT and OFFSET."""
        return str(super().limit_clause(select, **{**options, "literal_binds": True}))


class HubbubDialect(default.DefaultDialect):  # type: ignore[misc]
    """Queries of one analyst; there is nothing to write, and no transaction."""

    name = "hubbub"
    driver = "http"
    default_paramstyle = "qmark"
    statement_compiler = HubbubCompiler
    supports_alter = False
    supports_sane_rowcount = False
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = False
    returns_native_bytes = False
    postfetch_lastrowid = False
    max_identifier_length = 1000

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return the DB-API module."""
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Read the address, the token and the settings from a URL."""
        if not url.host or not url.password:
            raise ParameterError(
                "HB838", "The URL has no host or no token.", "Write hubbub+https://:TOKEN@data.example.org?epsilon=0.1"
            )
        scheme = "http" if url.drivername.endswith("+http") else "https"
        host = f"[{url.host}]" if ":" in url.host else url.host
        address = f"{scheme}://{host}" + (f":{url.port}" if url.port else "")
        settings = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
        return [address, url.password], dict(settings)

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: charges are never taken back."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Do nothing: each query is final."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Ask for the datasets, which is free."""
        dbapi_connection.session.datasets()
        return True

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """List the datasets."""
        del schema
        return list(_session(connection).datasets())

    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """Return nothing: all datasets are tables."""
        del connection, schema
        return []

    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:
        """Return the one schema."""
        del connection
        return ["main"]

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        """Return whether a dataset can be queried."""
        return table_name in self.get_table_names(connection, schema)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        """List the columns of a dataset, from its declarations."""
        del schema
        table: Table = _session(connection).describe(table_name)
        return [
            {"name": column.name, "type": _TYPES[column.kind.value](), "nullable": True, "default": None}
            for column in table.columns
            if not column.hidden
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        """Return no key."""
        del connection, table_name, schema
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        """Return no keys."""
        del connection, table_name, schema
        return []

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        """Return no indexes."""
        del connection, table_name, schema
        return []


def _session(connection: Any) -> Any:
    return connection.connection.dbapi_connection.session
