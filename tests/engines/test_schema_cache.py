"""The columns that a local Spark reads are remembered while the files are the same, and believed by nobody else."""

import json
import os
from pathlib import Path

import duckdb
import pytest

from hubbub.config import examine
from hubbub.core.schema import Kind
from hubbub.engines.base import EngineLimits, Field, UnreachableError, View, locate
from hubbub.engines.spark import catalog, schema_cache
from hubbub.engines.spark.connection import SparkEngine

YAML = """
version: 1
datasets:
  visits:
    source: spark:local[1]/visits.parquet
    unit: {column: patient, groups: 1, rows: 1}
    columns: {patient: {}, age: {bounds: [0, 110]}}
    budget: {epsilon: 1}
analysts: {ana: {visits: {epsilon: 1}}}
"""
FIELDS = (
    Field("patient", "bigint", Kind.INTEGER),
    Field("age", "double", Kind.REAL),
    Field("map", "map<int,int>", None),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(catalog, "_declared", {})
    duckdb.execute(f"COPY (SELECT 1::BIGINT AS patient, 2.5::DOUBLE AS age) TO '{tmp_path}/visits.parquet'")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    return tmp_path


def test_a_known_file_needs_no_java_until_it_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def refuse(address: str, limits: EngineLimits) -> None:
        started.append(address)
        raise UnreachableError("Java was started", "")

    monkeypatch.setattr(catalog, "connect", refuse)
    assert [problem.code for problem in examine(folder / "hubbub.yaml")[1]] == ["HB411"]
    source = locate("spark:local[1]/visits.parquet", "source", base=folder, name="visits")
    schema_cache.store_fields(source, FIELDS, schema_cache.state_of(source))
    config, problems = examine(folder / "hubbub.yaml")
    assert (problems, len(started)) == ([], 1)
    assert config is not None
    assert [column.kind for column in config.datasets["visits"].table.columns] == [Kind.INTEGER, Kind.REAL]
    os.utime(folder / "visits.parquet", (1, 1))
    assert [problem.code for problem in examine(folder / "hubbub.yaml")[1]] == ["HB411"]
    assert started == ["local[1]", "local[1]"]


def test_an_entry_of_files_that_changed_meanwhile_is_not_stored(folder: Path) -> None:
    source = locate("spark:local[1]/visits.parquet", "source", base=folder, name="visits")
    before = schema_cache.state_of(source)
    (folder / "visits.parquet").write_bytes(b"other")
    schema_cache.store_fields(source, FIELDS, before)
    assert schema_cache.cached_fields(source) is None


def test_only_the_owner_can_read_it_and_rubbish_in_it_is_ignored(folder: Path) -> None:
    source = locate("spark:local[1]/visits.parquet", "source", base=folder, name="visits")
    schema_cache.store_fields(source, FIELDS, schema_cache.state_of(source))
    assert schema_cache.cached_fields(source) == FIELDS
    (stored,) = (folder / "state" / "hubbub" / "schemas").iterdir()
    assert stored.stat().st_mode & 0o777 == 0o600
    assert stored.parent.stat().st_mode & 0o777 == 0o700
    for rubbish in ("", "[]", "{}", json.dumps({"state": schema_cache.state_of(source), "fields": [["a"]]})):
        stored.write_text(rubbish)
        assert schema_cache.cached_fields(source) is None


def test_a_cache_that_spark_contradicts_is_said_before_the_charge(folder: Path) -> None:
    """As if somebody had written into it that a wide decimal, which is rounded, is an integer."""
    source = locate("spark:local[1]/visits.parquet", "source", base=folder, name="visits")
    schema_cache.store_fields(source, FIELDS, schema_cache.state_of(source))
    assert catalog.schema(source) == FIELDS
    view = View("visits", source, (("patient", Kind.INTEGER), ("age", Kind.REAL)))
    engine = SparkEngine([view], limits=EngineLimits())
    engine._check_types(view, {"patient": "bigint", "age": "double"})
    with pytest.raises(UnreachableError, match="have changed"):
        engine._check_types(view, {"patient": "decimal(38,0)", "age": "double"})
    assert schema_cache.cached_fields(source) is None
    engine.close()


def test_servers_and_tables_of_a_catalog_are_not_cached() -> None:
    for text in ("spark:sc://h:1/db.t", "spark:sc://h:1//data/t.parquet", "spark:local[1]/db.t"):
        assert schema_cache.state_of(locate(text, "source", base=Path("/d"), name="t")) is None
