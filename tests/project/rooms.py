"""The packages of hubbub in order: each imports only from those before it. `make rooms` writes the tables of this."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hubbub"

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
    "engines": frozenset({"errors", "private_files", "core"}),
    "semantics": frozenset({"errors", "core", "noise", "mechanisms", "accounting"}),
    "config": frozenset({"errors", "core", "answers", "accounting", "engines", "semantics"}),
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
    "client": frozenset({"errors", "core", "answers", "curator"}),
    "mcp": frozenset({"errors", "core", "answers", "semantics", "curator", "audit", "client"}),
    "reports": frozenset({"errors", "core", "answers", "accounting", "config", "curator", "audit"}),
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
            "audit",
            "curator",
            "crowd",
            "attacks",
            "mcp",
        }
    ),
    "deployment": frozenset({"errors", "private_files", "accounting", "config", "analyses", "curator", "server"}),
    "gateway": frozenset({"errors", "core", "answers", "curator", "server"}),
    "dbapi": frozenset({"client"}),
    "frames": frozenset({"answers"}),
    "demo": frozenset({"errors", "private_files", "core", "answers", "config", "curator", "server", "client"}),
    "cli": frozenset(
        {
            "demo",
            "errors",
            "private_files",
            "core",
            "answers",
            "noise",
            "reports",
            "accounting",
            "sql",
            "engines",
            "semantics",
            "config",
            "analyses",
            "curator",
            "surveys",
            "crowd",
            "attacks",
            "audit",
            "mcp",
            "server",
            "deployment",
            "gateway",
            "client",
        }
    ),
    "__init__": frozenset({"errors", "answers", "analyses", "curator", "client"}),
    "__main__": frozenset({"cli"}),
}

#: Documents that show the packages, between these two lines.
BEGIN, END = "<!-- packages: begin, written by `make rooms` -->", "<!-- packages: end -->"


def sentence(room: str) -> str:
    """The first sentence of a package's docstring."""
    path = SOURCE / room / "__init__.py"
    text = ast.get_docstring(ast.parse((path if path.exists() else SOURCE / f"{room}.py").read_text())) or ""
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".")


def contents() -> str:
    """The table of CONTRIBUTING: each package with the sentence of its `__init__`."""
    rooms = [room for room in ALLOWED if not room.startswith("__")]
    rows = [f"| `{room}` | {sentence(room)} |" for room in rooms]
    return "\n".join(["| package | contents |", "|---|---|", *rows])


def imports() -> str:
    """The table of the decision record: each package with those that it imports."""
    rows = [f"| `{room}` | {', '.join(sorted(below)) or '–'} |" for room, below in ALLOWED.items() if room[0] != "_"]
    return "\n".join(["| package | imports from |", "|---|---|", *rows])


DOCUMENTS = {ROOT / "CONTRIBUTING.md": contents, ROOT / "docs" / "decisions" / "0001-rooms.md": imports}


def written(text: str, table: str) -> str:
    """Put a table between the two marks of a document."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def main() -> None:
    for path, table in DOCUMENTS.items():
        path.write_text(written(path.read_text(), table()))


if __name__ == "__main__":
    main()
