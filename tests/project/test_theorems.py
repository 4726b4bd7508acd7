"""Every theorem named in a docstring stands in docs/theorems.md with a test that exists, and the reverse."""

from pathlib import Path

from tests.project.theorems import ROOT, in_code, in_document, missing_tests


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
