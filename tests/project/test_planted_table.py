"""docs/planted.md lists every planted error with who notices it, as the campaign wrote it."""

import re
from pathlib import Path

from tests.campaigns.planted import BUGS, GOAL, chosen, detectors, table
from tests.campaigns.rig.bugs import Bug

TEXT = (Path(__file__).parents[2] / "docs" / "planted.md").read_text()
ROWS = {line.split(" | ")[0].removeprefix("| "): line for line in TEXT.splitlines() if line.startswith("| ")}


def test_every_planted_error_has_a_row_and_is_caught() -> None:
    """A few that nothing catches would be allowed; none is now, and the figure in the text is that of the rows."""
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 50
    caught = [bug.name for bug in BUGS if "●" in ROWS[bug.name]]
    assert len(caught) >= GOAL * len(BUGS)
    said = re.search(r"(\d+) errors, (\d+) caught", TEXT)
    assert said is not None
    assert (int(said[1]), int(said[2])) == (len(BUGS), len(caught))


def test_every_error_names_detectors_that_exist_and_rooms_have_columns() -> None:
    known = detectors()
    assert [bug.name for bug in BUGS if not bug.seen_by or set(bug.looks) - set(known)] == []
    assert [name for name in known if f"| {name} |" not in TEXT and any(name in bug.looks for bug in BUGS)] == []


def test_small_runs_take_every_error_in_turn() -> None:
    turns = -(-len(BUGS) // 10)
    seen = {bug.name for turn in range(turns) for bug, _ in chosen(full=False, turn=turn)}
    assert seen == {bug.name for bug in BUGS}


def test_the_table_tells_who_complained_who_did_not_and_who_did_not_look() -> None:
    bug = Bug("an error", "somewhere", lambda: None, ("words",), ("words", "path"))
    text = table([(bug, {"words": ["wrong"], "path": []}), (bug, {"words": []})], ["words", "path"], "today")
    assert "| an error | ● |  |" in text
    assert "| an error |  | – |" in text
    assert "2 errors, 1 caught (50.0 %), today" in text
