"""From a question to files, through the curator, the command line and what checks them."""

import json
from pathlib import Path

import duckdb
import pytest

import hubbub
from hubbub.cli import main
from hubbub.errors import BudgetError, ParameterError

YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: row
    columns:
      region: {values: [North, South]}
      age: {type: integer, bounds: [0, 99]}
    budget: {epsilon: 3}
analysts:
  ana: {people: {epsilon: 3}}
"""
CALL = "CALL tabulate(table => 'people', columns => ['region', {'column': 'age', 'bins': 5}])"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rows = "".join(f"{('North', 'South')[i % 2]},{i % 100}\n" for i in range(500))
    (tmp_path / "people.csv").write_text("region,age\n" + rows)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    return tmp_path


def test_a_table_is_asked_for_and_published_in_one_step(home: Path) -> None:
    with hubbub.open(home / "hubbub.yaml") as h:
        paths = h.publish(CALL, home / "out", title="People", epsilon=1)
        assert [path.name for path in paths] == [
            f"tabulate.{end}" for end in ("csv", "parquet", "receipt.json", "md", "html")
        ]
        again = h.tabulate("people", ["region", {"column": "age", "bins": 5}], epsilon=1)
        assert again.replayed
        with duckdb.connect() as reader:
            rows = reader.execute(f"SELECT region, age, count FROM '{paths[1]}'").fetchall()
        assert rows == [(region, age, count) for _, region, age, count in again.rows]
        totals = {row[0]: row[2] for row in rows if row[1] is None}
        assert totals[None] == totals["North"] + totals["South"]
        # a release that is there already is published at no cost
        assert len(h.publish(again, home / "again", formats=["csv"])) == 4
    assert main(["verify", str(paths[2])]) == 0


def test_nothing_is_paid_where_the_files_could_not_be_written(home: Path) -> None:
    with hubbub.open(home / "hubbub.yaml") as h:
        h.publish(CALL, home / "out", epsilon=1)
        (before,) = (each.to_json() for each in h.budget())
        with pytest.raises(ParameterError, match="already exists"):
            h.publish(CALL, home / "out", epsilon="1.5")
        assert [each.to_json() for each in h.budget()] == [before]
        with pytest.raises(BudgetError):
            h.publish(CALL, home / "other", epsilon="2.5")


def test_the_command_publishes_a_question_and_an_earlier_release(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ["-c", str(home / "hubbub.yaml")]
    notes = home / "notes.txt"
    notes.write_text("Ask the office.")
    asked = ["publish", CALL, *config, "--epsilon", "1", "--to", str(home / "out"), "--notes", f"@{notes}", "--json"]
    assert main(asked) == 0
    written = [Path(path) for path in json.loads(capsys.readouterr().out)]
    assert all(path.exists() for path in written)
    assert "Ask the office." in written[3].read_text()
    receipt = json.loads(written[2].read_text())["receipt"]
    number = str(receipt["ledger"][0]["sequence"])
    assert main(["publish", number, *config, "--to", str(home / "again"), "--name", "t", "--format", "csv"]) == 0
    assert (home / "again" / "t.csv").read_text() == written[0].read_text()
    assert main(["publish", CALL, *config, "--to", str(home / "none")]) == 1
    assert main(["publish", number, *config, "--epsilon", "1", "--to", str(home / "none")]) == 1
    assert "HB172" in capsys.readouterr().err
    assert not (home / "none").exists()


def test_models_are_read_from_releases(home: Path) -> None:
    with hubbub.open(home / "hubbub.yaml") as h:
        table = hubbub.model(h.tabulate("people", ["region", "age"], marginals=[["region"], ["age"]], epsilon="0.5"))
        assert table.marginal("region").sum() == table.cells.sum()
        ranges = hubbub.model(h.ranges("people", "age", epsilon="0.5"))
        value, low, high = ranges.between(0, 99)
        assert low <= value <= high
        places = hubbub.model(h.geography("people", "region", {"all": ["North", "South"]}, epsilon="0.5"))
        assert sum(places.level("region").values()) == places.level("total")[""]
        free = h.estimates.ranges("people", "age", workload="prefixes", epsilon="0.5")
        assert free.expected[0].plus_minus > 0
