"""Every module has a test file of its name, or says where it is tested."""

import ast
import re
from pathlib import Path

import hubbub

ROOT = Path(__file__).parents[2]
SOURCE = Path(hubbub.__file__).parent
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
