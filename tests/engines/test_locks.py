"""Every lock of DuckDB, with an attempt to break it, directly on the connection that the engine uses."""

import logging
import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.engines.base import DataSource, EngineLimits, View
from hubbub.engines.duckdb.connection import DuckDBEngine
from hubbub.errors import RunError

Open = Callable[..., DuckDBEngine]
MESSAGE = "HB900 The query could not be completed. Its charge is not refunded, because the data was read."


def inside(engine: DuckDBEngine, sql: str) -> None:
    """Run a statement on the engine's own connection, past the check for a single SELECT."""
    engine.run("SELECT 1")
    assert engine._database is not None
    engine._database.root.cursor().execute(sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{folder}/other.csv')",
        "SELECT * FROM '{folder}/other.csv'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('{folder}/t.sqlite')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_parquet('http://127.0.0.1:9/x.parquet')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/new.duckdb' AS new",
        "ATTACH '{folder}/t.sqlite' AS lite (TYPE sqlite)",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    ],
)
def test_nothing_outside_the_declared_files_can_be_reached(engine: DuckDBEngine, folder: Path, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        inside(engine, sql.format(folder=folder))


@pytest.mark.parametrize(
    "sql",
    [
        "SET enable_external_access = true",
        "SET threads = 64",
        "SET memory_limit = '100GB'",
        "SET max_execution_time = 0",
        "SET lock_configuration = false",
        "SET temp_directory = '/tmp'",
        "SET allowed_paths = ['/etc/passwd']",
        "SET python_enable_replacements = true",
        "SET autoinstall_known_extensions = true",
        "RESET memory_limit",
        "PRAGMA enable_profiling",
        "SET enable_logging = true",
    ],
)
def test_no_setting_can_be_changed(engine: DuckDBEngine, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        inside(engine, sql)


def test_the_database_file_is_opened_read_only(engine: DuckDBEngine) -> None:
    for sql in (
        "INSERT INTO \"$source0\".main.t VALUES (9, 9, 'x')",
        'DROP TABLE "$source0".main.t',
        'CREATE TABLE "$source0".main.u (i INT)',
    ):
        with pytest.raises(duckdb.Error, match="read-only"):
            inside(engine, sql)


def test_variables_of_the_program_cannot_be_reached(engine: DuckDBEngine) -> None:
    canary = {"a": [1]}
    with pytest.raises(duckdb.Error):
        inside(engine, "SELECT * FROM canary")
    assert canary


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/t.parquet' (FORMAT csv, USE_TMP_FILE false)",
        "DROP VIEW parquet",
        "CREATE TABLE x AS SELECT 1",
        "DELETE FROM csv",
        "SELECT 1; SELECT 2",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "SET VARIABLE x = 1",
        "EXPLAIN SELECT * FROM csv",
        'DETACH "$source0"',
        "CHECKPOINT",
        "",
        "not sql at all",
    ],
)
def test_only_a_single_select_is_ever_run(engine: DuckDBEngine, folder: Path, sql: str) -> None:
    """A declared path may be written by COPY, whatever its settings say: so nothing but a SELECT is run."""
    before = (folder / "t.parquet").read_bytes()
    with pytest.raises(RunError):
        engine.run(sql.format(folder=folder))
    assert (folder / "t.parquet").read_bytes() == before
    assert engine.run("SELECT count(*) AS n FROM parquet").through(lambda a: int(a["n"][0])) == 3


def test_a_declared_path_could_be_written_by_copy_which_is_why_only_select_is_run(
    engine: DuckDBEngine, folder: Path
) -> None:
    """If this fails, DuckDB has closed the hole and the comment in the engine can go."""
    inside(engine, f"COPY (SELECT 1 AS x) TO '{folder}/t.parquet' (FORMAT csv, USE_TMP_FILE false)")
    assert (folder / "t.parquet").read_text() == "x\n1\n"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT error('CANARY-' || word) FROM csv",
        "SELECT CAST(word AS INTEGER) FROM parquet",
        "SELECT no_such_column FROM csv",
        "SELECT * FROM no_such_table",
        "SELECT 1/",
        "SELECT sum(9223372036854775807::BIGINT * id) FROM csv",
    ],
)
def test_every_failure_is_one_constant_without_a_cause(
    engine: DuckDBEngine, sql: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(RunError) as failed:
        engine.run(sql)
    assert str(failed.value).splitlines()[0] == MESSAGE
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert "CANARY" not in caplog.text
    assert "engine failed" in caplog.text


def test_time_is_capped(folder: Path, open_engine: Open) -> None:
    place = DataSource("csv", folder / "t.csv")
    engine = open_engine([View("csv", place, (("id", Kind.INTEGER),))], EngineLimits(200, 0, 1, 1))
    start = time.monotonic()
    with pytest.raises(RunError):
        engine.run("SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range % 7 = b.range % 5")
    assert time.monotonic() - start < 15


def test_memory_is_capped(engine: DuckDBEngine) -> None:
    with pytest.raises(RunError):
        engine.run("SELECT sum(n) AS s FROM (SELECT hash(i) AS h, count(*) AS n FROM range(20000000) t(i) GROUP BY h)")
    assert engine.run("SELECT 1 AS one").through(lambda a: int(a["one"][0])) == 1


def test_threads_are_capped(engine: DuckDBEngine) -> None:
    found = engine.run("SELECT current_setting('threads') AS n")
    assert found.through(lambda a: int(a["n"][0])) == 1


def test_an_interrupt_stops_a_query_soon(engine: DuckDBEngine) -> None:
    engine.run("SELECT 1 AS one")
    timer = threading.Timer(0.5, engine.interrupt)
    timer.start()
    start = time.monotonic()
    with pytest.raises(RunError):
        engine.run("SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range % 7 = b.range % 5")
    assert time.monotonic() - start < 10
    timer.join()


def test_an_interrupt_of_one_caller_leaves_the_others_alone(engine: DuckDBEngine) -> None:
    slow = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range % 7 = b.range % 5"
    ended: dict[str, float] = {}
    threads: dict[str, threading.Thread] = {}

    def ask(name: str) -> None:
        with pytest.raises(RunError):
            engine.run(slow)
        ended[name] = time.monotonic()

    for name in ("first", "second"):
        threads[name] = threading.Thread(target=ask, args=[name])
        threads[name].start()
    while len(engine._running) < 2:
        time.sleep(0.01)
    for number, name in enumerate(threads, 1):
        until = time.monotonic() + 20
        while name not in ended and time.monotonic() < until:
            engine.interrupt(threads[name].ident)  # again and again: before it has begun there is nothing to stop
            time.sleep(0.02)
        assert len(ended) == number, ended
    for thread in threads.values():
        thread.join()


def test_what_is_spilled_is_private_and_removed(folder: Path, open_engine: Open) -> None:
    place = DataSource("csv", folder / "t.csv")
    engine = open_engine([View("csv", place, (("id", Kind.INTEGER),))], EngineLimits(100, 1000, 1, 60))
    sql = "SELECT sum(n)::BIGINT AS m FROM (SELECT hash(i) AS h, count(*) AS n FROM range(9000000) t(i) GROUP BY h)"
    assert engine.run(sql).through(lambda a: int(a["m"][0])) == 9_000_000
    assert engine._database is not None
    spill = Path(engine._database.spill.name)
    assert spill.stat().st_mode & 0o077 == 0
    engine.close()
    assert not spill.exists()


def test_data_is_not_opened_before_the_first_run(
    folder: Path, places: dict[str, DataSource], engine: DuckDBEngine
) -> None:
    (folder / "t.parquet").unlink()
    with pytest.raises(RunError):
        engine.run("SELECT 1")


def test_a_secret_cannot_be_shown_compared_or_stored() -> None:
    secret = Secret("CANARY-7431")
    assert "CANARY" not in f"{secret} {secret!r} {secret!s} {[secret]} {secret:>20}"
    attempts: tuple[Callable[[], object], ...] = (
        lambda: bool(secret),
        lambda: secret == "CANARY-7431",
        lambda: secret < secret,
        lambda: hash(secret),
        lambda: list(secret),
        lambda: len(secret),
        lambda: pickle.dumps(secret),
        lambda: secret[0],
        lambda: secret.__dict__,
        lambda: "C" in secret,
    )
    for attempt in attempts:
        with pytest.raises((TypeError, AttributeError)):
            attempt()
