"""`hubbub sanitize`, as a data owner types it before publishing."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hubbub.cli import main, sanitize_files
from hubbub.crowd.disclaimers import KINDS, NOT_PRIVATE, SANITIZERS

Run = Callable[..., tuple[int, str, str]]
ROWS = 400
WARDS = ("East", "North", "South")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    rng = np.random.default_rng(7)
    ages, costs = rng.integers(0, 90, ROWS), rng.exponential(100, ROWS)
    lines = [
        f"{age},{cost:.3f},n{place},{WARDS[place % 3]}"
        for place, (age, cost) in enumerate(zip(ages, costs, strict=True))
    ]
    (tmp_path / "people.csv").write_text("age,cost,name,ward\n" + "\n".join([*lines, ",5,last,East"]) + "\n")
    (tmp_path / "equal.csv").write_text("age,sex\n" + "30,0\n31,1\n" * 50)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")

    def runner(*arguments: str) -> tuple[int, str, str]:
        code = main(["sanitize", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return runner


ON = ("people.csv", "--columns", "age,cost", "--bounds", "age=0:110", "--bounds", "cost=0:1000", "--step", "age=1")


@pytest.mark.parametrize("kind", KINDS)
def test_every_sanitizer_writes_its_file_and_says_what_it_does_not_promise(run: Run, tmp_path: Path, kind: str) -> None:
    code, out, err = run(*ON, "--with", kind, "--t", "5", "--to", "out.csv")
    assert code == 0
    text = " ".join(err.split())
    for warning in SANITIZERS[kind].warnings:  # type: ignore[index]
        assert warning in text
    assert "1 rows with a missing value or an undeclared category were skipped." in text
    assert NOT_PRIVATE in " ".join(out.split())
    note = (tmp_path / "out.txt").read_text()
    assert note.startswith(f"1. {NOT_PRIVATE}")
    assert "age 0 to 110; cost 0 to 1000" in note
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    if kind == "histogram":
        assert list(rows[0]) == ["age_from", "age_to", "cost_from", "cost_to", "count"]
        assert sum(int(row["count"]) for row in rows) == ROWS
        assert max(int(row["count"]) for row in rows) < 10
        return
    assert list(rows[0]) == ["age", "cost"]
    assert all(float(row["age"]).is_integer() for row in rows)
    if kind == "cross":
        cells = list(csv.DictReader((tmp_path / "out.cells.csv").read_text().splitlines()))
        assert sum(int(row["count_a"]) for row in cells) == len(rows)
        assert sum(int(row["count_a"]) + int(row["count_b"]) for row in cells) == ROWS
    else:
        assert len(rows) == ROWS


def test_without_a_file_it_is_judged_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    code, out, err = run(*ON, "--with", "ball")
    assert code == 0
    assert sorted(tmp_path.iterdir()) == before
    assert "the point itself" in out
    assert "posterior mean" in out
    assert "searching neighbors" in err  # progress


def test_private_tables_of_the_same_rows_stand_beside_it(run: Run) -> None:
    """At ε = 10 the noise on 400 rows is below 1 in a cell, at 0.1 above 50: that the first errs more is below 1e-9."""
    code, out, _ = run(*ON, "--with", "histogram", "--compare", "0.1,10", "--json")
    assert code == 0
    form = json.loads(out)
    assert form["differentially_private"] is False
    assert (form["rows"], form["left_out"]) == (ROWS, 1)
    names = [(each["name"], each["epsilon"]) for each in form["published"]]
    assert names == [("histogram", None), ("hubbub, table of counts", "1/10"), ("hubbub, table of counts", "10")]
    _, little, much = (each["share_in_wrong_bin"] for each in form["published"])
    assert much < little
    code, out, _ = run(*ON, "--with", "ball", "--compare", "5")
    assert code == 0
    assert "ε bounds what any adversary learns" in out


def test_bounds_from_the_data_are_warned_of(run: Run) -> None:
    _, _, err = run("people.csv", "--columns", "cost,age", "--bounds", "age=0:110", "--step", "age=1", "--with", "ball")
    assert "The bounds of cost are the minimum and maximum of the data" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "HB626"),
        (("people.csv", "--with", "ball"), "HB626"),
        (("people.csv", "--columns", "age"), "HB624"),
        (("people.csv", "--columns", "age", "--with", "magic"), "HB624"),
        (("nothing.csv", "--columns", "age", "--with", "ball"), "HB641"),
        (("people.csv", "--columns", "height", "--with", "ball"), "HB644"),
        (("people.csv", "--columns", "name", "--with", "ball"), "HB686"),
        (("people.csv", "--columns", ",", "--with", "ball"), "HB620"),
        (("people.csv", "--columns", "age", "--with", "ball", "--bounds", "0:1"), "HB626"),
        (("people.csv", "--columns", "age", "--with", "ball", "--bounds", "age=5"), "HB626"),
        (("people.csv", "--columns", "age", "--with", "ball", "--bounds", "age=5:4"), "HB621"),
        (("people.csv", "--columns", "age", "--with", "ball", "--bounds", "age=a:b"), "HB102"),
        (("people.csv", "--columns", "age", "--with", "ball", "--step", "age=nan"), "HB102"),
        (("people.csv", "--columns", "age", "--with", "ball", "--bounds", "cost=0:1"), "HB620"),
        (("people.csv", "--columns", "age", "--with", "ball", "--t", "1"), "HB623"),
        (("people.csv", "--columns", "age", "--with", "ball", "--t", "4000"), "HB622"),
        (("people.csv", "--columns", "age", "--with", "ball", "--c", "0"), "HB623"),
        (("people.csv", "--columns", "age", "--with", "ball", "--compare", "-1"), "HB103"),
        (("people.csv", "--columns", "age", "--with", "ball", "--to", "out.parquet"), "HB625"),
        (("people.csv", "--columns", "age", "--with", "ball", "--to", "no/out.csv"), "HB625"),
        (("people.csv", "--columns", "age", "--with", "ball", "--to", "people.csv"), "HB625"),
        (("equal.csv", "--columns", "age,sex", "--with", "histogram"), "HB622"),
        (("people.csv", "cubes"), "HB626"),
        (("people.csv", "--columns", "age", "--with", "ball", "--set", "n=5"), "HB626"),
        (("people.csv", "--columns", "age,ward", "--with", "ball", "--compare", "1"), "HB686"),
        (("people.csv", "--columns", "age", "--with", "ball", "--values", "age=a,b"), "HB622"),
    ],
)
def test_an_invalid_command_is_refused_with_its_reason(run: Run, words: tuple[str, ...], code: str) -> None:
    ended, out, err = run(*words)
    assert (ended, out) == (1, "")
    assert code in err
    assert "Traceback" not in err


def test_equal_rows_are_told_apart_by_their_step(run: Run) -> None:
    code, _, _ = run("equal.csv", "--columns", "age,sex", "--with", "histogram", "--step", "age=1")
    assert code == 0


def test_an_existing_file_is_replaced_only_with_force(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("mine")
    assert "HB625" in run(*ON, "--with", "ball", "--to", "out.csv")[2]
    assert (tmp_path / "out.csv").read_text() == "mine"
    assert run(*ON, "--with", "ball", "--to", "out.csv", "--force")[0] == 0
    assert (tmp_path / "out.csv").read_text().startswith("age,cost")


@pytest.mark.row(105)
@pytest.mark.parametrize("kind", KINDS)
def test_text_columns_are_blended_and_published_as_categories(run: Run, tmp_path: Path, kind: str) -> None:
    """Every category that is published was declared; the histogram separates them and its counts are exact."""
    declared = ("--values", "ward=East,North,South,West")
    words = ("people.csv", "--columns", "age,ward", "--bounds", "age=0:110", "--step", "age=1", *declared)
    code, _, err = run(*words, "--with", kind, "--t", "5", "--to", "out.csv")
    assert code == 0
    assert "which reveals them" not in " ".join(err.split())
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert {row["ward"] for row in rows} <= {"East", "North", "South", "West"}
    assert "ward with 4 categories" in (tmp_path / "out.txt").read_text()
    if kind == "histogram":
        for ward in WARDS:
            expected = sum(WARDS[place % 3] == ward for place in range(ROWS))
            assert sum(int(row["count"]) for row in rows if row["ward"] == ward) == expected
    code, _, err = run("people.csv", "--columns", "cost,ward", "--with", kind, "--t", "5")
    assert code == 0
    assert "The categories of ward are those in the data, which reveals them." in " ".join(err.split())


def test_a_full_disk_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize_files, "_text", _full)
    code, _, err = run(*ON, "--with", "ball", "--to", "out.csv")
    assert code == 1
    assert "HB625" in err
    assert "Traceback" not in err


def _full(value: float) -> str:
    raise OSError(28, "No space left on device")


def test_help_says_that_it_is_not_private(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    assert "NOT differentially private" in capsys.readouterr().out
