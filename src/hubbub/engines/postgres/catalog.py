"""Read columns and types of PostgreSQL tables from the catalog, never a value.

Tested in tests/engines/test_postgres.py.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub.core.list_columns import part_of
from hubbub.core.schema import Kind
from hubbub.engines.base import LOOSE_COLLATION, DataSource, EngineLimits, Field, UnreachableError, View, identifier
from hubbub.engines.postgres.problems import explain_connection
from hubbub.engines.postgres.views import check_views
from hubbub.errors import ConfigError

try:
    import psycopg
except ModuleNotFoundError as _missing:
    raise ConfigError(
        "HB411",
        "PostgreSQL sources require the psycopg package, which is not installed.",
        'Run pip install "hubbub[postgres]".',
    ) from _missing

if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]
else:
    Connection = psycopg.Connection

#: The oldest supported version of the server.
_MIN_VERSION = 140_000

#: Settings of every transaction. None is set for a session: behind a pooler such as PgBouncer, the next transaction
#: may run in another session of the server, and this one may serve another client.
_SETTINGS = (
    "SET LOCAL search_path = pg_catalog; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'; "
    "SET LOCAL extra_float_digits = 1; SET LOCAL row_security = off; SET LOCAL IntervalStyle = 'postgres'; "
    "SET LOCAL bytea_output = 'hex'; SET LOCAL standard_conforming_strings = on; SET LOCAL jit = off; "
    "SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '60s'; "
    "SET LOCAL statement_timeout = {milliseconds}; SET LOCAL work_mem = '{memory}MB'"
)

_KINDS: Mapping[str, Kind] = {
    "bool": Kind.BOOLEAN,
    "int2": Kind.INTEGER,
    "int4": Kind.INTEGER,
    "int8": Kind.INTEGER,
    "float4": Kind.REAL,
    "float8": Kind.REAL,
    "numeric": Kind.REAL,
    "text": Kind.TEXT,
    "varchar": Kind.TEXT,
    "bpchar": Kind.TEXT,
    "name": Kind.TEXT,
    "citext": Kind.TEXT,
    "uuid": Kind.TEXT,
    "enum": Kind.TEXT,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMP,
}

#: A table and its columns. A domain counts as its base type.
_TABLE = """
SELECT c.oid, c.relkind::text, row_security_active(c.oid), has_schema_privilege(n.oid, 'USAGE')
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
_COLUMNS = """
WITH RECURSIVE based AS (
    SELECT a.attnum, t.oid, t.typtype, t.typbasetype, t.typname, t.typnamespace FROM pg_attribute AS a
    JOIN pg_type AS t ON t.oid = a.atttypid WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attnum, t.oid, t.typtype, t.typbasetype, t.typname, t.typnamespace FROM based AS b
    JOIN pg_type AS t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
)
SELECT a.attname,
       CASE WHEN b.typtype = 'e' THEN 'enum' WHEN b.typname = 'citext' THEN 'citext'
            WHEN b.typnamespace = 'pg_catalog'::regnamespace THEN b.typname::text ELSE '' END,
       format_type(a.atttypid, a.atttypmod), a.attgenerated::text,
       has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
       coalesce(l.collisdeterministic, true)
FROM pg_attribute AS a JOIN based AS b ON b.attnum = a.attnum AND b.typtype <> 'd'
LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
#: The columns of each unique index that holds at the end of every statement, for all rows, without expressions.
_UNIQUE = """
SELECT array_agg(a.attname::text) FROM pg_index AS i
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %(oid)s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
      AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
      AND NOT EXISTS (
          SELECT FROM pg_inherits AS h JOIN pg_class AS c ON c.oid = h.inhparent
          WHERE h.inhparent = i.indrelid AND c.relkind <> 'p'
      )
GROUP BY i.indexrelid
"""


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as the server describes it, with the base type of each column."""

    oid: int
    kind: str
    types: Mapping[str, str]
    fields: tuple[Field, ...]


def connect(address: str) -> Connection:
    """Open a session. It is used in transactions of `transaction` only, and prepares no statements on the server."""
    session: Connection = psycopg.connect(
        address,
        autocommit=True,
        connect_timeout=10,
        application_name="hubbub",
        client_encoding="UTF8",
        prepare_threshold=None,
    )
    try:
        session.read_only = True
        version = session.info.server_version
        encoding = session.execute("SELECT current_setting('server_encoding')").fetchone()
        if version < _MIN_VERSION:
            raise UnreachableError("the server is older than PostgreSQL 14", "Use PostgreSQL 14 or newer.")
        if encoding != ("UTF8",):
            raise UnreachableError(
                "the database encoding is not UTF-8", "Create a database with createdb --encoding UTF8."
            )
    except BaseException:
        session.close()
        raise
    return session


@contextmanager
def transaction(session: Connection, limits: EngineLimits) -> Iterator[None]:
    """Open a read-only transaction with limits. Its search_path is pg_catalog, so tables need qualified names."""
    with session.transaction():
        memory = max(4, limits.server_memory // 4)
        session.execute(_SETTINGS.format(milliseconds=limits.seconds * 1000, memory=memory).encode())
        yield


def schema(source: DataSource) -> tuple[Field, ...]:
    """Read the names and types of a table's columns from the catalog."""
    try:
        with connect(source.address) as session, transaction(session, EngineLimits(seconds=30)):
            return describe(session, source).fields
    except UnreachableError as error:
        raise ConfigError("HB411", f"{source.shown} cannot be used: {error.why}.", error.remedy) from None
    except psycopg.Error as error:
        why, remedy = explain_connection(error, source.address)
        raise ConfigError("HB411", f"{source.shown} cannot be read: {why}.", remedy) from None


def describe(session: Connection, source: DataSource) -> TableDescription:
    """Look up a table or view, and raise an error if querying it would not be safe."""
    schema_name, _, table = (source.table or "").partition(".")
    row = session.execute(_TABLE, (schema_name, table)).fetchone()
    if row is None:
        raise UnreachableError(
            "the table does not exist", "Check the schema and the table name; both are case-sensitive."
        )
    oid, kind, policies, usable = row
    if not usable:
        raise UnreachableError(
            "the role has no access to the schema", f"Run GRANT USAGE ON SCHEMA {identifier(schema_name)} TO the role."
        )
    if kind not in ("r", "p", "v", "m"):
        raise UnreachableError("it is not a local table or view", "Use a table, a view or a materialized view.")
    if policies:
        raise UnreachableError(
            "row-level security hides some of its rows from the role",
            "Use a role with BYPASSRLS, or a view that selects the intended rows.",
        )
    types, fields = {}, []
    for name, base, shown, generated, allowed, deterministic in session.execute(_COLUMNS, {"oid": oid}):
        kind_of = _KINDS.get(base)
        if not allowed:
            shown, kind_of = "not readable by this role", None
        elif generated == "v":
            # computed on read, by an expression that may fail on some row
            shown, kind_of = f"{shown}, generated on read", None
        types[name] = base
        unfit = _unfit(base, deterministic=deterministic)
        element = _KINDS.get(_element_type(base)) if allowed and generated != "v" else None
        fields.append(Field(name, shown, kind_of, unfit, _readable(base) if kind_of else frozenset(), element))
    check_views(session, oid)
    return TableDescription(oid, kind, types, tuple(fields))


def has_unique_constraint(session: Connection, table: TableDescription, columns: tuple[str, ...]) -> bool:
    """Return whether a unique index makes these columns identify a row of a table (a view has none).

    The index of a table that others inherit from says nothing about their rows, which a query of it reads as well.
    """
    return any(set(names) <= set(columns) for (names,) in session.execute(_UNIQUE, {"oid": table.oid}))


def _unfit(base: str, *, deterministic: bool) -> str:
    """Return why a column cannot be a privacy ID column: its values must identify units uniquely."""
    if base == "citext" or not deterministic:
        return LOOSE_COLLATION
    return f"a {base} is rounded when it is read" if base in ("numeric", "date", "timestamp", "timestamptz") else ""


def _readable(base: str) -> frozenset[Kind]:
    """Return the kinds that a type can be read as."""
    return frozenset(kind for kind in Kind if kind is Kind.TEXT or (kind, base) in _CASTS)


def selection(view: View, description: TableDescription) -> str:
    """Write a SELECT of a table's columns in the types of their kinds, with casts that cannot fail.

    Theorem (Total selection). Whatever the rows hold, the selection raises nothing. A cast of one of the types here to
    the type of its kind is total, but for numeric to float8 (past the largest or below the smallest double), and date
    to timestamp (past the last one): there values are tested first, in their own type.
    Tested   tests/engines/test_postgres.py::test_hostile_values_neither_raise_nor_pass_a_clamp
    """
    schema_name, _, table = (view.source.table or "").partition(".")
    columns = [f"{_column(name, kind, description)} AS {identifier(name)}" for name, kind in view.columns]
    return f"SELECT {', '.join(columns) or 'NULL'} FROM {identifier(schema_name)}.{identifier(table)}"  # noqa: S608


def _element_type(base: str) -> str:
    """Return the base type of the elements of an array; an empty text for another type."""
    return base[1:] if base.startswith("_") else ""


def _part(name: str, kind: Kind, description: TableDescription) -> str | None:
    """Write an element of an array, or its length; None for another column, and NULL beyond the end.

    An array may begin anywhere. Of one with several dimensions, all elements are NULL.
    """
    column, place = part_of(name) or ("", 0)
    field = next((field for field in description.fields if field.name == column), None)
    if name in description.types or field is None or field.element is None:
        return None
    listed = identifier(column)
    if not place:
        return f"CASE WHEN {listed} IS NOT NULL THEN coalesce(array_length({listed}, 1), 0) END"
    base = _element_type(description.types[column])
    wanted = _CASTS.get((kind, base)) or ("CAST({} AS text)" if kind is Kind.TEXT else None)
    value = f"({listed})[array_lower({listed}, 1) + {place - 1}]"
    return None if wanted is None else wanted.replace("{}", value)


def _column(name: str, kind: Kind, description: TableDescription) -> str:
    part = _part(name, kind, description)
    if part is not None:
        return part
    base, quoted = description.types.get(name), identifier(name)
    field = next((field for field in description.fields if field.name == name), None)
    if base is None or field is None:
        raise UnreachableError(f"the column {name} no longer exists", "Check hubbub.yaml with `hubbub check`.")
    if field.kind is None:
        raise UnreachableError(
            f"the column {name} cannot be read: {field.type}",
            "Grant SELECT on it, cast it to a supported type in a view, or declare it hidden.",
        )
    wanted = _CASTS.get((kind, base)) or ("CAST({} AS text)" if kind is Kind.TEXT else None)
    if wanted is None:
        raise UnreachableError(
            f"the column {name} has type {field.type} and cannot be read as {kind.value}",
            "Remove its `type` from hubbub.yaml, or cast it in a view.",
        )
    return wanted.replace("{}", quoted)


_INTEGERS = ("int2", "int4", "int8")
_LARGEST = "1.797693134862315708e308"
#: The cast of each type to each kind; all other types can only be read as text.
_CASTS: Mapping[tuple[Kind, str], str] = {
    (Kind.BOOLEAN, "bool"): "{}",
    **{(Kind.INTEGER, base): "{}" for base in _INTEGERS},
    **{(Kind.REAL, base): "CAST({} AS float8)" for base in (*_INTEGERS, "float4", "float8")},
    (Kind.REAL, "numeric"): (
        f"CASE WHEN {{}} = 'NaN' THEN NULL WHEN {{}} >= '{_LARGEST}' THEN 'Infinity'::float8 "
        f"WHEN {{}} <= '-{_LARGEST}' THEN '-Infinity'::float8 "
        "WHEN abs({}) < '1e-307' THEN '0'::float8 ELSE CAST({} AS float8) END"
    ),
    # 1.0 and 1.00 are equal, so their texts must be equal
    (Kind.TEXT, "numeric"): "CAST(trim_scale({}) AS text)",
    **{(Kind.TEXT, base): "CAST({} + 0 AS text)" for base in ("float4", "float8")},
    (Kind.DATE, "date"): "{}",
    **{(Kind.DATE, base): "CAST({} AS date)" for base in ("timestamp", "timestamptz")},
    (Kind.TIMESTAMP, "timestamp"): "{}",
    (Kind.TIMESTAMP, "timestamptz"): "({} AT TIME ZONE 'UTC')",
    (Kind.TIMESTAMP, "date"): (
        "CASE WHEN {} IS NOT NULL THEN CAST(least(greatest({}, DATE '0001-01-01'), DATE '9999-12-31') AS timestamp) END"
    ),
}
