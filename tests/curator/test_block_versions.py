"""Versions of blocks: what an append changes, and what it leaves valid."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from tests.curator.test_blocks import ALL, YAML, Place, ask
from tests.fixtures import spark
from tests.fixtures.postgres_server import Server

from hubbub.curator import Curator
from hubbub.curator.block_versions import _block_rows
from hubbub.curator.question import Question
from hubbub.curator.versions import BlockRows, Versions
from hubbub.engines.base import locate
from hubbub.engines.duckdb.connection import DuckDBEngine
from hubbub.engines.spark.connection import SparkEngine
from hubbub.errors import LedgerError, RunError

ROWS = [
    ("p1", "2026-01-05", "North", "1", "a"),
    ("p2", "2026-01-06", "South", "2", "b"),
    ("p1", "2026-02-05", "North", "3", "c"),
    ("p3", "2025-06-01", "North", "4", "d"),  # in no block
]
MONTHS = ("2026-01", "2026-02", "2026-03")
RICH = YAML.replace("{epsilon: 2}}", "{epsilon: 100}}").replace("{epsilon: 1}}", "{epsilon: 90}}")
Rows = list[tuple[str | None, ...]]


def write(place: Place, rows: Rows) -> None:
    path = place.folder / "visits.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE v (person VARCHAR, day DATE, region VARCHAR, cost DOUBLE, note VARCHAR, z VARCHAR)"
        )
        connection.executemany("INSERT INTO v VALUES (?, ?, ?, ?, ?, '')", [[*row] for row in rows])
        connection.execute(f"COPY v TO '{path}'")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    text = RICH.replace("cost: {bounds: [0, 10]}", "cost: {bounds: [0, 10]}\n      note: {hidden: true}")
    (tmp_path / "hubbub.yaml").write_text(text)
    place = Place(tmp_path, date(2026, 3, 10))
    write(place, [*ROWS])
    return place


def month(name: str) -> str:
    return f"{ALL} WHERE day >= '{name}-01' AND day < '{name[:-1]}{int(name[-1]) + 1}-01'"


def of_months(curator: Curator) -> list[str]:
    return [version(curator, month(name)) for name in MONTHS]


def version(curator: Curator, sql: str) -> str:
    planned = curator.planner.plan("ana", Question(sql, epsilon="0.125"), salt="")
    return curator._data_versions(planned)["visits"]


A, B, C, D = ROWS
CHANGES: dict[str, tuple[Rows, tuple[int, ...]]] = {
    "a new block": ([*ROWS, ("p4", "2026-03-01", "North", "0", "e")], (2,)),
    "a late row": ([*ROWS, ("p4", "2026-01-31", "North", "0", "e")], (0,)),
    "a row twice": ([*ROWS, A], (0,)),
    "a row less": ([B, C, D], (0,)),
    "an empty block": ([A, B, D], (1,)),
    "another owner": ([("p9", *A[1:]), B, C, D], (0,)),
    "another day": ([("p1", "2026-01-07", *A[2:]), B, C, D], (0,)),
    "another block": ([("p1", "2026-02-07", *A[2:]), B, C, D], (0, 1)),
    "another region": ([("p1", "2026-01-05", "South", *A[3:]), B, C, D], (0,)),
    "no region": ([("p1", "2026-01-05", None, *A[3:]), B, C, D], (0,)),
    "another cost": ([(*A[:3], "1.0000000000000002", "a"), B, C, D], (0,)),
    "a hidden column": ([(*A[:4], "z"), B, C, D], ()),
    "exchanged values": ([(*A[:2], "South", *A[3:]), (*B[:2], "North", *B[3:]), C, D], (0,)),
    "out of the calendar": ([A, B, C, ("p3", "2024-06-01", "North", "4", "d")], ()),
    "without a day": ([*ROWS, ("p4", None, "North", "0", "e")], ()),
    "another order": ([D, C, B, A], ()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_row_is_a_new_version_of_its_blocks_alone(place: Place, change: str) -> None:
    rows, blocks = CHANGES[change]
    with place.curator() as curator:
        before, whole = of_months(curator), version(curator, ALL)
        assert len({*before, whole}) == 1
        write(place, rows)
        after = of_months(curator)
        assert tuple(i for i in range(3) if before[i] != after[i]) == blocks
        # a query over all blocks has a new version if one of them has
        assert (version(curator, ALL) == whole) == (blocks == ())
        for name in {*after, version(curator, ALL)} - {before[0]}:
            assert name.startswith("2-")


def test_a_name_stands_for_one_state_of_a_block_in_every_history(tmp_path: Path) -> None:
    """All 625 histories of four updates, refreshes and failures to hash, of a table with two blocks."""
    states = [("x", "y"), ("x", "z"), ("w", "y"), ("", "y"), ("refresh",)]
    for number, history in enumerate(itertools.product(states, repeat=4)):
        versions, meant = Versions(tmp_path / f"{number}.json"), dict[tuple[str, str], str]()
        known = dict[tuple[str, ...], str]()
        epoch, unreadable = 0, number % 5 - 1  # the step at which rows cannot be hashed
        for step, state in enumerate((("x", "y"), *history, ("x", "y"))):
            if state == ("refresh",):
                versions.refresh("visits")
                known, epoch = {}, epoch + 1
                continue
            whole = known.setdefault(state, f"{len(known) + 1}-{epoch}{step}")
            hashes = {f"2026-0{i + 1}": rows for i, rows in enumerate(state) if rows}
            found = BlockRows("b", None if step == unreadable else hashes)
            for block, rows in zip(MONTHS, (*state, ""), strict=True):
                name = versions.of_blocks("visits", whole, [block], lambda _, found=found: found)  # type: ignore[misc]
                assert meant.setdefault((block, name), rows) == rows
            pair = versions.of_blocks("visits", whole, MONTHS[:2], lambda _, found=found: found)  # type: ignore[misc]
            assert meant.setdefault(("both", pair), repr(state)) == repr(state)


def test_what_cannot_be_compared_is_a_change_of_every_block(tmp_path: Path) -> None:
    versions = Versions(tmp_path / "versions.json")
    rows = {"2026-01": "x", "2026-02": "y"}

    def name(whole: str, found: BlockRows, block: str = "2026-01") -> str:
        return versions.of_blocks("visits", whole, [block], lambda _: found)

    assert name("1-a", BlockRows("b", rows)) == "1-a"
    assert name("2-b", BlockRows("b", rows)) == "1-a"
    # owners changed in another table; then the engine gave up, and worked again
    assert name("3-c", BlockRows("c", rows)) == "3-c"
    assert name("4-d", BlockRows("c", None)) == "4-d"
    assert [name("5-e", BlockRows("c", rows), block) for block in MONTHS] == ["5-e"] * 3
    # a format of later versions
    path = tmp_path / "versions.json"
    content = json.loads(path.read_text())
    content["visits blocks"]["format"] = 2
    path.write_text(json.dumps(content))
    assert name("6-f", BlockRows("c", rows)) == "6-f"


def test_answers_about_old_blocks_stay_free_when_data_is_added(place: Place) -> None:
    regions = f"{month('2026-01').replace('COUNT(*)', 'region, COUNT(*)')} GROUP BY region"
    with place.curator() as curator:
        assert not ask(curator, month("2026-01"))
        assert not ask(curator, regions)
        assert not ask(curator, ALL)
        write(place, [*ROWS, ("p4", "2026-03-01", "North", "0", "e")])
        assert ask(curator, month("2026-01"))
        assert ask(curator, regions)
        # the south follows from what is known of the regions
        south = month("2026-01").replace("WHERE", "WHERE region = 'South' AND")
        assert curator.estimate("ana", Question(south, epsilon="0.1")).free is not None
        derived = curator.query("ana", Question(south))
        assert (str(derived.epsilon), len(derived.rows)) == ("0", 1)
        assert not ask(curator, ALL)  # March has changed
        # a late row: nothing about January is free any more
        write(place, [*ROWS, ("p4", "2026-01-31", "North", "0", "e")])
        assert not ask(curator, regions)
        assert not ask(curator, month("2026-01"))
        assert ask(curator, month("2026-02")) is False


def test_an_append_to_folders_of_months_keeps_the_answers_about_others(place: Place) -> None:
    """A table of Delta Lake in one folder for each month: a commit that adds March leaves January and February free."""
    path = place.folder / "visits.parquet"

    def table() -> pa.Table:
        rows = pq.read_table(path)
        return rows.append_column("month", pc.strftime(rows["day"], "%Y-%m"))

    write_deltalake(place.folder / "visits", table(), partition_by=["month"])
    config = place.folder / "hubbub.yaml"
    config.write_text(config.read_text().replace("source: visits.parquet", "source: delta:visits"))
    with place.curator() as curator:
        assert [ask(curator, month(name)) for name in (*MONTHS, *MONTHS)] == [False] * 3 + [True] * 3
        write(place, [("p4", "2026-03-01", "North", "0", "e")])
        write_deltalake(place.folder / "visits", table(), mode="append")
        assert [ask(curator, month(name)) for name in MONTHS] == [True, True, False]
        # a late row, in a file of its own in the folder of January
        write(place, [("p4", "2026-01-31", "North", "0", "e")])
        write_deltalake(place.folder / "visits", table(), mode="append")
        assert [ask(curator, month(name)) for name in MONTHS] == [False, True, True]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("by", ["month", "day"])
def test_an_append_to_a_partitioned_folder_keeps_the_answers_about_others(place: Place, by: str) -> None:
    """Plain Parquet files in folders; the blocks are those of a column of the files, or of the names of folders."""

    def put(name: str, rows: Rows) -> None:
        columns = dict(zip(("person", "day", "region", "cost", "note", "z"), zip(*rows, strict=True), strict=False))
        typed = {"cost": [0.5] * len(rows), "day": [date.fromisoformat(row[1] or "") for row in rows]}
        kept = {key: typed.get(key, value) for key, value in columns.items() if key != by}
        target = place.folder / "visits" / f"{by}={name}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(kept), target)

    config = place.folder / "hubbub.yaml"
    config.write_text(config.read_text().replace("source: visits.parquet", "source: visits/"))
    put("2026-01/0", [A, B])
    put("2026-02/0", [C])
    with place.curator() as curator:
        assert [ask(curator, month(name)) for name in (*MONTHS, *MONTHS)] == [False] * 3 + [True] * 3
        put("2026-03/0", [("p4", "2026-03-01", "North", "0", "e")])
        assert [ask(curator, month(name)) for name in MONTHS] == [True, True, False]
        put("2026-01/1", [("p4", "2026-01-31", "North", "0", "e")])  # a late row
        assert [ask(curator, month(name)) for name in MONTHS] == [False, True, True]
        (place.folder / "visits" / f"{by}=2026-02" / "0.parquet").unlink()
        assert [ask(curator, month(name)) for name in MONTHS] == [True, False, True]
    with place.curator() as curator:
        assert ask(curator, month("2026-01"))
        pq.write_table(pa.table({"z": [1]}), _made(place.folder / "visits" / "late") / "0.parquet")
        with pytest.raises(LedgerError, match="not named column=value"):
            ask(curator, month("2026-01"))


def test_a_source_of_another_version_of_a_block_is_not_used(place: Place) -> None:
    regions = f"{month('2026-01').replace('COUNT(*)', 'region, COUNT(*)')} GROUP BY region"
    south = month("2026-01").replace("WHERE", "WHERE region = 'South' AND")
    with place.curator() as curator:
        ask(curator, regions)
        write(place, [*ROWS, ("p4", "2026-01-31", "North", "0", "e")])
        ask(curator, f"{ALL} WHERE day < '2026-02-01' AND region = 'North'")  # now the new version is known
        assert curator.estimate("ana", Question(south, epsilon="0.1")).free is None


def test_versions_of_an_earlier_hubbub_stay_valid(place: Place) -> None:
    with place.curator() as curator:
        ask(curator, month("2026-01"))
        path = next(place.folder.rglob("versions.json"))
        content = json.loads(path.read_text())
        earlier = {name: value for name, value in content.items() if name != "visits blocks"}
        assert earlier != content
        path.write_text(json.dumps(earlier))
        assert ask(curator, month("2026-01"))


def test_rows_that_change_while_they_are_hashed_are_hashed_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    more: Rows = [*ROWS, ("p4", "2026-01-31", "North", "0", "e")]
    with place.curator() as curator:
        before = of_months(curator)
        write(place, [*ROWS, ("p4", "2026-02-28", "North", "0", "e")])
        run, times = curator.engine.run, list[str]()

        def meanwhile(sql: str) -> object:
            times.append(sql)
            if len(times) == 1:
                write(place, more)
            return run(sql)

        monkeypatch.setattr(curator.engine, "run", meanwhile)
        after = of_months(curator)
        assert len(times) == 2
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True, True]


def test_an_engine_that_gives_up_changes_every_block(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RunError

    with place.curator() as curator:
        before = of_months(curator)
        write(place, [*ROWS, ("p4", "2026-03-01", "North", "0", "e")])
        with monkeypatch.context() as patched:
            patched.setattr(DuckDBEngine, "run", fail)
            after = of_months(curator)
        assert not {*before} & {*after}
        assert of_months(curator) == after


@contextmanager
def on_postgres(server: Server, folder: Path) -> Iterator[tuple[Place, Callable[[str], None]]]:
    with server.database() as dsn, psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("CREATE TABLE visits (person text, day timestamptz, region text, cost float8)")
        owner.execute("INSERT INTO visits VALUES ('a', '2026-01-31 23:59:59.999999Z', 'North', 1)")
        owner.execute("INSERT INTO visits VALUES ('b', '2026-02-01 00:00:00Z', NULL, '-0')")

        def change(text: str) -> None:
            owner.execute(text.encode())
            owner.execute("SELECT pg_stat_force_next_flush()")

        parts = psycopg.conninfo.conninfo_to_dict(dsn)
        address = f"postgresql://{parts.get('user', '')}@/{parts['dbname']}/public.visits?host={parts['host']}"
        address += f"&port={parts['port']}" if "port" in parts else ""
        text = RICH.replace("source: visits.parquet", f"source: '{address}'").replace("type: date", "type: timestamp")
        (folder / "hubbub.yaml").write_text(text)
        yield Place(folder, date(2026, 3, 10)), change


def counted(curator: Curator, before: list[str]) -> list[str]:
    """Wait until the server has counted a change: its statistics lag."""
    for _ in range(100):
        if (now := of_months(curator)) != before:
            break
        time.sleep(0.05)
    return now


def test_blocks_of_a_table_on_a_server(postgres_server: Server, tmp_path: Path) -> None:
    with on_postgres(postgres_server, tmp_path) as (place, change), place.curator() as curator:
        first = of_months(curator)
        change("UPDATE visits SET cost = 0.0 WHERE person = 'b'")  # the other zero
        second = counted(curator, first)
        assert [old == new for old, new in zip(first, second, strict=True)] == [True, False, True]
        change("INSERT INTO visits VALUES ('c', '2026-03-01 00:30:00+01', 'North', 1)")  # February in UTC
        third = counted(curator, second)
        assert [old == new for old, new in zip(second, third, strict=True)] == [True, False, True]
        change("VACUUM FULL visits")
        assert of_months(curator) == third


def test_spark_gives_blocks_the_same_hashes(place: Place, spark_address: str, tmp_path: Path) -> None:
    with place.curator() as curator, duckdb.connect() as connection:
        table = curator.tables["visits"]
        assert table.blocks is not None
        write(place, [*ROWS, ("\u00fc", "2026-01-01", None, "0.5", "e")])
        curator.engine.fingerprint("visits")
        mine = _block_rows(table, table.blocks, curator.engine, "salt")
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM '{place.folder}/visits.parquet'")
        file = spark.copied(connection, ["visits"], tmp_path)["visits"]
        view = curator.config.datasets["visits"].view
        source = locate(f"spark:{spark_address}/{file}", "source", base=Path(), name="visits")
        engine = SparkEngine([replace(view, source=source)], limits=spark.LIMITS)
        try:
            assert _block_rows(table, table.blocks, engine, "salt") == mine
            assert mine.hashes is not None
            assert set(mine.hashes) == {"2025-06", "2026-01", "2026-02"}
        finally:
            engine.close()
