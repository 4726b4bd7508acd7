"""`hubbub query --sandbox`: marked in every format, no ledger, and how to ask the data."""

import json
from pathlib import Path

import duckdb
import pytest

from hubbub.answers.sandbox import MADE_UP
from hubbub.cli import main

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {site: {values: [a, b]}}
    budget: {epsilon: 3}
analysts: {ana: {visits: {epsilon: 3}}}
"""
SQL = "SELECT site, COUNT(*) AS n FROM visits GROUP BY site"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    (tmp_path / "visits.csv").write_text("site\na\n")
    return tmp_path


def test_each_format_is_marked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["query", SQL, "--epsilon", "2", "--sandbox"]
    assert main([*ask, "--export", "tried.parquet"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert MADE_UP in shown
    assert f"Run it for real: hubbub query '{SQL}' --epsilon 2" in shown
    assert duckdb.read_parquet("tried.parquet").columns == ["site", "n", "n_low", "n_high", "made_up"]
    assert main([*ask, "--csv"]) == 0
    assert capsys.readouterr().out.startswith("site,n,n_low,n_high,made_up\n")
    assert main([*ask, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["receipt"]["sandbox"] == MADE_UP
    assert main([*ask, "--format", "markdown"]) == 0
    assert MADE_UP in capsys.readouterr().out
    assert not (folder / "hubbub-ledger").exists()


def test_an_analysis_can_be_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "synthetic", "table=visits", "columns=['site']", "-e", "1", "--sandbox"]) == 0
    assert MADE_UP in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("more", [["--receipt", "r.json"], ["--at-most", "1", "--within", "5%"]])
def test_what_has_no_meaning_there_is_refused(
    folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    price = [] if "--within" in more else ["--epsilon", "1"]
    assert main(["query", SQL, *price, "--sandbox", *more]) == 1
    assert "HB864" in capsys.readouterr().err
    assert not (folder / "hubbub-ledger").exists()
