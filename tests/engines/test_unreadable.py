"""Values of CSV files that queries would silently read as NULL are counted for the owner."""

from pathlib import Path

import pytest

from hubbub.cli import main
from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource
from hubbub.engines.duckdb.unreadable import unreadable

GERMAN = 'id,height,day,member,note\n1,"180,5",31.12.2020,ja,x\n2,170,2021-01-01,true,y\n3, ,,no,\n'
KINDS = {"id": Kind.INTEGER, "height": Kind.REAL, "day": Kind.DATE, "member": Kind.BOOLEAN, "note": Kind.TEXT}


def test_only_values_that_are_there_and_cannot_be_read_count(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(GERMAN, encoding="utf-8")
    source = DataSource("csv", tmp_path / "people.csv")
    assert unreadable(source, KINDS) == (3, {"height": 1, "day": 1, "member": 1})
    assert unreadable(source, KINDS | {"note": Kind.INTEGER}) == (
        3,
        {"height": 1, "day": 1, "member": 1, "note": 2},
    )
    assert unreadable(source, {"note": Kind.TEXT}) == (0, {})


def test_check_warns_the_owner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.csv").write_text(GERMAN, encoding="utf-8")
    columns = "{id: {type: integer}, height: {type: real, bounds: [100, 220]}, day: {type: date}, note: {type: text}}"
    (tmp_path / "hubbub.yaml").write_text(
        f"version: 1\ndatasets:\n  people: {{source: people.csv, unit: {{column: id, groups: 1, rows: 1}},"
        f" columns: {columns}, budget: {{epsilon: 1}}}}\nanalysts: {{ana: {{people: {{epsilon: 1}}}}}}\n",
        encoding="utf-8",
    )
    assert main(["check", "-c", str(tmp_path / "hubbub.yaml")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 of the first 3 values of height cannot be read as real" in shown
    assert "1 of the first 3 values of day cannot be read as date" in shown
    assert "values of id" not in shown
    (tmp_path / "people.csv").write_text("id,height,day,note\n1,180.5,2020-12-31,x\n", encoding="utf-8")
    assert main(["check", "-c", str(tmp_path / "hubbub.yaml")]) == 0
    assert "cannot be read" not in capsys.readouterr().out
