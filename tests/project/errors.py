"""The error codes of the source, and the page docs/errors.md that lists them (`make errors` writes it)."""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp

from tests.project.error_examples import EXAMPLES, TESTED, WORLD
from tests.project.error_examples.run import error_of, shown

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
    "HB8": (
        "Connection and deployments",
        "`ServerError`: a server cannot be reached, or did not answer as one. HB88x and HB89x, `DeploymentError`: a "
        "deployment cannot be exported, imported or upgraded, or a key cannot be used.",
    ),
    "HB9": ("Runs", "`RunError`: the run failed after the charge. The message never depends on the data."),
}

INTRODUCTION = """# Error codes

Every error has a stable code, a message that never contains a value from the data, and a remedy. `{…}` marks a part
that is filled in, and ` / ` separates alternatives. Where one code has several messages, each is listed with its
remedy.

A test runs every example. A code without an example needs a server, a broken disk or the like, or is a second check
behind another one; it names the test that produces it. `make errors` writes this page from the source.

The examples use the deployment below. `h` is a session of the analyst `ana`: `h = hubbub.open(analyst="ana")`. `folder`
is the folder of hubbub.yaml.
"""


@dataclass(frozen=True, order=True)
class Message:
    """One place in the source that raises a code."""

    code: str
    text: str
    remedy: str
    module: str


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """The values of the names that a module assigns at its top level."""
    assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
    return {target.id: node.value for node in assignments for target in node.targets if isinstance(target, ast.Name)}


def words(node: ast.expr, names: Mapping[str, ast.expr]) -> str:
    """The text of an expression, with `{…}` for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(words(value, names) for value in values)
        case ast.FormattedValue(value=ast.Name() as value):
            return words(value, names)
        case ast.BinOp(op=ast.Add()):
            return words(node.left, names) + words(node.right, names)
        case ast.IfExp():
            texts = [words(node.body, names), words(node.orelse, names)]
            whole = [text for text in texts if " " in text.strip()] or [
                text for text in texts if text not in ("", "{…}")
            ]
            return " / ".join(whole) or "{…}"
        case ast.BoolOp(op=ast.Or()):
            return words(node.values[-1], names)
        case ast.Name(id=name) if name in names:
            return words(names[name], {key: value for key, value in names.items() if key != name})
    return "{…}"


def local(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr]:
    """The texts that a function puts in variables for an error, by the names that the source uses for them."""
    assignments = [each for each in ast.walk(node) if isinstance(each, ast.Assign)]
    names = {each.targets[0].id: each.value for each in assignments if isinstance(each.targets[0], ast.Name)}
    return {name: names[name] for name in ("why", "problem", "remedy", "reason", "hint") if name in names}


def composed(callee: str, module: str, texts: list[str]) -> tuple[str, str]:
    """The message and the remedy of what follows a code among the arguments of a function, or in a tuple."""
    match callee, texts:
        case "reject", [place, why, remedy, *_]:
            return f"{place} {why}.", remedy
        case "reject_unknown", [place, _, kind, *_]:
            return f"{place} is not a known {kind}.", "Did you mean {…}?"
        case "_reject", [_, _, why, remedy, *_]:  # of hubbub.core.numbers
            return f"{{…}}={{…}} {why}.", remedy
        case "_refuse_charge", [kind, *_]:
            return f"Unknown {kind} {{…}}. Nothing was run or charged.", "Did you mean {…}?"
        case "check_same_owner", _:
            return "One table is public and the other is private.", "Query each table on its own."
        case "_file", _:
            return "{…} is a file that cannot be read ({…}): {…}.", "Check its path and permissions."
        case ("_fail", [why, remedy, *_]) | ("", [why, remedy, *_]) if (
            callee or module == "accounting.postgres_session"
        ):
            return f"The ledger {{…}} cannot be used: {why}. Nothing was charged.", remedy
        case _, [text, *rest]:
            return text, rest[0] if rest else ""
    return "", ""


def messages_of(path: Path) -> Iterator[Message]:
    """Every message of a module: what follows a code among the arguments of a call, or in a tuple or list."""
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    shared = constants(tree)
    scope = {
        node: texts for function in functions for texts in [shared | local(function)] for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        names = scope.get(node, shared)
        callee = ""
        if isinstance(node, ast.Call):
            parts, callee = node.args, getattr(node.func, "attr", getattr(node.func, "id", ""))
        else:
            parts = node.elts if isinstance(node, ast.Tuple | ast.List) else []
        for number, part in enumerate(parts):
            code = words(part, names)
            if not CODE.fullmatch(code):
                continue
            following = [words(each, names) for each in parts[number + 1 :]]
            if following and not CODE.fullmatch(following[0]):
                yield Message(code, *composed(callee, module, following), module)


@cache
def messages() -> list[Message]:
    """Every message of the source, by code."""
    return sorted({message for path in SOURCE.rglob("*.py") for message in messages_of(path)})


def codes() -> set[str]:
    """Every code that the source mentions as a whole string."""
    return {code for path in SOURCE.rglob("*.py") for code in re.findall(r'"(HB\d{3})"', path.read_text())}


def plain(text: str) -> str:
    """A text as Markdown shows it literally."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*<|])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def without_outcomes(text: str) -> str:
    """The page without the errors that its examples raise, which depend on running them."""
    return re.sub(r"```text\n.*?```\n\n", "", text, flags=re.DOTALL)


def outcomes() -> dict[str, str]:
    """The errors that the examples raise."""
    os.environ["XDG_STATE_HOME"] = mkdtemp()  # the anchors of their ledgers
    found = {}
    for code, example in EXAMPLES.items():
        with TemporaryDirectory() as folder:
            found[code] = shown(error_of(example, Path(folder)), Path(folder))
    rmtree(os.environ["XDG_STATE_HOME"])
    return found


def page(outcome: Mapping[str, str]) -> str:
    """Write the page; `outcome` has the errors that the examples raise."""
    by_code: dict[str, list[Message]] = {code: [] for code in sorted(codes())}
    for message in messages():
        by_code[message.code].append(message)
    lines = [INTRODUCTION, "```yaml", WORLD["hubbub.yaml"].rstrip(), "```", ""]
    family = ""
    for code, known in by_code.items():
        if code[:3] != family:
            family = code[:3]
            title, about = FAMILIES[family]
            lines += [f"## {title}", "", about, ""]
        lines += [f"### {code}", ""]
        texts = dict.fromkeys((each.text, each.remedy) for each in known)
        for text, remedy in texts:
            if re.search(r"\w", text):
                lines += [f"- {plain(text)}" + (f"  \n  → {plain(remedy)}" if remedy != "{…}" else "")]
            elif len(texts) == 1:
                lines += ["- The message depends on the cause: see the example."]
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
            if code in outcome:
                lines += ["```text", outcome[code], "```", ""]
        elif code in TESTED:
            lines += [f"Produced by `{TESTED[code]}`.", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(outcomes()))
