"""Find the tables under a PostgreSQL view, and reject views whose rows can change although their tables do not.

Tested in tests/engines/test_postgres_views.py.
"""

import re
from typing import TYPE_CHECKING, Any

from hubbub.engines.base import UnreachableError, unsteady_view

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

#: The tables that a view reads, directly or through views, and the parse tree of each view with its function OIDs.
UNDER = """
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
PARTS = """
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
#: CURRENT_DATE and its relatives, which are no functions in the parse tree, by their number there.
_VALUE = re.compile(r"\{SQLVALUEFUNCTION :op (\d+)")
_VALUES = (
    *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", "LOCALTIME"),
    *("LOCALTIME", "LOCALTIMESTAMP", "LOCALTIMESTAMP", "CURRENT_ROLE", "CURRENT_USER", "USER", "SESSION_USER"),
    *("CURRENT_CATALOG", "CURRENT_SCHEMA"),
)
#: Built-in functions that are STABLE only because they depend on settings that hubbub fixes in every session (the time
#: zone, the date style) or on the text form of a value.
_STEADY = re.compile(
    r"(anytextcat|textanycat|array_to_json|array_to_string|concat|concat_ws|format|quote_literal|quote_nullable|length"
    r"|(date|timestamp)_(cmp|eq|ge|gt|le|lt|ne)_timestamptz|timestamptz_(cmp|eq|ge|gt|le|lt|ne)_(date|timestamp)"
    r"|timestamptz_(pl|mi)_interval|interval_pl_timestamptz|date|time|timestamp|timestamptz|timetz|timezone|date_part"
    r"|date_trunc|extract|make_timestamptz|generate_series|in_range|overlaps|enum_(first|last|range)|convert(_from|_to)?"
    r"|jsonb?_(agg|object_agg|build_array|build_object|to_record|to_recordset|populate_record|populate_recordset)"
    r"|to_(char|date|json|jsonb|number|timestamp|tsquery|tsvector)|row_to_json|(plain|phrase|websearch_)to_tsquery"
    r"|jsonb?_to_tsvector|ts_match_t[qt]|money|numeric)"
)
_UNSTEADY = """
SELECT p.proname, p.provolatile = 'v' FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
WHERE p.oid = ANY(%(oids)s::oid[]) AND p.provolatile <> 'i' AND NOT (
    p.provolatile = 's' AND p.pronamespace = 'pg_catalog'::regnamespace AND l.lanname IN ('internal', 'c')
    AND p.proname ~ %(steady)s
) ORDER BY 1
"""


def check_views(session: "Connection", oid: int) -> None:
    """Raise an error for a view that depends on the clock, the session, chance or a foreign table.

    A user-defined function must be IMMUTABLE: a STABLE one may read other tables, whose changes would go unnoticed.
    """
    called: set[int] = set()
    under = session.execute(UNDER, {"oid": oid}).fetchall()
    parts = session.execute(PARTS, {"oids": [row[0] for row in under]}).fetchall()
    for _, kind, _, tree, *_ in (*under, *parts):
        if kind == "f":
            raise UnreachableError(
                "it reads a foreign table", "Copy the foreign table, for example into a materialized view."
            )
        if kind == "v":
            called |= {int(number) for number in _CALLED.findall(tree or "")}
            for number in _VALUE.findall(tree or ""):
                raise unsteady_view(_VALUES[int(number)] if int(number) < len(_VALUES) else "the session")
            if "{TABLESAMPLECLAUSE" in (tree or ""):
                raise unsteady_view("TABLESAMPLE")
    unsteady = session.execute(_UNSTEADY, {"oids": sorted(called), "steady": f"^{_STEADY.pattern}$"}).fetchone()
    if unsteady is not None:
        raise unsteady_view(f"{unsteady[0]}()")
