"""Public tables are completed from their files, which are read again only where something has changed."""

from pathlib import Path

import duckdb
import pytest

from hubbub.config import load
from hubbub.core.schema import Kind, Table
from hubbub.curator import public
from hubbub.curator.opening import tables_of
from hubbub.engines.base import View
from hubbub.engines.multi_engine import open_engine

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 1, rows: 1}
    columns: {patient: {}}
    budget: {epsilon: 1}
  regions: {source: FILE, public: true, columns: {region: {}, people: {type: integer}}}
analysts:
  ana: {visits: {epsilon: 1}}
"""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the public tables whose files were read."""
    names: list[str] = []
    plain = open_engine

    def noting(views: list[View], *args: object, **options: object) -> object:
        names.extend(view.name for view in views)
        return plain(views, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(public, "open_engine", noting)
    monkeypatch.setattr(public, "_FILES", public._ReadFiles())
    return names


def regions(folder: Path, file: str = "regions.csv", yaml: str = YAML) -> Table:
    (folder / "visits.csv").write_text("patient\na\n")
    (folder / "hubbub.yaml").write_text(yaml.replace("FILE", file))
    return tables_of(load(folder / "hubbub.yaml"))["regions"]


def write(folder: Path, people: int, file: str = "regions.csv") -> None:
    if file.endswith(".csv"):
        (folder / file).write_text(f"region,people\nNorth,{people}\nSouth,7\n")
        return
    with duckdb.connect(str(folder / "regions.duckdb")) as made:
        made.execute("DROP TABLE IF EXISTS regions")
        made.execute("CREATE TABLE regions (region VARCHAR, people BIGINT)")
        made.execute("INSERT INTO regions VALUES ('North', ?), ('South', 7)", [people])


@pytest.mark.parametrize("file", ["regions.csv", "regions.duckdb#regions"])
def test_a_file_is_read_again_when_its_rows_change(tmp_path: Path, opened: list[str], file: str) -> None:
    write(tmp_path, 5, file)
    first = regions(tmp_path, file)
    assert first.rows["people"] == (5, 7)
    assert regions(tmp_path, file) == first
    assert opened == ["regions"]
    write(tmp_path, 6, file)
    assert regions(tmp_path, file).rows["people"] == (6, 7)
    assert opened == ["regions"] * 2


def test_a_file_is_read_again_when_its_columns_are_declared_otherwise(tmp_path: Path, opened: list[str]) -> None:
    write(tmp_path, 5)
    people = regions(tmp_path).column("people")
    other = regions(tmp_path, yaml=YAML.replace("{type: integer}", "{type: real}")).column("people")
    assert people is not None
    assert other is not None
    assert (people.kind, other.kind) == (Kind.INTEGER, Kind.REAL)
    assert opened == ["regions"] * 2


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 5)
    plain = public._read

    def changing(*args: object) -> Table:
        write(tmp_path, 6)
        return plain(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(public, "_read", changing)
        assert regions(tmp_path).rows["people"] == (6, 7)
    write(tmp_path, 5)
    assert regions(tmp_path).rows["people"] == (5, 7), "what was read under the hash of the older content is not kept"
    assert opened == ["regions"] * 2


def test_large_files_are_always_read(tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "_SMALL_FILE", 10)
    write(tmp_path, 5)
    assert regions(tmp_path) == regions(tmp_path)
    assert opened == ["regions"] * 2


def test_few_tables_are_kept(tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "_MOST_FILES", 1)
    for people in (5, 6, 5):
        write(tmp_path, people)
        regions(tmp_path)
    assert opened == ["regions"] * 3
