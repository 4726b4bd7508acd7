"""Formats and files of results, and the list of tables."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.cli.test_cli import Run, folder, run  # noqa: F401 - fixtures

from hubbub.cli import main

SQL = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture
def ask(run: Run) -> Any:  # noqa: F811
    """Ask the same query, which is charged once, in some format."""
    return lambda *words: run("query", SQL, "--epsilon", "1", *words)


def test_all_formats_hold_the_same_answer(ask: Any, tmp_path: Path) -> None:
    form = json.loads(ask("--format", "json")[1])
    numbers = [row[1] for row in form["rows"]]
    assert [int(row["n"]) for row in csv.DictReader(io.StringIO(ask("--format", "csv")[1]))] == numbers
    for name in ("a.parquet", "b.arrow", "c.csv", "d.json", "e.md", "f.txt"):
        code, out, _ = ask("-o", str(tmp_path / name))
        assert (code, out) == (0, "")
    read = duckdb.connect().execute(f"SELECT n FROM '{tmp_path}/a.parquet'").fetchall()
    assert [n for (n,) in read] == numbers
    assert json.loads((tmp_path / "d.json").read_text())["rows"] == form["rows"]
    for name in ("e.md", "f.txt"):
        text = (tmp_path / name).read_text()
        assert all(f"{number:,} ±" in text for number in numbers)
    assert (tmp_path / "e.md").read_text().startswith("| region | n |\n|---|---:|\n")


def test_a_format_wins_over_the_name_of_the_file(ask: Any, tmp_path: Path) -> None:
    ask("--format", "csv", "-o", str(tmp_path / "data.txt"))
    assert (tmp_path / "data.txt").read_text().startswith("region,n,n_low,n_high\n")


def test_an_unknown_ending_is_refused(ask: Any, tmp_path: Path) -> None:
    code, _, err = ask("-o", str(tmp_path / "data.xlsx"))
    assert code == 1
    assert "HB126" in err


def test_tables_are_listed_and_described(run: Run) -> None:  # noqa: F811
    code, out, _ = run("tables")
    assert code == 0
    assert "visits" in out
    names = [each["name"] for each in json.loads(run("tables", "--format", "json")[1])]
    lines = list(csv.DictReader(io.StringIO(run("tables", "--format", "csv")[1])))
    assert [line["dataset"] for line in lines] == names
    described = run("tables", "visits")[1]
    assert "region" in described
    assert "notes" not in described  # hidden
    assert run("tables", "nothing")[0] == 1


def test_a_budget_has_all_formats(run: Run, tmp_path: Path) -> None:  # noqa: F811
    assert run("budget", "-o", str(tmp_path / "b.md"))[0] == 0
    assert "| dataset | cap |" in (tmp_path / "b.md").read_text()
    lines = list(csv.DictReader(io.StringIO(run("budget", "--format", "csv")[1])))
    assert {"dataset", "cap", "spent", "epsilon", "remaining", "delta"} == set(lines[0])


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("hubbub 0.")


def test_a_free_query_is_answered_or_refused(run: Run) -> None:  # noqa: F811
    assert "HB167" in run("query", SQL, "--epsilon", "1", "--free")[2]
    paid = run("query", SQL, "--epsilon", "1")[1]
    assert run("query", SQL, "--epsilon", "1", "--free")[0] == 0
    assert paid
