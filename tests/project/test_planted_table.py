"""docs/planted.md lists every planted error with its detectors, as the campaign wrote it."""

import os
import re
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.campaigns import planted
from tests.campaigns.planted import BUGS, GOAL, Detection, chosen, detectors, table
from tests.campaigns.rig.bugs import Bug, mutate, replaced, swap
from tests.campaigns.rig.bugs_analyses import TEXTS

from hubbub.core.unit import Relation

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
    rows = [
        (bug, Detection({"words": ["wrong"], "path": []})),
        (bug, Detection({"words": []})),
        (bug, Detection({}, {"path": "oh"})),
    ]
    text = table(rows, ["words", "path"], "today")
    assert "| an error | ● |  |" in text
    assert "| an error |  | – |" in text
    assert "| an error | – | × |" in text
    assert "3 errors, 1 caught (33.3%), today" in text


def _raises() -> list[str]:
    raise ValueError("not what was looked for")


def _dies() -> list[str]:
    os._exit(3)


def _hangs() -> list[str]:
    time.sleep(60)
    return ["too late"]


@pytest.mark.parametrize("check", [_raises, _dies, _hangs])
def test_a_detector_that_raises_dies_or_hangs_has_caught_nothing(
    check: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted, "PATIENCE", 0.5)
    seen = planted.examine(None, {"check": check})
    assert not seen.caught
    assert list(seen.broken) == ["check"]


def test_what_a_detector_says_is_a_catch_and_an_error_that_is_not_planted_is_none() -> None:
    assert planted.examine(None, {"check": lambda: ["it is wrong"]}).complaints == {"check": ["it is wrong"]}
    gone = Bug("gone", "somewhere", lambda: mutate("hubbub.core.unit", "no such text", ""), ("check",), ("check",))
    seen = planted.examine(gone, {"check": lambda: ["it is wrong"]})
    assert not seen.caught


def test_every_error_in_the_source_of_an_analysis_can_still_be_written_there() -> None:
    for name, (module, old, new) in TEXTS.items():
        spec = find_spec(module)
        assert spec is not None
        source = Path(str(spec.origin)).read_text()
        assert replaced(source, old, new) != source, name
        assert old != new
    assert len(TEXTS) >= 30


def _not_planted(bugs: Iterable[Bug]) -> list[str]:
    """Plant errors together in a child and return those that could not be planted."""

    def plant() -> list[str]:
        failed = []
        for bug in bugs:
            try:
                bug.plant()
            except Exception:  # noqa: BLE001 - whatever it is, the error is not there
                failed.append(bug.name)
        return failed

    return planted.examine(None, {"plant": plant}).complaints["plant"]


def test_every_error_can_still_be_planted() -> None:
    """What an error patches may move away. An error that does not go together with the others is planted alone."""
    failed = _not_planted(BUGS)
    assert [bug.name for bug in BUGS if bug.name in failed and _not_planted([bug])] == []


def test_an_error_that_patches_what_is_not_there_is_not_planted() -> None:
    assert _not_planted([Bug("moved", "somewhere", lambda: swap(object(), None), ("check",), ("check",))]) == ["moved"]


def test_a_changed_source_runs_wherever_the_function_is_used() -> None:
    """In a child: the class was imported long ago, and its property says what the new text says."""
    changed = Bug(
        "changed",
        "somewhere",
        lambda: mutate("hubbub.core.unit", "return 1 if self is Relation.ADD_REMOVE else 2", "return 7"),
        ("check",),
        ("check",),
    )
    seen = planted.examine(changed, {"check": lambda: [str(Relation.REPLACE.units_changed)]})
    assert seen.complaints == {"check": ["7"]}
    assert Relation.REPLACE.units_changed == 2
