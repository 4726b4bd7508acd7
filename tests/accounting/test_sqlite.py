import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.accounting.conftest import as_document

from hubbub.accounting import sqlite_schema
from hubbub.accounting.anchor import FileAnchor, former_path
from hubbub.accounting.bloom import BloomFilter
from hubbub.accounting.calls import Charge
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk


@pytest.fixture
def desk(file_desk: "Desk") -> "Desk":
    return file_desk


def refused(action: Callable[[], object], code: str) -> LedgerError:
    with pytest.raises(LedgerError) as refusal:
        action()
    assert refusal.value.code == code, str(refusal.value)
    assert refusal.value.remedy
    return refusal.value


def in_a_child(action: Callable[[], object], *, nobody: bool = False) -> str:
    """Run in a forked process, as a user without rights if asked, and give the code of the LedgerError it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if nobody and os.geteuid() == 0:
                os.setegid(65534)
                os.seteuid(65534)
            action()
            os.write(writer, b"no error")
        except LedgerError as error:
            os.write(writer, error.code.encode())
        except BaseException as error:  # noqa: BLE001 the parent shows whatever it was
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


# --- a file that cannot be used


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    error = refused(lambda: SqliteStore(tmp_path / "none" / "ledger.sqlite"), "HB302")
    assert "does not exist" in error.message


def test_reading_makes_nothing(tmp_path: Path) -> None:
    refused(lambda: SqliteStore(tmp_path / "ledger.sqlite", read_only=True), "HB302")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_cannot_be_written_is_refused(open_folder: Path) -> None:
    path = open_folder / "ledger.sqlite"
    SqliteStore(path).close()
    for part in open_folder.iterdir():
        part.chmod(0o444)
    open_folder.chmod(0o555)
    assert in_a_child(lambda: SqliteStore(path), nobody=True) == "HB302"
    (open_folder / "ledger.sqlite.lock").chmod(0o666)
    assert in_a_child(lambda: SqliteStore(path), nobody=True) == "HB302"
    (open_folder / "ledger.sqlite.lock").chmod(0o444)
    open_folder.chmod(0o1777)
    assert in_a_child(lambda: SqliteStore(path), nobody=True) == "HB302"


def test_what_others_can_write_is_refused(open_folder: Path) -> None:
    path = open_folder / "ledger.sqlite"
    SqliteStore(path).close()
    open_folder.chmod(0o777)
    assert in_a_child(lambda: SqliteStore(path), nobody=True) == "HB335", "anybody could put another file there"
    open_folder.chmod(0o1777)
    assert in_a_child(lambda: SqliteStore(path)) == "no error", "with the sticky bit only its owner can"
    path.chmod(0o666)
    if os.geteuid() == 0:
        assert in_a_child(lambda: SqliteStore(path), nobody=True) == "HB335", "not ours to tighten"
    assert in_a_child(lambda: SqliteStore(path)) == "no error"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"once upon a time " * 1000)
    refused(lambda: SqliteStore(path), "HB306")
    assert path.read_bytes() == b"once upon a time " * 1000


def test_damage_that_is_no_text_is_refused(desk: "Desk") -> None:
    desk.open().close()
    content = desk.database.read_bytes()
    assert b"INTEGER PRIMARY KEY, kind" in content
    desk.database.write_bytes(content.replace(b"INTEGER PRIMARY KEY, kind", b"INTEGER PRKLQ\xd2Y KEY, kind"))
    refused(desk.open, "HB306")


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    refused(lambda: SqliteStore(path), "HB305")
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]


def test_a_newer_format_is_refused(desk: "Desk") -> None:
    desk.open().close()
    desk.edit("PRAGMA user_version = 99")
    error = refused(desk.open, "HB304")
    assert "Upgrade" in error.remedy


@pytest.mark.parametrize(
    "damage",
    [
        "ALTER TABLE keys ADD COLUMN note TEXT",
        "DROP TABLE totals",
        "CREATE TABLE more (x)",
        "ALTER TABLE totals ADD COLUMN note TEXT",
        "DELETE FROM identity",
        "CREATE TRIGGER sly AFTER INSERT ON entries BEGIN DELETE FROM totals; END",
    ],
)
def test_a_half_made_or_changed_schema_is_refused(desk: "Desk", damage: str) -> None:
    desk.open().close()
    desk.edit(damage)
    refused(desk.open, "HB305")


def test_entries_and_releases_cannot_be_changed_through_sql(desk: "Desk") -> None:
    with desk.open() as ledger:
        ledger.record(desk.spend(ledger), b"answer")
    for statement in (
        "UPDATE entries SET analyst = 'x'",
        "DELETE FROM entries",
        "UPDATE releases SET body = x'00'",
        "DELETE FROM releases",
        "UPDATE identity SET ledger = 'x'",
        "UPDATE keys SET charge = 9",
        "DELETE FROM keys",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            desk.edit(statement, triggers=True)


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM keys WHERE charge = 2",
        "UPDATE keys SET charge = 3 WHERE charge = 2",
        "UPDATE keys SET key = key || 'x'",
    ],
)
def test_keys_that_are_not_those_of_the_charges_are_found(desk: "Desk", edit: str) -> None:
    for _ in range(3):
        with desk.open() as ledger:
            desk.spend(ledger)  # the first charge of each start stores keys
    desk.edit("DELETE FROM keys WHERE charge = 3", edit)
    error = refused(desk.open, "HB307")
    assert "the request keys do not match the charges" in error.message


def test_a_key_that_leads_to_another_charge_stops_the_ledger(desk: "Desk") -> None:
    with desk.open() as ledger:
        desk.spend(ledger, key="one")
    ledger = desk.open()
    desk.spend(ledger, key="two")  # stores its key, as the first charge of each start does
    desk.edit("UPDATE keys SET charge = 2")
    assert ledger.charge(desk.request(key="one")).replayed
    refused(lambda: ledger.charge(desk.request(key="two")), "HB301")


# --- migrations


def test_an_older_ledger_is_brought_forward(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    steps = (*sqlite_schema.MIGRATIONS, ("CREATE TABLE notes (text TEXT) STRICT",))
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", steps)
    refused(lambda: desk.store(read_only=True), "HB305")
    with desk.open() as ledger:
        assert ledger.verify().charges == 1
        desk.spend(ledger)
    monkeypatch.undo()
    refused(desk.open, "HB304")


def test_a_migration_that_fails_changes_nothing(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open().close()
    steps = (*sqlite_schema.MIGRATIONS, ("CREATE TABLE notes (text TEXT) STRICT", "INSERT INTO nowhere VALUES (1)"))
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", steps)
    refused(desk.open, "HB301")
    monkeypatch.undo()
    with desk.open() as ledger:
        assert ledger.verify().sound


# --- turns with other processes


def test_an_exclusive_store_keeps_every_other_writer_out(desk: "Desk") -> None:
    server = desk.store(exclusive=True)
    assert in_a_child(lambda: desk.store(exclusive=True)) == "HB303"
    assert in_a_child(desk.store) == "HB303"
    assert in_a_child(lambda: desk.store(read_only=True).close()) == "no error"
    server.close()
    assert in_a_child(lambda: desk.store(exclusive=True)) == "no error"


def test_a_writer_that_keeps_the_lock_is_waited_for_and_then_named(desk: "Desk") -> None:
    with desk.open() as ledger:
        ledger._store._patience = 0.2  # type: ignore[attr-defined]
        with closing(sqlite3.connect(desk.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            error = refused(lambda: desk.spend(ledger), "HB303")
            assert "0.2 s" in error.message
            other.execute("ROLLBACK")
        desk.spend(ledger)  # being busy does not stop a ledger
        assert ledger.verify().charges == 1


def test_a_writer_waits_its_turn(desk: "Desk") -> None:
    ledger = desk.open()
    other = sqlite3.connect(desk.database, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.1, lambda: other.execute("ROLLBACK")).start()
    start = time.monotonic()
    desk.spend(ledger)
    assert time.monotonic() - start > 0.05
    other.close()


WORKER = """
import sys
from fractions import Fraction
from pathlib import Path
from hubbub.accounting.anchor import FileAnchor, former_path
from hubbub.accounting.calls import ChargeRequest
from hubbub.config.policy import parse_policy
from hubbub.accounting.calls import Charge
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.core.events import LaplaceEvent
from hubbub.errors import BudgetError

path, policy, me = Path(sys.argv[1]), parse_policy(sys.argv[2]), sys.argv[3]
granted = 0
with Ledger.open(SqliteStore(path), policy=policy, anchor=FileAnchor(former_path(path))) as ledger:
    event = LaplaceEvent(1, Fraction(100))
    for number in range(60):
        try:
            ledger.charge(ChargeRequest("ana", "wards", "v1", event, "count", f"{me}-{number}"))
            granted += 1
        except BudgetError:
            pass
print(granted)
"""


def test_processes_that_start_together_get_exactly_what_is_there(desk: "Desk") -> None:
    command = [sys.executable, "-c", WORKER, str(desk.database), as_document(desk.policy)]
    children = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(4)]
    assert sum(int(child.communicate(timeout=120)[0]) for child in children) == 100
    with desk.open() as ledger:
        assert (ledger.verify().sound, ledger.verify().charges) == (True, 100)


# --- fail-stop


class Failing:
    """A connection whose disk fails at a statement."""

    def __init__(self, connection: sqlite3.Connection, at: str, error: Exception) -> None:
        self._connection = connection
        self._at = at
        self._error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith(self._at):
            raise self._error
        return self._connection.execute(statement, *values)

    def executemany(self, statement: str, values: Any) -> sqlite3.Cursor:
        if statement.startswith(self._at):
            raise self._error
        return self._connection.executemany(statement, values)


def stops(desk: "Desk", ledger: Ledger) -> None:
    """Nothing is served any more, and a restart finds all that was acknowledged."""
    refused(lambda: desk.spend(ledger), "HB301")
    for _ in range(2):
        error = refused(lambda: desk.spend(ledger), "HB301")
        assert "Restart" in error.remedy
    refused(ledger.verify, "HB301")
    ledger.close()


@pytest.mark.parametrize("at", ["INSERT INTO entries", "REPLACE INTO totals", "COMMIT", "SELECT"])
def test_an_error_of_the_disk_stops_the_ledger_until_it_is_opened_again(desk: "Desk", at: str) -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    ledger = desk.open()  # its first charge stores totals
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    store: Any = ledger._store
    store._writer = Failing(store._writer, at, error)
    store._do = store._writer.execute
    stops(desk, ledger)
    with desk.open() as again:
        assert (again.verify().sound, again.verify().charges) == (True, 1)
        desk.spend(again)


def test_a_full_database_stops_the_ledger(desk: "Desk") -> None:
    ledger = desk.open()
    store: Any = ledger._store
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    done = 0
    while desk_code(lambda: desk.spend(ledger, "0.001", query="x" * 500)) == "no error":
        done += 1
    stops(desk, ledger)
    with desk.open() as again:
        assert (again.verify().sound, again.verify().charges) == (True, done)


def test_a_disk_that_takes_no_more_bytes_stops_the_ledger(desk: "Desk") -> None:
    """The kernel itself refuses writes past a size (EFBIG), in the middle of a commit."""

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger = desk.open()
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        done = 0
        try:
            while done < 1000:
                desk.spend(ledger, "0.001", query="x" * 2000)
                done += 1
        except LedgerError as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            again = desk_code(lambda: desk.spend(ledger))
            raise LedgerError(f"{error.code} {again} {done}", "") from error

    code, again, done = in_a_child(fill).split()
    assert (code, again) == ("HB301", "HB301")
    assert 0 < int(done) < 1000
    with desk.open() as ledger:
        verification = ledger.verify()
        assert verification.sound
        assert verification.charges in (int(done), int(done) + 1)  # the last one may be on the disk, unacknowledged


def desk_code(action: Callable[[], object]) -> str:
    try:
        action()
    except LedgerError as error:
        return error.code
    return "no error"


def test_everybody_in_the_group_hears_of_the_stop(desk: "Desk") -> None:
    ledger = desk.open()
    error = sqlite3.OperationalError("disk I/O error")
    store: Any = ledger._store
    store._writer = Failing(store._writer, "COMMIT", error)
    store._do = store._writer.execute
    codes: list[str] = []
    threads = [threading.Thread(target=lambda: codes.append(desk_code(lambda: desk.spend(ledger)))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert codes == ["HB301"] * 20


def test_an_interrupt_in_a_transaction_stops_the_ledger(desk: "Desk") -> None:
    def interrupt(step: str) -> None:
        if armed and step == "committing":
            raise KeyboardInterrupt

    armed: list[bool] = []
    ledger = desk.open(on_step=interrupt)
    armed.append(True)
    with pytest.raises(KeyboardInterrupt):
        desk.spend(ledger)
    stops(desk, ledger)


def test_a_database_replaced_while_in_use_stops_the_ledger(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger)
    desk.edit("DELETE FROM entries WHERE sequence = 2", "DELETE FROM totals")
    error = refused(lambda: desk.spend(ledger), "HB301")
    assert "replaced" in error.message
    ledger.close()


# --- the cost of a charge


def test_a_charge_reads_and_writes_as_few_rows_however_long_the_history(desk: "Desk") -> None:
    """The statements of a charge are looked up by key; none scans a table that grows."""
    ledger = desk.open()
    desk.spend(ledger)
    store: Any = ledger._store
    statements: list[str] = []
    store._writer.set_trace_callback(statements.append)
    desk.spend(ledger)
    store._writer.set_trace_callback(None)
    plans = []
    for statement in statements:
        if statement.split()[0] in ("SELECT", "INSERT", "REPLACE"):
            plans += [row[3] for row in store._writer.execute(f"EXPLAIN QUERY PLAN {statement}")]
    # the one scan is that for the newest entry, from the end of the table and only one row of it
    assert len([plan for plan in plans if plan.startswith("SCAN")]) == 1
    assert sum("LIMIT 1" in statement for statement in statements) == 1
    assert len(statements) <= 12


def test_readers_do_not_wait_for_writers(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger)
    with closing(sqlite3.connect(desk.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ledger.verify().charges == 1


def test_a_snapshot_stays_as_it_was(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger)
    with ledger.snapshot() as snapshot:
        before = snapshot.head()
        desk.spend(ledger)
        assert snapshot.head() == before
    with ledger.snapshot() as snapshot:
        assert snapshot.head().sequence == before.sequence + 1


def test_the_commit_is_synced(desk: "Desk") -> None:
    store: Any = desk.store()
    assert store._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_opening_a_second_time_in_one_process_takes_turns(desk: "Desk") -> None:
    one = desk.open()
    other = Ledger.open(desk.store(), policy=desk.policy, anchor=FileAnchor(former_path(desk.database)))
    for _ in range(5):
        desk.spend(one, "0.1", dataset="wards")
        desk.spend(other, "0.1", dataset="wards")
    assert desk.exhaust(one, "0.1", dataset="wards")[0] == 0
    assert desk.exhaust(other, "0.1", dataset="wards")[0] == 0
    other.close()
    assert one.verify().charges == 10


def alone(desk: "Desk") -> Ledger:
    return Ledger.open(desk.store(exclusive=True), policy=desk.policy, anchor=FileAnchor(desk.anchor))


@pytest.mark.parametrize("full", [False, True], ids=["new keys are known to be new", "every key must be looked up"])
def test_a_server_alone_on_its_file_charges_each_key_once(
    desk: "Desk", monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    if full:
        monkeypatch.setattr(BloomFilter, "__contains__", lambda *_: True)
    requests = [desk.request("0.001", key=f"k{number}") for number in range(150)]  # keys are stored at 64 and at 128
    charges: list[Charge] = []
    for part in (requests[:70], requests[70:]):
        with closing(alone(desk)) as ledger:
            assert [ledger.charge(request).sequence for request in requests[: len(charges)]] == [
                charge.sequence for charge in charges
            ]
            charges += [ledger.charge(request) for request in part]
            assert not any(charge.replayed for charge in charges)
            again = [ledger.charge(request) for request in requests[: len(charges)]]
            assert all(charge.replayed for charge in again)
            assert [charge.entry for charge in again] == [charge.entry for charge in charges]
            with pytest.raises(ParameterError):
                ledger.charge(requests[3]._replace(query="another"))
            assert ledger.verify().charges == len(charges)


def test_a_trace_that_is_lost_would_charge_twice(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(alone(desk)) as ledger:
        requests = [desk.request("0.001", key=f"k{number}") for number in range(70)]
        for request in requests:
            ledger.charge(request)
        monkeypatch.setattr(BloomFilter, "__contains__", lambda *_: False)
        assert not ledger.charge(requests[0]).replayed
        assert not ledger.verify().sound
