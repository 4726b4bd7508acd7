"""Tables of Delta Lake: their rows, their versions, and logs that lie."""

import datetime
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource, UnreachableError, View, locate
from hubbub.engines.duckdb.connection import DuckDBEngine, schema
from hubbub.errors import ConfigError, RunError

Open = Callable[..., DuckDBEngine]
COLUMNS = (("id", Kind.INTEGER), ("region", Kind.TEXT))
MAPPING = "delta.columnMapping"


def view(folder: Path, *columns: tuple[str, Kind], name: str = "t") -> View:
    return View(name, DataSource("delta", folder), columns or COLUMNS)


def rows(engine: DuckDBEngine, sql: str) -> list[tuple[Any, ...]]:
    found = engine.run(sql).through(lambda arrays: [np.ma.asarray(array).tolist() for array in arrays.values()])
    return list(zip(*found, strict=True))


def version(engine: DuckDBEngine, name: str = "t") -> bytes:
    return engine.fingerprint(name).through(bytes)


def ids(engine: DuckDBEngine) -> list[int]:
    return [value for (value,) in rows(engine, 'SELECT id FROM "t" ORDER BY id')]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2], "region": ["North", None]}))
    return tmp_path / "t"


def test_every_type_is_read_as_it_was_written(tmp_path: Path, open_engine: Open) -> None:
    """Against the literals below, also from a file in which Spark would have written old timestamps."""
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, 0, 125)
    table = pa.table(
        {
            "a": pa.array([-128, None], pa.int8()),
            "b": pa.array([2**31 - 1, None], pa.int32()),
            "c": pa.array([2**63 - 1, None], pa.int64()),
            "d": pa.array([0.5, None], pa.float32()),
            "e": pa.array([True, None]),
            "f": pa.array(["é'\"", None]),
            "g": pa.array([day, None], pa.date32()),
            "h": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "i": pa.array([moment, None], pa.timestamp("us")),
            "j": pa.array([None, None], pa.decimal128(12, 2)),
            "k": pa.array([[1], None], pa.list_(pa.int64())),
        }
    )
    write_deltalake(tmp_path / "t", table)
    fields = schema(DataSource("delta", tmp_path / "t"))
    kinds = {each.name: each.kind for each in fields}
    expected = [*[Kind.INTEGER] * 3, Kind.REAL, Kind.BOOLEAN, Kind.TEXT, Kind.DATE, *[Kind.TIMESTAMP] * 2, Kind.REAL]
    assert kinds == {**dict(zip("abcdefghij", expected, strict=True)), "k": None}
    assert {each.type for each in fields if each.name in "hj"} == {"TIMESTAMP WITH TIME ZONE", "DECIMAL(12,2)"}
    columns = [(name, kind) for name, kind in kinds.items() if kind is not None]
    engine = open_engine([view(tmp_path / "t", *columns)])
    (file,) = [path for path in (tmp_path / "t").iterdir() if path.suffix == ".parquet"]
    text = 'SELECT a, b, c, d, e, f, CAST(g AS VARCHAR), CAST(h AS VARCHAR), CAST(i AS VARCHAR), j FROM "t" ORDER BY a'
    seconds = "2024-02-29 12:30:00.000125"
    wanted = [(-128, 2**31 - 1, 2**63 - 1, 0.5, True, "é'\"", "2024-02-29", seconds, seconds, None), (None,) * 10]
    assert rows(engine, text) == wanted
    pq.write_table(table, file, use_deprecated_int96_timestamps=True)
    assert rows(engine, text) == wanted


def test_schema_reads_no_file_of_rows(folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        file.unlink()
    assert [(each.name, each.kind) for each in schema(DataSource("delta", folder))] == list(COLUMNS)


def test_deleted_rows_and_replaced_files_are_not_read(folder: Path, open_engine: Open) -> None:
    """The files of the folder still hold them."""
    write_deltalake(folder, pa.table({"id": [3, 4], "region": ["x", "y"]}), mode="append")
    DeltaTable(folder).delete("id = 3")
    engine = open_engine([view(folder)])
    assert ids(engine) == [1, 2, 4]
    assert sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet")) > 3


def test_a_column_that_was_added_later_is_null_in_older_files(folder: Path, open_engine: Open) -> None:
    write_deltalake(folder, pa.table({"id": [3], "late": [0.5]}), mode="append", schema_mode="merge")
    engine = open_engine([view(folder, *COLUMNS, ("late", Kind.REAL))])
    assert rows(engine, 'SELECT id, region, late FROM "t" ORDER BY id') == [
        (1, "North", None),
        (2, None, None),
        (3, None, 0.5),
    ]


#: Values that become names of folders.
HOSTILE = ["*", "a[b]?", "../../up", "é=%2F", "it's", 'q"q', " ", None, "x#y", "region=1", "\\", "a\nb", "$spill"]


@pytest.mark.parametrize("declared", [COLUMNS, COLUMNS[:1], COLUMNS[1:]], ids=["both", "stored", "partition"])
def test_partitions_have_their_values_whatever_their_folders_are_called(
    tmp_path: Path, open_engine: Open, declared: tuple[tuple[str, Kind], ...]
) -> None:
    table = pa.table({"id": range(len(HOSTILE)), "region": HOSTILE})
    write_deltalake(tmp_path / "ta*b", table, partition_by=["region"])
    (tmp_path / "ta*b").rename(tmp_path / "t")
    engine = open_engine([view(tmp_path / "t", *declared)])
    names = [name for name, _ in declared]
    found = rows(engine, f'SELECT {", ".join(names)} FROM "t"')
    wanted = [tuple({"id": place, "region": text}[name] for name in names) for place, text in enumerate(HOSTILE)]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


def test_partitions_by_dates_and_numbers_are_cast_back(tmp_path: Path, open_engine: Open) -> None:
    days = [datetime.date(2024, 1, 31), None]
    table = pa.table({"id": [1, 2], "day": days, "n": pa.array([-5, 7], pa.int16()), "b": [True, False]})
    write_deltalake(tmp_path / "t", table, partition_by=["day", "n", "b"])
    columns = (("id", Kind.INTEGER), ("day", Kind.DATE), ("n", Kind.INTEGER), ("b", Kind.BOOLEAN))
    engine = open_engine([view(tmp_path / "t", *columns)])
    text = 'SELECT id, CAST(day AS VARCHAR), n, b FROM "t" ORDER BY id'
    assert rows(engine, text) == [(1, "2024-01-31", -5, True), (2, None, 7, False)]
    assert rows(engine, 'SELECT id FROM "t" WHERE n > 0') == [(2,)]


def test_an_empty_table_has_no_rows(tmp_path: Path, open_engine: Open) -> None:
    DeltaTable.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("region", pa.string())]))
    assert rows(open_engine([view(tmp_path / "t")]), 'SELECT id, region FROM "t"') == []


def test_every_commit_is_a_version(folder: Path, open_engine: Open) -> None:
    engine = open_engine([view(folder)])
    first = version(engine)
    assert (ids(engine), version(engine)) == ([1, 2], first)
    write_deltalake(folder, pa.table({"id": [3], "region": ["x"]}), mode="append")
    second = version(engine)
    assert (second != first, ids(engine)) == (True, [1, 2, 3])
    # a checkpoint is no commit, and neither is what another process finds later
    DeltaTable(folder).create_checkpoint()
    assert version(engine) == version(open_engine([view(folder)])) == second
    assert DeltaTable(folder).version() == 1


def test_a_table_in_the_place_of_another_is_another_version(folder: Path, open_engine: Open) -> None:
    """Restored from a backup it keeps identifier and numbers, and a new table begins with 0 again."""
    shutil.copytree(folder, folder.with_name("backup"))
    engine = open_engine([view(folder)])
    seen = {version(engine)}
    for value in (3, 4):
        shutil.rmtree(folder)
        shutil.copytree(folder.with_name("backup"), folder)
        write_deltalake(folder, pa.table({"id": [value], "region": ["x"]}), mode="append")
        seen.add(version(engine))
        assert (ids(engine), DeltaTable(folder).version()) == ([1, 2, value], 1)
    shutil.rmtree(folder)
    write_deltalake(folder, pa.table({"id": [9], "region": ["x"]}))
    assert len(seen | {version(engine)}) == 4


def test_a_commit_in_the_middle_of_a_query_is_not_seen(folder: Path, open_engine: Open) -> None:
    """Another query sees the commit at once; the first reads what it has a fingerprint of, to its end."""
    engine = open_engine([view(folder)])
    first = version(engine)
    assert ids(engine) == [1, 2]
    write_deltalake(folder, pa.table({"id": [3], "region": ["x"]}), mode="append")
    others: list[Any] = []

    def another() -> None:
        others.extend([version(engine), ids(engine)])

    thread = threading.Thread(target=another)
    thread.start()
    thread.join()
    assert others[0] != first
    assert others[1] == [1, 2, 3]
    assert ids(engine) == [1, 2]
    assert (version(engine), ids(engine)) == (others[0], [1, 2, 3])


def test_a_missing_file_is_the_constant_failure(folder: Path, open_engine: Open) -> None:
    engine = open_engine([view(folder)])
    version(engine)
    for file in folder.glob("*.parquet"):
        file.unlink()
    with pytest.raises(RunError) as caught:
        ids(engine)
    assert (str(caught.value), caught.value.__cause__, caught.value.__context__) == (str(RunError()), None, None)


@pytest.mark.parametrize("path", ["../secret.parquet", "..%2Fsecret.parquet", "{base}/secret.parquet", "link.parquet"])
def test_a_log_that_names_a_file_elsewhere_reads_nothing(folder: Path, open_engine: Open, path: str) -> None:
    pq.write_table(pa.table({"id": [7431], "region": ["CANARY"]}), folder.with_name("secret.parquet"))
    (folder / "link.parquet").symlink_to(folder.with_name("secret.parquet"))
    log = folder / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = path.format(base=folder.parent)
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(RunError):
        ids(open_engine([view(folder)]))


def _protocol(folder: Path, features: list[str], configuration: dict[str, str]) -> None:
    """Write what another program would declare into the first commit."""
    log = folder / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        if "metaData" in line:
            line["metaData"]["configuration"] = configuration
            columns = json.loads(line["metaData"]["schemaString"])
            for place, column in enumerate(columns["fields"]):
                column["metadata"] = {f"{MAPPING}.id": place, f"{MAPPING}.physicalName": f"col-{place}"}
            line["metaData"]["schemaString"] = json.dumps(columns)
    log.write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize(
    ("feature", "configuration"),
    [
        ("deletionVectors", {"delta.enableDeletionVectors": "true"}),
        ("columnMapping", {f"{MAPPING}.mode": "name", f"{MAPPING}.maxColumnId": "1"}),
        ("typeWidening", {}),
        ("somethingNew", {}),
    ],
)
def test_a_feature_that_changes_the_rows_is_refused_before_the_charge(
    folder: Path, open_engine: Open, feature: str, configuration: dict[str, str]
) -> None:
    """By the owner's check, and by the fingerprint if it is switched on later."""
    engine = open_engine([view(folder)])
    version(engine)
    _protocol(folder, [feature], configuration)
    # a feature that the package does not know has no name here
    named = "cannot read the log" if feature == "somethingNew" else f"uses the feature {feature}, which"
    with pytest.raises(ConfigError, match=named) as caught:
        schema(DataSource("delta", folder))
    assert caught.value.code == "HB411"
    with pytest.raises(UnreachableError):
        version(engine)


def test_a_column_that_is_gone_is_refused_before_the_charge(folder: Path, open_engine: Open) -> None:
    """Otherwise it would be NULL in every row, silently."""
    engine = open_engine([view(folder)])
    version(engine)
    write_deltalake(folder, pa.table({"id": [1]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(UnreachableError, match="lack a declared column"):
        version(engine)


def test_addresses_of_delta_tables(tmp_path: Path) -> None:
    found = locate("delta:lake/visits", "datasets.visits.source", base=tmp_path, name="visits")
    assert found == DataSource("delta", tmp_path / "lake" / "visits")
    for address in ("delta://host/t", "delta+s3://bucket/t"):
        with pytest.raises(ConfigError, match="remote Delta Lake table"):
            locate(address, "datasets.visits.source", base=tmp_path, name="visits")
    (tmp_path / "plain").mkdir()
    for place, why in (("plain", "has no folder _delta_log"), ("nowhere", "is not a folder")):
        with pytest.raises(ConfigError, match=why):
            schema(DataSource("delta", tmp_path / place))
    (tmp_path / "plain" / "_delta_log").mkdir()
    with pytest.raises(ConfigError, match="cannot read the log of its table"):
        schema(DataSource("delta", tmp_path / "plain"))


_FORK = """
import os, sys
from pathlib import Path
from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource, EngineLimits, View
from hubbub.engines.duckdb.connection import DuckDBEngine, schema

columns = (("id", Kind.INTEGER), ("region", Kind.TEXT))
views = [View(name, DataSource("delta", Path(sys.argv[1]) / name), columns) for name in ("t", "u")]
for view in views:
    schema(view.source)
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
engine = DuckDBEngine(views, limits=EngineLimits(threads=1))
print(engine.fingerprint("t").through(bytes).hex())
print(engine.run('SELECT id, region FROM "u"').through(lambda found: [values.tolist() for values in found.values()]))
"""


def test_a_forked_process_reads_a_log_as_well(folder: Path, open_engine: Open) -> None:
    """The threads of the package stay behind in a fork; `hubbub serve` forks its workers after its checks.

    The process that forks is a new one, as there: it has read both logs and has no other threads.
    """
    write_deltalake(folder.with_name("u"), pa.table({"id": [5], "region": ["*"]}), partition_by=["region"])
    command = [sys.executable, "-c", _FORK, str(folder.parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [version(open_engine([view(folder)])).hex(), "[[5], ['*']]"]
