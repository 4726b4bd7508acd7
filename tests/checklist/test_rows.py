from pathlib import Path

from tests.checklist.rows import DUE, ROWS
from tests.checklist.table import collect, rows_of


def test_every_row_that_is_due_has_a_test() -> None:
    tests = collect()
    assert sorted(tests.keys() - ROWS.keys()) == []
    assert [number for number in sorted(DUE) if not tests.get(number)] == []


def test_the_table_names_all_the_rows() -> None:
    assert sorted(ROWS) == list(range(1, 118))
    assert set(ROWS) >= DUE


def test_skipped_and_unmarked_tests_show_no_row(tmp_path: Path) -> None:
    path = tmp_path / "test_planted.py"
    path.write_text(
        "import pytest\n"
        "@pytest.mark.row(1, 2)\ndef test_shown(): ...\n"
        "@pytest.mark.skip\n@pytest.mark.row(3)\ndef test_skipped(): ...\n"
        "@pytest.mark.xfail(strict=True)\n@pytest.mark.row(4)\ndef test_expected_to_fail(): ...\n"
        "@pytest.mark.row(5)\ndef helper(): ...\n"
        "def test_unmarked(): ...\n"
    )
    assert list(rows_of(path)) == [(1, "test_shown"), (2, "test_shown")]
