"""The SQLAlchemy dialect `hubbub+pg://`: read only, over the PostgreSQL port, with psycopg.

    create_engine("hubbub+pg://ana:hub_…@data.example.org:5433?epsilon=0.1")

The user is the analyst, and the token is the password. Settings of hubbub, such as `epsilon`, follow the question mark;
all other options are those of psycopg, such as `sslmode`.

Tested in tests/client/test_sqlalchemy_postgres.py.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg
from sqlalchemy.engine.url import URL
from sqlalchemy.sql.compiler import DDLCompiler

from hubbub.errors import ParameterError

#: Settings of hubbub that a URL can have.
_SETTINGS = ("epsilon", "within", "delta", "groups", "rows", "raw", "dialect", "intervals")
_PORT = 5433


class HubbubPostgresCompiler(PGCompiler_psycopg):  # type: ignore[misc]  # its types are not read
    """Writes LIMIT as a number, because a query has a fixed number of rows before it runs; and nothing but queries."""

    def limit_clause(self, select: Any, **options: Any) -> str:
        """Write LIMIT and OFFSET."""
        return str(super().limit_clause(select, **{**options, "literal_binds": True}))

    def _refused(self, statement: Any, *_: Any, **__: Any) -> str:
        """Refuse a statement that writes, before anything is sent."""
        del statement
        raise _read_only()

    visit_insert = _refused
    visit_update = _refused
    visit_delete = _refused


class HubbubPostgresDDL(DDLCompiler):  # type: ignore[misc]
    """Refuses every statement that would create or change something."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise _read_only()


class HubbubPostgresDialect(PGDialect_psycopg):  # type: ignore[misc]
    """Queries of one analyst over the PostgreSQL port; reflection reads declarations."""

    name = "postgresql"
    driver = "pg"
    statement_compiler = HubbubPostgresCompiler
    ddl_compiler = HubbubPostgresDDL
    supports_alter = False
    supports_statement_cache = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"use_native_hstore": False, **options})

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Read the address, the analyst, the token and the settings from a URL."""
        if not url.host or not url.username or not url.password:
            raise ParameterError(
                "HB820",
                "The URL has no host, no analyst or no token.",
                "Write hubbub+pg://ana:TOKEN@data.example.org:5433?epsilon=0.1",
            )
        settings, others = _divided(url.query)
        arguments: dict[str, Any] = {
            "host": url.host,
            "port": url.port or _PORT,
            "user": url.username,
            "password": url.password,
            "dbname": url.database or "hubbub",
            **others,
        }
        given = [others["options"]] if "options" in others else []
        given += [f"-c hubbub.{name}={value}" for name, value in settings.items()]
        if given:
            arguments["options"] = " ".join(given)
        return [], arguments


def _divided(query: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Divide the options of a URL: settings of hubbub, and options of psycopg."""
    plain = {name: value if isinstance(value, str) else value[-1] for name, value in query.items()}
    settings = {name: value for name, value in plain.items() if name in _SETTINGS}
    for name, value in settings.items():
        if not value or any(not each.isprintable() or each.isspace() or each in "\\'" for each in value):
            raise ParameterError(
                "HB821", f"The value of {name} in the URL is not valid.", "Write it as in epsilon=0.1."
            )
    return settings, {name: value for name, value in plain.items() if name not in _SETTINGS}


def _read_only() -> ParameterError:
    return ParameterError("HB822", "Nothing can be written through hubbub.", "Send a SELECT or a CALL.")
