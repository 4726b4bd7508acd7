"""The demo: it ends by itself, shows what it promises, and what it says about its data is true."""

import re
from pathlib import Path

import duckdb
import pytest

import hubbub
from hubbub.cli import main

HEALTH = Path(hubbub.__file__).parent / "demo" / "health.csv"


def test_the_demo_asks_three_questions_replays_one_and_is_refused_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["demo", "--once"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\d{3} ±30", out), "about 600 people, within 30"
    assert out.count("Before costs ε") == 3
    assert "replayed at no cost" in out
    assert re.search(r"HB5\d\d ", out)
    assert "Nothing was run or charged" in " ".join(out.split())
    assert "Budget before" in out
    assert re.search(r"Budget after +ε = 1\.4\d* of 3 is left", out)
    assert "hubbub init" in out


def test_the_first_answer_is_near_the_truth() -> None:
    """95 % of answers are within 30 of 600; one is beyond 200 with probability below 1e-8."""
    sql = f"SELECT count(DISTINCT person) FROM '{HEALTH}' WHERE visits > 10"
    with duckdb.connect() as plain:
        assert plain.execute(sql).fetchall() == [(600,)]


def test_what_the_demo_says_about_its_data_is_true() -> None:
    sql = f"SELECT count(*), count(DISTINCT person), count(DISTINCT (person, coinsurance)) FROM '{HEALTH}'"
    with duckdb.connect() as plain:
        assert plain.execute(sql).fetchall() == [(20190, 5912, 5912)]


def test_the_demo_can_be_taken_home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--into", str(tmp_path / "mine")]) == 0
    assert main(["check", "-c", str(tmp_path / "mine" / "hubbub.yaml")]) == 0
    assert main(["demo", "--into", str(tmp_path / "mine")]) == 1
    assert "exists" in capsys.readouterr().err
