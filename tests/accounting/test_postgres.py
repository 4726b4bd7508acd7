"""What only a server can do: go away and come back, refuse rights, forget to sync."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.fixtures.postgres_server import Server

from hubbub.accounting import postgres_schema
from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.postgres import PostgresStore
from hubbub.errors import BudgetError, LedgerError

if TYPE_CHECKING:
    from tests.accounting.conftest import PostgresDesk


@pytest.fixture
def desk(postgres_desk: "PostgresDesk") -> "PostgresDesk":
    return postgres_desk


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that these tests may stop and crash without hurting others; each leaves it running."""
    with Server() as server:
        yield server


def refused(action: Callable[[], object], code: str) -> LedgerError:
    with pytest.raises(LedgerError) as refusal:
        action()
    assert refusal.value.code == code, str(refusal.value)
    assert refusal.value.remedy
    return refusal.value


# --- a server that cannot be used


def test_an_address_that_is_none_is_refused() -> None:
    error = refused(lambda: PostgresStore("visits.sqlite"), "HB302")
    assert "is not a PostgreSQL address" in error.message


def test_a_server_that_does_not_answer_is_named_without_password(tmp_path: Path) -> None:
    error = refused(lambda: PostgresStore(f"postgresql://ana:secret@/ledger?host={tmp_path}"), "HB302")
    assert "could not connect to the server" in error.message
    assert str(tmp_path) in error.message
    assert "secret" not in str(error)


def test_a_missing_database_is_named(postgres_server: Server) -> None:
    assert '"nowhere" does not exist' in refused(lambda: PostgresStore(postgres_server.dsn("nowhere")), "HB302").message


def test_a_user_without_rights_is_refused(postgres_server: Server, desk: "PostgresDesk") -> None:
    desk.open().close()
    postgres_server.run("DROP ROLE IF EXISTS guest")
    postgres_server.run("CREATE ROLE guest LOGIN")
    guest = desk.dsn.replace("user=hubbub", "user=guest")
    assert "lacks the required permission" in refused(lambda: PostgresStore(guest), "HB302").message
    with postgres_server.database() as empty:
        refused(lambda: PostgresStore(empty.replace("user=hubbub", "user=guest")), "HB302")


def test_a_server_without_fsync_is_refused() -> None:
    with Server(fsync="off") as careless, careless.database() as dsn:
        error = refused(lambda: PostgresStore(dsn), "HB322")
    assert "fsync" in error.message


def test_a_careless_role_is_overruled(postgres_server: Server, desk: "PostgresDesk") -> None:
    """What the role has as its defaults for durability and isolation does not count."""
    name = desk.dsn.split("dbname=")[1].split()[0]
    for setting in (
        "synchronous_commit = off",
        "default_transaction_isolation = 'repeatable read'",
        "default_transaction_read_only = on",
        "search_path = nowhere",
    ):
        postgres_server.run(f"ALTER DATABASE {name} SET {setting}")
    with desk.open() as ledger, desk.open() as other:
        for _ in range(5):
            desk.spend(ledger, "0.1", dataset="wards")
            desk.spend(other, "0.1", dataset="wards")
        assert desk.exhaust(ledger, "0.1", dataset="wards")[0] == 0
        assert desk.exhaust(other, "0.1", dataset="wards")[0] == 0


def test_durability_that_is_turned_off_under_way_stops_the_ledger(desk: "PostgresDesk") -> None:
    ledger = desk.open()
    store: Any = ledger._store
    store._writer.do(b"SET synchronous_commit = off")
    with pytest.raises(LedgerError, match="synchronous_commit"):
        desk.spend(ledger)
    ledger.close()
    with desk.open() as again:
        assert again.verify().charges == 0


def test_the_missing_library_is_named() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import hubbub.accounting.postgres"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "HB321" in run.stderr
    assert "hubbub[postgres]" in run.stderr


# --- schema


def test_a_newer_format_is_refused(desk: "PostgresDesk") -> None:
    desk.open().close()
    desk.edit("INSERT INTO format VALUES (99)")
    assert "Upgrade" in refused(desk.open, "HB304").remedy


@pytest.mark.parametrize(
    "damage",
    [
        "DROP INDEX one_charge_a_key",
        "DROP TABLE totals",
        "CREATE TABLE more (x integer)",
        "ALTER TABLE totals ADD COLUMN note text",
        "ALTER TABLE entries ALTER COLUMN analyst DROP NOT NULL",
        "ALTER TABLE entries DISABLE TRIGGER only_added_to",
        "DROP TRIGGER only_added_to ON releases",
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE RULE sly AS ON INSERT TO entries DO ALSO DELETE FROM totals",
        "DELETE FROM format",
        "DELETE FROM head",
    ],
)
def test_a_half_made_or_changed_schema_is_refused(desk: "PostgresDesk", damage: str) -> None:
    desk.open().close()
    desk.edit(damage, triggers=True)
    with pytest.raises(LedgerError) as refusal:
        desk.open()
    assert refusal.value.code in ("HB305", "HB307", "HB301")


def test_a_row_that_writers_lock_must_name_the_newest_entry(desk: "PostgresDesk") -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    desk.edit("UPDATE head SET sequence = sequence - 1")
    assert "newest entry" in refused(desk.open, "HB307").message


def test_entries_and_releases_cannot_be_changed_through_sql(desk: "PostgresDesk") -> None:
    with desk.open() as ledger:
        ledger.record(desk.spend(ledger), b"answer")
    for statement in (
        "UPDATE entries SET analyst = 'x'",
        "DELETE FROM entries",
        "TRUNCATE entries",
        "DELETE FROM releases",
        "UPDATE releases SET body = ''",
        "UPDATE identity SET ledger = 'x'",
    ):
        with pytest.raises(psycopg.errors.RaiseException, match="only ever added to"):
            desk.edit(statement, triggers=True)


def test_reading_makes_nothing(desk: "PostgresDesk") -> None:
    refused(lambda: desk.store(read_only=True), "HB305")
    assert desk.ask("SELECT 1 FROM pg_namespace WHERE nspname = 'hubbub'") == []


def test_an_older_ledger_is_brought_forward(desk: "PostgresDesk", monkeypatch: pytest.MonkeyPatch) -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    steps = (*postgres_schema.MIGRATIONS, ("CREATE TABLE hubbub.notes (text text NOT NULL)",))
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", steps)
    monkeypatch.setattr(postgres_schema, "CATALOG", postgres_schema.CATALOG | {"column notes.text text true"})
    refused(lambda: desk.store(read_only=True), "HB305")
    with desk.open() as ledger:
        assert ledger.verify().charges == 1
        desk.spend(ledger)
    monkeypatch.undo()
    refused(desk.open, "HB304")


def test_a_migration_that_fails_changes_nothing(desk: "PostgresDesk", monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open().close()
    steps = (*postgres_schema.MIGRATIONS, ("CREATE TABLE hubbub.notes (x text)", "INSERT INTO nowhere VALUES (1)"))
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", steps)
    refused(desk.open, "HB301")
    monkeypatch.undo()
    with desk.open() as ledger:
        assert ledger.verify().sound


def test_servers_that_start_together_make_one_ledger(desk: "PostgresDesk") -> None:
    identities: list[str] = []

    def start() -> None:
        store = desk.store()
        identities.append(store.ledger)
        store.close()

    team = [threading.Thread(target=start) for _ in range(8)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert len(identities) == 8
    assert len(set(identities)) == 1


# --- turns with other servers


def test_an_exclusive_store_keeps_every_other_writer_out(desk: "PostgresDesk") -> None:
    alone = desk.store(exclusive=True)
    refused(lambda: desk.store(patience=0.1), "HB303")
    refused(lambda: desk.store(patience=0.1, exclusive=True), "HB303")
    desk.store(read_only=True).close()
    alone.close()
    desk.store(exclusive=True).close()


def test_a_writer_that_keeps_the_lock_is_waited_for_and_then_named(desk: "PostgresDesk") -> None:
    desk.open().close()
    store = desk.store(patience=0.2)
    ledger = Ledger.open(store, policy=desk.policy, anchor=FileAnchor(desk.anchor))
    with psycopg.connect(desk.dsn) as other:
        other.execute("SELECT * FROM hubbub.head FOR UPDATE")
        refused(lambda: desk.spend(ledger), "HB303")
    desk.spend(ledger)  # being busy does not stop a ledger
    assert ledger.verify().charges == 1
    ledger.close()


def test_two_servers_never_grant_more_than_there_is(desk: "PostgresDesk") -> None:
    ledgers = [desk.open() for _ in range(4)]
    granted: list[int] = []

    def spend(ledger: Ledger, name: int) -> None:
        done = 0
        for number in range(60):
            try:
                desk.spend(ledger, "0.01", dataset="wards", key=f"{name}.{number}")
                done += 1
            except BudgetError:
                pass
        granted.append(done)

    team = [threading.Thread(target=spend, args=(ledger, name)) for name, ledger in enumerate(ledgers * 2)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert sum(granted) == 100
    assert ledgers[0].verify().sound


@pytest.mark.parametrize("step", ["begun", "entries", "totals", "committing"])
def test_a_ledger_that_is_interrupted_in_the_middle_gives_its_lock_back(desk: "PostgresDesk", step: str) -> None:
    armed: list[str] = []

    def interrupt(name: str) -> None:
        if name in armed:
            raise RuntimeError("interrupted")

    ledger = desk.open(on_step=interrupt)
    armed.append(step)
    refused(lambda: desk.spend(ledger), "HB301")
    with Ledger.open(desk.store(patience=1), policy=desk.policy, anchor=FileAnchor(desk.anchor)) as other:
        desk.spend(other)
        assert (other.verify().sound, other.verify().charges) == (True, 1)


# --- a server that goes away


@pytest.fixture
def fragile(own_server: Server, tmp_path: Path) -> Iterator["PostgresDesk"]:
    from tests.accounting.conftest import PostgresDesk

    with own_server.database() as dsn:
        desk = PostgresDesk(tmp_path, dsn)
        yield desk
        desk.close()


def test_a_ledger_goes_on_after_a_restart_of_the_server(own_server: Server, fragile: "PostgresDesk") -> None:
    ledger = fragile.open()
    for crash in (False, True):
        fragile.spend(ledger)
        own_server.stop(crash=crash)
        waiting = threading.Thread(target=fragile.spend, args=(ledger,))
        waiting.start()
        time.sleep(0.3)
        own_server.start()
        waiting.join()
        assert ledger.verify().sound
    assert ledger.verify().charges == 4


def test_an_outage_is_borne_and_nothing_is_charged_meanwhile(own_server: Server, fragile: "PostgresDesk") -> None:
    fragile.open().close()
    ledger = Ledger.open(fragile.store(patience=0.2), policy=fragile.policy, anchor=FileAnchor(fragile.anchor))
    own_server.stop()
    for _ in range(2):
        refused(lambda: fragile.spend(ledger, key="kept"), "HB303")
    own_server.start()
    assert not fragile.spend(ledger, key="kept").replayed
    assert ledger.verify().charges == 1
    ledger.close()


@pytest.mark.parametrize("step", ["begun", "entries", "totals", "committing"])
def test_a_server_that_crashes_in_the_middle_of_a_charge_loses_and_doubles_nothing(
    own_server: Server, fragile: "PostgresDesk", step: str
) -> None:
    armed: list[str] = []

    def crash(name: str) -> None:
        if armed and name == armed[0]:
            armed.clear()
            own_server.stop(crash=True)
            own_server.start()

    ledger = fragile.open(on_step=crash)
    armed.append(step)
    charge = fragile.spend(ledger, key="through")
    assert not charge.replayed
    assert fragile.spend(ledger, key="through").entry == charge.entry
    assert (ledger.verify().sound, ledger.verify().charges) == (True, 1)


def test_a_commit_whose_answer_was_lost_is_found(own_server: Server, fragile: "PostgresDesk") -> None:
    """The commit reaches the disk, and the connection dies before it says so."""
    ledger = fragile.open()
    store: Any = ledger._store
    land, commits = store._writer.land, []

    def lose() -> Any:
        answers = land()
        commits.append(len(answers))
        if len(commits) == 2:  # the first flight locks, the second commits
            own_server.stop(crash=True)
            own_server.start()
            store._writer.do(b"SELECT 1")  # as if the answer to the commit were read only now
        return answers

    store._writer.land = lose
    charge = fragile.spend(ledger, key="lost")
    assert not charge.replayed
    assert (ledger.verify().sound, ledger.verify().charges) == (True, 1)


def test_another_servers_charge_in_between_stops_the_ledger(own_server: Server, fragile: "PostgresDesk") -> None:
    """A crash under way, and before we are back another server has charged: what we decided is no longer right."""
    armed: list[bool] = []
    others: list[Ledger] = []

    def crash(name: str) -> None:
        if armed and name == "entries":
            armed.clear()
            own_server.stop(crash=True)
            own_server.start()
            others.append(fragile.open())
            fragile.spend(others[0])

    ledger = fragile.open(on_step=crash)
    armed.append(True)
    refused(lambda: fragile.spend(ledger, key="late"), "HB301")
    assert (others[0].verify().sound, others[0].verify().charges) == (True, 1)


def test_another_ledger_in_its_place_is_noticed(own_server: Server, fragile: "PostgresDesk") -> None:
    ledger = fragile.open()
    fragile.spend(ledger)
    own_server.stop()
    own_server.start()
    fragile.edit("UPDATE identity SET ledger = 'another'")
    with pytest.raises(LedgerError, match="another ledger"):
        fragile.spend(ledger)
    ledger.close()


# --- cost


def test_no_statement_of_a_charge_scans_a_table_that_grows(desk: "PostgresDesk") -> None:
    from hubbub.accounting import postgres_statements as sql

    ledger = desk.open()
    store: Any = ledger._store
    plans: list[str] = []
    for statement in (sql.LOCK_HEAD, sql.RECALL, sql.TOTALS, sql.HASH):
        count = statement.count("$")
        store._writer.do(f"PREPARE look{len(plans)} AS {statement}".encode())
        arguments = "(" + ", ".join(["'1'"] * count) + ")" if count else ""
        rows = store._writer.connection.execute(f"EXPLAIN EXECUTE look{len(plans)}{arguments}".encode()).fetchall()
        plans.append("\n".join(row[0] for row in rows))
    assert all("Index" in plan and "Seq Scan" not in plan for plan in plans), plans


def test_a_group_of_any_size_is_written_whole(desk: "PostgresDesk") -> None:
    """Groups are written in statements of 1, 2, 4 … 64 rows; none of their sizes loses or doubles an entry."""
    ledger = desk.open()
    for size in (1, 2, 3, 7, 64, 65, 100, 130):
        before = ledger.verify().charges
        team = [threading.Thread(target=desk.spend, args=(ledger, "0.0001")) for _ in range(size)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
        verification = ledger.verify()
        assert verification.sound
        assert verification.charges == before + size


def test_a_killed_process_leaves_no_lock_behind(desk: "PostgresDesk") -> None:
    desk.open().close()
    child = os.fork()
    if child == 0:
        try:
            store = desk.store()
            store.begin((), 0)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    start = time.monotonic()
    with desk.open() as ledger:
        desk.spend(ledger)
    assert time.monotonic() - start < 10
