"""The schema of a ledger in PostgreSQL, and its migrations.

Tested in tests/accounting/test_postgres.py.
"""

from typing import TYPE_CHECKING, Any

from hubbub.accounting import chain
from hubbub.accounting.chain import NO_HASH, genesis

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

#: Advisory locks ("HUBB"): the first is held during a migration, the second by writers, shared or exclusively.
LOCK, USE = 0x4855424200, 0x4855424201

#: Migrations, forward only, each in one transaction with its number. A released migration is never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE SCHEMA hubbub",
        "CREATE TABLE hubbub.format (version integer PRIMARY KEY)",
        "CREATE TABLE hubbub.identity (ledger text NOT NULL)",
        # the position of the newest entry, in the one row that every writer locks
        "CREATE TABLE hubbub.head (one boolean PRIMARY KEY CHECK (one), sequence bigint NOT NULL, hash bytea NOT NULL,"
        " time bigint NOT NULL, config bytea NOT NULL) WITH (fillfactor = 20)",
        "CREATE TABLE hubbub.entries (sequence bigint PRIMARY KEY, kind text NOT NULL, time bigint NOT NULL,"
        " analyst text NOT NULL, dataset text NOT NULL, version text NOT NULL, facts text NOT NULL,"
        " query text NOT NULL, key text NOT NULL, charge bigint NOT NULL, request bytea NOT NULL,"
        " config bytea NOT NULL, previous bytea NOT NULL, hash bytea NOT NULL)",
        "CREATE UNIQUE INDEX one_charge_a_key ON hubbub.entries (key, analyst) WHERE kind = 'charge'",
        "CREATE TABLE hubbub.releases (charge bigint PRIMARY KEY, body bytea NOT NULL)",
        # totals change often: free space on the page lets PostgreSQL update them in place
        "CREATE TABLE hubbub.totals (cap text PRIMARY KEY, spent text NOT NULL, sequence bigint NOT NULL)"
        " WITH (fillfactor = 50)",
        "CREATE FUNCTION hubbub.refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'the ledger is only ever added to'; END$$",
        *(
            f"CREATE TRIGGER only_added_to BEFORE UPDATE OR DELETE OR TRUNCATE ON hubbub.{table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION hubbub.refuse()"
            for table in ("identity", "entries", "releases")
        ),
    ),
)

#: The columns, indexes, triggers and functions of a complete ledger, as `_LISTING` lists them.
CATALOG: frozenset[str] = frozenset(
    {
        "column entries.analyst text true",
        "column entries.charge bigint true",
        "column entries.config bytea true",
        "column entries.dataset text true",
        "column entries.facts text true",
        "column entries.hash bytea true",
        "column entries.key text true",
        "column entries.kind text true",
        "column entries.previous bytea true",
        "column entries.query text true",
        "column entries.request bytea true",
        "column entries.sequence bigint true",
        "column entries.time bigint true",
        "column entries.version text true",
        "column format.version integer true",
        "column head.config bytea true",
        "column head.hash bytea true",
        "column head.one boolean true",
        "column head.sequence bigint true",
        "column head.time bigint true",
        "column identity.ledger text true",
        "column releases.body bytea true",
        "column releases.charge bigint true",
        "column totals.cap text true",
        "column totals.sequence bigint true",
        "column totals.spent text true",
        "index entries.entries_pkey (sequence)",
        "index entries.one_charge_a_key (key,analyst) kind = 'charge'::text",
        "index format.format_pkey (version)",
        "index head.head_pkey (one)",
        "index releases.releases_pkey (charge)",
        "index totals.totals_pkey (cap)",
        "trigger entries.only_added_to 58 O refuse",
        "trigger identity.only_added_to 58 O refuse",
        "trigger releases.only_added_to 58 O refuse",
        "function refuse BEGIN RAISE EXCEPTION 'the ledger is only ever added to'; END",
    }
)

_LISTING = """
WITH ours AS (SELECT c.oid, c.relname, c.relkind FROM pg_catalog.pg_class c
              JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'hubbub')
SELECT pg_catalog.format('column %s.%s %s %s', relname, attname, pg_catalog.format_type(atttypid, atttypmod),
                         CASE WHEN attnotnull THEN 'true' ELSE 'false' END)
  FROM ours JOIN pg_catalog.pg_attribute ON attrelid = oid AND attnum > 0 AND NOT attisdropped WHERE relkind <> 'i'
UNION ALL
SELECT pg_catalog.format('%sindex %s.%s (%s)%s', CASE WHEN indisunique AND indisvalid THEN '' ELSE 'weak ' END,
                         t.relname, i.relname,
                         (SELECT pg_catalog.string_agg(pg_catalog.pg_get_indexdef(indexrelid, k, true), ',' ORDER BY k)
                          FROM pg_catalog.generate_series(1, indnatts) k),
                         COALESCE(' ' || pg_catalog.pg_get_expr(indpred, indrelid, true), ''))
  FROM pg_catalog.pg_index JOIN ours t ON t.oid = indrelid JOIN ours i ON i.oid = indexrelid
UNION ALL
SELECT pg_catalog.format('trigger %s.%s %s %s %s', relname, tgname, tgtype, tgenabled, proname)
  FROM pg_catalog.pg_trigger JOIN ours ON ours.oid = tgrelid JOIN pg_catalog.pg_proc p ON p.oid = tgfoid
 WHERE NOT tgisinternal
UNION ALL
SELECT pg_catalog.format('function %s %s', proname, prosrc) FROM pg_catalog.pg_proc
  JOIN pg_catalog.pg_namespace n ON n.oid = pronamespace WHERE n.nspname = 'hubbub'
UNION ALL
SELECT pg_catalog.format('rule %s.%s', relname, rulename) FROM pg_catalog.pg_rewrite JOIN ours ON ours.oid = ev_class
"""


def version(connection: "Connection") -> int:
    """Read the format number; 0 if there is no ledger."""
    (exists,) = _row(connection, "SELECT pg_catalog.to_regclass('hubbub.format') IS NOT NULL")
    if not exists:
        return 0
    (number,) = _row(connection, "SELECT COALESCE(max(version), 0) FROM hubbub.format")
    return int(number)


def upgrade(connection: "Connection", number: int, ledger: str | None = None) -> None:
    """Apply one migration, in a transaction that the caller opens and commits; a copy keeps the identity `ledger`."""
    for statement in MIGRATIONS[number - 1]:
        connection.execute(statement.encode())
    if number == 1:
        ledger = ledger or chain.new_identity()
        connection.execute("INSERT INTO hubbub.identity VALUES (%s)", (ledger,))
        connection.execute("INSERT INTO hubbub.head VALUES (true, 0, %s, 0, %s)", (genesis(ledger), NO_HASH))
    connection.execute("INSERT INTO hubbub.format VALUES (%s)", (number,))


def problems(connection: "Connection") -> list[str]:
    """Compare the catalog with the one that the migrations create."""
    lines = {line for (line,) in connection.execute(_LISTING.encode()).fetchall()}
    return [
        *(f"the {_name(line)} is missing or was changed" for line in sorted(CATALOG - lines)),
        *(f"the {_name(line)} does not belong to the ledger" for line in sorted(lines - CATALOG)),
    ]


def _name(line: str) -> str:
    return " ".join(line.split(" ")[:2])


def _row(connection: "Connection", query: str) -> tuple[Any, ...]:
    row = connection.execute(query.encode()).fetchone()
    if row is None:
        raise AssertionError("this query always returns a row")
    return row
