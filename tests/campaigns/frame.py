"""The frame of every campaign and benchmark: scale from the environment, progress, JSON figures, targets that can fail.

Run one from the project's root, for example `HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.noise`.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")
#: Seconds between two lines of a log.
_MINUTE = 60
Figure = int | float | str | bool | None | list["Figure"] | dict[str, "Figure"]


class Report:
    """Collects the figures of one run and remembers which targets were missed."""

    def __init__(self, *, full: bool) -> None:
        self.full = full
        self.figures: dict[str, Figure] = {"campaign": "full" if full else "ci"}
        self.missed: list[str] = []
        self._console = Console(stderr=True)

    def scale(self, *, ci: int, full: int) -> int:
        """Choose a size: small in CI, large on demand."""
        return full if self.full else ci

    def parts(self, *known: str) -> tuple[str, ...]:
        """Choose parts by HUBBUB_PARTS, all of them where it is not set; one that there is not would check nothing."""
        chosen = tuple(os.environ.get("HUBBUB_PARTS", ",".join(known)).split(","))
        if not set(chosen) <= set(known):
            sys.exit(f"HUBBUB_PARTS={','.join(chosen)!r}: say some of {','.join(known)}")
        return chosen

    def progress(self, steps: Iterable[T], label: str) -> Iterator[T]:
        """Iterate with a progress bar on standard error; in a log, with a line a minute."""
        every = list(steps)
        if self._console.is_terminal:
            yield from track(every, description=label, console=self._console)
            return
        said = time.monotonic()
        for place, step in enumerate(every):
            if time.monotonic() - said > _MINUTE:
                said = time.monotonic()
                self.say(f"{label}: {place:,} of {len(every):,}")
            yield step

    def say(self, text: str) -> None:
        """Tell a person, on standard error."""
        self._console.print(text)

    def figure(self, name: str, value: Figure) -> None:
        """Record a measured figure."""
        self.figures[name] = value

    def target(self, name: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        """Record a figure that has a target; a figure outside (or NaN) fails the run."""
        met = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
        self.figures[name] = value
        if not met:
            self.missed.append(name)
        bound = f"≥ {at_least}" if at_least is not None else f"≤ {at_most}"
        self.say(f"{'met   ' if met else 'MISSED'} {name} = {value:.6g} (target {bound})")


def run(body: Callable[[Report], None]) -> None:
    """Run a campaign, print its figures as one JSON object on the last line, exit 1 where a target was missed."""
    choice = os.environ.get("HUBBUB_CAMPAIGN", "ci")
    if choice not in ("ci", "full"):
        sys.exit(f"HUBBUB_CAMPAIGN={choice!r}: say ci or full")
    report = Report(full=choice == "full")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hubbub-state-") as state:
        os.environ["XDG_STATE_HOME"] = state  # for the anchors of ledgers that last no longer
        body(report)
    report.figures["seconds"] = round(time.perf_counter() - start, 1)
    report.figures["missed"] = list(report.missed)
    print(json.dumps(report.figures))
    sys.exit(1 if report.missed else 0)
