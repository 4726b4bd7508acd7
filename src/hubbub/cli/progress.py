"""Report on standard error how far a long computation is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hubbub.attacks.base import Progress as Report


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
