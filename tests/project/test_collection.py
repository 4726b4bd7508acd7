"""What collection leaves out to be quick (tests/fixtures/collection.py) is not lost."""

import importlib
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.fixtures.collection import QuickCollection, spread

from hubbub import errors

SOURCE = Path(errors.__file__).parent


def test_every_module_can_be_imported() -> None:
    parts = [path.relative_to(SOURCE.parent).with_suffix("").parts for path in SOURCE.rglob("*.py")]
    names = [".".join(part for part in names if part != "__init__") for names in parts if names[-1] != "__main__"]
    assert len(names) > 500
    for name in names:
        importlib.import_module(name)


@pytest.mark.parametrize(
    ("text", "status"), [('"""\n>>> 1 + 1\n3\n"""\n', 1), ('"""No prompt: not even imported."""\n1 / 0\n', 0)]
)
def test_a_module_with_a_prompt_is_run_and_no_other(tmp_path: Path, text: str, status: int) -> None:
    plugin = f"{QuickCollection.__module__}"
    (tmp_path / "conftest.py").write_text(
        f"from {plugin} import QuickCollection\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(QuickCollection())\n"
    )
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "shown.py").write_text(text)
    (tmp_path / "inner" / "test_one.py").write_text("def test_one():\n    pass\n")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {Path.cwd()}\n")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            "--doctest-modules",
            "inner",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == status, run.stdout + run.stderr
    assert "1 passed" in run.stdout


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize(("long", "short"), [(0, 5), (3, 0), (7, 40), (5, 6), (20, 3)])
def test_each_worker_begins_with_its_share_of_the_long_tests(workers: int, long: int, short: int) -> None:
    names = [Mock(name=f"{kind}{i}") for kind, count in (("long", long), ("short", short)) for i in range(count)]
    order = spread(names[:long], names[long:], workers)
    assert sorted(map(id, order)) == sorted(map(id, names))
    if short < long:
        return
    for worker in range(workers):
        # as xdist sends them: a part of what is left that is equal for those that have nothing yet
        size = len(order) // (workers - worker)
        piece, order = order[:size], order[size:]
        share = len(names[:long][worker::workers])
        assert [item in names[:long] for item in piece] == [True] * share + [False] * (len(piece) - share)
