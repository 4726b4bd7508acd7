"""Report on standard error how far long work is.

Tested in tests/cli/test_progress.py.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hubbub.answers.options import Progress as Report
from hubbub.answers.options import ignore_progress


@contextmanager
def progress(name: str) -> Iterator[Report]:
    """Show a bar in a terminal, and one line per step elsewhere."""
    if not sys.stderr.isatty():
        steps: list[str] = []

        def write_line(share: float, step: str) -> None:
            if step not in steps[-1:]:
                steps.append(step)
                sys.stderr.write(f"{name}: {share:4.0%} {step}\n")

        yield write_line
        return
    bar = Progress(
        TextColumn(name),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda share, step: bar.update(task, completed=share, description=escape(step))


@contextmanager
def working(step: str) -> Iterator[Report]:
    """Show in a terminal what is done and for how long; a bar, as soon as a share of the work is reported.

    A query reports none: the progress of its engine would depend on the data. The steps of an analysis follow from its
    call alone.
    """
    if not sys.stderr.isatty():
        yield ignore_progress
        return
    shown = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(step), total=None)

        def report(share: float, what: str) -> None:
            bar.columns = (*shown[:2], BarColumn(), *shown[2:])
            bar.update(task, total=1.0, completed=share, description=escape(what))

        yield report
