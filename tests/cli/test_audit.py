"""`hubbub audit`: exit codes, texts and files."""

import json
from pathlib import Path

import pytest

from hubbub.audit import nightly
from hubbub.cli import main
from hubbub.curator.session import open_session

YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: row
    columns: {region: {values: [North, South]}, age: {type: integer, bounds: [0, 99]}}
    budget: {epsilon: 5}
analysts: {ana: {people: {epsilon: 5}}}
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("region,age\n" + "North,30\nSouth,40\n" * 20)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with open_session(tmp_path / "hubbub.yaml") as session:
        session.query("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon=1)
    return tmp_path


def test_a_release_is_audited_by_its_number(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = ["-c", str(people / "hubbub.yaml")]
    assert main(["audit", "release", "2", "--worlds", "2", *config]) == 0
    out = capsys.readouterr().out
    assert "verified: release 2 costs ε = 1" in out
    assert "replayed on simulated data" in out
    assert main(["audit", "release", "2", "--worlds", "2", "--json", *config]) == 0
    assert json.loads(capsys.readouterr().out)["sound"] is True
    assert main(["audit", "release", "99", *config]) == 1
    assert "HB146" in capsys.readouterr().err
    assert main(["audit", "release", "2", "--worlds", "0", *config]) == 1
    with pytest.raises(SystemExit) as slip:
        main(["audit", "release", "two", *config])
    assert slip.value.code == 2


def test_the_ledger_is_listed(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "ledger", "--kind", "charge", "-c", str(people / "hubbub.yaml")]) == 0
    assert "ana" in capsys.readouterr().out


def test_a_signed_report_is_written_and_checked(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, report = ["-c", str(people / "hubbub.yaml")], people / "report.json"
    assert main(["audit", "self", "--seconds", "2", "--out", str(report), *config]) == 0
    assert "signed report" in capsys.readouterr().out
    assert main(["audit", "check-report", str(report), *config]) == 0
    assert "passed" in capsys.readouterr().out
    report.write_text(report.read_text().replace('"sound": true', '"sound": false'))
    assert main(["audit", "check-report", str(report), *config]) == 1
    assert "HB639" in capsys.readouterr().err
    assert main(["audit", "check-report", str(people / "none"), *config]) == 1
    assert "HB638" in capsys.readouterr().err
    public = people / "hubbub-ledger" / "audit.pub"
    assert main(["audit", "check-report", str(report), "--public", str(people / "people.csv"), *config]) == 1
    assert "HB637" in capsys.readouterr().err
    assert public.exists()


def test_a_key_that_is_named_must_exist(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = ["-c", str(people / "hubbub.yaml")]
    assert main(["audit", "self", "--seconds", "1", "--key", str(people / "none.key"), *config]) == 1
    assert "HB635" in capsys.readouterr().err
    assert main(["audit", "self", "--seconds", "nan", *config]) == 1
    out = str(people / "no folder" / "report.json")
    assert main(["audit", "self", "--seconds", "1", "--out", out, *config]) == 1
    assert "HB633" in capsys.readouterr().err


def test_a_problem_is_reported_and_ends_with_a_failure(
    people: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, report = ["-c", str(people / "hubbub.yaml")], people / "report.json"
    monkeypatch.setattr(nightly, "check_keystream", lambda: "a word came [twice]")
    assert main(["audit", "self", "--seconds", "1", "--out", str(report), *config]) == 1
    out = capsys.readouterr().out
    assert "problem randomness: a word came [twice]" in out
    assert "FAILED" in out
    assert main(["audit", "check-report", str(report), *config]) == 1
    assert "problem randomness: a word came [twice]" in capsys.readouterr().out
