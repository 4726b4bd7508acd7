"""Durable charges a second, beside bare commits of the same row on the same disk in the same run.

A bare commit inserts one row with the fields of a ledger's entry into a table with a primary key, and waits for the
disk: no check, no hash, no total, no key, no anchor. One client and 64, SQLite (alone on its file, as a server is, and
where processes take turns) and PostgreSQL; then the cost of a charge on a long ledger beside one on an empty ledger.
Both sides alternate in short blocks, each block is compared with its neighbor, and what else goes on hurts both.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.ledger
"""

import itertools
import os
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.small_ledger import LedgerPlace, request
from tests.fixtures.postgres_server import Server

from hubbub.accounting.chain import Entry, append, canonical, facts_text, request_hash
from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.ledger import Ledger, no_step
from hubbub.accounting.store import StoredTotal

BLOCK = 10
FEWEST = 30  # pairs of blocks
CLIENTS = 64
_keys = itertools.count()


def charge(ledger: Ledger) -> None:
    ledger.charge(request(f"bench-{next(_keys)}"))


@contextmanager
def raw_sqlite(path: Path, row: Entry) -> Iterator[Callable[[], None]]:
    """One durable transaction with one row, as bare as it can be."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        fields = ", ".join(Entry._fields[1:])
        connection.execute(f"CREATE TABLE entries (sequence INTEGER PRIMARY KEY, {fields})")
        insert = f"INSERT INTO entries VALUES ({', '.join('?' * len(Entry._fields))})"
        numbers = itertools.count(1)

        def commit() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(insert, row._replace(sequence=next(numbers)))
            connection.execute("COMMIT")

        yield commit


@contextmanager
def raw_postgres(dsn: str, row: Entry) -> Iterator[Callable[[], None]]:
    """The same on a server, as a Python program usually does it."""
    types = {int: "bigint", str: "text", bytes: "bytea"}
    with closing(psycopg.connect(dsn)) as connection:
        columns = ", ".join(f"{name} {types[type(value)]}" for name, value in row._asdict().items())
        connection.execute(f"CREATE TABLE entries ({columns}, PRIMARY KEY (sequence))".encode())
        connection.commit()
        insert = f"INSERT INTO entries VALUES ({', '.join(['%s'] * len(Entry._fields))})".encode()
        numbers = itertools.count(1)

        def commit() -> None:
            connection.execute(insert, row._replace(sequence=next(numbers)))
            connection.commit()

        yield commit


def alternate(one: Callable[[], None], two: Callable[[], None], seconds: float) -> tuple[float, float, float]:
    """Run blocks of both in turns; give the seconds that a call of each takes in the median block, and the ratio.

    The ratio (one to two) is the median over pairs of neighbors: on a disk whose speed changes by the second, the
    quotient of two medians may compare a slow time of one with a quick time of the other.
    """
    spent: tuple[list[float], list[float]] = ([], [])
    for action in (one, two):
        for _ in range(10 * BLOCK):
            action()  # warm
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(spent[0]) < FEWEST:
        pair = ((one, spent[0]), (two, spent[1]))
        for action, times in pair if len(spent[0]) % 2 else reversed(pair):
            begun = time.perf_counter()
            for _ in range(BLOCK):
                action()
            times.append(time.perf_counter() - begun)
    ratio = statistics.median(first / second for first, second in zip(*spent, strict=True))
    return statistics.median(spent[0]) / BLOCK, statistics.median(spent[1]) / BLOCK, ratio


def together(ledger: Ledger, clients: int, seconds: float) -> float:
    """Charge from so many threads for some seconds; give charges a second."""
    done = [0] * clients
    begun = time.perf_counter()

    def client(number: int) -> None:
        while time.perf_counter() < begun + seconds:
            charge(ledger)
            done[number] += 1

    team = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    return sum(done) / (time.perf_counter() - begun)


def grow(place: LedgerPlace, size: int) -> None:
    """Fill a ledger with so many charges in large transactions: quick, and as valid as one by one."""
    asked = request("")
    facts, cost = facts_text(asked.event), privacy_cost(asked.event)
    digest = request_hash(asked.dataset, facts, asked.query)
    with place.ledger() as ledger:
        caps = [cap.at(ledger.time()) for cap in ledger.policy.caps(asked.analyst, asked.dataset)]
    store = place.store()
    for start in range(0, size, 10_000):
        head, _, _ = store.begin((), 0)
        entries: list[Entry] = []
        last, number = head.hash, head.sequence
        for each in range(start, min(size, start + 10_000)):
            number += 1
            entry = append(
                last,
                number,
                "charge",
                head.time,
                config=head.config,
                facts=facts,
                analyst="ana",
                dataset="visits",
                version="v1",
                query=asked.query,
                key=f"grown-{each}",
                request=digest,
            )
            last = entry.hash
            entries.append(entry)
        spent = canonical(cost.times(start + len(entries)).to_json())
        store.commit(entries, {cap: StoredTotal(spent, number) for cap in caps}, {}, no_step)
    store.close()


def body(report: Report) -> None:
    seconds = report.scale(ci=2, full=20)
    rounds = report.scale(ci=3, full=15)
    size = report.scale(ci=20_000, full=1_000_000)
    with Server(on_disk=True) as server:
        for store in ("sqlite", "postgres"):
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-bench-")))

                def place(
                    name: str, folder: Path = folder, store: str = store, stack: ExitStack = stack
                ) -> LedgerPlace:
                    (folder / name).mkdir()
                    dsn = stack.enter_context(server.database()) if store == "postgres" else None
                    return LedgerPlace(folder / name, dsn, "1000000", alone=dsn is None and name != "shared")

                _speed(report, store, place, seconds, rounds, stack)
                _growth(report, store, place, seconds, size, stack)
    report.figure("load_average", [round(load, 1) for load in os.getloadavg()])


def _speed(
    report: Report, store: str, place: Callable[[str], LedgerPlace], seconds: float, rounds: int, stack: ExitStack
) -> None:
    ledger = stack.enter_context(place("served").ledger())
    row = ledger.charge(request("first")).entry
    bare = place("bare")
    raw = stack.enter_context(
        raw_sqlite(bare.folder / "raw.sqlite", row) if bare.dsn is None else raw_postgres(bare.dsn, row)
    )
    report.say(f"{store}: one client")
    raw_cost, cost, share = alternate(raw, lambda: charge(ledger), seconds)
    report.figure(f"{store}_raw_commits_per_second", round(1 / raw_cost))
    report.figure(f"{store}_charges_per_second", round(1 / cost))
    report.target(f"{store}_share_of_raw", round(share, 3), at_least=0.7)
    if bare.dsn is None:
        shared = stack.enter_context(place("shared").ledger())
        _, _, share = alternate(raw, lambda: charge(shared), seconds)
        report.target("sqlite_share_of_raw_where_processes_take_turns", round(share, 3), at_least=0.7)
    report.say(f"{store}: {CLIENTS} clients")
    turns = [(together(ledger, 1, 0.5), together(ledger, CLIENTS, 0.5)) for _ in range(rounds)]
    one, many = (sum(rates) / rounds for rates in zip(*turns, strict=True))
    report.figure(f"{store}_charges_per_second_{CLIENTS}_clients", round(many))
    report.target(f"{store}_gain_of_{CLIENTS}_clients", round(many / one, 2), at_least=3)


def _growth(
    report: Report, store: str, place: Callable[[str], LedgerPlace], seconds: float, size: int, stack: ExitStack
) -> None:
    report.say(f"{store}: a ledger of {size} charges")
    long = place("long")
    begun = time.perf_counter()
    grow(long, size)
    report.figure(f"{store}_seconds_to_grow", round(time.perf_counter() - begun, 1))
    begun = time.perf_counter()
    grown = stack.enter_context(long.ledger())
    report.figure(f"{store}_seconds_to_open_and_verify", round(time.perf_counter() - begun, 2))
    empty = stack.enter_context(place("empty").ledger())
    _, _, ratio = alternate(lambda: charge(grown), lambda: charge(empty), seconds)
    report.figure(f"{store}_events", size)
    report.target(f"{store}_cost_on_the_long_ledger", round(ratio, 3), at_most=1.5)


if __name__ == "__main__":
    run(body)
