"""The direction of imports between packages, and the documents that show it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.project.rooms import ALLOWED, DOCUMENTS, SOURCE, written


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module of hubbub that a file imports, wherever in the file it does."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            yield from (f"{base}.{alias.name}" if base == "hubbub" else base for alias in node.names)


def wrong_turns(source: Path) -> list[str]:
    found = []
    for path in sorted(source.rglob("*.py")):
        room = path.relative_to(source).parts[0].removesuffix(".py")
        allowed = ALLOWED.get(room, frozenset()) | {room}
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "hubbub" and (len(parts) < 2 or parts[1] not in allowed):
                found.append(f"{path.relative_to(source)} imports {name}")
    return found


def test_imports_point_down() -> None:
    assert wrong_turns(SOURCE) == []


def test_every_room_is_known() -> None:
    rooms = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if not path.name.startswith("__pycache__")}
    assert rooms - {"py.typed"} - set(ALLOWED) == set()


def test_the_order_of_the_packages_has_no_cycle() -> None:
    above: set[str] = set()
    for room, below in ALLOWED.items():
        assert below <= above, f"{room} imports a package that stands below it in the list"
        above.add(room)


def test_nothing_is_allowed_that_nothing_uses() -> None:
    used: dict[str, set[str]] = {room: set() for room in ALLOWED}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        used[room] |= {name.split(".")[1] for name in imports(path) if name.startswith("hubbub.")}
    assert {room: sorted(below - used[room]) for room, below in ALLOWED.items() if below - used[room]} == {}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_show_the_packages_as_they_are(path: Path) -> None:
    text = path.read_text()
    assert text == written(text, DOCUMENTS[path]()), "run `make rooms`"


def test_a_planted_wrong_turn_is_found(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "bad.py").write_text("def f():\n    from hubbub.noise import source\n")
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "bad.py").write_text("from hubbub import mechanisms\n")
    assert wrong_turns(tmp_path) == [
        "core/bad.py imports hubbub.noise",
        "noise/bad.py imports hubbub.mechanisms",
    ]
