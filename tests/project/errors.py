"""The error codes of the source, and the page docs/errors.md that lists them (`make errors` writes it)."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.project.error_examples import EXAMPLES, TESTED

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hubbub"
PAGE = ROOT / "docs" / "errors.md"

CODE = re.compile(r"HB\d{3}")

FAMILIES = {
    "HB1": ("Parameters", "`ParameterError`: a number or an option cannot be accepted."),
    "HB2": ("Budget", "`BudgetError`: the query would exceed a budget. Nothing was run or charged."),
    "HB3": ("Ledger", "`LedgerError`: the ledger cannot be used, or must not be trusted."),
    "HB4": ("Configuration", "`ConfigError`: hubbub.yaml is invalid."),
    "HB5": (
        "Queries",
        "`QueryError`: the query cannot be answered privately. It is refused before anything is charged.",
    ),
    "HB6": ("Mechanisms, sanitizers, audits, attacks, streams", "Errors of the parts of hubbub beyond queries."),
    "HB7": ("Access", "`AccessError`: the caller is unknown (HB70x), has no permission (HB71x), or must wait (HB72x)."),
    "HB8": ("Connection", "`ServerError`: a server cannot be reached, or did not answer as one."),
    "HB9": ("Runs", "`RunError`: the run failed after the charge. The message never depends on the data."),
}

INTRODUCTION = """# Error codes

Every error has a stable code, a message that never contains a value from the data, and a remedy. `{…}` marks a value that is filled in. Where one code
has several messages, each is listed. An example is run by a test (`tests/project/test_errors.py`); errors that need a broken disk, a second server or the like
name the test that produces them instead. `make errors` writes this page from the source.
"""


@dataclass(frozen=True, order=True)
class Message:
    """One place in the source that raises a code."""

    code: str
    text: str
    remedy: str
    module: str


def words(node: ast.expr) -> str | None:
    """The text of a string in the source, with `{…}` for what is filled in; None for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(v.value) if isinstance(v, ast.Constant) else "{…}" for v in values)
        case ast.BinOp(op=ast.Add()):
            parts = [words(node.left), words(node.right)]
            return "".join("{…}" if part is None else part for part in parts) if any(parts) else None
        case ast.IfExp():
            return words(node.body) or words(node.orelse)
    return None


def found_in(path: Path) -> Iterator[Message]:
    """Every message of a module: the strings that follow a code among the arguments of a call, or in a tuple."""
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text())):
        parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
        for number, part in enumerate(parts):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and CODE.fullmatch(part.value):
                texts = [words(each) for each in parts[number + 1 : number + 3]]
                yield Message(part.value, *[each or "" for each in (*texts, None, None)][:2], module)


def messages() -> list[Message]:
    """Every message of the source, by code."""
    return sorted({message for path in SOURCE.rglob("*.py") for message in found_in(path)})


def codes() -> set[str]:
    """Every code that the source mentions as a whole string."""
    return {code for path in SOURCE.rglob("*.py") for code in re.findall(r'"(HB\d{3})"', path.read_text())}


def page() -> str:
    """Write the page."""
    by_code: dict[str, list[Message]] = {code: [] for code in sorted(codes())}
    for message in messages():
        by_code[message.code].append(message)
    lines = [INTRODUCTION]
    family = ""
    for code, known in by_code.items():
        if code[:3] != family:
            family = code[:3]
            title, about = FAMILIES[family]
            lines += [f"## {title}", "", about, ""]
        lines += [f"### {code}", ""]
        for text, remedy in dict.fromkeys((each.text, each.remedy) for each in known):
            lines += [f"- {text or '{…}'}" + (f"  \n  {remedy}" if remedy else "")]
        where = ", ".join(f"`{name}`" for name in dict.fromkeys(each.module for each in known))
        lines += ["", f"Raised in {where}." if where else "", ""]
        if code in EXAMPLES:
            lines += [
                f"Example ({EXAMPLES[code].about}):",
                "",
                f"```{EXAMPLES[code].kind}",
                EXAMPLES[code].text.strip(),
                "```",
                "",
            ]
        elif code in TESTED:
            lines += [f"Produced by `{TESTED[code]}`.", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
