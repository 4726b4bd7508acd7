"""Print results in the format that was asked for, or write them to a file.

Tested in tests/cli/test_output.py.
"""

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from rich.console import Console

from hubbub.answers import render
from hubbub.answers.arrow import FILES, write_file
from hubbub.answers.release import Release
from hubbub.errors import ParameterError

#: A cell of a list.
Cell = str | int | float | bool | None

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
    if args.format:
        if isinstance(args.format, str):
            return args.format
        if len(args.format) > 1:
            raise ParameterError("HB126", "One file has one format.", "Pass --format once, or --to FOLDER.")
        return str(args.format[0])
    if args.output is not None:
        ending = Path(args.output).suffix
        if ending not in _ENDINGS:
            raise ParameterError(
                "HB126", f"{args.output} has no known format.", f"Pass --format, or use one of: {', '.join(_ENDINGS)}."
            )
        return _ENDINGS[ending]
    return "json" if getattr(args, "json", False) else "csv" if getattr(args, "csv", False) else "table"


def check(args: argparse.Namespace) -> None:
    """Reject formats and files that the result cannot be written to, before anything runs or is charged."""
    for name in ("output", "export", "receipt"):
        path = getattr(args, name, None)
        if path is not None:
            _check_writable(Path(path))
    if getattr(args, "export", None) is not None and Path(args.export).suffix not in FILES:
        raise ParameterError("HB126", f"{args.export} has no known format.", f"Use one of: {', '.join(FILES)}.")
    if getattr(args, "to", None) is not None:  # publish writes several files
        return
    form = format_of(args)
    if form in _BINARY and args.output is None and sys.stdout.isatty():
        raise ParameterError("HB126", f"A terminal cannot show {form}.", f"Write it to a file: -o result.{form}")


def _check_writable(path: Path) -> None:
    exists = path.exists()
    if path.is_dir() or not (exists or path.parent.is_dir()) or not os.access(path if exists else path.parent, os.W_OK):
        raise ParameterError("HB126", f"{path} cannot be written.", "Choose a file in a folder that you can write to.")


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
            first = f"**{answer.sandbox}**\n\n" if answer.sandbox else ""
            table = markdown(answer.columns, answer.texts(), right=right)
            _text(f"{first}{table}\nCost: {answer.cost()}\n", path)
        case "table":
            _table(lambda where: render.release(answer, where), path, console)
        case _:
            _columns({column.name: (column.kind, column.values) for column in answer.flat()}, form, path)


def rows(
    names: Sequence[str],
    lines: Sequence[Sequence[Cell]],
    form: Any,
    args: argparse.Namespace,
    console: Console,
    show: Callable[[Console], None],
) -> None:
    """Print or write a list: `lines` are its rows, `form` its JSON, and `show` prints it as a table."""
    wanted, path = format_of(args), args.output
    match wanted:
        case "json":
            _text(json.dumps(form, ensure_ascii=False) + "\n", path)
        case "csv":
            file = io.StringIO()
            csv.writer(file, lineterminator="\n").writerows([names, *lines])
            _text(file.getvalue(), path)
        case "markdown":
            kinds = [_kind([line[at] for line in lines]) for at in range(len(names))]
            texts = [["" if cell is None else str(cell) for cell in line] for line in lines]
            _text(markdown(names, texts, right=[kind != "text" for kind in kinds]), path)
        case "table":
            _table(show, path, console)
        case _:
            _columns({name: _column([line[at] for line in lines]) for at, name in enumerate(names)}, wanted, path)


def answers(
    pairs: Sequence[tuple[str, Release]],
    args: argparse.Namespace,
    console: Console,
    show: Callable[[Console], None],
) -> None:
    """Print or write the answers to several queries; a list has every cell, because their columns differ."""
    form = [{"query": query} | answer.to_dict() for query, answer in pairs]
    names = ("query", "row", "output", "value", "low", "high")
    rows(names, list(_cells(answer for _, answer in pairs)), form, args, console, show)


def _cells(answers: Iterable[Release]) -> Iterator[tuple[Cell, ...]]:
    for query, answer in enumerate(answers, 1):
        for column in answer.outputs:
            for row, value in enumerate(column.values):
                low, high = (None if ends is None else ends[row] for ends in (column.low, column.high))
                yield query, row + 1, column.name, None if value is None else str(value), low, high


def statements(
    groups: Mapping[str, Sequence[str]],
    form: Any,
    args: argparse.Namespace,
    console: Console,
    show: Callable[[Console], None],
) -> None:
    """Print or write sentences, each with the name of its group."""
    lines = [(name, text) for name, texts in groups.items() for text in texts]
    rows(("kind", "statement"), lines, form, args, console, show)


@contextmanager
def text_file(path: str | None) -> Iterator[TextIO]:
    """Open the file of a long text, or standard output."""
    if path is None:
        yield sys.stdout
        return
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        yield file


def _kind(cells: Sequence[Cell]) -> str:
    """Say what kind of column these cells are: numbers stay numbers in files that have types.

    >>> _kind([1, None, 2]), _kind([1, 0.5]), _kind([1, "a"]), _kind([None]), _kind([True])
    ('integer', 'real', 'text', 'text', 'boolean')
    """
    types = {type(cell) for cell in cells if cell is not None}
    if types == {bool}:
        return "boolean"
    if types and types <= {int, float}:
        return "integer" if types == {int} else "real"
    return "text"


def _column(cells: Sequence[Cell]) -> tuple[str, Sequence[Any]]:
    kind = _kind(cells)
    if kind == "real":
        return kind, [None if cell is None else float(cell) for cell in cells]
    return kind, [str(cell) if kind == "text" and cell is not None else cell for cell in cells]


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
    """Write columns as Parquet or Arrow, which no terminal can show: see `check`."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"result.{form}"
        write_file(parts, file)
        if path is None:
            sys.stdout.buffer.write(file.read_bytes())
        else:
            Path(path).write_bytes(file.read_bytes())
