"""Count what a newcomer must write and know for the five tasks, and what each tool says to wrong first tries.

    python benchmarks/usability/measure.py                  the counts, from the scripts alone
    python benchmarks/usability/hubbub_.py FOLDER           one tool's outcomes, in an environment that has it

`docs/usability.md` has both as tables; tests/project/test_usability.py compares it with the scripts.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
#: The scripts, by the name of their tool.
TOOLS = {
    "hubbub": "hubbub_.py",
    "OpenDP": "opendp_.py",
    "Tumult Analytics": "tumult_.py",
    "diffprivlib": "diffprivlib_.py",
    "SmartNoise SQL": "smartnoise_.py",
}


@dataclass(frozen=True)
class Effort:
    """What the tasks of one tool take: lines of code and configuration, calls, and concepts."""

    lines: int
    calls: int
    concepts: tuple[str, ...]


def effort(path: Path) -> Effort:
    """Count the lines between the first task and the first wrong try, and the calls in them but for `attempt`."""
    text = path.read_text()
    named = [line.removeprefix("# concepts: ") for line in text.splitlines() if line.startswith("# concepts: ")]
    tasks = text[text.index("# task: ") : text.index("# wrong: ")]
    lines = [line for line in tasks.splitlines() if line.strip() and not line.startswith("#")]
    called = [node for node in ast.walk(ast.parse(tasks)) if isinstance(node, ast.Call)]
    own = [node for node in called if not (isinstance(node.func, ast.Name) and node.func.id == "attempt")]
    return Effort(len(lines), len(own), tuple(", ".join(named).split(", ")))


def table() -> str:
    """Write the counts as a table of Markdown."""
    lines = ["| tool | lines | calls | concepts |", "|---|---|---|---|"]
    for name, file in TOOLS.items():
        found = effort(FOLDER / file)
        lines.append(f"| {name} | {found.lines} | {found.calls} | {len(found.concepts)}: {', '.join(found.concepts)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
