"""Clients of Python. Each is a function that takes the address and returns what each step gave."""

import asyncio
import os
import shutil
import subprocess
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tests.campaigns.clients import steps
from tests.campaigns.clients.steps import Lines, Rows, walk


@dataclass(frozen=True)
class Address:
    """Where the port is, and who signs in."""

    port: int
    user: str
    token: str
    host: str = "127.0.0.1"
    database: str = "hubbub"

    def url(self, scheme: str) -> str:
        """Write a URL."""
        return f"{scheme}://{self.user}:{self.token}@{self.host}:{self.port}/{self.database}"

    def environment(self) -> dict[str, str]:
        """Return the variables that libpq and the programs beside this file read."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": self.user,
            "PGPASSWORD": self.token,
            "PGDATABASE": self.database,
            **{f"HUBBUB_{name}": text for name, text in steps.STATEMENTS.items()},
        }


def psql(address: Address) -> Lines:
    """Run one psql, with all statements on its input: the backslash commands ask the catalog."""
    script = [
        f"{steps.PRICE};",
        f"\\echo @sign in\n{steps.ONE};",
        "\\echo @tables\n\\dt",
        "\\echo @columns\n\\d visits",
        f"\\echo @explain\n{steps.EXPLAIN};",
        f"\\echo @priced\n{steps.COUNTS};",
        f"\\echo @again\n{steps.COUNTS};",
        f"{steps.REFUSED};\n\\echo @refused\n\\echo :LAST_ERROR_MESSAGE",
        f"\\echo @after\n{steps.ONE};",
        f"\\echo @types\n{steps.TYPES};",
        f"\\set age {steps.LIMIT}\n\\echo @prepared\n{steps.PREPARED}:age;",
    ]
    ended = subprocess.run(
        ["psql", "-XAtq"],
        input="\n".join([*script, ""]),
        env=os.environ | address.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = {}
    for part in ended.stdout.split("@")[1:]:
        name, _, rest = part.partition("\n")
        cells = [row.split("|") for row in rest.splitlines() if row]
        place = {"tables": 1, "columns": 0}.get(name)
        lines[name] = steps.text(cells if place is None else [[row[place]] for row in cells])
    return lines


def psycopg(address: Address) -> Lines:
    """psycopg, sync."""
    import psycopg as driver

    with driver.connect(address.url("postgresql"), autocommit=True) as connection:
        return walk(
            lambda sql: connection.execute(sql).fetchall(),
            lambda sql, limit: connection.execute(sql, (limit,), prepare=True).fetchall(),
            placeholder="%s",
            execute=connection.execute,
        )


def psycopg_async(address: Address) -> Lines:
    """psycopg, async."""
    import psycopg as driver

    with asyncio.Runner() as runner:

        async def ask(sql: str, *given: object) -> Rows:
            return await (await connection.execute(sql, given or None)).fetchall()

        connection = runner.run(driver.AsyncConnection.connect(address.url("postgresql"), autocommit=True))
        try:
            return walk(
                lambda sql: runner.run(ask(sql)),
                lambda sql, limit: runner.run(ask(sql, limit)),
                placeholder="%s",
                execute=lambda sql: runner.run(connection.execute(sql)),
            )
        finally:
            runner.run(connection.close())


def psycopg_pipeline(address: Address) -> Lines:
    """psycopg, in pipelines; what follows a refusal in its pipeline is not run."""
    import psycopg as driver

    with driver.connect(address.url("postgresql"), autocommit=True) as connection:

        def ask(sql: str, *given: object) -> Rows:
            with connection.pipeline():
                last = [connection.execute(each, given or None) for each in (sql, sql)][-1]
                return last.fetchall()

        def execute(sql: str) -> object:
            with connection.pipeline():
                return connection.execute(sql)

        return walk(ask, ask, placeholder="%s", execute=execute)


def asyncpg(address: Address) -> Lines:
    """asyncpg."""
    import asyncpg as driver

    with asyncio.Runner() as runner:
        connection = runner.run(driver.connect(address.url("postgresql")))
        try:
            return walk(
                lambda sql: runner.run(connection.fetch(sql)),
                lambda sql, limit: runner.run(connection.fetch(sql, limit)),
                placeholder="$1",
                execute=lambda sql: runner.run(connection.execute(sql)),
            )
        finally:
            runner.run(connection.close())


def pg8000(address: Address) -> Lines:
    """pg8000."""
    import pg8000.native as driver

    with driver.Connection(
        address.user, host=address.host, port=address.port, password=address.token, database=address.database
    ) as connection:
        return walk(
            lambda sql: connection.run(sql) or [],
            lambda sql, limit: connection.run(sql, age=limit),
            placeholder=":age",
        )


def sqlalchemy_pandas(address: Address) -> Lines:
    """pandas.read_sql over SQLAlchemy's own dialect of psycopg."""
    return _sqlalchemy(address.url("postgresql+psycopg"))


def hubbub_pg(address: Address) -> Lines:
    """pandas.read_sql over `hubbub+pg://`."""
    from sqlalchemy.dialects import registry

    registry.register("hubbub.pg", "hubbub.client.sqlalchemy_postgres", "HubbubPostgresDialect")
    return _sqlalchemy(address.url("hubbub+pg"))


def _sqlalchemy(url: str) -> Lines:
    import pandas
    import sqlalchemy

    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    inspector = sqlalchemy.inspect(engine)
    with engine.connect() as connection:

        def read(sql: str, limit: int | None = None) -> Rows:
            frame = pandas.read_sql(sqlalchemy.text(sql), connection, params=None if limit is None else {"age": limit})
            return [tuple(row) for row in frame.itertuples(index=False)]

        lines = walk(
            read,
            read,
            placeholder=":age",
            execute=lambda sql: connection.execute(sqlalchemy.text(sql)),
            tables=lambda: sorted(inspector.get_table_names()),
            columns=lambda: [column["name"] for column in inspector.get_columns("visits")],
        )
    engine.dispose()
    return lines


def polars(address: Address) -> Lines:
    """polars.read_database over psycopg."""
    import polars as frames
    import psycopg as driver

    with driver.connect(address.url("postgresql"), autocommit=True) as connection:

        def read(sql: str, limit: int | None = None) -> Rows:
            options = None if limit is None else {"params": (limit,)}
            return frames.read_database(sql, connection, execute_options=options).rows()

        return walk(read, read, placeholder="%s", execute=connection.execute)


def adbc(address: Address) -> Lines:
    """ADBC: Arrow tables by binary COPY."""
    from adbc_driver_postgresql import dbapi as driver

    with driver.connect(address.url("postgresql"), autocommit=True) as connection, connection.cursor() as cursor:

        def ask(sql: str, limit: int | None = None) -> Rows:
            copied = sql != steps.EXPLAIN  # PostgreSQL has no COPY of EXPLAIN either
            cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": str(copied).lower()})
            cursor.execute(sql, None if limit is None else (limit,))
            return [tuple(row.values()) for row in cursor.fetch_arrow_table().to_pylist()]

        def schemas() -> list[Any]:
            listed = connection.adbc_get_objects(depth="columns").read_all().to_pylist()
            return [each for catalog in listed for each in catalog["catalog_db_schemas"]]

        def tables() -> list[Any]:
            return [
                each
                for schema in schemas()
                if schema["db_schema_name"] == "public"
                for each in schema["db_schema_tables"]
            ]

        return walk(
            ask,
            ask,
            placeholder="$1",
            tables=lambda: sorted(each["table_name"] for each in tables()),
            columns=lambda: [
                column["column_name"]
                for each in tables()
                if each["table_name"] == "visits"
                for column in sorted(each["table_columns"], key=lambda column: column["ordinal_position"])
            ],
            execute=cursor.execute,
        )


def odbc(address: Address) -> Lines:
    """ODBC: psqlodbc by unixODBC and pyodbc."""
    import pyodbc as driver

    parts = {
        "DRIVER": "{PostgreSQL Unicode}",
        "SERVER": address.host,
        "PORT": address.port,
        "UID": address.user,
        "PWD": address.token,
        "DATABASE": address.database,
    }
    with closing(driver.connect(";".join(f"{name}={value}" for name, value in parts.items()), autocommit=True)) as made:
        cursor = made.cursor()
        return walk(
            lambda sql: cursor.execute(sql).fetchall(),
            lambda sql, limit: cursor.execute(sql, limit).fetchall(),
            placeholder="?",
            execute=cursor.execute,
            tables=lambda: sorted(row.table_name for row in cursor.tables(schema="public")),
            columns=lambda: [row.column_name for row in cursor.columns(table="visits")],
        )


CLIENTS: Mapping[str, Callable[[Address], Lines]] = {
    "psql": psql,
    "psycopg": psycopg,
    "psycopg, async": psycopg_async,
    "psycopg, pipeline": psycopg_pipeline,
    "asyncpg": asyncpg,
    "pg8000": pg8000,
    "SQLAlchemy and pandas": sqlalchemy_pandas,
    "hubbub+pg:// and pandas": hubbub_pg,
    "polars": polars,
    "ADBC": adbc,
    "ODBC (psqlodbc, pyodbc)": odbc,
}

#: The packages that a client needs, whose versions the table has.
_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "psycopg": ("psycopg",),
    "psycopg, async": ("psycopg",),
    "psycopg, pipeline": ("psycopg",),
    "asyncpg": ("asyncpg",),
    "pg8000": ("pg8000",),
    "SQLAlchemy and pandas": ("SQLAlchemy", "pandas"),
    "hubbub+pg:// and pandas": ("SQLAlchemy", "pandas"),
    "polars": ("polars",),
    "ADBC": ("adbc-driver-postgresql",),
    "ODBC (psqlodbc, pyodbc)": ("pyodbc",),
}


def installed(name: str) -> str | None:
    """Return the version of a client, or None if it is not installed."""
    if name == "psql":
        if shutil.which("psql") is None:
            return None
        return subprocess.run(["psql", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    try:
        versions = [version(package) for package in _PACKAGES[name]]
    except PackageNotFoundError:
        return None
    if name.startswith("ODBC"):
        import pyodbc

        if "PostgreSQL Unicode" not in pyodbc.drivers():
            return None
    return ", ".join(versions)


def run(name: str, address: Address) -> Lines:
    """Run a client; what it warns of is not what is tried."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CLIENTS[name](address)
