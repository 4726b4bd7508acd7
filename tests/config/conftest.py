"""A folder with a small CSV and Parquet file, and a hubbub.yaml that can be written with one part changed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from hubbub.config import Config, examine
from hubbub.errors import HubbubError

Examine = Callable[[str], tuple[Config | None, list[HubbubError]]]

GOOD = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {column: patient, groups: 5, rows: 10}
    columns:
      patient: {}
      region: {values: [North, South], other: Elsewhere}
      age: {bounds: [0, 110]}
      cost: {bounds: [0, 20000], step: 0.01}
      notes: {hidden: true}
    budget: {epsilon: 6, delta: 1e-9, per_query: 0.5}
  regions: {source: regions.csv, public: true}
analysts:
  ana: {visits: {epsilon: 2}}
groups:
  interns: {members: [ana, ben], visits: {epsilon: 3}}
"""


@pytest.fixture(scope="session")
def written_visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the data once for all tests."""
    path = tmp_path_factory.mktemp("written_visits") / "visits.parquet"
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT i AS patient, 'North' AS region, 40 AS age, 1.5 AS cost, 'CANARY' AS notes, [1] AS list,"
            f" DATE '2020-01-01' AS day FROM range(5) t(i)) TO '{path}'"
        )
    return path


@pytest.fixture
def folder(written_visits: Path, tmp_path: Path) -> Path:
    shutil.copyfile(written_visits, tmp_path / "visits.parquet")
    (tmp_path / "regions.csv").write_text("region,population\nNorth,100\nSouth,50\n")
    (tmp_path / "hubbub.yaml").write_text(GOOD)
    return tmp_path


@pytest.fixture
def examined(folder: Path) -> Examine:
    """Examine a hubbub.yaml of this text."""

    def reader(text: str) -> tuple[Config | None, list[HubbubError]]:
        (folder / "hubbub.yaml").write_text(text)
        return examine(folder / "hubbub.yaml")

    return reader


@pytest.fixture
def good() -> str:
    return GOOD
