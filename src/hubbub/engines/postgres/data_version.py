"""Detect changes of PostgreSQL tables: cheaply by counters of the server, exactly by the transactions of their rows.

Tested in tests/engines/test_postgres_versions.py.
"""

import hashlib
from typing import TYPE_CHECKING, Any

from hubbub.engines.base import UnreachableError, View, identifier
from hubbub.engines.files import HASHED_WHOLE
from hubbub.engines.postgres.views import PARTS, UNDER

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

#: What changes the content of rows without writing them: columns with their types and stored defaults, labels of enums,
#: and the text of user-defined functions in views.
_DEFINITION = """
SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attmissingval::text,
       (SELECT string_agg(e.enumlabel, ',' ORDER BY e.oid) FROM pg_enum AS e WHERE e.enumtypid = a.atttypid)
FROM pg_attribute AS a WHERE a.attrelid = ANY(%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_FUNCTIONS = """
SELECT p.oid, p.prosrc FROM pg_proc AS p WHERE p.pronamespace <> 'pg_catalog'::regnamespace AND p.oid IN (
    SELECT d.refobjid FROM pg_depend AS d JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE d.refclassid = 'pg_proc'::regclass AND r.ev_class = ANY(%(oids)s::oid[])
) ORDER BY p.oid
"""
#: How many rows of a table each transaction wrote.
_BY_TRANSACTION = """
SELECT count(*), sum(n), sum(hashtextextended(x::text || ' ' || n, 0))
FROM (SELECT xmin AS x, count(*) AS n FROM ONLY {table} GROUP BY xmin) AS t
"""


def fingerprint(session: "Connection", view: View, oid: int) -> bytes:
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
        state.update(repr((oid, session.execute(text.encode()).fetchone())).encode())
        return state.digest()
    standby, counted = session.execute("SELECT pg_is_in_recovery(), current_setting('track_counts')").fetchone() or ()
    if standby:
        state.update(repr(session.execute("SELECT pg_last_wal_replay_lsn()::text").fetchone()).encode())
    elif counted != "on":
        raise UnreachableError(
            "the server does not count changes (track_counts is off)",
            "Set track_counts = on, or declare a column that increases with every change: `version: updated_at`.",
        )
    under = session.execute(UNDER, {"oid": oid}).fetchall()
    state.update(repr(under).encode())
    state.update(repr(session.execute(PARTS, {"oids": [row[0] for row in under]}).fetchall()).encode())
    return state.digest()


def content_hash(session: "Connection", view: View, oid: int) -> bytes | None:
    """Hash which transactions wrote the rows of the tables under a view; None if that is not possible or too slow.

    Theorem (Rows by their transactions). In two states of a database with equal hashes, these tables hold the same
    rows, whatever happened between: VACUUM FULL, an insert that was rolled back, a crash, or a failover to a standby.
    Proof    PostgreSQL never changes a row in place: an update writes a new version of the row, with the number of its
             transaction in xmin, and hides the old version. Rows that became visible after the first state were
             written by transactions that committed after it, of which the first state shows no row. Rows that
             disappeared had numbers that it shows. So the numbers with their multiplicities are equal only if nothing
             appeared (and stayed), and then nothing disappeared. What changes values without writing rows is hashed as
             well: the definition of columns and enums, of the views, and of user-defined functions in them.
    Assumes  fewer than 2³² transactions between both states; no collision of the 64-bit hashes; nobody writes to the
             files of the server.
    Tested   tests/engines/test_postgres_versions.py::test_only_changes_of_rows_change_the_content_hash
             tests/engines/test_postgres_versions.py::test_every_history_of_small_changes_has_a_hash_for_each_state
    """
    if view.version is not None:
        return None
    under = session.execute(UNDER, {"oid": oid}).fetchall()
    parts = session.execute(PARTS, {"oids": [row[0] for row in under]}).fetchall()
    oids = sorted({row[0] for row in (*under, *parts)})
    stored = sorted({row[0] for row in (*under, *parts) if row[1] in ("r", "m")})
    if not view.checksum and sum(row[-1] or 0 for row in (*under, *parts)) > HASHED_WHOLE:
        return None
    allowed = session.execute(
        "SELECT c.oid, n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE c.oid = ANY(%s::oid[]) AND has_table_privilege(c.oid, 'SELECT')"
        " AND has_schema_privilege(n.oid, 'USAGE') AND NOT row_security_active(c.oid) ORDER BY c.oid",
        (stored,),
    ).fetchall()
    if [row[0] for row in allowed] != stored:
        return None
    trees = [(row[0], row[1], row[3]) for row in (*under, *parts)]
    definition = [session.execute(text, {"oids": oids}).fetchall() for text in (_DEFINITION, _FUNCTIONS)]
    state = hashlib.blake2b(repr((trees, definition)).encode(), digest_size=32)
    for number, schema_name, table in allowed:
        text = _BY_TRANSACTION.format(table=f"{identifier(schema_name)}.{identifier(table)}")
        state.update(repr((number, session.execute(text.encode()).fetchone())).encode())
    return state.digest()
