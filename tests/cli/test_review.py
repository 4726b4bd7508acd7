"""`hubbub review`: an owner lists, reads and decides in a terminal."""

import json
from pathlib import Path

import pytest

from hubbub.cli import main
from hubbub.curator.session import open_session
from hubbub.errors import ReviewError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    review: true
    columns: {site: {values: [a, b]}}
    budget: {epsilon: 3}
analysts: {ana: {visits: {epsilon: 3}}}
"""
SQL = "SELECT site, COUNT(*) AS n FROM visits GROUP BY site"


def test_an_owner_reads_and_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    (tmp_path / "visits.csv").write_text("site\n" + "a\nb\n" * 50)

    def run(*words: str, code: int = 0) -> str:
        assert main(["review", *words]) == code
        shown = capsys.readouterr()
        return shown.out + shown.err

    assert "No answer waits" in run()
    for epsilon in ("0.5", "0.6"):
        assert main(["query", SQL, "--epsilon", epsilon]) == 1
        assert "HB910" in capsys.readouterr().err
    first, second = sorted(each["number"] for each in json.loads(run("--format", "json")))
    assert "waits: 0 of 1 people" in run(str(first))
    assert "HB132" in run("--approve", code=1)
    assert "HB912" in run("99", code=1)
    assert "can read it now" in run(str(first), "--approve", "--by", "stella")
    run(str(second), "--decline", "too small", "--by", "stella")
    assert "declined by stella" in run("--all", "--format", "csv")
    assert main(["query", SQL, "--epsilon", "0.5"]) == 0
    with open_session(analyst="ana") as h, pytest.raises(ReviewError, match="too small"):
        h.query(SQL, epsilon="0.6")
    assert main(["check"]) == 0
    assert "One person approves each answer before it is shown." in " ".join(capsys.readouterr().out.split())
