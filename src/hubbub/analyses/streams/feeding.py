"""Where arrivals come from: the lines of a file or of a pipe, as they come."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from hubbub.analyses.streams.state import OnStep, no_step
from hubbub.analyses.streams.stream import LONGEST_LINE, MOST_LINES, opened
from hubbub.errors import StreamError
from hubbub.noise.source import Source

_CHUNK = 1 << 16
_PAUSE = 0.2


def feed(
    folder: Path,
    name: str,
    file: int,
    *,
    feeder: str,
    resume: bool,
    follow: bool,
    source: Source,
    on_step: OnStep = no_step,
) -> tuple[int, int]:
    """Take whole lines from a file descriptor until its end (or for ever): how many were new, and how many old.

    With `resume`, lines of this feeder that were taken by an earlier run are passed over: they are counted from the
    beginning of what is read. The stream is held for each batch only, so that others may read it meanwhile.
    """
    with opened(folder, name) as stream:
        old = stream.taken(feeder) if resume else 0
        place = 0 if resume else stream.taken(feeder)
        room = stream.room
    new, passed = 0, 0
    for lines in _lines(file, follow=follow):
        if not lines:
            if place < old:
                raise StreamError(
                    "HB533",
                    f"{old} lines of {feeder} were taken, and only {place} are there: another file?",
                    "Name another --feeder for it, or feed the one that was.",
                )
            continue
        if resume and place + len(lines) <= old:
            place, passed = place + len(lines), passed + len(lines)
            continue
        if room is not None:
            # what is beyond the horizon is not taken, and the rest is not lost for that
            lines = lines[: room + max(0, old - place)]
        with opened(folder, name, on_step) as stream:
            taken = stream.feed(lines, feeder=feeder, before=place, source=source)
            room = stream.room
        new, passed, place = new + taken, passed + len(lines) - taken, place + len(lines)
        if room == 0:
            break
    return new, passed


def open_file(path: Path) -> int:
    """Open a file to be fed."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StreamError("HB533", f"{path} cannot be read ({error.strerror}).", "Name a file that can.") from None


def _lines(file: int, *, follow: bool) -> Iterator[list[str]]:
    """Give whole lines, as many as there are at once; one that has no end yet waits for it."""
    rest = b""
    while True:
        chunk = os.read(file, _CHUNK)
        if not chunk:
            yield []  # the end, for now
            if not follow:
                return
            time.sleep(_PAUSE)
            continue
        *whole, rest = (rest + chunk).split(b"\n")
        # a line of absurd length is nobody's, and is not kept in memory for its end
        rest = rest if len(rest) <= _CHUNK else b"\0" * _CHUNK
        for start in range(0, len(whole), MOST_LINES):
            yield [_text(line) for line in whole[start : start + MOST_LINES]]


def _text(line: bytes) -> str:
    """Read one line; what is too long is the arrival of nothing."""
    return line.decode("utf-8", errors="replace").strip() if len(line) <= LONGEST_LINE else ""
