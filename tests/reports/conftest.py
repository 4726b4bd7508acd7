"""A deployment with charges of two analysts, one of which failed to leave an answer, and a change of hubbub.yaml."""

from pathlib import Path

import pytest

from hubbub.config import Config, load
from hubbub.curator.session import open_session

YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: row
    columns: {region: {values: [North, South]}, age: {type: integer, bounds: [0, 99]}, name: {hidden: true}}
    budget: {epsilon: 5, delta: 1e-6}
  towns: {source: towns.csv, public: true, columns: {town: {}}}
analysts: {ana: {people: {epsilon: 3}}, ben: {people: {epsilon: 2}}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "people.csv").write_text("region,age,name\n" + "North,30,x\nSouth,40,y\n" * 20)
    (tmp_path / "towns.csv").write_text("town\nBern\n")
    path = tmp_path / "hubbub.yaml"
    path.write_text(YAML)
    with open_session(path, analyst="ana") as session:
        session.query("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon=1)
        session.query("SELECT AVG(age) AS age FROM people", epsilon="0.5")
    path.write_text(YAML.replace("ben: {people: {epsilon: 2}}", "ben: {people: {epsilon: 1}}"))
    with open_session(path, analyst="ben") as session:
        session.query("SELECT MODE(region) AS region FROM people", epsilon="0.25")
    return load(path)
