"""The command `hubbub call`: analyses beyond one query, by name."""

import inspect
import re
from argparse import Namespace

from rich.console import Console
from rich.table import Table

from hubbub.analyses.registry import ANALYSES, function
from hubbub.cli import analyst
from hubbub.core.call import Call, read
from hubbub.errors import ParameterError, QueryError


def call(options: Namespace, console: Console) -> int:
    """Ask for an analysis; without a name, list them; without ε, say what it would take."""
    if options.name is None:
        _list(console)
        return 0
    if options.name not in ANALYSES:
        raise QueryError(
            "HB582", f"there is no analysis called {options.name}.", "`hubbub call` without a name lists them."
        )
    if not options.epsilon:
        _describe(options.name, console)
        return 0
    options.sql = Call(options.name, dict(map(_argument, options.arguments))).text()
    options.within, options.raw, options.sql_text = None, False, False
    options.weight, options.parameter = [], []
    return analyst.plan(options, console) if options.plan else analyst.query(options, console)


def _argument(text: str) -> tuple[str, object]:
    """Read k=8, columns=a,b or columns=['a','b']; what is no number, list or word of the language is a text.

    >>> _argument("k=8"), _argument("columns=x,y"), _argument("table=letter"), _argument("at=2020-01-31")
    (('k', 8), ('columns', ['x', 'y']), ('table', 'letter'), ('at', '2020-01-31'))
    """
    name, sign, value = text.partition("=")
    if not sign or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ParameterError("HB148", f"{text!r} is not an argument.", "Write name=value: k=8, columns=age,cost.")
    if "," in value and not value.startswith(("[", "{", "'")):
        return name, [_value(each) for each in value.split(",")]
    return name, _value(value)


def _value(text: str) -> object:
    try:
        return read(f"CALL x(x => {text})").arguments["x"]
    except QueryError:
        if text.startswith(("[", "{", "'")):
            raise
        return text


def _list(console: Console) -> None:
    table = Table("analysis", "what it does", box=None)
    for name in sorted(ANALYSES):
        table.add_row(name, _doc(name)[0])
    console.print(table)
    console.print("\nhubbub call NAME says what one takes; hubbub call NAME table=… -e 1 asks for it.")


def _describe(name: str, console: Console) -> None:
    first, *rest = _doc(name)
    console.print(f"{name}: {first}\n")
    for each in inspect.signature(function(name)).parameters.values():
        if each.kind is each.KEYWORD_ONLY:
            needed = "" if each.default is each.empty else f" (default {each.default})"
            console.print(f"  {each.name}{needed}", highlight=False)
    if rest:
        console.print("\n" + "\n".join(rest).strip(), highlight=False)
    console.print(
        f"\nAsk with: hubbub call {name} table=… -e 1   (--plan: only say what it would cost)", highlight=False
    )


def _doc(name: str) -> list[str]:
    """Give what the function that prepares an analysis says of itself: what it prepares is what people ask for."""
    text = (inspect.getdoc(function(name)) or "").removeprefix("Prepare ")
    return (text[:1].upper() + text[1:]).splitlines() or [""]
