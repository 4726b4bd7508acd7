"""Every module has a test file of its name, or says where it is tested; none is long."""

import ast
import re
from pathlib import Path

import pytest

import hubbub

ROOT = Path(__file__).parents[2]
SOURCE = Path(hubbub.__file__).parent
#: Lines of the longest module and of the longest test file; most have 100 to 250. Split a file instead of raising this.
LONGEST = {SOURCE: 500, ROOT / "tests": 540}
NAMED = re.compile(r"Tested (?:in|by)? *(tests/[\w/]+\.py)")


def untested(source: Path, tests: Path) -> list[str]:
    """The modules that have neither a test file of their name nor the path of an existing one in a docstring."""
    names = {path.name for path in tests.rglob("test_*.py")}
    missing = []
    for path in sorted(source.rglob("*.py")):
        text = path.read_text()
        if path.name.startswith("__") or f"test_{path.name}" in names:
            continue
        module = ast.get_docstring(ast.parse(text)) or ""
        said = NAMED.findall(module) or re.findall(r"Tested +(tests/[\w/]+\.py)::", text)
        if not said or not all((tests.parent / name).exists() for name in said):
            missing.append(str(path.relative_to(source)))
    return missing


def test_every_module_says_where_it_is_tested() -> None:
    assert untested(SOURCE, ROOT / "tests") == []


def test_a_module_without_tests_is_found(tmp_path: Path) -> None:
    source, tests = tmp_path / "src", tmp_path / "tests"
    source.mkdir()
    tests.mkdir()
    (tests / "test_named.py").write_text("")
    (source / "named.py").write_text("")
    (source / "said.py").write_text('"""Something.\n\nTested in tests/test_named.py.\n"""\n')
    (source / "stale.py").write_text('"""Something.\n\nTested in tests/test_gone.py.\n"""\n')
    (source / "silent.py").write_text('"""Something."""\n')
    assert untested(source, tests) == ["silent.py", "stale.py"]


def too_long(folder: Path, most: int) -> list[str]:
    """The files of a folder with more lines than this."""
    return [path.name for path in sorted(folder.rglob("*.py")) if path.read_text().count("\n") > most]


@pytest.mark.parametrize("folder", LONGEST, ids=lambda folder: folder.name)
def test_no_file_is_long(folder: Path) -> None:
    assert too_long(folder, LONGEST[folder]) == []


def test_a_long_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("\n" * 6)
    (tmp_path / "short.py").write_text("\n" * 5)
    assert too_long(tmp_path, 5) == ["long.py"]


#: How many class names may stand in more than one module. Rename a class instead of raising this.
MOST_SHARED_NAMES = 6


def shared_names(folder: Path) -> list[str]:
    """The names of classes that several modules define."""
    defined: dict[str, set[Path]] = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                defined.setdefault(node.name, set()).add(path)
    return sorted(name for name, places in defined.items() if len(places) > 1)


def test_few_class_names_mean_two_things() -> None:
    assert len(shared_names(SOURCE)) <= MOST_SHARED_NAMES, shared_names(SOURCE)


def test_a_class_name_of_two_modules_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Same: ...\nclass Other: ...\n")
    (tmp_path / "b.py").write_text("class Same: ...\n")
    assert shared_names(tmp_path) == ["Same"]
