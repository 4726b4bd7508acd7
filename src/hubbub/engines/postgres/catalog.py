"""Read columns, types and change counters of PostgreSQL tables from the catalog, never a value.

Tested in tests/engines/test_postgres.py.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub.core.schema import Kind
from hubbub.engines.base import LOOSE_COLLATION, DataSource, EngineLimits, Field, UnreachableError, View, identifier
from hubbub.errors import ConfigError

try:
    import psycopg
    from psycopg import errors
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

_SETTINGS = (
    "SET default_transaction_read_only = on; SET search_path = pg_catalog; SET TimeZone = 'UTC'; "
    "SET DateStyle = 'ISO, YMD'; SET extra_float_digits = 1; SET row_security = off; "
    "SET IntervalStyle = 'postgres'; SET bytea_output = 'hex'; "
    "SET standard_conforming_strings = on; SET jit = off; SET lock_timeout = '10s'; "
    "SET idle_in_transaction_session_timeout = '60s'; "
    "SET statement_timeout = {milliseconds}; SET work_mem = '{memory}MB'"
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
#: The tables that a view reads, directly or through views, and the parse tree of each view with its function OIDs.
_UNDER = """
WITH RECURSIVE under AS (
    SELECT %(oid)s::oid AS oid
    UNION
    SELECT d.refobjid FROM under AS u JOIN pg_rewrite AS r ON r.ev_class = u.oid
    JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> u.oid
)
SELECT c.oid, c.relkind::text, c.relfilenode, r.ev_action::text,
       pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid), pg_stat_get_tuples_deleted(c.oid),
       pg_relation_size(c.oid)
FROM under AS u JOIN pg_class AS c ON c.oid = u.oid
LEFT JOIN pg_rewrite AS r ON r.ev_class = c.oid AND r.rulename = '_RETURN'
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY c.oid
"""
_PARTS = """
SELECT c.oid, c.relkind::text, c.relfilenode, '', pg_stat_get_tuples_inserted(c.oid),
       pg_stat_get_tuples_updated(c.oid), pg_stat_get_tuples_deleted(c.oid), pg_relation_size(c.oid)
FROM pg_class AS c WHERE c.oid IN (
    WITH RECURSIVE parts AS (
        SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = ANY(%(oids)s::oid[])
        UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN parts AS p ON i.inhparent = p.inhrelid
    ) SELECT inhrelid FROM parts
) ORDER BY c.oid
"""
_CALLED = re.compile(r":(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)")


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as the server describes it, with the base type of each column."""

    oid: int
    kind: str
    types: Mapping[str, str]
    fields: tuple[Field, ...]


def connect(address: str, limits: EngineLimits) -> Connection:
    """Open a read-only session with limits. Its search_path is pg_catalog, so tables need qualified names."""
    session: Connection = psycopg.connect(
        address,
        autocommit=True,
        connect_timeout=10,
        application_name="hubbub",
        client_encoding="UTF8",
    )
    try:
        memory = max(4, limits.memory // 4)
        session.execute(_SETTINGS.format(milliseconds=limits.seconds * 1000, memory=memory).encode())
        # make every transaction read-only too, because a statement could change the session setting
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


def schema(source: DataSource) -> tuple[Field, ...]:
    """Read the names and types of a table's columns from the catalog."""
    try:
        with connect(source.address, EngineLimits(seconds=30)) as session:
            return describe(session, source).fields
    except UnreachableError as error:
        raise ConfigError("HB411", f"{source.shown} cannot be used: {error.why}.", error.remedy) from None
    except psycopg.Error as error:
        why, remedy = explain_error(error)
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
        fields.append(Field(name, shown, kind_of, _unfit(base, deterministic=deterministic)))
    _check_stable(session, oid)
    return TableDescription(oid, kind, types, tuple(fields))


def _unfit(base: str, *, deterministic: bool) -> str:
    """Return why a column cannot be a privacy ID column: its values must identify units uniquely."""
    if base == "citext" or not deterministic:
        return LOOSE_COLLATION
    return f"a {base} is rounded when it is read" if base in ("numeric", "date", "timestamp", "timestamptz") else ""


def _check_stable(session: Connection, oid: int) -> None:
    """Raise an error for a view that calls a volatile function or reads a foreign table: its rows could vary."""
    called: set[int] = set()
    under = session.execute(_UNDER, {"oid": oid}).fetchall()
    parts = session.execute(_PARTS, {"oids": [row[0] for row in under]}).fetchall()
    for _, kind, _, tree, *_ in (*under, *parts):
        if kind == "f":
            raise UnreachableError(
                "it reads a foreign table", "Copy the foreign table, for example into a materialized view."
            )
        if kind == "v":
            called |= {int(number) for number in _CALLED.findall(tree or "")}
    volatile = session.execute(
        "SELECT proname FROM pg_proc WHERE oid = ANY(%s::oid[]) AND provolatile = 'v' ORDER BY 1", (sorted(called),)
    ).fetchall()
    if volatile:
        raise UnreachableError(
            f"the view calls the volatile function {volatile[0][0]}()",
            "Remove the call, or make the view MATERIALIZED.",
        )


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


def _column(name: str, kind: Kind, description: TableDescription) -> str:
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


def fingerprint(session: Connection, view: View, description: TableDescription) -> bytes:
    """Hash what changes with a table: the maximum of the declared version column, or the server's statistics.

    The statistics (rows inserted, updated and deleted in each underlying table, its file and its size) lag slightly
    behind changes and are lost in a crash. A standby has none, so there every change to the database counts.
    """
    state = hashlib.blake2b(digest_size=32)
    if view.version is not None:
        schema_name, _, table = (view.source.table or "").partition(".")
        text = (
            f"SELECT CAST(max({identifier(view.version)}) AS text) FROM {identifier(schema_name)}.{identifier(table)}"  # noqa: S608
        )
        state.update(repr((description.oid, session.execute(text.encode()).fetchone())).encode())
        return state.digest()
    standby, counted = session.execute("SELECT pg_is_in_recovery(), current_setting('track_counts')").fetchone() or ()
    if standby:
        state.update(repr(session.execute("SELECT pg_last_wal_replay_lsn()::text").fetchone()).encode())
    elif counted != "on":
        raise UnreachableError(
            "the server does not count changes (track_counts is off)",
            "Set track_counts = on, or declare a column that increases with every change: `version: updated_at`.",
        )
    under = session.execute(_UNDER, {"oid": description.oid}).fetchall()
    state.update(repr(under).encode())
    state.update(repr(session.execute(_PARTS, {"oids": [row[0] for row in under]}).fetchall()).encode())
    return state.digest()


def explain_error(error: psycopg.Error) -> tuple[str, str]:
    """Return the reason and the remedy for an error before a charge, without the server's message."""
    for kinds, why, remedy in _EXPLANATIONS:
        if isinstance(error, kinds):
            return why, remedy
    return f"the server reported {error.sqlstate or type(error).__name__}", "Check the server log."


_EXPLANATIONS: tuple[tuple[type[psycopg.Error] | tuple[type[psycopg.Error], ...], str, str], ...] = (
    (errors.InsufficientPrivilege, "the role has no SELECT privilege", "Grant SELECT on the table to the role."),
    (
        (errors.InvalidAuthorizationSpecification, errors.InvalidPassword),
        "authentication failed",
        "Check the role, the password, and pg_hba.conf on the server.",
    ),
    (errors.InvalidCatalogName, "the database does not exist", "Check the database name in the source."),
    (errors.QueryCanceled, "the server timed out", "Try again later, or increase engine.seconds."),
    (errors.LockNotAvailable, "another session has locked the table", "Try again later."),
    (
        (errors.TooManyConnections, errors.CannotConnectNow),
        "the server accepts no more connections",
        "Try again later, or increase max_connections.",
    ),
    (psycopg.OperationalError, "the server is unreachable", "Check its address, and that it is running."),
)
