"""Partitioned folders of Parquet files: their rows, their versions, and folders that mislead."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubbub.core.list_columns import element_name
from hubbub.core.schema import Kind
from hubbub.engines import files, hive
from hubbub.engines.base import FOLDER_TEXT, DataSource, UnreachableError, View, locate
from hubbub.engines.duckdb.connection import DuckDBEngine, schema
from hubbub.errors import ConfigError, RunError

Open = Callable[..., DuckDBEngine]
COLUMNS = (("id", Kind.INTEGER), ("month", Kind.TEXT))


def write(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def view(folder: Path, *columns: tuple[str, Kind]) -> View:
    return View("t", DataSource("hive", folder), columns or COLUMNS)


def rows(engine: DuckDBEngine, sql: str = 'SELECT * FROM "t" ORDER BY ALL') -> list[tuple[Any, ...]]:
    found = engine.run(sql).through(lambda arrays: [np.ma.asarray(array).tolist() for array in arrays.values()])
    return list(zip(*found, strict=True))


def version(engine: DuckDBEngine) -> bytes:
    return engine.fingerprint("t").through(bytes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "t" / "month=2026-01" / "0.parquet", id=[1, 2])
    write(tmp_path / "t" / "month=2026-02" / "0.parquet", id=[3])
    return tmp_path / "t"


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_are_those_of_files_and_folders(folder: Path, open_engine: Open) -> None:
    fields = schema(DataSource("hive", folder))
    assert [(each.name, each.kind, each.untyped) for each in fields] == [
        ("id", Kind.INTEGER, False),
        ("month", None, True),
    ]
    assert fields[1].type == FOLDER_TEXT
    assert rows(open_engine([view(folder)])) == [(1, "2026-01"), (2, "2026-01"), (3, "2026-02")]
    days = open_engine([view(folder, ("month", Kind.DATE))])
    assert rows(days, 'SELECT CAST(month AS VARCHAR), count(*) FROM "t" GROUP BY 1 ORDER BY 1') == [
        ("2026-01-01", 2),
        ("2026-02-01", 1),
    ]


@pytest.mark.parametrize("name", ["filename", "FileName", "$file", "$FILE$", "$none", "file_row_number", "id"])
@pytest.mark.parametrize("wanted", ["with it", "without it", "folders alone"])
def test_no_name_of_a_column_is_taken(tmp_path: Path, open_engine: Open, name: str, wanted: str) -> None:
    """DuckDB adds a column for the name of the file, and refuses files that have one of that name."""
    write(tmp_path / "t" / "m=1" / "0.parquet", **{name: [7]}, **{"$file": [0]} if name == "$FILE$" else {})
    columns = {
        "with it": ((name, Kind.INTEGER), *([("$file", Kind.INTEGER)] if name == "$FILE$" else [])),
        "without it": (("new", Kind.INTEGER),),
        "folders alone": (),
    }[wanted]
    if wanted == "without it":
        write(tmp_path / "t" / "m=2" / "0.parquet", new=[8])
    engine = open_engine([view(tmp_path / "t", *columns, ("m", Kind.INTEGER))])
    version(engine)
    first = {"with it": 7, "without it": None, "folders alone": 1}[wanted]
    assert rows(engine)[0 if wanted != "without it" else -1][0] == first
    assert {row[-1] for row in rows(engine)} == ({1, 2} if wanted == "without it" else {1})


def test_values_are_read_as_declared(tmp_path: Path, open_engine: Open) -> None:
    """Encoded characters, numbers with zeros, NULL, texts that are no number, and names that DuckDB would expand."""
    names = {
        "k=A%2F..%2Fb/n=01": ("A/../b", 1),
        "k=it's [x]*?/n=-7": ("it's [x]*?", -7),
        "k=a=b/n=1.5": ("a=b", 2),
        f"k={hive.NULL}/n={hive.NULL}": (None, None),
        "k=100%/n=x": ("100%", None),
        "k=%252F/n=9999999999999999999": ("%2F", None),
    }
    for number, name in enumerate(names):
        write(tmp_path / "t" / name / f"part-{number} *[1].parquet", id=[number])
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / "_temporary" / "0").mkdir(parents=True)
    (tmp_path / "t" / "k=a=b" / ".part.crc").touch()
    engine = open_engine([view(tmp_path / "t", ("k", Kind.TEXT), ("n", Kind.INTEGER), ("id", Kind.INTEGER))])
    assert rows(engine, 'SELECT k, n, id FROM "t" ORDER BY id') == [
        (*values, number) for number, values in enumerate(names.values())
    ]


def test_files_may_have_more_columns_and_wider_numbers(tmp_path: Path, open_engine: Open) -> None:
    write(tmp_path / "t" / "m=1" / "0.parquet", a=pa.array([1], pa.int32()), x=pa.array([0.5], pa.float32()))
    write(tmp_path / "t" / "m=2" / "0.parquet", a=[2**40], x=[0.25], tags=[["p", "q"]])
    types = {each.name: each.type for each in schema(DataSource("hive", tmp_path / "t"))}
    assert types == {"a": "BIGINT", "x": "DOUBLE", "tags": "VARCHAR[]", "m": FOLDER_TEXT}
    columns = (("a", Kind.INTEGER), ("x", Kind.REAL), (element_name("tags", 1), Kind.TEXT), ("m", Kind.INTEGER))
    assert rows(open_engine([view(tmp_path / "t", *columns)])) == [(1, 0.5, None, 1), (2**40, 0.25, "p", 2)]


def test_a_file_that_comes_after_the_fingerprint_is_not_read(folder: Path, open_engine: Open) -> None:
    engine = open_engine([view(folder)])
    version(engine)
    write(folder / "month=2026-03" / "0.parquet", id=[4])
    assert len(rows(engine)) == 3
    version(engine)
    assert len(rows(engine)) == 4


# ── versions ──────────────────────────────────────────────────────────────────────────────────────────────────────────

CHANGES: Mapping[str, Callable[[Path], object]] = {
    "append": lambda t: write(t / "month=2026-03" / "0.parquet", id=[9]),
    "another file": lambda t: write(t / "month=2026-01" / "1.parquet", id=[9]),
    "deleted": lambda t: (t / "month=2026-01" / "0.parquet").unlink(),
    "changed": lambda t: write(t / "month=2026-01" / "0.parquet", id=[1, 3]),
    "renamed folder": lambda t: (t / "month=2026-01").rename(t / "month=2026-07"),
    "moved": lambda t: (t / "month=2026-01" / "0.parquet").rename(t / "month=2026-02" / "1.parquet"),
    "swapped": lambda t: [
        (t / "month=2026-01").rename(t / "x"),
        (t / "month=2026-02").rename(t / "month=2026-01"),
        (t / "x").rename(t / "month=2026-02"),
    ],
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_another_state(change: str, folder: Path, open_engine: Open) -> None:
    engine = open_engine([view(folder)])
    before, seen = version(engine), rows(engine)
    CHANGES[change](folder)
    assert version(engine) != before
    assert rows(engine) != seen


def test_a_copy_is_the_same_state(folder: Path, open_engine: Open) -> None:
    """Times, inodes and files that are not data change nothing."""
    engine = open_engine([view(folder)])
    before = version(engine)
    (folder / "_SUCCESS").touch()
    for path in folder.rglob("*.parquet"):
        shutil.copy(path, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)
        os.utime(path, (1, 1))
    assert version(engine) == before


def test_an_append_reads_the_new_file_alone(folder: Path, open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine([view(folder)])
    version(engine)
    read: list[str] = []

    def noting(paths: list[Path]) -> bytes:
        read.extend(path.parent.name for path in paths)
        return b""

    monkeypatch.setattr(files, "digest_of", noting)
    write(folder / "month=2026-03" / "0.parquet", id=[4])
    version(engine)
    assert read == ["month=2026-03"]


# ── folders that mislead ──────────────────────────────────────────────────────────────────────────────────────────────

SECRET = "zora"


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path)


HOSTILE: Mapping[str, tuple[Callable[[Path], object], str, str]] = {
    "link to a folder": (
        lambda t: (t / f"month={SECRET}").symlink_to(t.parent / "other", target_is_directory=True),
        "HB435",
        "symbolic link",
    ),
    "link to a file": (
        lambda t: (t / "month=2026-01" / f"{SECRET}.parquet").symlink_to(t.parent / "other" / "x.parquet"),
        "HB435",
        "symbolic link",
    ),
    "no name": (lambda t: write(t / SECRET / "0.parquet", id=[1]), "HB435", "not named column=value"),
    "no value": (lambda t: write(t / "month=" / "0.parquet", id=[1]), "HB435", "not named column=value"),
    "no key": (lambda t: write(t / f"={SECRET}" / "0.parquet", id=[1]), "HB435", "not named column=value"),
    "a file above": (lambda t: write(t / f"{SECRET}.parquet", id=[1]), "HB435", "different partition columns"),
    "a level more": (
        lambda t: write(t / "month=2026-03" / f"day={SECRET}" / "0.parquet", id=[1]),
        "HB435",
        "different partition columns",
    ),
    "another key": (
        lambda t: write(t / f"year={SECRET}" / "0.parquet", id=[1]),
        "HB435",
        "different partition columns",
    ),
    "a key twice": (
        lambda t: write(t / "month=1" / f"MONTH={SECRET}" / "0.parquet", id=[1]),
        "HB435",
        "partition column twice",
    ),
    "not UTF-8": (lambda t: write(t / f"month={SECRET}%FF" / "0.parquet", id=[1]), "HB435", "not UTF-8"),
    "a zero": (lambda t: write(t / f"month={SECRET}%00" / "0.parquet", id=[1]), "HB435", "not UTF-8"),
    "another file": (lambda t: (t / "month=2026-01" / f"{SECRET}.csv").touch(), "HB435", "not Parquet"),
    "a broken file": (
        lambda t: (t / "month=2026-01" / f"{SECRET}.parquet").write_text("x"),
        "HB435",
        "not readable Parquet",
    ),
    "a log": (lambda t: (t / "_delta_log").mkdir(), "HB435", "Delta Lake"),
    "nothing": (empty, "HB435", "no Parquet file"),
    "other types": (
        lambda t: write(t / f"month={SECRET}" / "0.parquet", id=["1"]),
        "HB436",
        "column id as BIGINT and as VARCHAR",
    ),
    "a column twice": (
        lambda t: write(t / "month=2026-03" / "0.parquet", id=[1], month=["x"]),
        "HB436",
        "names of its",
    ),
    "two spellings": (lambda t: write(t / "month=2026-03" / "0.parquet", Id=[1]), "HB436", "names of one column"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_folder_that_misleads_is_refused(case: str, folder: Path, open_engine: Open) -> None:
    """The owner sees which file it is; whoever asks does not, as names hold data."""
    write(folder.parent / "other" / "x.parquet", id=[1])
    engine = open_engine([view(folder)])
    version(engine)
    change, code, text = HOSTILE[case]
    change(folder)
    with pytest.raises(ConfigError, match=text) as refused:
        schema(DataSource("hive", folder))
    assert refused.value.code == code
    with pytest.raises(UnreachableError, match=text) as shown:
        version(engine)
    assert SECRET not in f"{shown.value} {shown.value.why} {shown.value.remedy}"


def test_too_many_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive, "MAX_FILES", 1)
    with pytest.raises(ConfigError, match="more than 1 files"):
        schema(DataSource("hive", folder))


def test_a_file_outside_is_never_opened(folder: Path, open_engine: Open) -> None:
    """A folder that becomes a link after it was listed is refused when the database is opened."""
    outside = write(folder.parent / "other" / "0.parquet", id=[99])
    engine = open_engine([view(folder)])
    version(engine)
    shutil.rmtree(folder / "month=2026-01")
    (folder / "month=2026-01").symlink_to(outside.parent, target_is_directory=True)
    with pytest.raises(RunError, match="HB900") as failed:
        rows(engine)
    assert "99" not in str(failed.value)


def test_sources_are_written_with_a_slash_or_a_prefix(tmp_path: Path) -> None:
    for text in ("visits/", "hive:visits"):
        assert locate(text, "source", base=tmp_path, name="v").form == "hive"
    with pytest.raises(ConfigError, match="wildcard"):
        schema(locate("visits/month=*/0.parquet", "source", base=tmp_path, name="v"))
    with pytest.raises(ConfigError, match="does not exist"):
        schema(locate("visits/", "source", base=tmp_path, name="v"))
