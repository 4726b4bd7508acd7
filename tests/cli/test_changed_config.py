"""`hubbub check`, `audit ledger` and `analyst add` on a hubbub.yaml that was changed after charges were made."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.test_cli import COUNT, folder, run

__all__ = ["folder", "run"]

Run = Callable[..., tuple[int, str, str]]
UNIT = "unit: {column: patient, groups: 2, rows: 3}"


@pytest.fixture
def charged(run: Run) -> Run:
    assert run("query", COUNT, "--epsilon", "0.5")[0] == 0
    return run


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ("unit: row", "from patient to row"),
        (f"relation: replace\n    {UNIT}", "from add_remove to replace"),
        ("unit: {column: region}", "from patient to region"),
    ],
)
def test_check_and_query_refuse_a_change_of_the_promise(charged: Run, folder: Path, new: str, says: str) -> None:
    path = folder / "hubbub.yaml"
    path.write_text(path.read_text().replace(UNIT, new))
    for command in (("check",), ("query", COUNT, "--epsilon", "0.1")):
        code, out, err = charged(*command)
        said = " ".join((out + err).split())
        assert code != 0
        assert "HB433" in said
        assert says in said


def test_the_ledger_tells_whom_each_policy_protected(charged: Run, folder: Path) -> None:
    path = folder / "hubbub.yaml"
    path.write_text(path.read_text().replace(UNIT, "unit: {column: patient, entity: patient, groups: 2, rows: 1}"))
    code, out, _ = charged("check")
    assert code == 0
    assert "each patient with all of its rows" in " ".join(out.split())
    assert charged("query", COUNT, "--epsilon", "0.5")[0] == 0
    _, out, _ = charged("audit", "ledger", "--kind", "policy")
    lines = out.splitlines()
    assert len(lines) == 2
    assert "visits (patient, add_remove)" in lines[0]
    assert "visits (patient (patient), add_remove)" in lines[1]
    assert charged("verify", "ledger")[0] == 0


def test_a_removed_analyst_is_not_added_again_by_a_command(charged: Run, folder: Path) -> None:
    assert charged("analyst", "add", "zoe", "--cap", "visits=1")[0] == 0
    assert charged("query", COUNT, "--epsilon", "0.25", "--analyst", "zoe")[0] == 0
    assert charged("analyst", "remove", "zoe")[0] == 0
    assert charged("query", COUNT, "--epsilon", "0.125")[0] == 0  # the first to read the file without her
    before = (folder / "hubbub.yaml").read_text()
    code, out, err = charged("analyst", "add", "zoe", "--cap", "visits=1")
    assert (code != 0, "HB434" in out + err) == (True, True)
    assert (folder / "hubbub.yaml").read_text() == before
