"""What a PostgreSQL server says of a table: its columns and their types, what changes when it does. Never a value."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub.core.schema import Kind
from hubbub.engines.base import LOOSE, Field, Place, View, identifier
from hubbub.engines.duckdb.open import Limits
from hubbub.errors import ConfigError

try:
    import psycopg
    from psycopg import errors
except ModuleNotFoundError as _missing:
    raise ConfigError(
        "HB411",
        "a table in PostgreSQL needs the library psycopg, which is not installed here.",
        'pip install "hubbub[postgres]"',
    ) from _missing

if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]
else:
    Connection = psycopg.Connection

#: The oldest version that has all that is used here.
_OLDEST = 140_000

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

#: A table and its columns; a domain counts as what it is made from. Types and collations as they matter for equality.
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
#: The tables under a view, through views, and what each view calls: functions by their numbers in its stored tree.
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


class RefusedError(Exception):
    """What is there cannot be used; the words hold nothing of the data."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Described:
    """A table as the server describes it: base types by column, and what was found about each."""

    oid: int
    kind: str
    types: Mapping[str, str]
    fields: tuple[Field, ...]


def connect(address: str, limits: Limits) -> Connection:
    """Open a read-only session with its limits; every name in it is qualified, and no other name is found."""
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
        # every transaction says so too: a setting of the session could be changed by a statement
        session.read_only = True
        version = session.info.server_version
        encoding = session.execute("SELECT current_setting('server_encoding')").fetchone()
        if version < _OLDEST:
            raise RefusedError("the server is older than PostgreSQL 14", "Take a newer one.")
        if encoding != ("UTF8",):
            raise RefusedError("the database is not in UTF-8", "Make one in UTF-8: createdb --encoding UTF8.")
    except BaseException:
        session.close()
        raise
    return session


def schema(place: Place) -> tuple[Field, ...]:
    """Read the names and types of a table's columns from the catalogue."""
    try:
        with connect(place.address, Limits(seconds=30)) as session:
            return described(session, place).fields
    except RefusedError as refused:
        raise ConfigError("HB411", f"{place.shown} cannot be used: {refused.why}.", refused.remedy) from None
    except psycopg.Error as error:
        why, remedy = meaning(error)
        raise ConfigError("HB411", f"{place.shown} cannot be read: {why}.", remedy) from None


def described(session: Connection, place: Place) -> Described:
    """Look a table or view up, and refuse what could not be asked about in safety."""
    schema_name, _, table = (place.table or "").partition(".")
    found = session.execute(_TABLE, (schema_name, table)).fetchone()
    if found is None:
        raise RefusedError("there is no such table", "Check the schema and the name; both are case-sensitive here.")
    oid, kind, policies, usable = found
    if not usable:
        raise RefusedError("this role may not use its schema", f"GRANT USAGE ON SCHEMA {identifier(schema_name)} TO …")
    if kind not in ("r", "p", "v", "m"):
        raise RefusedError("it is not a table or a view of this server", "Name a table, a view or a materialized view.")
    if policies:
        raise RefusedError(
            "row-level security decides which of its rows this role sees",
            "Name a role that sees all rows (BYPASSRLS), or a view that says which rows are meant.",
        )
    types, fields = {}, []
    for name, base, shown, generated, allowed, deterministic in session.execute(_COLUMNS, {"oid": oid}):
        kind_of = _KINDS.get(base)
        if not allowed:
            shown, kind_of = "hidden from this role", None
        elif generated == "v":
            # computed when it is read, by an expression that may fail on a row
            shown, kind_of = f"{shown}, generated when read", None
        types[name] = base
        fields.append(Field(name, shown, kind_of, _unfit(base, deterministic=deterministic)))
    _steady(session, oid)
    return Described(oid, kind, types, tuple(fields))


def _unfit(base: str, *, deterministic: bool) -> str:
    """Say why a column cannot tell units apart: one person's rows must be one unit, and two persons never are."""
    if base == "citext" or not deterministic:
        return LOOSE
    return f"a {base} is rounded when it is read" if base in ("numeric", "date", "timestamp", "timestamptz") else ""


def _steady(session: Connection, oid: int) -> None:
    """Refuse a view that calls a volatile function, or reads what is no table here: it would not be the same twice."""
    called: set[int] = set()
    under = session.execute(_UNDER, {"oid": oid}).fetchall()
    parts = session.execute(_PARTS, {"oids": [row[0] for row in under]}).fetchall()
    for _, kind, _, tree, *_ in (*under, *parts):
        if kind == "f":
            raise RefusedError("it reads a foreign table", "Copy that table here: a materialized view will do.")
        if kind == "v":
            called |= {int(number) for number in _CALLED.findall(tree or "")}
    volatile = session.execute(
        "SELECT proname FROM pg_proc WHERE oid = ANY(%s::oid[]) AND provolatile = 'v' ORDER BY 1", (sorted(called),)
    ).fetchall()
    if volatile:
        raise RefusedError(
            f"the view calls {volatile[0][0]}(), which may give something else each time",
            "Leave it out of the view, or make the view MATERIALIZED.",
        )


def selection(view: View, found: Described) -> str:
    """Write a table's columns in the types of their kinds, by casts that cannot fail.

    Theorem (Total selection). Whatever the rows hold, the selection raises nothing. A cast of one of the types here to
    the type of its kind is total, but for numeric to float8 (past the largest or below the smallest double), and date
    to timestamp (past the last one): there values are tested first, in their own type.
    Tested   tests/engines/test_postgres.py::test_hostile_values_neither_raise_nor_pass_a_clamp
    """
    schema_name, _, table = (view.place.table or "").partition(".")
    columns = [f"{_column(name, kind, found)} AS {identifier(name)}" for name, kind in view.columns]
    return f"SELECT {', '.join(columns) or 'NULL'} FROM {identifier(schema_name)}.{identifier(table)}"  # noqa: S608


def _column(name: str, kind: Kind, found: Described) -> str:
    base, quoted = found.types.get(name), identifier(name)
    field = next((field for field in found.fields if field.name == name), None)
    if base is None or field is None:
        raise RefusedError(f"the column {name} is not there any more", "Check hubbub.yaml with `hubbub check`.")
    if field.kind is None:
        raise RefusedError(
            f"the column {name} cannot be read: {field.type}",
            "GRANT SELECT on it, cast it in a view to a type that hubbub has, or declare it hidden.",
        )
    wanted = _CASTS.get((kind, base)) or ("CAST({} AS text)" if kind is Kind.TEXT else None)
    if wanted is None:
        raise RefusedError(
            f"the column {name} is {field.type}, and cannot be read as {kind.value}",
            "Leave out its `type`, or cast it in a view.",
        )
    return wanted.replace("{}", quoted)


_INTEGERS = ("int2", "int4", "int8")
_LARGEST = "1.797693134862315708e308"
#: How a type is read as a kind; a text of the others is their own text.
_CASTS: Mapping[tuple[Kind, str], str] = {
    (Kind.BOOLEAN, "bool"): "{}",
    **{(Kind.INTEGER, base): "{}" for base in _INTEGERS},
    **{(Kind.REAL, base): "CAST({} AS float8)" for base in (*_INTEGERS, "float4", "float8")},
    (Kind.REAL, "numeric"): (
        f"CASE WHEN {{}} = 'NaN' THEN NULL WHEN {{}} >= '{_LARGEST}' THEN 'Infinity'::float8 "
        f"WHEN {{}} <= '-{_LARGEST}' THEN '-Infinity'::float8 "
        "WHEN abs({}) < '1e-307' THEN '0'::float8 ELSE CAST({} AS float8) END"
    ),
    # 1.0 and 1.00 are equal, and so must their texts be
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


def fingerprint(session: Connection, view: View, found: Described) -> bytes:
    """Hash what changes when a table does: a declared version column's largest value, or the server's own counts.

    The counts (rows inserted, updated and deleted in each table beneath, its file and its size) arrive a moment after
    a change, and are lost when the server crashes. On a standby there are none: there every change counts.
    """
    state = hashlib.blake2b(digest_size=32)
    if view.version is not None:
        schema_name, _, table = (view.place.table or "").partition(".")
        text = (
            f"SELECT CAST(max({identifier(view.version)}) AS text) FROM {identifier(schema_name)}.{identifier(table)}"  # noqa: S608
        )
        state.update(repr((found.oid, session.execute(text.encode()).fetchone())).encode())
        return state.digest()
    standby, counted = session.execute("SELECT pg_is_in_recovery(), current_setting('track_counts')").fetchone() or ()
    if standby:
        state.update(repr(session.execute("SELECT pg_last_wal_replay_lsn()::text").fetchone()).encode())
    elif counted != "on":
        raise RefusedError(
            "the server does not count changes (track_counts is off)",
            "Turn track_counts on, or name a column that rises with every change: `version: updated_at`.",
        )
    under = session.execute(_UNDER, {"oid": found.oid}).fetchall()
    state.update(repr(under).encode())
    state.update(repr(session.execute(_PARTS, {"oids": [row[0] for row in under]}).fetchall()).encode())
    return state.digest()


def meaning(error: psycopg.Error) -> tuple[str, str]:
    """Give the reason and the remedy of an error before a charge; the server's own words are left out."""
    for kinds, why, remedy in _MEANING:
        if isinstance(error, kinds):
            return why, remedy
    return f"the server refused ({error.sqlstate or type(error).__name__})", "Look into its log."


_MEANING: tuple[tuple[type[psycopg.Error] | tuple[type[psycopg.Error], ...], str, str], ...] = (
    (errors.InsufficientPrivilege, "this role may not read it", "GRANT SELECT on it to the role of the source."),
    (
        (errors.InvalidAuthorizationSpecification, errors.InvalidPassword),
        "the server refuses this role or password",
        "Check both, and pg_hba.conf on the server.",
    ),
    (errors.InvalidCatalogName, "there is no such database", "Check its name in the source."),
    (errors.QueryCanceled, "the server took too long", "Try again when it is less busy, or raise engine.seconds."),
    (errors.LockNotAvailable, "another session keeps it locked", "Try again."),
    (
        (errors.TooManyConnections, errors.CannotConnectNow),
        "the server takes no more connections now",
        "Try again, or raise max_connections.",
    ),
    (psycopg.OperationalError, "the server does not answer, or not to us", "Check its address, and that it runs."),
)
