"""How things look in a terminal."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hubbub.errors import HubbubError


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Show names with what is to be said about each."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", min_width=9, no_wrap=True)
    grid.add_column()
    for name, text in rows:
        grid.add_row(name, text)
    return grid


def table(headings: Iterable[str], rows: Iterable[Iterable[str]], *, right: Iterable[int] = ()) -> Table:
    """Show a table; the columns at the places in `right` hold numbers."""
    shown = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2))
    numbers = set(right)
    for place, heading in enumerate(headings):
        shown.add_column(escape(heading), justify="right" if place in numbers else "left")
    for row in rows:
        shown.add_row(*map(escape, row))
    return shown


def sentences(lines: Iterable[str]) -> Table:
    """Show sentences, each behind a dot; what does not fit on a line goes on below its beginning."""
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row(" ·", escape(line))
    return grid


def problem(found: HubbubError) -> Table:
    """Show what is wrong and what to do about it."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold red", no_wrap=True)
    grid.add_column()
    grid.add_row(found.code, escape(found.message))
    if found.remedy:
        grid.add_row("", f"[dim]{escape(found.remedy)}[/]")
    return grid


def error(console: Console, found: HubbubError) -> None:
    """Print what is wrong and what to do about it."""
    console.print(problem(found))
