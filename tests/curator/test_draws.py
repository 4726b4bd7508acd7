"""A charge draws once: whatever ends a run, the next one on its charge repeats its words or gives nothing."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from tests.curator.test_path import COUNT, Around, around, charges

from hubbub.accounting.calls import ChargeRequest
from hubbub.accounting.store import EntryFilter
from hubbub.core.secret import Secret
from hubbub.curator import receipt as receipts
from hubbub.curator import seeds
from hubbub.curator.question import Question
from hubbub.curator.seeds import Seeds
from hubbub.curator.session import Session, open_session
from hubbub.engines.base import Arrays
from hubbub.errors import HubbubError, LedgerError, RunError, SpentError
from hubbub.noise.source import SeededSource, Words

Opener = Callable[..., Session]

#: Each kind of answer: declared groups, groups that are found, a selection, a join, the best of all.
KINDS = (
    COUNT,
    "SELECT word, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY word",
    "SELECT region, MEDIAN(age) AS m FROM visits GROUP BY region",
    "SELECT COUNT(*) AS n FROM visits JOIN labs USING (patient)",
    "SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) DESC LIMIT 1",
)


class Taped:
    """A charge's own words, kept as they are given."""

    def __init__(self, seed: bytes, tape: list[bytes]) -> None:
        self._source = SeededSource(seed)
        self._tape = tape

    def words(self, count: int) -> Words:
        found = self._source.words(count)
        self._tape.append(found.tobytes())
        return found


@contextmanager
def taped(session: Session) -> Iterator[list[bytes]]:
    """Keep the words that a session draws."""
    tape: list[bytes] = []
    session._curator._draws.sources = lambda seed: Taped(seed, tape)
    yield tape
    session._curator._draws.sources = SeededSource


def kept(session: Session) -> list[str]:
    """Name the seeds of this session's ledger."""
    found = session._curator._draws.seeds
    return sorted(each.name for each in found.folder.iterdir() if each.name.startswith(found._ledger))


def shrink(file: Path) -> None:
    """Leave some rows out of a Parquet file."""
    with duckdb.connect() as made:
        made.execute(f"COPY (SELECT * FROM '{file}' WHERE age < 70) TO '{file}.less' (FORMAT parquet)")
    Path(f"{file}.less").replace(file)


def broken(session: Session, sql: str, *, key: str | None = None) -> None:
    """Let a run fail when it would record its release, after all its draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session._curator.ledger, "record", lambda *_: 1 / 0)
        with pytest.raises(RunError, match="HB900"):
            session.query(sql, epsilon="0.5", key=key)


@pytest.mark.parametrize("sql", KINDS)
def test_a_retry_repeats_the_words_of_the_first_run(session: Session, clinic: Path, sql: str) -> None:
    with taped(session) as first:
        broken(session, sql)
    assert first
    with taped(session) as second:
        session.query(sql, epsilon="0.5")
    assert second == first
    assert len({dataset for _, dataset, _ in charges(clinic)}) == len(charges(clinic))


@pytest.mark.parametrize("sql", KINDS)
def test_the_order_in_which_an_engine_gives_rows_does_not_decide_which_row_gets_which_draw(
    session: Session, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    bodies: list[bytes] = []
    ledger, engine = session._curator.ledger, session._curator.engine
    run = engine.run

    def record(_: object, body: bytes) -> bytes:
        bodies.append(body)
        raise ValueError("the release is not recorded")

    monkeypatch.setattr(ledger, "record", record)
    for backwards in (False, True):
        turned = slice(None, None, -1 if backwards else 1)

        def turn(text: str, turned: slice = turned) -> Secret[Arrays]:
            return Secret(run(text).through(lambda rows: {name: column[turned] for name, column in rows.items()}))

        monkeypatch.setattr(engine, "run", turn)
        with pytest.raises(RunError, match="HB900"):
            session.query(sql, epsilon="4")
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]
    # with fewer than two groups there is no order to see; all words pass the threshold at this price
    best = "LIMIT 1" in sql
    values = receipts.decode(bodies[0]).outputs[0].values
    assert len(values) == (7 if " word" in sql else 1 if best or "JOIN" in sql else 3)


def test_another_charge_draws_other_words(session: Session) -> None:
    with taped(session) as first:
        session.query(COUNT, epsilon="0.5", key="a")
    with taped(session) as second:
        session.query(COUNT, epsilon="0.5", key="b")
    assert not set(first) & set(second)


#: Draws all its words, prints them, and dies before the release is recorded; with another seed for Python's hashes.
_VICTIM = """
import os, signal, sys
from tests.curator.test_draws import taped
from hubbub.curator.session import open_session

session = open_session(sys.argv[1], analyst="ana")
with taped(session) as tape:
    session._curator._draws.sources = (lambda make: lambda seed: (print(seed.hex(), flush=True), make(seed))[1])(
        session._curator._draws.sources)
    session._curator.ledger.record = lambda *_: (
        print(b"".join(tape).hex(), flush=True), os.kill(os.getpid(), signal.SIGKILL))
    session.query(sys.argv[2], epsilon="0.5")
"""


@pytest.mark.parametrize("sql", KINDS[:2])
def test_a_run_that_was_killed_is_repeated_by_another_process(clinic: Path, sql: str) -> None:
    path = str(clinic / "hubbub.yaml")
    run = subprocess.run(
        [sys.executable, "-c", _VICTIM, path, sql],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "77"},
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    seed, words = run.stdout.split()
    assert len(seed) == 64
    with open_session(path, analyst="ana") as session, taped(session) as tape:
        assert len(kept(session)) == 1
        session.query(sql, epsilon="0.5")
        assert b"".join(tape).hex() == words
        assert kept(session) == []
    assert len(charges(clinic)) == 1


def test_a_seed_is_made_by_the_call_that_made_the_charge_alone(session: Session, clinic: Path) -> None:
    """A charge that another server made, and that this one has no seed of, gives nothing here."""
    curator = session._curator
    question = Question(COUNT, epsilon="0.5")
    planned = curator._plan("ana", question, salt=curator._salt)
    request = ChargeRequest("ana", "visits", "1", planned.event, question.text(), "key elsewhere visits")
    curator.ledger.charge(request)
    engine = around(session, lambda: None)
    with taped(session) as tape:
        with pytest.raises(SpentError, match=r"HB901.*not refunded"):
            session.query(COUNT, epsilon="0.5", key="elsewhere")
        assert (tape, engine.runs, kept(session)) == ([], 0, [])
    assert charges(clinic) == [("ana", "visits", False)]


def test_a_charge_of_which_one_part_is_old_is_spent(session: Session) -> None:
    """A join has a charge on each dataset; a seed is made where all of them are new."""
    curator = session._curator
    question = Question(KINDS[3], epsilon="0.5")
    planned = curator._plan("ana", question, salt=curator._salt)
    name = planned.tables[1].name
    curator.ledger.charge(ChargeRequest("ana", name, "1", planned.event, question.text(), f"key half {name}"))
    with pytest.raises(SpentError, match="HB901"):
        session.query(KINDS[3], epsilon="0.5", key="half")
    assert kept(session) == []


def test_a_crash_between_charge_and_seed_spends_the_charge(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Seeds, "make", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            session.query(COUNT, epsilon="0.5")
    for _ in range(2):
        with pytest.raises(SpentError, match="HB901"):
            session.query(COUNT, epsilon="0.5")
    assert session.query(COUNT, epsilon="0.5", key="anew").rows


@pytest.mark.parametrize("changed", ["visits.parquet", "regions.csv", "hubbub.yaml"])
def test_a_retry_on_changed_data_is_refused_and_the_charge_is_spent(clinic: Path, changed: str) -> None:
    """Whether a private table, a public one or a declaration changed: the same noise would tell the difference."""
    sql = (
        "SELECT region, SUM(CASE WHEN population <> '50' THEN age ELSE 0 END) AS n"
        " FROM visits JOIN regions USING (region) GROUP BY region"
    )
    file = clinic / changed
    old = file.read_bytes()
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        broken(session, sql, key="once")
    if changed == "visits.parquet":
        shrink(file)
    else:
        file.write_bytes(old.replace(b"50\n", b"5\n").replace(b"[North, South, East]", b"[South, North, East]"))
    assert file.read_bytes() != old
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        engine = around(session, lambda: None)
        with pytest.raises(SpentError, match=r"HB902.*is lost"):
            session.query(sql, epsilon="0.5", key="once")
        assert (engine.runs, kept(session)) == (0, [])
    file.write_bytes(old)
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session, pytest.raises(SpentError, match="HB901"):
        session.query(sql, epsilon="0.5", key="once")
    assert charges(clinic) == [("ana", "visits", False)]


def test_a_retry_whose_groups_a_public_table_chose_anew_is_another_request(clinic: Path) -> None:
    """It draws nothing; on the data of the charge, the retry still has its one answer."""
    sql = (
        "SELECT region, SUM(age) AS n FROM visits JOIN regions USING (region) WHERE population <> '50' GROUP BY region"
    )
    file = clinic / "regions.csv"
    old = file.read_bytes()
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        broken(session, sql, key="once")
    file.write_bytes(old.replace(b"50\n", b"5\n"))
    assert file.read_bytes() != old
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        engine = around(session, lambda: None)
        with pytest.raises(HubbubError, match="HB124"):
            session.query(sql, epsilon="0.5", key="once")
        assert engine.runs == 0
    assert charges(clinic) == [("ana", "visits", False)]
    file.write_bytes(old)
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        assert session.query(sql, epsilon="0.5", key="once").rows
    assert charges(clinic) == [("ana", "visits", True)]


def test_a_retry_of_an_analysis_under_other_declarations_is_refused(clinic: Path) -> None:
    """The event, the text and the lines of the derivation are the same; which cell gets which draw is not."""
    call = "CALL tabulate(table => 'visits', columns => ['region'])"
    file = clinic / "hubbub.yaml"
    with open_session(file, analyst="ana") as session:
        broken(session, call, key="once")
    file.write_text(file.read_text().replace("[North, South, East]", "[South, North, East]"))
    with open_session(file, analyst="ana") as session, pytest.raises(SpentError, match="HB902"):
        session.query(call, epsilon="0.5", key="once")


def test_a_retry_of_an_analysis_that_would_keep_other_rows_is_refused(clinic: Path) -> None:
    """With another hash, other rows of a unit are kept: the same noise would reveal the difference."""
    call = "CALL tabulate(table => 'visits', columns => ['region'])"
    file = clinic / "hubbub.yaml"
    with open_session(file, analyst="ana") as session:
        broken(session, call, key="once")
    file.write_text(file.read_text() + "engine: {hash: portable}\n")
    with open_session(file, analyst="ana") as session, pytest.raises(SpentError, match="HB902"):
        session.query(call, epsilon="0.5", key="once")


def test_data_that_changes_while_a_retry_runs_spends_the_charge(session: Session, clinic: Path) -> None:
    broken(session, COUNT, key="once")
    around(session, lambda: shrink(clinic / "visits.parquet"))
    with pytest.raises(SpentError, match="HB902"):
        session.query(COUNT, epsilon="0.5", key="once")
    assert charges(clinic) == [("ana", "visits", False)]


def test_without_a_key_changed_data_is_a_new_question_with_a_charge_of_its_own(session: Session, clinic: Path) -> None:
    """HB900 says so: a free repeat while the data is unchanged, another charge once it changed."""
    broken(session, COUNT)
    shrink(clinic / "visits.parquet")
    assert session.query(COUNT, epsilon="0.5").rows
    assert charges(clinic) == [("ana", "visits", False), ("ana", "visits", True)]


def test_a_seed_is_erased_when_its_release_is_recorded_or_found(session: Session) -> None:
    curator = session._curator
    session.query(COUNT, epsilon="0.5")
    assert kept(session) == []
    with curator.ledger.snapshot() as snapshot:
        entry = next(snapshot.entries(EntryFilter(kind="charge")))
    curator._draws.seeds.make(entry, bytes(32))  # as a crash between record and erase leaves one
    assert len(kept(session)) == 1
    assert session.query(COUNT, epsilon="0.5").replayed
    assert kept(session) == []


def test_a_start_erases_the_seeds_of_charges_that_have_a_release_and_keeps_the_others(clinic: Path) -> None:
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        broken(session, COUNT, key="open")
        session.query(COUNT, epsilon="0.5", key="done")
        with session._curator.ledger.snapshot() as snapshot:
            done = next(snapshot.entries(EntryFilter(kind="charge"), newest_first=True))
        session._curator._draws.seeds.make(done, bytes(32))
        assert len(kept(session)) == 2
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        assert [f"-{done.sequence}-" in name for name in kept(session)] == [False]


def test_two_runs_of_one_charge_at_once_draw_the_same_words(session: Session, clinic: Path) -> None:
    """The first waits in the engine until the second has come there too."""
    both = threading.Barrier(2, timeout=30)
    engine: Around = around(session, both.wait)
    tapes: dict[int, list[bytes]] = {}

    def source(seed: bytes) -> Taped:
        return Taped(seed, tapes.setdefault(threading.get_ident(), []))

    session._curator._draws.sources = source
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: session.query(COUNT, epsilon="0.5"), range(2)))
    assert engine.runs == 2
    first, second = tapes.values()
    assert first == second
    assert found[0].rows == found[1].rows
    assert charges(clinic) == [("ana", "visits", True)]


def test_of_two_servers_without_a_shared_folder_one_draws(clinic: Path, tmp_path: Path) -> None:
    with (
        open_session(clinic / "hubbub.yaml", analyst="ana") as one,
        open_session(clinic / "hubbub.yaml", analyst="ana") as other,
    ):
        other._curator._draws.seeds = Seeds(tmp_path / "elsewhere", one._curator._draws.seeds._ledger)
        inside, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            inside.set()
            go_on.wait(30)

        around(one, hold)
        engine = around(other, lambda: None)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(lambda: one.query(COUNT, epsilon="0.5"))
            assert inside.wait(30)
            with pytest.raises(SpentError, match="HB901") as raised:
                other.query(COUNT, epsilon="0.5")
            assert "retry in a minute" in raised.value.remedy
            go_on.set()
            rows = first.result().rows
        assert other.query(COUNT, epsilon="0.5").rows == rows
        assert engine.runs == 0


def test_a_release_that_comes_while_a_retry_waits_for_the_seed_is_given(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(session, COUNT)
    curator = session._curator
    with curator.ledger.snapshot() as snapshot:
        entry = next(snapshot.entries(EntryFilter(kind="charge")))
    curator._draws.seeds.erase(entry)
    first = session.query("SELECT COUNT(*) AS n FROM visits", epsilon="0.5")
    with curator.ledger.snapshot() as snapshot:
        body = snapshot.body(first.receipt["ledger"][0]["sequence"])
    charge = curator.ledger.recall("ana", entry.key)
    assert body is not None
    assert charge is not None
    pause = time.sleep
    monkeypatch.setattr(time, "sleep", lambda span: (curator.ledger.record(charge, body), pause(span)))
    assert session.query(COUNT, epsilon="0.5").rows == first.rows


def test_a_seed_that_cannot_be_kept_costs_the_retry_and_not_the_answer(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        assert session.query(COUNT, epsilon="0.5").rows
        broken(session, COUNT, key="other")
    with pytest.raises(SpentError, match="HB901"):
        session.query(COUNT, epsilon="0.5", key="other")


def test_no_seed_is_in_the_ledger_s_files(session: Session, clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    real = Seeds.make

    def make(self: Seeds, *rest: object) -> seeds.Seed:
        found = real(self, *rest)  # type: ignore[arg-type]
        made.append(found.secret)
        return found

    monkeypatch.setattr(Seeds, "make", make)
    broken(session, COUNT, key="a")
    session.query(COUNT, epsilon="0.5", key="a")
    broken(session, COUNT, key="b")
    folder = session._curator._draws.seeds.folder
    assert not folder.is_relative_to(clinic)
    files = [path for path in clinic.rglob("*") if path.is_file()]
    assert any(path.name.endswith("-wal") for path in files)
    for secret in made:
        for path in files:
            text = path.read_bytes()
            assert secret not in text, path
            assert secret.hex().encode() not in text, path
    left = b"".join(path.read_bytes() for path in folder.iterdir())
    assert [secret in left for secret in made] == [False, True]


def test_a_folder_of_seeds_that_others_can_read_is_refused_before_anything_is_charged(clinic: Path) -> None:
    text = (clinic / "hubbub.yaml").read_text()
    (clinic / "open").mkdir()
    (clinic / "open").chmod(0o755)
    (clinic / "hubbub.yaml").write_text(text + "ledger: {seeds: open}\n")
    with pytest.raises(LedgerError, match=r"HB326.*accessible to others"):
        open_session(clinic / "hubbub.yaml", analyst="ana")
    (clinic / "open").chmod(0o700)
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        broken(session, COUNT)
        assert len(list((clinic / "open").iterdir())) == 1
