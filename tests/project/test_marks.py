"""`make quick` leaves out what is marked, and the list of slow tests names files that exist."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixtures import slow_tests

TESTS = Path(__file__).parent.parent


def test_the_list_of_slow_tests_names_what_exists() -> None:
    assert [name for name in slow_tests.FILES if not (TESTS / name).is_file()] == []
    assert [name for name in slow_tests.FOLDERS if not (TESTS / name).is_dir()] == []


@pytest.mark.parametrize(("mark", "code"), [("slow", 0), ("not slow", 5)])
def test_marks_are_there_when_tests_are_selected(mark: str, code: int) -> None:
    """Pytest ends with 5 if it has selected nothing."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-m", mark, "tests/demo/test_demo.py"]
    assert subprocess.run(command, cwd=TESTS.parent, capture_output=True, check=False).returncode == code
