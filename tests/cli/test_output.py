"""Formats and files of results, and the list of tables."""

import csv
import io
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import feather
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


@pytest.mark.parametrize("file", ["data.xlsx", "nowhere/data.csv", "."])
@pytest.mark.parametrize("option", ["-o", "--receipt", "--export"])
def test_a_file_that_cannot_be_written_is_refused_before_the_charge(run: Run, option: str, file: str) -> None:  # noqa: F811
    if (option, file) == ("--receipt", "data.xlsx"):
        return  # a receipt has any name
    run("budget")  # makes the ledger
    code, _, err = run("query", SQL, "--epsilon", "1", option, file)
    assert (code, "HB126" in err) == (1, True)
    assert json.loads(run("audit", "ledger", "--kind", "charge", "--json")[1]) == []


def test_a_terminal_refuses_binary_formats_before_the_charge(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    run("budget")  # makes the ledger
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "HB126" in run("query", SQL, "--epsilon", "1", "--format", "arrow")[2]
    assert json.loads(run("audit", "ledger", "--kind", "charge", "--json")[1]) == []


def test_a_plan_has_all_formats(run: Run, tmp_path: Path) -> None:  # noqa: F811
    plan = ("plan", SQL, "--epsilon", "1")
    form = json.loads(run(*plan, "--format", "json")[1])
    errors = {(each["epsilon"], each["expected"][0]["plus_minus"]) for each in form["scaling"]}
    lines = list(csv.DictReader(io.StringIO(run(*plan, "--format", "csv")[1])))
    assert {(line["epsilon"], float(line["plus_minus"])) for line in lines} == {
        (str(float(Fraction(epsilon))), error) for epsilon, error in errors
    }
    assert run(*plan, "-o", str(tmp_path / "p.parquet"))[:2] == (0, "")
    types = duckdb.connect().execute(f"DESCRIBE FROM '{tmp_path}/p.parquet'").fetchall()
    assert [(name, kind) for name, kind, *_ in types][:3] == [
        ("output", "VARCHAR"),
        ("epsilon", "DOUBLE"),
        ("plus_minus", "DOUBLE"),
    ]
    run(*plan, "-o", str(tmp_path / "p.txt"))
    assert "Margin of error" in (tmp_path / "p.txt").read_text()


def test_the_ledger_has_all_formats(ask: Any, run: Run, tmp_path: Path) -> None:  # noqa: F811
    ask()
    ledger = ("audit", "ledger", "--kind", "charge")
    (entry,) = json.loads(run(*ledger, "--format", "json")[1])
    assert entry["query"] == SQL
    assert [line["query"] for line in csv.DictReader(io.StringIO(run(*ledger, "--format", "csv")[1]))] == [SQL]
    for name in ("l.csv", "l.json", "l.md", "l.txt", "l.parquet", "l.arrow"):
        assert run(*ledger, "-o", str(tmp_path / name))[:2] == (0, "")
    assert SQL in (tmp_path / "l.txt").read_text()
    read = duckdb.connect().execute(f"SELECT query, sequence FROM '{tmp_path}/l.parquet'").fetchall()
    assert read == [(SQL, entry["sequence"])]


def test_a_release_is_published_as_one_file_or_several(ask: Any, run: Run, tmp_path: Path) -> None:  # noqa: F811
    form = json.loads(ask("--format", "json")[1])
    (entry,) = json.loads(run("audit", "ledger", "--kind", "charge", "--json")[1])
    number = str(entry["sequence"])
    assert run("publish", number, "-o", str(tmp_path / "alone.arrow"))[:2] == (0, "")
    table = feather.read_table(tmp_path / "alone.arrow")
    assert table.column("n").to_pylist() == [row[1] for row in form["rows"]]
    assert json.loads(run("publish", number, "--format", "json", "-o", str(tmp_path / "x.dat"))[1] or "0") == 0
    assert json.loads((tmp_path / "x.dat").read_text())["rows"] == form["rows"]
    formats = [word for name in ("csv", "json", "arrow", "parquet") for word in ("--format", name)]
    assert run("publish", number, "--to", str(tmp_path / "out"), *formats)[0] == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"release.csv", "release.json", "release.arrow", "release.parquet", "release.md"} <= names
    assert "HB172" in run("publish", number, "--to", "out", "-o", "a.csv")[2]
    assert "HB172" in run("publish", number, "--to", "out2", "--format", "markdown")[2]
    assert "HB126" in run("publish", number, "-o", "a.csv", "--format", "csv", "--format", "json")[2]


def test_a_batch_lists_every_cell(run: Run, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "q.sql").write_text(f"{SQL}; SELECT AVG(age) AS age FROM visits")
    batch = ("batch", str(tmp_path / "q.sql"), "--epsilon", "1")
    form = json.loads(run(*batch, "--json")[1])
    lines = list(csv.DictReader(io.StringIO(run(*batch, "--format", "csv")[1])))
    assert [line["query"] for line in lines] == ["1"] * 4 + ["2"]
    assert [line["value"] for line in lines if line["output"] == "n"] == [str(row[1]) for row in form[0]["rows"]]
    assert float(lines[-1]["low"]) < float(lines[-1]["value"]) < float(lines[-1]["high"])
    assert run(*batch, "--plan", "--format", "markdown")[1].startswith("| output |")


#: Commands that list something, with the columns of their CSV.
LISTS = {
    ("call",): "analysis,description",
    ("attack",): "attack,input,description",
    ("explain", "--epsilon", "1"): "kind,statement",
    ("explain", "smoking"): None,
    ("verify", "ledger"): "kind,statement",
    ("analyst", "list"): "analyst,dataset,epsilon,token,role,created,valid_until,last_used",
    ("admin", "failures"): "analyst,dataset,failed,allowed,charges",
    ("schedule", "list"): "name,analyst,dataset,from,epsilon,state,query",
    ("stream", "list"): "stream,analyst,dataset",
    ("suggest", "cube", "visits"): "kind,statement",
    ("profile", "visits", "--exact"): None,
}


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_every_list_has_all_formats(ask: Any, run: Run, words: tuple[str, ...], tmp_path: Path) -> None:  # noqa: F811
    ask()
    code, out, _ = run(*words, "--format", "csv")
    assert code == 0
    assert LISTS[words] in (None, out.splitlines()[0])
    json.loads(run(*words, "--format", "json")[1])
    assert run(*words, "--format", "markdown")[1].startswith("| ")
    for name in ("list.txt", "list.parquet", "list.arrow"):
        assert run(*words, "-o", str(tmp_path / name))[:2] == (0, "")
        assert (tmp_path / name).stat().st_size > (0 if words != ("stream", "list") else -1)  # there are no streams


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


def test_a_check_has_all_formats(run: Run, tmp_path: Path) -> None:  # noqa: F811
    form = json.loads(run("check", "--format", "json")[1])
    assert (form["valid"], form["problems"]) == (True, [])
    listed = list(csv.DictReader(io.StringIO(run("check", "--format", "csv")[1])))
    (told,) = (line["statement"] for line in listed if line["item"] == "budget of one query")
    assert told.startswith("ε = 2, δ = 1e-06; maximum certainty about one of them (starting from 50%): ")
    (age,) = (line["statement"] for line in listed if line["item"] == "column age")
    assert age == "integer; filter: yes; group by: yes; sum, average: yes, 0 to 110"
    assert [line for line in listed if line["about"] != "warning"] == form["statements"]
    assert run("check", "-o", str(tmp_path / "check.txt"))[:2] == (0, "")
    # others use this disk, too
    written, shown = (
        re.sub(r"[\d,]+\s+MB\s+of\s+disk", "disk", text)
        for text in ((tmp_path / "check.txt").read_text(), run("check")[1])
    )
    assert "disk" in written
    assert written.split() == shown.split()
    Path("hubbub.yaml").write_text(Path("hubbub.yaml").read_text().replace("version: 1", "version: 7"))
    code, out, _ = run("check", "--format", "json")
    assert (code, json.loads(out)["valid"], json.loads(out)["statements"]) == (1, False, [])
    assert json.loads(out)["problems"][0]["code"] == "HB409"
