"""Tables, lists and errors for the terminal.

Tested in tests/cli/test_cli.py.
"""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hubbub.errors import HubbubError


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Return a two-column grid of names and texts."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", min_width=9, no_wrap=True)
    grid.add_column()
    for name, text in rows:
        grid.add_row(name, text)
    return grid


def table(headings: Iterable[str], rows: Iterable[Iterable[str]], *, right: Iterable[int] = ()) -> Table:
    """Return a table; the columns with an index in `right` are right-aligned."""
    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2))
    numeric = set(right)
    for index, heading in enumerate(headings):
        grid.add_column(escape(heading), justify="right" if index in numeric else "left")
    for row in rows:
        grid.add_row(*map(escape, row))
    return grid


def sentences(lines: Iterable[str]) -> Table:
    """Return a bulleted list of sentences with a hanging indent."""
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row(" ·", escape(line))
    return grid


def problem(error: HubbubError) -> Table:
    """Return a grid with the code, the message and the remedy of an error."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold red", no_wrap=True)
    grid.add_column()
    grid.add_row(error.code, escape(error.message))
    if error.remedy:
        grid.add_row("", f"[dim]{escape(error.remedy)}[/]")
    return grid


def print_error(console: Console, error: HubbubError) -> None:
    """Print an error."""
    console.print(problem(error))
