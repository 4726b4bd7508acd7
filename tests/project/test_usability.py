"""The five tasks of newcomers: hubbub's script runs, and the page has the counts of the scripts as they are."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks" / "usability"
PAGE = (ROOT / "docs" / "usability.md").read_text()
#: What each step of hubbub's script is expected to do, and the code of a refusal.
EXPECTED = {
    "count": "passed",
    "mean": "passed",
    "histogram": "passed",
    "budget": "HB201",
    "people": "passed",
    "wrong: mean without bounds": "HB515",
    "wrong: groups from the data": "HB551",
    "wrong: no budget declared": "HB402",
    "wrong: rows taken for people": "passed",
}


def test_the_script_for_hubbub_does_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hubbub_.py", str(tmp_path)])
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.delitem(sys.modules, "attempts", raising=False)
    try:
        runpy.run_path(str(SCRIPTS / "hubbub_.py"))
    finally:
        sys.modules.pop("attempts", None)
    steps: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {
        each["step"]: each["outcome"] if each["outcome"] != "refused" else each["said"].split()[1] for each in steps
    }
    assert found == EXPECTED
    for code in {each for each in EXPECTED.values() if each.startswith("HB")}:
        assert code in PAGE


def test_the_page_has_the_counts_of_the_scripts() -> None:
    assert runpy.run_path(str(SCRIPTS / "measure.py"))["table"]() in PAGE
