"""The four kinds of files: their schemas, their rows, and what happens when they change or lie."""

import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import pytest

from hubbub.core.schema import Kind
from hubbub.engines import files
from hubbub.engines.base import DataSource, EngineLimits, View, locate
from hubbub.engines.duckdb.connection import DuckDBEngine, schema
from hubbub.errors import ConfigError

Open = Callable[..., DuckDBEngine]
FORMS = ("csv", "parquet", "duckdb", "sqlite")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(engine: DuckDBEngine, form: str) -> None:
    found = engine.run(f'SELECT id, amount, word FROM "{form}" ORDER BY id').through(
        lambda arrays: {name: np.ma.asarray(array).tolist() for name, array in arrays.items()}
    )
    words = found["word"]
    assert found["id"] == [1, 2, 3]
    assert found["amount"] == [1.5, None, -2.0]
    assert words == ["CANARY-7431", "b", None]


@pytest.mark.parametrize("form", ["parquet", "duckdb", "sqlite"])
def test_schema_gives_names_and_kinds(places: dict[str, DataSource], form: str) -> None:
    assert [(field.name, field.kind) for field in schema(places[form])] == [
        ("id", Kind.INTEGER),
        ("amount", Kind.REAL),
        ("word", Kind.TEXT),
    ]


@pytest.mark.parametrize("form", ["parquet", "duckdb"])
def test_schema_is_that_of_the_file_as_it_is_now(places: dict[str, DataSource], folder: Path, form: str) -> None:
    """One database reads all catalogs: nothing stays attached, and nothing is kept."""
    missing = DataSource("duckdb", folder / "t.duckdb", "nothing")
    before = schema(places[form])
    with pytest.raises(ConfigError, match="HB4"):
        schema(missing)
    assert schema(places[form]) == before
    with duckdb.connect(str(folder / "t.duckdb")) as made:  # nobody else holds the file
        made.execute("ALTER TABLE t ADD COLUMN later INTEGER")
        made.execute(f"COPY t TO '{folder / 't.parquet'}'")
    assert [field.name for field in schema(places[form])] == ["id", "amount", "word", "later"]


def test_schema_of_a_csv_file_is_its_first_line_and_no_more(folder: Path) -> None:
    """Types guessed from values would differ between neighbors; behind the header there may be anything."""
    (folder / "odd.csv").write_bytes(b'id;"a;b";c\n\xff\xfe not utf-8 and not csv \x00"')
    fields = schema(DataSource("csv", folder / "odd.csv"))
    assert [(field.name, field.kind) for field in fields] == [("id", None), ("a;b", None), ("c", None)]


def test_schema_of_a_parquet_file_does_not_read_its_pages(folder: Path) -> None:
    """The pages between the magic number and the footer are overwritten, and the schema is still read."""
    whole = (folder / "t.parquet").read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    spoilt = whole[:4] + b"\xaa" * (len(whole) - footer - 4) + whole[-footer:]
    (folder / "spoilt.parquet").write_bytes(spoilt)
    assert [field.name for field in schema(DataSource("parquet", folder / "spoilt.parquet"))] == [
        "id",
        "amount",
        "word",
    ]


def test_a_column_whose_values_are_rounded_cannot_be_the_unit(folder: Path) -> None:
    """Two persons with one number would be bounded together, and one of them could change twice what is stated."""
    file = folder / "people.parquet"
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT 9007199254740993::DECIMAL(18, 0) AS a, 1.5::DECIMAL(15, 2) AS b, 1::HUGEINT AS c,"
            f" 1::BIGINT AS d, TIMESTAMP_NS '2020-01-01 00:00:00.000000001' AS e, 1.5 AS f) TO '{file}'"
        )
    unfit = {field.name: bool(field.unfit) for field in schema(DataSource("parquet", file))}
    assert unfit == {"a": True, "b": False, "c": False, "d": False, "e": True, "f": False}
    with sqlite3.connect(folder / "people.sqlite") as lite:
        lite.execute("CREATE TABLE p (a NUMERIC, b DECIMAL(10, 2), c REAL, d INTEGER, e TEXT)")
    found = schema(DataSource("sqlite", folder / "people.sqlite", "p"))
    assert [field.name for field in found if field.unfit] == ["a", "b"]


def test_types_that_cannot_be_used_have_no_kind(folder: Path) -> None:
    with duckdb.connect() as made:
        made.execute(
            f"COPY (SELECT [1] AS list, 'x'::BLOB AS blob, TIME '10:00' AS time, 1::DECIMAL(9,2) AS money,"
            f" TIMESTAMPTZ '2020-01-01' AS instant, uuid() AS uid) TO '{folder}/types.parquet'"
        )
    kinds = {field.name: field.kind for field in schema(DataSource("parquet", folder / "types.parquet"))}
    assert kinds == {
        "list": None,
        "blob": None,
        "time": None,
        "money": Kind.REAL,
        "instant": Kind.TIMESTAMP,
        "uid": Kind.TEXT,
    }


def test_what_cannot_be_cast_is_null_and_never_an_error(folder: Path, open_engine: Open) -> None:
    (folder / "bad.csv").write_text("id,amount,day\n1,12x,2020-01-01\n99999999999999999999,nan,2020-13-01\n,inf,\n")
    columns = (("id", Kind.INTEGER), ("amount", Kind.REAL), ("day", Kind.DATE))
    engine = open_engine([View("bad", DataSource("csv", folder / "bad.csv"), columns)])
    counts = engine.run("SELECT count(*) AS n, count(id) AS id, count(amount) AS amount, count(day) AS day FROM bad")
    assert counts.through(lambda a: {k: int(v[0]) for k, v in a.items()}) == {"n": 3, "id": 1, "amount": 2, "day": 1}


@pytest.mark.parametrize("form", FORMS)
def test_a_cast_that_cannot_fail_does_not_fail_in_any_form(engine: DuckDBEngine, form: str) -> None:
    """DuckDB moves casts into readers; there they must stay casts that give NULL."""
    sql = f'SELECT count(TRY_CAST(word AS INTEGER)) AS n, count(TRY_CAST(word AS DATE)) AS d FROM "{form}"'
    assert engine.run(sql).through(lambda a: (int(a["n"][0]), int(a["d"][0]))) == (0, 0)


def test_line_ends_inside_quotes_are_text_on_any_number_of_threads(folder: Path, open_engine: Open) -> None:
    rows = "".join(f'{i},"line {i}\n{i},second"\n' for i in range(50_000))
    (folder / "lines.csv").write_text(f"id,word\n{rows}")
    columns = (("id", Kind.INTEGER), ("word", Kind.TEXT))
    engine = open_engine([View("lines", DataSource("csv", folder / "lines.csv"), columns)], EngineLimits(threads=4))
    found = engine.run("SELECT count(*) AS n, count(DISTINCT id) AS d, min(length(word)) AS l FROM lines")
    assert found.through(lambda a: [int(v[0]) for v in a.values()]) == [50_000, 50_000, 15]


def test_any_value_in_any_column_of_sqlite_is_read(folder: Path, open_engine: Open) -> None:
    path = folder / "loose.sqlite"
    with sqlite3.connect(path) as lite:
        lite.execute('CREATE TABLE "odd ""name" (id INTEGER, amount REAL)')
        values = [(2**63 - 1, 0.1), ("text", "7.5"), (b"\xff", b"\x00"), (None, 1e308), (1.5, 5e-324)]
        lite.executemany('INSERT INTO "odd ""name" VALUES (?, ?)', values)
    lite.close()
    place = DataSource("sqlite", path, 'odd "name')
    engine = open_engine([View("odd", place, (("id", Kind.INTEGER), ("amount", Kind.REAL)))])
    found = engine.run("SELECT count(id) AS ids, max(id) AS most, max(amount) AS high, min(amount) AS low FROM odd")
    assert found.through(lambda a: [v[0] for v in a.values()]) == [2, 2**63 - 1, 1e308, 5e-324]


def test_wide_integers_arrive_exactly(engine: DuckDBEngine) -> None:
    most, least = 2**127 - 1, -(2**127) + 1
    found = engine.run(f"SELECT {most}::HUGEINT AS a, {least}::HUGEINT AS b, (-1)::HUGEINT AS c, 2::BIGINT AS d")
    assert found.through(lambda a: {name: int(array[0]) for name, array in a.items()}) == {
        "a": most,
        "b": least,
        "c": -1,
        "d": 2,
    }
    assert engine.run("SELECT (-5)::HUGEINT AS a").through(lambda a: a["a"].dtype) == np.int64
    unsigned = engine.run(f"SELECT {2**128 - 1}::UHUGEINT AS a, {2**63}::UHUGEINT AS b, 5::UHUGEINT AS c")
    assert unsigned.through(lambda arrays: [int(arrays[name][0]) for name in "abc"]) == [2**128 - 1, 2**63, 5]


def test_fingerprint_follows_the_content_and_not_the_clock(engine: DuckDBEngine, folder: Path) -> None:
    before = engine.fingerprint("csv").through(bytes)
    os.utime(folder / "t.csv", (1, 1))
    assert engine.fingerprint("csv").through(bytes) == before
    with (folder / "t.csv").open("a") as file:
        file.write("4,0,c\n")
    assert engine.fingerprint("csv").through(bytes) != before


def test_a_file_that_was_written_is_read_anew(engine: DuckDBEngine, folder: Path) -> None:
    count = "SELECT count(*) AS n FROM csv"
    engine.fingerprint("csv")
    assert engine.run(count).through(lambda a: int(a["n"][0])) == 3
    with (folder / "t.csv").open("a") as file:
        file.write("4,0,c\n")
    engine.fingerprint("csv")
    assert engine.run(count).through(lambda a: int(a["n"][0])) == 4


def test_changes_that_are_still_in_a_databases_log_are_seen(folder: Path, open_engine: Open) -> None:
    path = folder / "wal.sqlite"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE t (id INTEGER)")
    writer.execute("INSERT INTO t VALUES (1)")
    engine = open_engine([View("t", DataSource("sqlite", path, "t"), (("id", Kind.INTEGER),))])
    count = "SELECT count(*) AS n FROM t"
    before = engine.fingerprint("t").through(bytes)
    assert engine.run(count).through(lambda a: int(a["n"][0])) == 1
    writer.execute("INSERT INTO t VALUES (2)")
    assert engine.fingerprint("t").through(bytes) != before
    assert engine.run(count).through(lambda a: int(a["n"][0])) == 2
    writer.close()


def test_queries_go_on_over_the_old_state_while_a_file_is_opened_anew(engine: DuckDBEngine, folder: Path) -> None:
    slow = "SELECT count(*) AS n FROM csv, range(300000) r, range(40) s WHERE hash(r.range) % 7 <> s.range % 5"
    expected = engine.run(slow).through(lambda a: int(a["n"][0]))
    with ThreadPoolExecutor(1) as other:
        engine.fingerprint("csv")
        running = other.submit(engine.run, slow)
        time.sleep(0.1)
        with (folder / "t.csv").open("a") as file:
            file.write("4,0,c\n")
        engine.fingerprint("csv")
        assert engine.run("SELECT count(*) AS n FROM csv").through(lambda a: int(a["n"][0])) == 4
        assert running.result().through(lambda a: int(a["n"][0])) in (expected, expected * 4 // 3)


def test_a_change_inside_a_large_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "HASHED_WHOLE", 1000)
    path = tmp_path / "large.csv"
    path.write_bytes(b"a\n" + b"1\n" * 2_000_000)
    before = files.digest(DataSource("csv", path))
    with path.open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"2")
    assert files.digest(DataSource("csv", path)) != before


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("visits.csv", DataSource("csv", Path("/d/visits.csv"))),
        ("sub/Visits.PARQUET", DataSource("parquet", Path("/d/sub/Visits.PARQUET"))),
        ("/abs/x.pq", DataSource("parquet", Path("/abs/x.pq"))),
        ("duckdb:x.db#stays", DataSource("duckdb", Path("/d/x.db"), "stays")),
        ("sqlite:x.db", DataSource("sqlite", Path("/d/x.db"), "visits")),
        ("csv:noending", DataSource("csv", Path("/d/noending"))),
    ],
)
def test_a_source_is_read(source: str, place: DataSource) -> None:
    assert locate(source, "source", base=Path("/d"), name="visits") == place


@pytest.mark.parametrize(
    "source", [None, "", " ", 7, "x.xlsx", "postgresql://h/db", "ssh://b/x.parquet", "a\0.csv", "x.csv#table"]
)
def test_a_source_that_says_nothing_is_refused(source: object) -> None:
    with pytest.raises(ConfigError) as refused:
        locate(source, "datasets.visits.source", base=Path("/d"), name="visits")
    assert refused.value.code == "HB410"
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("source", "remedy"),
    [
        ("mysql://u:s3cret@h/db/t", "COPY"),
        ("mysql+pymysql://u:s3cret@h/db", "Parquet"),
        ("snowflake://u:s3cret@account/db", "COPY INTO"),
        ("bigquery://project/data", "EXPORT DATA"),
        ("mssql+pyodbc://u:s3cret@h/db", "Spark"),
        ("delta:///lake/visits", "without slashes"),
        ("s3://b/x.parquet", "Copy the file"),
        ("sqlite:///x.db", "sqlite:path"),
        ("postgresql+psycopg2://u:s3cret@h/db/t", "without a driver"),
        ("jdbc:postgresql://h/db/t", "without jdbc:"),
    ],
)
def test_a_source_of_another_system_says_what_to_do_instead(source: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match="HB769") as refused:
        locate(source, "datasets.visits.source", base=Path("/d"), name="visits")
    assert remedy in refused.value.remedy
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("postgresql://u:s3cret@a:5432,b:5433/db/s.t?target_session_attrs=any", "postgresql://a:5432,b:5433/db/s.t"),
        ("postgresql://u:s3cret@[::1]:5433/db/t", "postgresql://[::1]:5433/db/public.t"),
        ("postgresql://db.example.org/db/t", "postgresql://db.example.org/db/public.t"),
        ("postgresql:///db/t?host=/run/pg", "postgresql://localhost/db/public.t"),
    ],
)
def test_an_address_may_have_several_hosts_and_is_shown_with_ports_and_without_the_password(
    source: str, shown: str
) -> None:
    place = locate(source, "source", base=Path(), name="t")
    assert place.shown == shown
    assert "s3cret" not in repr(place)


@pytest.mark.parametrize("hosts", ["a:x", "a,,b", "a:1:2", "a:999999", "[::1"])
def test_an_address_with_a_slip_in_its_hosts_is_refused(hosts: str) -> None:
    with pytest.raises(ConfigError, match="HB410"):
        locate(f"postgresql://{hosts}/db/t", "source", base=Path(), name="t")


def test_files_that_cannot_be_read_are_refused_with_a_remedy(folder: Path) -> None:
    (folder / "no.parquet").write_text("CANARY-7431")
    (folder / "no.sqlite").write_text("CANARY-7431" * 100)
    (folder / "no.duckdb").write_text("CANARY-7431" * 1000)
    (folder / "twice.csv").write_text("a,A\n")
    (folder / "empty.csv").write_text("")
    for place in (
        DataSource("csv", folder / "missing.csv"),
        DataSource("csv", folder),
        DataSource("csv", folder / "*.csv"),
        DataSource("parquet", folder / "no.parquet"),
        DataSource("sqlite", folder / "no.sqlite", "t"),
        DataSource("duckdb", folder / "no.duckdb", "t"),
        DataSource("duckdb", folder / "t.duckdb", "u"),
        DataSource("sqlite", folder / "t.sqlite", "u"),
        DataSource("csv", folder / "twice.csv"),
        DataSource("csv", folder / "empty.csv"),
    ):
        with pytest.raises(ConfigError) as refused:
            schema(place)
        assert refused.value.code in ("HB411", "HB412")
        assert refused.value.remedy
        assert "CANARY" not in str(refused.value)


def test_a_large_file_is_loaded_beside_the_memory(
    folder: Path, open_engine: Open, places: dict[str, DataSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "HASHED_WHOLE", 10)
    engine = open_engine([View(form, places[form], (("id", Kind.INTEGER),)) for form in ("csv", "sqlite")])
    for form in ("csv", "sqlite"):
        assert engine.run(f"SELECT sum(id)::BIGINT AS s FROM {form}").through(lambda a: int(a["s"][0])) == 6
    assert engine._database is not None
    with pytest.raises(duckdb.Error):
        engine._database.root.execute("ATTACH 'elsewhere.duckdb' AS e")


def test_duckdb_still_moves_try_cast_into_its_csv_reader(folder: Path) -> None:
    """Why a CSV file is never queried in place. If this fails, DuckDB was mended and `_load` could be simpler."""
    (folder / "dirty.csv").write_text("x\n1\nCANARY-7431\n")
    with duckdb.connect() as plain, pytest.raises(duckdb.Error, match="CANARY-7431"):
        plain.execute(
            f"SELECT TRY_CAST(x AS INTEGER) FROM read_csv('{folder}/dirty.csv', auto_detect = false, header = true,"
            " columns = {'x': 'VARCHAR'})"
        ).fetchall()
