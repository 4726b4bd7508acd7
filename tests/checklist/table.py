"""Which tests show which construct of the papers: those with the mark `row(N)` that are not skipped.

Marks are read from the source, which takes a second; collecting all tests would take a minute.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]


def marks(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[tuple[str, list[ast.expr]]]:
    """Each mark of a test with its arguments: `@pytest.mark.row(3)` is ("row", [3])."""
    for decorator in function.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(call, ast.Attribute) and ast.unparse(call.value) == "pytest.mark":
            yield call.attr, decorator.args if isinstance(decorator, ast.Call) else []


def rows_of(path: Path) -> Iterator[tuple[int, str]]:
    """Each construct that a test of this file shows, with the name of the test."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        found = list(marks(node))
        if any(name in ("skip", "xfail") for name, _ in found):
            continue
        for name, arguments in found:
            if name == "row":
                yield from ((ast.literal_eval(each), node.name) for each in arguments)


def collect() -> dict[int, set[str]]:
    """The tests that show each construct."""
    tests: dict[int, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for number, name in rows_of(path):
            tests.setdefault(number, set()).add(f"{path.relative_to(TESTS.parent)}::{name}")
    return tests
