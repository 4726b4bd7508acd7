"""A small clinic: patients with visits, some with values that must never be seen, and everything to ask about them."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from hubbub.curator.session import Session, open_session

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {column: patient, entity: patient, groups: 3, rows: 4}
    columns:
      patient: {}
      region: {values: [North, South, East]}
      age: {bounds: [0, 110]}
      cost: {bounds: [0, 1000], step: 0.5}
      word: {}
      notes: {hidden: true}
    budget: {epsilon: 10, delta: 1e-6, per_query: 5}
  labs:
    source: labs.csv
    unit: {column: patient, entity: patient, groups: 2, rows: 2}
    columns: {patient: {type: integer}, result: {bounds: [-5, 5]}}
    budget: {epsilon: 4}
  regions: {source: regions.csv, public: true}
analysts:
  ana: {visits: {epsilon: 8}, labs: {epsilon: 4}}
  ben: {visits: {epsilon: 1}}
"""

CANARIES = ("CANARY-7431", "987654.25", "424242424242")

Opener = Callable[..., Session]


@pytest.fixture
def clinic(written_clinic: Path, tmp_path: Path) -> Path:
    """Give a folder of its own with the data; one patient's rows hold the canaries."""
    for path in written_clinic.iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    return tmp_path


@pytest.fixture(scope="session")
def written_clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the data once for all tests."""
    folder = tmp_path_factory.mktemp("written_clinic")
    with duckdb.connect() as made:
        made.execute(
            "CREATE TABLE v AS SELECT i % 300 AS patient, ['North', 'South', 'East'][1 + i % 3] AS region,"
            " 20 + i % 60 AS age, (i * 37) % 900 / 2.0 AS cost, 'w' || (i % 7) AS word, 'n' AS notes"
            " FROM range(1000) t(i)"
        )
        made.execute(
            "INSERT INTO v VALUES (424242424242, 'CANARY-7431', 110, 987654.25, 'CANARY-7431', 'CANARY-7431'),"
            " (424242424242, NULL, NULL, 'nan'::DOUBLE, NULL, NULL)"
        )
        made.execute(f"COPY v TO '{folder}/visits.parquet'")
    (folder / "labs.csv").write_text("patient,result\n" + "".join(f"{i % 300},{i % 9 - 4}\n" for i in range(500)))
    (folder / "regions.csv").write_text("region,population\nNorth,100\nSouth,50\nEast,70\n")
    (folder / "hubbub.yaml").write_text(YAML)
    return folder


@pytest.fixture
def opened(clinic: Path) -> Iterator[Opener]:
    """Open sessions that are closed at the end."""
    with ExitStack() as stack:

        def opener(analyst: str = "ana") -> Session:
            return stack.enter_context(open_session(clinic / "hubbub.yaml", analyst=analyst))

        yield opener


@pytest.fixture
def session(opened: Opener) -> Session:
    return opened()
