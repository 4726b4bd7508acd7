"""Print results in the format that was asked for, or write them to a file.

Tested in tests/cli/test_output.py.
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from hubbub.answers import render
from hubbub.answers.arrow import write_file
from hubbub.answers.release import Release
from hubbub.errors import ParameterError

FORMATS = ("table", "csv", "json", "parquet", "arrow", "markdown")
_BINARY = ("parquet", "arrow")
_ENDINGS = {
    ".csv": "csv",
    ".json": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".md": "markdown",
    ".txt": "table",
}


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add --format and -o."""
    parser.add_argument("--format", choices=FORMATS, help="how to print the result (default: table)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the result to a file; without --format, its name says how"
    )


def format_of(args: argparse.Namespace) -> str:
    """Return the format: the one that was asked for, else that of the file's name, else a table."""
    if args.format is not None:
        return str(args.format)
    if args.output is not None:
        ending = Path(args.output).suffix
        if ending not in _ENDINGS:
            raise ParameterError(
                "HB126", f"{args.output} has no known format.", f"Pass --format, or use one of: {', '.join(_ENDINGS)}."
            )
        return _ENDINGS[ending]
    return "json" if getattr(args, "json", False) else "csv" if getattr(args, "csv", False) else "table"


def release(answer: Release, args: argparse.Namespace, console: Console) -> None:
    """Print or write a release."""
    write_release(answer, format_of(args), args.output, console)


def write_release(answer: Release, form: str, path: str | None, console: Console) -> None:
    """Print or write a release in a format."""
    match form:
        case "json":
            _text(json.dumps(answer.to_dict(), ensure_ascii=False) + "\n", path)
        case "csv":
            _text(answer.to_csv(), path)
        case "markdown":
            right = [output.kind in ("integer", "real") for output in answer.outputs]
            _text(markdown(answer.columns, answer.texts(), right=right) + f"\nCost: {answer.cost()}\n", path)
        case "table":
            _table(lambda where: render.release(answer, where), path, console)
        case _:
            _columns({column.name: (column.kind, column.values) for column in answer.flat()}, form, path)


def rows(
    names: Sequence[str],
    lines: Sequence[Sequence[str]],
    form: Any,
    args: argparse.Namespace,
    console: Console,
    show: Callable[[Console], None],
) -> None:
    """Print or write a list: `lines` are its rows as text, `form` its JSON, and `show` prints it as a table."""
    wanted, path = format_of(args), args.output
    match wanted:
        case "json":
            _text(json.dumps(form, ensure_ascii=False) + "\n", path)
        case "csv":
            file = io.StringIO()
            csv.writer(file, lineterminator="\n").writerows([names, *lines])
            _text(file.getvalue(), path)
        case "markdown":
            _text(markdown(names, lines), path)
        case "table":
            _table(show, path, console)
        case _:
            _columns({name: ("text", [line[at] for line in lines]) for at, name in enumerate(names)}, wanted, path)


def markdown(names: Sequence[str], lines: Sequence[Sequence[str]], *, right: Sequence[bool] = ()) -> str:
    r"""Return a table in Markdown; what would end a cell is escaped.

    >>> print(markdown(["a|b", "n"], [["x\ny", "3 ±1"]], right=[False, True]), end="")
    | a\|b | n |
    |---|---:|
    | x y | 3 ±1 |
    """
    marks = ["---:" if at < len(right) and right[at] else "---" for at in range(len(names))]
    written = [[_cell(text) for text in line] for line in (names, *lines)]
    body = [f"| {' | '.join(line)} |" for line in written]
    return "\n".join([body[0], f"|{'|'.join(marks)}|", *body[1:]]) + "\n"


def _cell(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join("".join(each if each.isprintable() else " " for each in escaped).split())


def _text(text: str, path: str | None) -> None:
    if path is None:
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def _table(show: Callable[[Console], None], path: str | None, console: Console) -> None:
    if path is None:
        show(console)
        return
    with Path(path).open("w", encoding="utf-8") as file:
        show(Console(file=file, highlight=False, width=160))


def _columns(parts: Mapping[str, tuple[str, Sequence[Any]]], form: str, path: str | None) -> None:
    """Write columns as Parquet or Arrow, which no terminal can show."""
    if path is None and sys.stdout.isatty():
        raise ParameterError("HB126", f"A terminal cannot show {form}.", "Write it to a file: -o result." + form)
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"result.{form}"
        write_file(parts, file)
        if path is None:
            sys.stdout.buffer.write(file.read_bytes())
        else:
            Path(path).write_bytes(file.read_bytes())
