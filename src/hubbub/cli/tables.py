"""`hubbub tables`: list the datasets, or describe one.

Tested in tests/cli/test_output.py.
"""

import argparse

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.cli import options, output
from hubbub.cli.session import session_of
from hubbub.core.schema import Column, Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub tables                       the datasets that you can query
  hubbub tables visits                the columns of one
  hubbub tables visits -o visits.md   the same, in a file"""
    parser.add_argument("name", nargs="?", metavar="NAME", help="the dataset to describe")
    options.add_session(parser)
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    with session_of(args) as session:
        names = session.datasets() if args.name is None else (args.name,)
        tables = [session.describe(name) for name in names]
    headings, lines = overview(tables) if args.name is None else columns(tables[0])
    form = [table.shown().to_json() for table in tables]
    shown = form if args.name is None else form[0]

    def show(where: Console) -> None:
        if args.name is not None:
            where.print(f"[bold]{escape(args.name)}[/] {escape(protection(tables[0]))}\n")
        where.print(terminal.table(headings, lines))

    output.rows(headings, lines, shown, args, console, show)
    return 0


def overview(tables: list[Table]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headings and rows of a list of datasets."""
    lines: list[tuple[str, ...]] = [
        (
            table.name,
            "public" if table.unit is None else table.unit.entity or table.unit.column or "row",
            str(sum(not column.hidden for column in table.columns)),
            "" if table.size is None else f"{table.size:,}",
        )
        for table in tables
    ]
    return ("dataset", "protects each", "columns", "rows, if public"), lines


def columns(table: Table) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headings and rows of a list of columns."""
    lines: list[tuple[str, ...]] = [
        (column.name, column.kind.value, facts(column)) for column in table.columns if not column.hidden
    ]
    return ("column", "type", "declared"), lines


def facts(column: Column) -> str:
    """Say what is declared about a column."""
    if column.values is None:
        return column.range_text
    listed, more = ", ".join(map(str, column.values[:8])), len(column.values) - 8
    return listed + (f" and {more:,} more" if more > 0 else "")


def protection(table: Table) -> str:
    """Say who is protected, and how much of one unit counts."""
    unit = table.unit
    if unit is None:
        return "is public: answers are exact and free."
    who = unit.entity or unit.column or "row"
    return f"protects each {who}: at most {unit.groups} groups with {unit.rows} rows each count in an answer."
