"""Every theorem named in a docstring stands in docs/theorems.md with a test that exists, and the reverse."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

NAMED = re.compile(r"^\s*Theorem \(([^)]+)\)\.", re.MULTILINE)
TEST = re.compile(r"tests/[\w/]+\.py::\w+")
ENTRY = re.compile(r"^\| ([^|]+?) \| `([^`]+)` \| (.+?) \|$", re.MULTILINE)

Theorems = dict[str, tuple[str, frozenset[str]]]


def in_code(source: Path) -> Theorems:
    """Name → (module:object that carries it, tests that its docstring names)."""
    found: Theorems = {}
    for path in sorted(source.rglob("*.py")):
        module = "hubbub." + ".".join(path.relative_to(source).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            text = ast.get_docstring(node) or ""
            names = NAMED.findall(text)
            tests = frozenset(TEST.findall(text))
            if "Theorem" in text and re.search(r"^\s*Theorem[.\s]", text, re.MULTILINE) and not names:
                raise AssertionError(f"{module}: a theorem without a name: write `Theorem (Name). …`")
            for name in names:
                assert name not in found, f"two theorems are called {name}"
                carrier = module if isinstance(node, ast.Module) else f"{module}:{node.name}"
                found[name] = (carrier, tests)
    return found


def in_document(text: str) -> Theorems:
    return {name: (carrier, frozenset(TEST.findall(tests))) for name, carrier, tests in ENTRY.findall(text)}


def missing_tests(theorems: Theorems) -> list[str]:
    missing = []
    for name, (_, tests) in theorems.items():
        if not tests:
            missing.append(f"{name}: no test")
        for test in tests:
            path, function = test.split("::")
            file = ROOT / path
            if not file.exists() or not re.search(rf"^\s*def {function}\(", file.read_text(), re.MULTILINE):
                missing.append(f"{name}: {test}")
    return missing


def test_code_and_document_name_the_same_theorems() -> None:
    code, document = in_code(ROOT / "src" / "hubbub"), in_document((ROOT / "docs" / "theorems.md").read_text())
    assert len(code) > 20
    assert {name: carrier for name, (carrier, _) in code.items()} == {n: c for n, (c, _) in document.items()}
    assert {name: tests for name, (_, tests) in code.items()} == {n: t for n, (_, t) in document.items()}


def test_every_theorem_has_tests_that_exist() -> None:
    assert missing_tests(in_code(ROOT / "src" / "hubbub")) == []


def test_planted_gaps_are_found(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        'def f():\n    """F.\n\n    Theorem (F). Yes.\n    Tested tests/no.py::test_no\n    """\n'
    )
    theorems = in_code(tmp_path)
    assert theorems == {"F": ("hubbub.x:f", frozenset({"tests/no.py::test_no"}))}
    assert missing_tests(theorems) == ["F: tests/no.py::test_no"]
    assert in_document("| F | `hubbub.x:f` | tests/no.py::test_no |\n") == theorems
