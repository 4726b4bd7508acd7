"""The theorems that docstrings name, and the page docs/theorems.md that lists them (`make theorems` writes it)."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

NAMED = re.compile(r"^\s*Theorem \(([^)]+)\)\.", re.MULTILINE)
TEST = re.compile(r"tests/[\w/]+\.py::\w+")
ENTRY = re.compile(r"^\| ([^|]+?) \| `([^`]+)` \| (.+?) \|$", re.MULTILINE)

INTRODUCTION = """# Theorems

Every theorem that a docstring names, where it is carried, and the tests that would fail if it did not hold. Proofs and
assumptions are beside the code. `make theorems` writes this page; a test compares it with the docstrings, both ways.
"""

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


def statement(name: str) -> str:
    """Find what a theorem says, up to its proof."""
    ends = r"(?=\n\s*(?:Proof|Assumes|Charges|Error|Tested|Theorem)\b|\n\s*\n|\"\"\")"
    pattern = re.compile(rf"Theorem \({re.escape(name)}\)\.\s+(.*?){ends}", re.DOTALL)
    found = [m[1] for p in sorted((ROOT / "src").rglob("*.py")) for m in pattern.finditer(p.read_text())]
    return " ".join(found[0].split()).replace("|", "∣")  # a bar would end a cell of the table


def page() -> str:
    """Write the page anew."""
    rooms: dict[str, list[tuple[str, str, frozenset[str]]]] = {}
    for name, (carrier, tests) in in_code(ROOT / "src" / "hubbub").items():
        rooms.setdefault(carrier.split(":")[0].split(".")[1], []).append((name, carrier, tests))
    lines = [INTRODUCTION]
    for room, theorems in rooms.items():
        lines += [f"## {room}", ""]
        lines += [f"- **{name}**: {statement(name)}" for name, _, _ in theorems]
        lines += ["", "| theorem | carried by | tests |", "|---|---|---|"]
        lines += [f"| {name} | `{carrier}` | {', '.join(sorted(tests))} |" for name, carrier, tests in theorems]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    (ROOT / "docs" / "theorems.md").write_text(page())
