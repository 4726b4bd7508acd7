"""A real Spark: what runs there, what is said before a charge, what after it, and how it is found again."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.fixtures import spark

import hubbub
from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.curator.session import Session
from hubbub.engines.base import Arrays, DataSource, EngineLimits, UnreachableError, View, locate
from hubbub.engines.spark import catalog as spark_session
from hubbub.engines.spark import local_server as spark_local
from hubbub.engines.spark.connection import SparkEngine, schema
from hubbub.errors import ConfigError, RunError
from hubbub.sql.bind import bind
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.plan import plan

COLUMNS = (("id", Kind.INTEGER), ("amount", Kind.REAL), ("word", Kind.TEXT))
ROWS = "(VALUES (1, 1.5, 'CANARY-7431'), (2, NULL, 'b'), (3, -2.0, NULL)) AS v(id, amount, word)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "t.parquet"
    _write(made, f"SELECT CAST(id AS BIGINT) AS id, CAST(amount AS DOUBLE) AS amount, word FROM {ROWS}")
    return made


def _write(path: Path, query: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}'")


def _view(path: Path | str, address: str, columns: tuple[tuple[str, Kind], ...] = COLUMNS) -> View:
    return View("t", locate(f"spark:{address}/{path}", "source", base=Path(), name="t"), columns)


@pytest.fixture
def engine(file: Path, spark_address: str) -> Iterator[SparkEngine]:
    opened = SparkEngine([_view(file, spark_address)], limits=spark.LIMITS)
    yield opened
    opened.close()


def _plain(table: Arrays) -> list[tuple[object, ...]]:
    return list(zip(*(column.tolist() for column in table.values()), strict=True))


def test_a_query_gives_exact_columns(engine: SparkEngine) -> None:
    sql = "SELECT `id`, `amount`, `word`, CAST(9007199254740993 AS DECIMAL(38, 0)) AS wide FROM `t` AS s ORDER BY `id`"
    wide = 9007199254740993
    assert engine.run(sql).through(_plain) == [
        (1, 1.5, "CANARY-7431", wide),
        (2, None, "b", wide),
        (3, -2.0, None, wide),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE stolen AS SELECT 1 AS a",
        "DROP VIEW `t`",
        "SET spark.sql.ansi.enabled = false",
        "SELECT 1; SELECT 2",
        "WITH a AS (SELECT 1) INSERT INTO stolen SELECT * FROM a",
        "SELECT * FROM missing",
    ],
)
def test_nothing_but_one_query_can_be_run(engine: SparkEngine, sql: str) -> None:
    with pytest.raises(RunError):
        engine.run(sql)
    assert engine.run("SELECT count(*) AS n FROM `t` AS s").through(lambda found: int(found["n"][0])) == 3


def test_a_failure_has_no_words_of_its_own(
    engine: SparkEngine, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Spark's message has the cell in it, and pyspark writes such messages to standard error by itself."""
    with caplog.at_level(logging.DEBUG), pytest.raises(RunError) as raised:
        engine.run("SELECT CAST(`word` AS INT) AS a FROM `t` AS s")
    said = str(raised.value) + caplog.text + "".join(capfd.readouterr())
    assert "CANARY" not in said
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_a_declared_value_is_looked_up_once_a_group_and_not_once_a_row(file: Path, spark_address: str) -> None:
    """Spark moves conditions on keys below a grouping; fifty texts looked through for each row took most of a query."""
    columns = (Column("id", Kind.INTEGER), Column("word", Kind.TEXT, values=("a", "b", "c")))
    question = bind("SELECT word, count(*) FROM t GROUP BY word", tables={"t": Table("t", columns, PrivacyUnit(None))})
    (asked,) = plan(question, epsilon=Fraction(1), delta=Fraction(0), salt="s", dialect=SPARK).statements
    session = spark_session.connect(spark_address, spark.LIMITS)
    try:
        for sql, below in (
            (asked.sql, False),
            (re.sub(r"CASE WHEN coalesce.*? END$", "g.c IS NOT NULL", asked.sql), True),
        ):
            text = f"EXPLAIN EXTENDED WITH `t` AS (SELECT * FROM parquet.`{file}`) SELECT * FROM ({sql}) AS r"
            found = session.sql(text).toArrow().to_pylist()[0]["plan"].partition("== Physical Plan ==")[2]
            assert "array_position" in found
            assert ("array_position" in found.partition("Exchange")[2]) == below
    finally:
        session.stop()


def test_the_schema_is_read_without_a_value(file: Path, spark_address: str) -> None:
    found = schema(_view(file, spark_address).source)
    assert [(field.name, field.kind) for field in found] == list(COLUMNS)


def test_the_fingerprint_changes_with_the_files_and_only_then(engine: SparkEngine, file: Path) -> None:
    first = engine.fingerprint("t").through(bytes.hex)
    assert engine.fingerprint("t").through(bytes.hex) == first
    _write(file, f"SELECT CAST(id AS BIGINT) AS id, CAST(9 AS DOUBLE) AS amount, word FROM {ROWS} WHERE id > 1")
    assert engine.fingerprint("t").through(bytes.hex) != first
    assert engine.run("SELECT count(*) AS n FROM `t` AS s").through(lambda found: int(found["n"][0])) == 2


def test_files_of_a_spark_of_our_own_are_looked_at_without_it(tmp_path: Path, spark_address: str) -> None:
    odd = tmp_path / "a b%20ü.parquet"
    _write(odd, "SELECT 1 AS id")
    session = spark_session.connect(spark_address, spark.LIMITS)
    try:
        files = sorted(session.sql(f"SELECT * FROM parquet.`{odd}`").inputFiles())
        first = spark_session._listed(session, files, here=True)
        assert first == spark_session._listed(session, files, here=True)
        assert len(first) == 1
        assert f" {odd.stat().st_size} " in first[0]
        _write(odd, "SELECT 2 AS id")
        assert spark_session._listed(session, files, here=True) != first
    finally:
        session.stop()


def test_a_folder_of_files_is_a_table_and_a_new_file_is_noticed(tmp_path: Path, spark_address: str) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    _write(folder / "a.parquet", "SELECT CAST(1 AS BIGINT) AS id")
    engine = SparkEngine([_view(folder, spark_address, (("id", Kind.INTEGER),))], limits=spark.LIMITS)
    try:
        first = engine.fingerprint("t").through(bytes.hex)
        _write(folder / "b.parquet", "SELECT CAST(2 AS BIGINT) AS id")
        assert engine.fingerprint("t").through(bytes.hex) != first
        assert engine.run("SELECT sum(`id`) AS n FROM `t` AS s").through(lambda found: int(found["n"][0])) == 3
    finally:
        engine.close()


def test_a_table_of_the_catalog_is_seen_as_it_is_now(spark_address: str) -> None:
    session = spark_session.connect(spark_address, spark.LIMITS)
    name = f"seen_{os.getpid()}"
    try:
        session.sql(f"CREATE TABLE {name} USING parquet AS SELECT 1L AS id")
        engine = SparkEngine([_view(name, spark_address, (("id", Kind.INTEGER),))], limits=spark.LIMITS)
        try:
            first = engine.fingerprint("t").through(bytes.hex)
            assert engine.fingerprint("t").through(bytes.hex) == first
            session.sql(f"INSERT INTO {name} SELECT 2L")
            assert engine.fingerprint("t").through(bytes.hex) != first
            assert engine.run("SELECT count(*) AS n FROM `t` AS s").through(lambda found: int(found["n"][0])) == 2
        finally:
            engine.close()
    finally:
        session.sql(f"DROP TABLE IF EXISTS {name}")
        session.stop()


def test_a_declared_version_is_the_fingerprint(file: Path, spark_address: str) -> None:
    place = _view(file, spark_address).source
    engine = SparkEngine([View("t", place, COLUMNS, version="id")], limits=spark.LIMITS)
    try:
        first = engine.fingerprint("t").through(bytes.hex)
        _write(file, f"SELECT CAST(id AS BIGINT) AS id, CAST(9 AS DOUBLE) AS amount, word FROM {ROWS}")
        assert engine.fingerprint("t").through(bytes.hex) == first
        _write(file, f"SELECT CAST(id + 1 AS BIGINT) AS id, CAST(9 AS DOUBLE) AS amount, word FROM {ROWS}")
        assert engine.fingerprint("t").through(bytes.hex) != first
    finally:
        engine.close()


def test_a_missing_table_is_said_before_the_charge(file: Path, spark_address: str, engine: SparkEngine) -> None:
    for table in ("nowhere.nothing", f"{file}x", "nothing"):
        with pytest.raises(ConfigError, match="no such table or path"):
            schema(_view(table, spark_address).source)
    file.unlink()
    with pytest.raises(UnreachableError, match="no such table or path"):
        engine.fingerprint("t")


def test_a_changed_schema_is_said_before_the_charge(file: Path, engine: SparkEngine) -> None:
    engine.fingerprint("t")
    _write(file, "SELECT CAST('x' AS VARCHAR) AS id, 1.5 AS amount, 'b' AS word")
    with pytest.raises(UnreachableError, match="have changed"):
        engine.fingerprint("t")


def test_a_server_that_is_not_there_is_said_soon_and_without_the_token(file: Path) -> None:
    started = time.monotonic()
    with pytest.raises(ConfigError, match="Spark is unreachable") as raised:
        schema(_view(file, "sc://127.0.0.1:9/;token=SECRET77").source)
    assert "SECRET77" not in str(raised.value)
    assert time.monotonic() - started < 60


def test_a_wrong_token_is_turned_away_and_no_token_is_shown(file: Path, spark_address: str) -> None:
    place = _view(file, spark_address.partition("=")[0] + "=SECRET77").source
    with pytest.raises(ConfigError) as raised:
        schema(place)
    assert "SECRET77" not in str(raised.value) + repr(place) + place.shown
    assert "token=" not in repr(place) + place.shown


def test_a_slow_query_is_stopped_and_the_next_one_runs(file: Path, spark_address: str) -> None:
    engine = SparkEngine([_view(file, spark_address)], limits=EngineLimits(seconds=3))
    slow = "SELECT count(*) AS n FROM range(4000000000) AS a WHERE md5(CAST(a.id AS STRING)) = 'x'"
    try:
        started = time.monotonic()
        with pytest.raises(RunError):
            engine.run(slow)
        assert time.monotonic() - started < 60
    finally:
        engine.close()


def test_an_interrupt_stops_what_one_thread_asked_for(engine: SparkEngine) -> None:
    slow = "SELECT count(*) AS n FROM range(4000000000) AS a WHERE md5(CAST(a.id AS STRING)) = 'x'"
    heard: list[str] = []

    def ask() -> None:
        try:
            engine.run(slow)
        except RunError:
            heard.append("stopped")

    asking = threading.Thread(target=ask)
    asking.start()
    started = time.monotonic()
    while asking.is_alive() and time.monotonic() - started < 60:
        engine.interrupt(asking.ident)
        asking.join(timeout=0.2)
    assert heard == ["stopped"]


def test_a_failure_of_one_query_stops_no_other(engine: SparkEngine) -> None:
    """They share a session. It is closed when the last of them has ended, and nothing new runs in it."""
    slow = "SELECT count(*) AS n FROM range(4000000000) AS a WHERE md5(CAST(a.id AS STRING)) = 'x'"
    heard: list[str] = []

    def ask() -> None:
        try:
            engine.run(slow)
        except RunError:
            heard.append("stopped")

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        while not engine._running:
            time.sleep(0.01)
        ((_, shared),) = engine._running.values()
        with pytest.raises(RunError):
            engine.run("SELECT CAST(`word` AS INT) AS a FROM `t` AS s")
        # a new session serves this one, as a restarted server would have to
        assert engine.run("SELECT count(*) AS n FROM `t` AS s").through(lambda found: int(found["n"][0])) == 3
        assert engine._current not in (None, shared)
        assert (asking.is_alive(), shared.session.is_stopped) == (True, False)
    finally:
        while asking.is_alive():
            engine.interrupt(asking.ident)
            asking.join(timeout=0.2)
    assert (heard, shared.session.is_stopped) == (["stopped"], True)


def test_what_is_read_before_a_charge_has_a_time_limit(
    file: Path, spark_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster without workers answers neither; a query that never ends stands for it."""
    engine = SparkEngine([_view(file, spark_address)], limits=spark.LIMITS)
    slow = "SELECT count(*) AS n FROM range(4000000000) AS a WHERE md5(CAST(a.id AS STRING)) = 'x'"

    def wait(session: spark_session.Session, *_: object) -> bytes:
        with spark_session._explain_errors():
            return bytes(session.sql(slow).toArrow().num_rows)

    try:
        engine.fingerprint("t")
        monkeypatch.setattr(engine, "_limits", EngineLimits(seconds=3))
        monkeypatch.setattr(spark_session, "fingerprint", wait)
        with pytest.raises(UnreachableError, match="did not answer in time"):
            engine.fingerprint("t")
        monkeypatch.undo()
        assert engine.fingerprint("t").through(len) == 32
    finally:
        engine.close()


#: Spark cannot read names with a colon, and takes a backslash or a star for a part of a pattern.
ODD_NAMES = ("a b.parquet", "a%20b.parquet", "a[b].parquet", "{a,b}.parquet", "a#b+c.parquet", "é?.parquet")


def test_files_of_a_server_are_found_whatever_their_names(tmp_path: Path, spark_address: str) -> None:
    """Spark lists files as URLs and reads patterns of plain names."""
    for place in [f"odd b/{name}" for name in ODD_NAMES] + ["parts/day=é 1%202/c.parquet"]:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        _write(tmp_path / "x.parquet", "SELECT CAST(1 AS BIGINT) AS id")
        (tmp_path / "x.parquet").rename(tmp_path / place)
    for place, inside in (("odd b", len(ODD_NAMES)), ("parts", 1), ("odd b/a%20b.parquet", 1)):
        engine = SparkEngine([_view(tmp_path / place, spark_address, (("id", Kind.INTEGER),))], limits=spark.LIMITS)
        try:
            first = engine.fingerprint("t").through(bytes)
            found = engine.run("SELECT count(*) AS n FROM `t` AS s").through(lambda arrays: int(arrays["n"][0]))
            assert found == inside
            os.utime(next((tmp_path / place).rglob("*.parquet"), tmp_path / place), ns=(0, 10**18))
            assert engine.fingerprint("t").through(bytes) != first
        finally:
            engine.close()


def test_odd_files_make_no_query_fail(tmp_path: Path, spark_address: str) -> None:
    """Bytes that are no UTF-8, dates of other ages, moments past the years: in a file that Spark did not write."""
    odd = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 2, 3], dtype=np.int32).tobytes()), pa.py_buffer(b"\xff\xfea")
    )
    table = pa.table(
        {
            "word": odd,
            "day": pa.array([-(2**31) + 1, 2**31 - 1], pa.int32()).cast(pa.date32()),
            "moment": pa.array([-(2**63) + 1, 2**63 - 1], pa.int64()).cast(pa.timestamp("us")),
            "old": pa.array([-(2**40), 2**40], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        }
    )
    path = tmp_path / "odd.parquet"
    parquet.write_table(table, path)
    columns = (("word", Kind.TEXT), ("day", Kind.DATE), ("moment", Kind.TIMESTAMP), ("old", Kind.TIMESTAMP))
    engine = SparkEngine([_view(path, spark_address, columns)], limits=spark.LIMITS)
    try:
        sql = (
            "SELECT `word`, CASE WHEN `day` < DATE '0001-01-01' THEN DATE '0001-01-01' ELSE DATE '9999-12-31' END AS d,"
            " `moment` > TIMESTAMP '2000-01-01 00:00:00' AS m, `old` IS NULL AS o FROM `t` AS s ORDER BY d"
        )
        found = engine.run(sql).through(_plain)
        assert [row[2:] for row in found] == [(False, False), (True, False)]
    finally:
        engine.close()


# --- the whole path ------------------------------------------------------------------------------------------------

YAML = """
version: 1
engine: {{seconds: 120, memory: 1000}}
datasets:
  visits:
    source: "spark:{address}/{file}"
    unit: {{column: patient, groups: 2, rows: 3}}
    columns: {{patient: {{}}, region: {{values: [north, south]}}, cost: {{bounds: [0, 100]}}}}
    budget: {{epsilon: 10}}
  regions: {{source: regions.csv, public: true}}
analysts:
  ana: {{visits: {{epsilon: 10}}}}
"""
BY_REGION = "SELECT region, count(*) AS n, sum(cost) AS s FROM visits GROUP BY region"
JOINED = "SELECT country, count(*) AS n FROM visits JOIN regions USING (region) GROUP BY country"


def _clinic(folder: Path, address: str) -> Path:
    _write(
        folder / "visits.parquet",
        "SELECT n // 4 AS patient, ['north', 'south'][1 + n % 2] AS region, CAST(n % 100 AS DOUBLE) AS cost"
        " FROM range(2000) AS r(n)",
    )
    (folder / "regions.csv").write_text("region,country\nnorth,A\nsouth,B\n")
    (folder / "hubbub.yaml").write_text(YAML.format(address=address, file=folder / "visits.parquet"))
    return folder / "hubbub.yaml"


def test_a_question_is_answered_and_public_files_travel(tmp_path: Path, spark_address: str) -> None:
    with hubbub.open(_clinic(tmp_path, spark_address), analyst="ana") as session:
        for sql, keys in ((BY_REGION, ("north", "south")), (JOINED, ("A", "B"))):
            counts = {str(row[0]): float(str(row[1])) for row in session.query(sql, epsilon=4).rows}
            assert sorted(counts) == sorted(keys)
            assert all(abs(count - 1000) < 60 for count in counts.values())
        assert _spent(session) == 8


def _spent(session: Session) -> float:
    (overview,) = session.budget()
    return float(10 - overview.largest)


def test_a_killed_driver_costs_what_was_charged_and_comes_back(tmp_path: Path) -> None:
    """It dies between the charge and the query: the charge stays, and the next question starts another."""
    with hubbub.open(_clinic(tmp_path, "local[1]"), analyst="ana") as session:
        session.query("SELECT count(*) FROM visits", epsilon=1)
        assert _spent(session) == 1
        engine = session._curator.engine
        serving = engine.engine_for(["visits"])  # type: ignore[attr-defined]
        run = serving.run

        def killed_first(sql: str) -> object:
            _kill()
            return run(sql)

        serving.run = killed_first
        with pytest.raises(RunError):
            session.query("SELECT count(*) FROM visits WHERE cost > 2", epsilon=1)
        serving.run = run
        assert _spent(session) == 2
        session.query("SELECT count(*) FROM visits WHERE cost > 3", epsilon=1)
        assert _spent(session) == 3


_DENIED = """
import sys
from pathlib import Path

import hubbub
from hubbub.engines.spark import local_server

folder = Path(sys.argv[1])
try:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as session:
        session.query("SELECT count(*) FROM visits", epsilon=1)
        (folder / "visits.parquet").chmod(0)
        try:
            session.query("SELECT count(*) FROM visits WHERE cost > 2", epsilon=1)
        except hubbub.HubbubError as refused:
            print(type(refused).__name__, refused, refused.remedy)
        (folder / "visits.parquet").chmod(0o600)
        print("spent", 10 - session.budget()[0].largest)
        session.query("SELECT count(*) FROM visits WHERE cost > 2", epsilon=1)
        print("spent", 10 - session.budget()[0].largest)
finally:
    local_server.stop()
"""


def test_what_may_not_be_read_is_said_before_the_charge_and_comes_back(tmp_path: Path) -> None:
    """In a process that obeys the modes of files: root does not, unless it gives up the right to pass over them."""
    _clinic(tmp_path, "local[1]")
    above = ("dac_override", "dac_read_search")
    without = ",".join(f"-{each}" for each in above)
    meek = ["setpriv", f"--bounding-set={without}", f"--inh-caps={without}"] if os.geteuid() == 0 else []
    found = subprocess.run(
        [*meek, sys.executable, "-c", _DENIED, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    *refused, before, after = found.stdout.splitlines()
    assert "Spark cannot read the table" in " ".join(refused)
    assert "user can read it" in " ".join(refused)
    assert (before, after) == ("spent 1", "spent 2")


def _kill() -> None:
    server = spark_local._running["local[1]"]
    os.killpg(server.pid, signal.SIGKILL)
    while server.alive:
        time.sleep(0.01)


def test_places_are_read_as_written() -> None:
    here = Path("/srv/clinic")

    def found(source: str) -> tuple[str, str | None]:
        place = locate(source, "datasets.v.source", base=here, name="v")
        assert isinstance(place, DataSource)
        return place.address, place.table

    assert found("spark:sc://host:15002/lake.clinic.visits") == ("sc://host:15002", "lake.clinic.visits")
    assert found("spark:sc://host/;token=x/visits") == ("sc://host/;token=x", "visits")
    assert found("spark:sc://host//data/visits.parquet") == ("sc://host", "/data/visits.parquet")
    assert found("spark:sc://host/s3a://bucket/visits") == ("sc://host", "s3a://bucket/visits")
    assert found("spark:local[*]/visits.parquet") == ("local[*]", "/srv/clinic/visits.parquet")
    assert found("spark:local//data/visits.parquet") == ("local", "/data/visits.parquet")
    for wrong in ("spark:", "spark:local[*]", "spark:sc://host", "spark:http://host/t"):
        with pytest.raises(ConfigError, match="HB410"):
            found(wrong)
