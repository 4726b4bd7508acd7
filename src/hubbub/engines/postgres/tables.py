"""Read the tables of a PostgreSQL database with their constraints from its catalog, never a value.

Tested in tests/cli/test_init_database.py.
"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg

from hubbub.engines.base import DataSource, EngineLimits, UnreachableError
from hubbub.engines.constraints import CatalogTable, ForeignKey, read_checks
from hubbub.engines.postgres.catalog import Connection, connect, describe, transaction
from hubbub.engines.postgres.problems import explain_connection
from hubbub.errors import ConfigError

_TABLES = """
SELECT c.oid, n.nspname::text, c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND has_schema_privilege(n.oid, 'USAGE')
      AND has_any_column_privilege(c.oid, 'SELECT') AND n.nspname <> 'information_schema'
      AND n.nspname !~ '^pg_' AND (%(schema)s::text IS NULL OR n.nspname = %(schema)s)
ORDER BY 2, 3
"""
_CONSTRAINTS = """
SELECT k.contype::text, k.confrelid,
       ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u(n, place)
             JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY place),
       ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u(n, place)
             JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY place),
       coalesce(pg_get_expr(k.conbin, k.conrelid), '')
FROM pg_constraint AS k WHERE k.conrelid = %(oid)s AND k.contype IN ('p', 'u', 'f', 'c') AND k.convalidated
ORDER BY array_position(ARRAY['p', 'u', 'f', 'c'], k.contype::text), k.conname
"""
_REQUIRED = """
SELECT attname::text FROM pg_attribute WHERE attrelid = %(oid)s AND attnum > 0 AND NOT attisdropped AND attnotnull
"""
_ENUMS = """
SELECT a.attname::text, array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_attribute AS a
JOIN pg_enum AS e ON e.enumtypid = a.atttypid
WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped GROUP BY a.attname
"""


def read_tables(address: str, schema: str | None) -> list[CatalogTable]:
    """Read all tables of a database, or of one schema, that the role can read."""
    shown = urlsplit(address).hostname or "localhost"
    try:
        with connect(address) as session, transaction(session, EngineLimits(seconds=30)):
            rows = session.execute(_TABLES, {"schema": schema}).fetchall()
            names = {oid: f"{space}.{table}" for oid, space, table in rows}
            return [_read(session, oid, names, address) for oid in names]
    except UnreachableError as error:
        raise ConfigError("HB411", f"The database on {shown} cannot be used: {error.why}.", error.remedy) from None
    except psycopg.Error as error:
        why, remedy = explain_connection(error, address)
        raise ConfigError("HB411", f"The database on {shown} cannot be read: {why}.", remedy) from None


def table_source(address: str, table: str) -> str:
    """Write the source of a table as in hubbub.yaml: with the table's name after that of the database."""
    parts = urlsplit(address)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{quote(table, safe='.')}").geturl()


def _read(session: Connection, oid: int, names: dict[int, str], address: str) -> CatalogTable:
    name, where = names[oid], {"oid": oid}
    try:
        fields = describe(session, DataSource("postgres", Path("/"), name, address)).fields
    except UnreachableError as error:
        return CatalogTable(name, problem=f"{error.why}. {error.remedy}")
    keys: list[tuple[str, ...]] = []
    references: list[ForeignKey] = []
    checks: list[str] = []
    for kind, target, columns, others, text in session.execute(_CONSTRAINTS, where).fetchall():
        if kind in ("p", "u"):
            keys.append(tuple(columns))
        elif kind == "c":
            checks.append(text)
        elif target in names:
            references.append(ForeignKey(tuple(columns), names[target], tuple(others)))
    values, bounds = read_checks(checks, "postgres")
    values |= {column: tuple(labels) for column, labels in _rows(session, _ENUMS, oid)}
    required = frozenset(str(column) for (column,) in _rows(session, _REQUIRED, oid))
    return CatalogTable(name, fields, tuple(keys), tuple(references), required, values, bounds)


def _rows(session: Connection, text: str, oid: int) -> Iterable[tuple[str, ...]]:
    return session.execute(text.encode(), {"oid": oid}).fetchall()
