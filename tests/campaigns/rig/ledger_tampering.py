"""Tamper with a ledger as someone with access to its database could: with its rows or its bytes."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from tests.campaigns.rig.small_ledger import LedgerPlace, request

from hubbub.accounting.chain import Entry, append, canonical, genesis, request_hash
from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.postgres_schema import MIGRATIONS as POSTGRES
from hubbub.accounting.sqlite_schema import MIGRATIONS as SQLITE

_COLUMNS = ", ".join(Entry._fields)


@dataclass(slots=True)
class Rows:
    """Every row of a ledger, in memory."""

    ledger: str
    entries: list[Entry]
    releases: list[tuple[int, bytes]]
    totals: list[tuple[str, str, int]]
    keys: list[tuple[str, str, int]]  # SQLite only; PostgreSQL has an index instead


def read(place: LedgerPlace) -> Rows:
    """Read all rows without the product."""
    if place.dsn is None:
        with closing(sqlite3.connect(place.database)) as file:
            rows = _read(lambda query: file.execute(query).fetchall(), "")
            rows.keys += file.execute("SELECT key, analyst, charge FROM keys ORDER BY charge").fetchall()
            return rows
    with psycopg.connect(place.dsn) as server:
        return _read(lambda query: server.execute(query.encode()).fetchall(), "hubbub.")


def _read(ask: Callable[[str], list[tuple[Any, ...]]], schema: str) -> Rows:
    return Rows(
        ask(f"SELECT ledger FROM {schema}identity")[0][0],
        [Entry(*row) for row in ask(f"SELECT {_COLUMNS} FROM {schema}entries ORDER BY sequence")],
        [(row[0], row[1]) for row in ask(f"SELECT charge, body FROM {schema}releases ORDER BY charge")],
        [(row[0], row[1], row[2]) for row in ask(f"SELECT cap, spent, sequence FROM {schema}totals ORDER BY cap")],
        [],
    )


def write(place: LedgerPlace, rows: Rows) -> None:
    """Write all rows back, bypassing the triggers, and keep the schema."""
    if place.dsn is None:
        with closing(sqlite3.connect(place.database)) as file, file:
            triggers = [text for text in SQLITE[0] if "TRIGGER" in text]
            for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                file.execute(f"DROP TRIGGER {name}")
            _write(lambda query, values: file.executemany(query, values), "", "?", rows)
            for text in triggers:
                file.execute(text)
        return
    with psycopg.connect(place.dsn) as server:
        for table in ("identity", "entries", "releases"):
            server.execute(f"DROP TRIGGER only_added_to ON hubbub.{table}".encode())
        with server.cursor() as cursor:
            _write(lambda query, values: cursor.executemany(query.encode(), values), "hubbub.", "%s", rows)
        newest = max(rows.entries, default=None)
        if newest is not None:
            values = (newest.sequence, newest.hash, newest.time, newest.config)
            server.execute("UPDATE hubbub.head SET sequence = %s, hash = %s, time = %s, config = %s", values)
        for text in POSTGRES[0]:
            if "TRIGGER only" in text:
                server.execute(text.encode())


def _write(put: Callable[[str, list[Any]], object], schema: str, mark: str, rows: Rows) -> None:
    tables: dict[str, list[Any]] = {"entries": [*rows.entries], "releases": [*rows.releases], "totals": [*rows.totals]}
    for table, values in (tables if schema else tables | {"keys": [*rows.keys]}).items():
        put(f"DELETE FROM {schema}{table} WHERE true OR {mark} = 0", [(0,)])
        marks = ", ".join([mark] * len(values[0])) if values else ""
        if values:
            put(f"INSERT INTO {schema}{table} VALUES ({marks})", values)


# --- edits of rows: each changes something, and leaves the tables themselves in order ---


def change_a_field(rows: Rows, chance: random.Random) -> None:
    """Change one field of one entry."""
    place = chance.randrange(len(rows.entries))
    fields: list[Any] = list(rows.entries[place])
    which = chance.randrange(1, len(fields))  # all but the number
    fields[which] = _other(fields[which], chance)
    rows.entries[place] = Entry(*fields)


def _other(value: Any, chance: random.Random) -> Any:
    if isinstance(value, int):
        return value + chance.choice((-1, 1, 1000))
    if isinstance(value, str):
        return value + "x" if not value or chance.random() < 0.5 else value[:-1]
    place = chance.randrange(len(value))
    return value[:place] + bytes([value[place] ^ 1 << chance.randrange(8)]) + value[place + 1 :]


def delete_an_entry(rows: Rows, chance: random.Random) -> None:
    """Delete an entry, and sometimes renumber the rest."""
    place = chance.randrange(len(rows.entries))
    del rows.entries[place]
    if chance.random() < 0.5:
        rows.entries[place:] = [entry._replace(sequence=entry.sequence - 1) for entry in rows.entries[place:]]


def swap_entries(rows: Rows, chance: random.Random) -> None:
    """Swap two entries, keeping the numbers in order."""
    one, two = chance.sample(range(len(rows.entries)), 2)
    first, second = rows.entries[one], rows.entries[two]
    rows.entries[one] = second._replace(sequence=first.sequence)
    rows.entries[two] = first._replace(sequence=second.sequence)


def cut_the_end(rows: Rows, chance: random.Random) -> None:
    """Drop the newest entries with everything that belongs to them: the rest is a consistent ledger."""
    kept = rows.entries[: -chance.randint(1, len(rows.entries) // 2)]
    rows.entries[:] = kept
    released = {entry.charge for entry in kept if entry.kind == "release"}
    rows.releases[:] = [row for row in rows.releases if row[0] in released]
    charges = [entry.sequence for entry in kept if entry.kind == "charge"]
    rows.keys[:] = [row for row in rows.keys if row[2] <= len(kept)]
    spent = canonical(privacy_cost(request("").event).times(len(charges)).to_json())
    rows.totals[:] = [(cap, spent, charges[-1]) for cap, _, _ in rows.totals] if charges else []


def rewrite_history(rows: Rows, chance: random.Random) -> None:
    """Change the query of one charge and recompute all later hashes: a consistent but different ledger."""
    charges = [place for place, entry in enumerate(rows.entries) if entry.kind == "charge"]
    place = chance.choice(charges)
    old = rows.entries[place]
    query = old.query + " AND age < 90"
    rows.entries[place] = old._replace(query=query, request=request_hash(old.dataset, old.facts, query))
    last = genesis(rows.ledger)
    for number, entry in enumerate(rows.entries):
        fields = entry._asdict()
        for name in ("previous", "hash", "sequence", "kind", "time"):
            del fields[name]
        rows.entries[number] = append(last, entry.sequence, entry.kind, entry.time, **fields)
        last = rows.entries[number].hash


def rehash_an_entry(rows: Rows, chance: random.Random) -> None:
    """Change the query of one charge and recompute only its hash: the entry leaves the chain."""
    place = chance.choice([place for place, entry in enumerate(rows.entries) if entry.kind == "charge"])
    old = rows.entries[place]
    query = old.query + " AND age < 90"
    fields = old._replace(query=query, request=request_hash(old.dataset, old.facts, query))._asdict()
    for name in ("previous", "hash", "sequence", "kind", "time"):
        del fields[name]
    rows.entries[place] = append(old.previous, old.sequence, old.kind, old.time, **fields)


def change_a_total(rows: Rows, chance: random.Random) -> None:
    """Reduce a total."""
    place = chance.randrange(len(rows.totals))
    cap, _, sequence = rows.totals[place]
    less = canonical(privacy_cost(request("").event).times(chance.randint(0, 3)).to_json())
    rows.totals[place] = (cap, less, sequence)


def delete_a_total(rows: Rows, chance: random.Random) -> None:
    """Delete a total."""
    del rows.totals[chance.randrange(len(rows.totals))]


def change_a_release(rows: Rows, chance: random.Random) -> None:
    """Change a recorded release."""
    place = chance.randrange(len(rows.releases))
    charge, body = rows.releases[place]
    rows.releases[place] = (charge, _other(body, chance))


def delete_a_release(rows: Rows, chance: random.Random) -> None:
    """Delete a release, so that a retry would sample again."""
    del rows.releases[chance.randrange(len(rows.releases))]


def swap_releases(rows: Rows, chance: random.Random) -> None:
    """Swap two releases."""
    one, two = chance.sample(range(len(rows.releases)), 2)
    (first, x), (second, y) = rows.releases[one], rows.releases[two]
    rows.releases[one], rows.releases[two] = (first, y), (second, x)


def invent_a_release(rows: Rows, chance: random.Random) -> None:
    """Add a release to a charge without one."""
    taken = {charge for charge, _ in rows.releases}
    free = [entry.sequence for entry in rows.entries if entry.kind == "charge" and entry.sequence not in taken]
    rows.releases.append((chance.choice(free), b"invented"))


def delete_a_key(rows: Rows, chance: random.Random) -> None:
    """Delete a key, so that a retry would be charged again."""
    if rows.keys:
        del rows.keys[chance.randrange(len(rows.keys))]
    else:
        delete_a_total(rows, chance)


def swap_keys(rows: Rows, chance: random.Random) -> None:
    """Swap the charges of two keys."""
    if len(rows.keys) > 1:
        one, two = chance.sample(range(len(rows.keys)), 2)
        (a, x, first), (b, y, second) = rows.keys[one], rows.keys[two]
        rows.keys[one], rows.keys[two] = (a, x, second), (b, y, first)
    else:
        delete_a_total(rows, chance)


ROW_EDITS: tuple[Callable[[Rows, random.Random], None], ...] = (
    change_a_field,
    change_a_field,
    delete_an_entry,
    swap_entries,
    cut_the_end,
    rewrite_history,
    rehash_an_entry,
    change_a_total,
    delete_a_total,
    change_a_release,
    delete_a_release,
    swap_releases,
    invent_a_release,
    delete_a_key,
    swap_keys,
)


# --- edits of bytes ---


def flip_bits(path: Path, chance: random.Random) -> None:
    """Flip one bit, or several adjacent ones."""
    content = bytearray(path.read_bytes())
    start = chance.randrange(len(content))
    for place in range(start, min(len(content), start + chance.choice((1, 1, 4)))):
        content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut_short(path: Path, chance: random.Random) -> None:
    """Truncate the file at any byte."""
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def swap_blocks(path: Path, chance: random.Random) -> None:
    """Swap two pages (4096 bytes) of the file."""
    content = path.read_bytes()
    blocks = [content[start : start + 4096] for start in range(0, len(content), 4096)]
    one, two = chance.sample(range(len(blocks)), 2) if len(blocks) > 1 else (0, 0)
    blocks[one], blocks[two] = blocks[two], blocks[one]
    path.write_bytes(b"".join(blocks))


def blank_a_block(path: Path, chance: random.Random) -> None:
    """Overwrite a page with zeros."""
    content = bytearray(path.read_bytes())
    start = chance.randrange(0, len(content), 4096)
    content[start : start + 4096] = bytes(len(content[start : start + 4096]))
    path.write_bytes(content)


BYTE_EDITS: tuple[Callable[[Path, random.Random], None], ...] = (
    flip_bits,
    flip_bits,
    flip_bits,
    cut_short,
    swap_blocks,
    blank_a_block,
)
