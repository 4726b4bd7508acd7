"""`hubbub call`: run an analysis by name."""

import argparse
import inspect
import json
import re
from fractions import Fraction

from rich.console import Console

from hubbub.analyses.registry import ANALYSES, PAID_BEFORE, function
from hubbub.answers import terminal
from hubbub.cli import options, output, plan, query
from hubbub.core.call import AnalysisCall, parse_call
from hubbub.errors import ParameterError, QueryError

#: The first characters of a value that is not a plain word.
_LITERALS = ("[", "{", "'", '"')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub call                       list the analyses
  hubbub call kmeans                describe one and its arguments
  hubbub call kmeans table=visits columns=age,cost k=8 --epsilon 1"""
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the analysis; omit it to list them all")
    parser.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="such as table=visits columns=age,cost k=8")
    options.add_session(parser)
    parser.add_argument("-e", "--epsilon", metavar="ε", help="privacy cost; omit it to describe the analysis")
    options.add_bounds(parser)
    options.add_result(parser)
    parser.add_argument("--plan", action="store_true", help="only show the privacy cost and expected accuracy (free)")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command: list the analyses, describe one, or run one."""
    if args.name is None:
        _list(args, console)
        return 0
    if args.name not in ANALYSES:
        raise QueryError(
            "HB582", f"There is no analysis called {args.name}.", "Run `hubbub call` without a name to list them."
        )
    if not args.epsilon and not (args.name in PAID_BEFORE and args.arguments):
        _describe(args.name, console)
        return 0
    args.sql = AnalysisCall(args.name, dict(map(_argument, args.arguments))).text()
    args.within, args.raw, args.show_sql = None, False, False
    args.weight, args.parameter, args.intervals, args.dialect = [], [], "each", "duckdb"
    args.at_most = None
    return plan.run(args, console) if args.plan else query.run(args, console)


def _argument(text: str) -> tuple[str, object]:
    """Read k=8, columns=a,b, columns=['a','b'] or JSON. A value that is not a literal is a text.

    >>> _argument("k=8"), _argument("columns=x,y"), _argument("table=letter"), _argument("at=2020-01-31")
    (('k', 8), ('columns', ['x', 'y']), ('table', 'letter'), ('at', '2020-01-31'))
    >>> _argument('predicates=["x > 1", "y IN (1, 2)"]'), _argument('column={"column": "x", "edges": [0, 0.1]}')
    (('predicates', ['x > 1', 'y IN (1, 2)']), ('column', {'column': 'x', 'edges': [0, Fraction(1, 10)]}))
    """
    name, sign, value = text.partition("=")
    if not sign or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ParameterError("HB148", f"{text!r} is not an argument.", "Write name=value: k=8, columns=age,cost.")
    if "," in value and not value.startswith(_LITERALS):
        return name, [_value(item) for item in value.split(",")]
    return name, _value(value)


def _value(text: str) -> object:
    try:
        return parse_call(f"CALL x(x => {text})").arguments["x"]
    except QueryError as error:
        if not text.startswith(_LITERALS):
            return text
        try:
            return json.loads(text, parse_float=Fraction, parse_constant=_reject_constant)
        except ValueError:
            example = """'columns=["age", "cost"]'"""
            message = error.message.removesuffix(" Nothing was run or charged.")
            raise QueryError(error.code, message, f"Quote the whole argument for the shell: {example}.") from None


def _reject_constant(name: str) -> None:
    raise ValueError(name)


def _list(args: argparse.Namespace, console: Console) -> None:
    headings, lines = ("analysis", "description"), [(name, _doc(name)[0]) for name in sorted(ANALYSES)]

    def show(where: Console) -> None:
        where.print(terminal.table(headings, lines))
        where.print("\nhubbub call NAME describes an analysis; hubbub call NAME table=… -e 1 runs it.", markup=False)

    output.rows(headings, lines, [dict(zip(headings, line, strict=True)) for line in lines], args, console, show)


def _describe(name: str, console: Console) -> None:
    first, *rest = _doc(name)
    console.print(f"{name}: {first}\n", markup=False)
    for parameter in inspect.signature(function(name)).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            default = "" if parameter.default is parameter.empty else f" (default {parameter.default})"
            console.print(f"  {parameter.name}{default}", markup=False)
    paragraphs = "\n".join(rest).strip().split("\n\n")
    for paragraph in paragraphs:
        if paragraph and not paragraph.startswith("Theorem"):
            console.print(f"\n{paragraph}", markup=False)
    if any(paragraph.startswith("Theorem") for paragraph in paragraphs):
        console.print("\ndocs/theorems.md has its guarantee and proof.")
    console.print(f"\nRun it: hubbub call {name} table=… -e 1   (--plan only shows the privacy cost)", markup=False)


def _doc(name: str) -> list[str]:
    """Return the docstring of the function that prepares an analysis, without "Prepare"."""
    text = (inspect.getdoc(function(name)) or "").removeprefix("Prepare ")
    return (text[:1].upper() + text[1:]).splitlines() or [""]
