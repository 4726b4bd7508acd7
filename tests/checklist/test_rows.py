import subprocess
import sys

from tests.checklist.rows import DUE, ROWS


def test_every_row_that_is_due_has_a_test() -> None:
    table = subprocess.run(
        [sys.executable, "-m", "tests.checklist.table"], capture_output=True, text=True, check=True, timeout=300
    ).stdout.splitlines()
    state = {int(line[:3]): line[5:9] for line in table}
    assert sorted(state) == list(range(1, 95))
    assert [number for number in sorted(DUE) if state[number] != "done"] == []


def test_the_table_names_all_the_rows() -> None:
    assert sorted(ROWS) == list(range(1, 95))
    assert set(ROWS) >= DUE
