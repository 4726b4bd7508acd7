"""The SQL of the ledger in PostgreSQL: the statements of a writer, and entries as they are read back.

Tested in tests/accounting/test_postgres.py.
"""

from functools import lru_cache
from typing import cast

from hubbub.accounting.chain import Entry, Kind
from hubbub.accounting.postgres_session import Row, integer, text

FIELDS = ", ".join(Entry._fields)
LOCK_HEAD = (
    "SELECT sequence, hash, time, config, current_setting('synchronous_commit') FROM hubbub.head WHERE one FOR UPDATE"
)
RECALL = (
    f"SELECT {', '.join(f'entries.{name}' for name in Entry._fields)}, releases.body FROM hubbub.entries "  # noqa: S608
    "LEFT JOIN hubbub.releases ON releases.charge = entries.sequence "
    "WHERE kind = 'charge' AND key = $1 AND analyst = $2"
)
TOTALS = "SELECT spent, sequence FROM hubbub.totals WHERE cap = $1 FOR UPDATE"
NEWS = f"SELECT {FIELDS} FROM hubbub.entries WHERE sequence > $1 ORDER BY sequence"  # noqa: S608
POLICY = "SELECT facts FROM hubbub.entries WHERE kind = 'policy' AND config = $1 LIMIT 1"
HASH = "SELECT hash FROM hubbub.entries WHERE sequence = $1"
ADD_RELEASE = "INSERT INTO hubbub.releases (charge, body) VALUES ($1, $2)"

BEGIN, COMMIT = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "COMMIT"


def _values(columns: int, rows: int, first: int = 1) -> str:
    """Write the placeholders of rows."""
    groups = ("(" + ", ".join(f"${first + row * columns + c}" for c in range(columns)) + ")" for row in range(rows))
    return ", ".join(groups)


@lru_cache(maxsize=128)
def add_entries(rows: int) -> str:
    """Write the statement that adds entries."""
    return f"INSERT INTO hubbub.entries ({FIELDS}) VALUES {_values(len(Entry._fields), rows)}"  # noqa: S608


@lru_cache(maxsize=1024)
def finish(totals: int) -> str:
    """Write the statement that ends a transaction: the last entry, all totals, and the row of the newest entry."""
    width = len(Entry._fields)
    new = f"entry AS ({add_entries(1)})"
    if totals:
        new += (
            f", total AS (INSERT INTO hubbub.totals VALUES {_values(3, totals, width + 5)} "  # noqa: S608
            "ON CONFLICT (cap) DO UPDATE SET spent = EXCLUDED.spent, sequence = EXCLUDED.sequence)"
        )
    place = ", ".join(f"{name} = ${width + n}" for n, name in enumerate(("sequence", "hash", "time", "config"), 1))
    return f"WITH {new} UPDATE hubbub.head SET {place} WHERE one"  # noqa: S608


def read_entry(row: Row) -> Entry:
    """Decode an entry."""
    number, kind, stamp, analyst, dataset, version, facts, query, key, charge, request, config, previous, digest = (
        value or b"" for value in row[: len(Entry._fields)]
    )
    return Entry(
        integer(number),
        cast(Kind, text(kind)),
        integer(stamp),
        text(analyst),
        text(dataset),
        text(version),
        text(facts),
        text(query),
        text(key),
        integer(charge),
        request,
        config,
        previous,
        digest,
    )
