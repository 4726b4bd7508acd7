"""The rooms and the direction of their imports, as docs/decisions/0001-rooms.md draws them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import hubbub

SOURCE = Path(hubbub.__file__).parent

#: Each room with the rooms it may import from. What is not listed here may not exist.
ALLOWED: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "private_files": frozenset({"errors"}),
    "core": frozenset({"errors"}),
    "answers": frozenset({"errors", "core"}),
    "noise": frozenset({"errors", "core"}),
    "mechanisms": frozenset({"errors", "core", "noise"}),
    "accounting": frozenset({"errors", "private_files", "core", "answers"}),
    "sql": frozenset({"errors", "core", "answers", "noise", "mechanisms"}),
    "engines": frozenset({"errors", "core"}),
    "semantics": frozenset({"errors", "core", "noise", "mechanisms", "accounting"}),
    "config": frozenset({"errors", "core", "accounting", "engines", "semantics"}),
    "analyses": frozenset({"errors", "private_files", "core", "answers", "noise", "mechanisms", "sql"}),
    "curator": frozenset(
        {
            "errors",
            "private_files",
            "core",
            "answers",
            "noise",
            "mechanisms",
            "accounting",
            "sql",
            "engines",
            "config",
            "analyses",
        }
    ),
    "surveys": frozenset({"errors", "private_files", "core", "noise", "mechanisms"}),
    "crowd": frozenset({"errors", "core", "answers"}),
    "attacks": frozenset(
        {"errors", "core", "answers", "noise", "mechanisms", "engines", "semantics", "analyses", "curator", "crowd"}
    ),
    "audit": frozenset(
        {
            "errors",
            "private_files",
            "core",
            "noise",
            "mechanisms",
            "accounting",
            "sql",
            "engines",
            "config",
            "analyses",
            "curator",
        }
    ),
    "server": frozenset(
        {
            "errors",
            "private_files",
            "core",
            "answers",
            "noise",
            "accounting",
            "engines",
            "semantics",
            "config",
            "analyses",
            "curator",
            "attacks",
        }
    ),
    "client": frozenset({"errors", "core", "answers", "curator"}),
    "dbapi": frozenset({"client"}),
    "demo": frozenset({"errors", "private_files", "core", "answers", "config", "curator", "server", "client"}),
    "cli": frozenset(
        {
            "errors",
            "core",
            "answers",
            "noise",
            "accounting",
            "engines",
            "semantics",
            "config",
            "analyses",
            "curator",
            "surveys",
            "crowd",
            "attacks",
            "audit",
            "server",
            "client",
        }
    ),
    "__init__": frozenset({"errors", "answers", "analyses", "curator", "client"}),
    "__main__": frozenset({"cli"}),
}


def imports(path: Path) -> Iterator[str]:
    """Every module of hubbub that a file imports, wherever in the file it does."""
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


def test_a_planted_wrong_turn_is_found(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "bad.py").write_text("def f():\n    from hubbub.noise import source\n")
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "bad.py").write_text("from hubbub import mechanisms\n")
    assert wrong_turns(tmp_path) == [
        "core/bad.py imports hubbub.noise",
        "noise/bad.py imports hubbub.mechanisms",
    ]
