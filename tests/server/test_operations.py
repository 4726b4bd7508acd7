"""Servers as operators run them: real processes, several on one ledger, backups, and what is refused."""

import shutil
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.fixtures.server_config import ANALYSTS, PRICE, ServerFolder, charge, kept
from tests.fixtures.server_process import Caller, SpawnedServer, await_ready, free_port

from hubbub.accounting.ledger import examine
from hubbub.accounting.store import EntryFilter
from hubbub.cli import main
from hubbub.config import load
from hubbub.curator.opening import anchor_of, store_of


@contextmanager
def serving(town: ServerFolder, count: int = 1) -> Iterator[list[int]]:
    """Start so many servers on one town, give their ports, and see them stop in good order."""
    ports = [free_port() for _ in range(count)]
    servers = [SpawnedServer(town.config, port) for port in ports]
    try:
        for port, server in zip(ports, servers, strict=True):
            await_ready(port, server)
        yield ports
    finally:
        codes = [server.end(signal.SIGTERM) for server in servers]
    assert set(codes) <= {0, -signal.SIGTERM}


def refusal(town: ServerFolder) -> str:
    """Start a server that must not start, and give what it said."""
    port = free_port()
    server = SpawnedServer(town.config, port)
    with pytest.raises(RuntimeError, match="ended by itself"):
        await_ready(port, server)
    assert server.end(signal.SIGTERM) != 0
    return " ".join((town.folder / f"server-{port}.log").read_text().split())


def spend(town: ServerFolder, port: int, number: int) -> int:
    with closing(Caller(port, town.tokens["ana"])) as caller:
        return caller.query(town.question(number, own_key=True), f"n{number}").status


def test_several_servers_on_one_postgres_ledger_never_overspend_together(tmp_path: Path, postgres_dsn: str) -> None:
    """The dataset allows 30 queries; three analysts with 30 each ask 90 of three servers at once."""
    town = ServerFolder(tmp_path / "town", dsn=postgres_dsn, epsilon="0.3")
    statuses: Counter[int] = Counter()
    answers: dict[str, bytes] = {}

    def some(analyst: str, port: int, first: int) -> None:
        caller = Caller(port, town.tokens[analyst])
        for number in range(first, first + 10):
            reply = caller.query(town.question(number, own_key=number % 2 == 0), f"n{number}")
            statuses[reply.status] += 1
            if reply.status == 200:
                answers[f"{analyst} n{number}"] = kept(reply)
        caller.close()

    with serving(town, 3) as ports:
        places = [(analyst, port) for analyst in ANALYSTS for port in ports]
        team = [threading.Thread(target=some, args=(*each, 10 * n)) for n, each in enumerate(places)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
        # what one server answered, another answers in the same bytes: retries belong to all of them
        for name, answer in answers.items():
            analyst, key = name.split()
            caller = Caller(ports[int(key[1:]) % 3], town.tokens[analyst])
            number = int(key[1:])
            assert kept(caller.query(town.question(number, own_key=number % 2 == 0), key)) == answer
            caller.close()
    config = load(town.config)
    with closing(store_of(config, read_only=True)) as store:
        assert examine(store, anchor_of(config)).sound
        with store.snapshot() as snapshot:
            entries = {entry.sequence: entry for entry in snapshot.entries(EntryFilter(kind="charge"))}
    assert statuses == {200: 30, 409: 60}
    assert len(entries) == 30
    assert {charge(answer)[0] for answer in answers.values()} == set(entries)


def test_a_second_server_on_a_sqlite_ledger_refuses_to_start_and_says_why(tmp_path: Path) -> None:
    town = ServerFolder(tmp_path / "town")
    with serving(town) as (port,):
        said = refusal(town)
        assert "HB303" in said
        assert "another server has it open" in said
        assert "Traceback" not in said
        assert spend(town, port, 1) == 200, "the first one goes on"


def test_a_backup_is_good_until_something_is_charged_and_then_the_owner_must_write_that_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/deploy.md describes it: taken while the server runs, restored without the anchor."""
    town = ServerFolder(tmp_path / "town", epsilon="1")
    database, backup = load(town.config).database, tmp_path / "backup.db"
    with serving(town) as (port,):
        assert spend(town, port, 1) == 200
        with closing(sqlite3.connect(database)) as running:
            running.execute("VACUUM INTO ?", (str(backup),))
    restore(database, backup)
    with serving(town) as (port,):  # nothing is missing
        assert spend(town, port, 2) == 200
    restore(database, backup)
    assert main(["verify", "ledger", "--config", str(town.config)]) == 1
    assert "anchor" in capsys.readouterr().out
    said = refusal(town)
    assert "HB307" in said
    assert "hubbub admin forfeit" in said

    why = ["--by", "owner@hospital.example", "--reason", "the disk failed", "--config", str(town.config)]
    assert main(["admin", "forfeit", *why, "--epsilon", PRICE, "--yes"]) == 0
    with serving(town) as (port,), closing(Caller(port, town.tokens["ana"])) as caller:
        (view,) = caller.ask("GET", "/api/v1/budget").json()["budgets"]
        (mine,) = (cap for cap in view["caps"] if cap["scope"] == "analyst")
        assert mine["spent"] == "1/50", "the charge in the backup, and the one that was written off"
        assert spend(town, port, 3) == 200


def restore(database: Path, backup: Path) -> None:
    """Put a backup in the place of a database; a write-ahead log of the old one must not be read with the new."""
    for ending in ("", "-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)
    shutil.copyfile(backup, database)
