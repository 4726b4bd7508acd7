"""Feed a stream with the lines of a file or a pipe as they arrive.

Tested in tests/analyses/streams/test_crash.py.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from hubbub.analyses.streams.state import OnStep, no_step
from hubbub.analyses.streams.stream import MAX_LINE_LENGTH, MAX_LINES, open_stream
from hubbub.errors import StreamError
from hubbub.noise.source import RandomSource

_CHUNK = 1 << 16
_PAUSE = 0.2


def feed_lines(
    folder: Path,
    name: str,
    file: int,
    *,
    feeder: str,
    resume: bool,
    follow: bool,
    source: RandomSource,
    on_step: OnStep = no_step,
) -> tuple[int, int]:
    """Feed complete lines from a file descriptor until its end, or forever; return how many were new and skipped.

    With `resume`, lines that an earlier run of this feeder took are skipped, counting from the start of the input. The
    stream is locked for one batch at a time, so that others can read it in between.
    """
    with open_stream(folder, name) as stream:
        old = stream.lines_taken(feeder) if resume else 0
        position = 0 if resume else stream.lines_taken(feeder)
        remaining = stream.remaining
    new, skipped = 0, 0
    for lines in _lines(file, follow=follow):
        if not lines:
            if position < old:
                raise StreamError(
                    "HB533",
                    f"The input has {position} lines, but {old} lines of feeder {feeder} were already taken.",
                    "Pass the same file again, or choose another --feeder for this one.",
                )
            continue
        if resume and position + len(lines) <= old:
            position, skipped = position + len(lines), skipped + len(lines)
            continue
        if remaining is not None:
            # lines beyond the horizon are dropped; those before it still count
            lines = lines[: remaining + max(0, old - position)]
        with open_stream(folder, name, on_step) as stream:
            taken = stream.feed(lines, feeder=feeder, before=position, source=source)
            remaining = stream.remaining
        new, skipped, position = new + taken, skipped + len(lines) - taken, position + len(lines)
        if remaining == 0:
            break
    return new, skipped


def open_file(path: Path) -> int:
    """Open an input file."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StreamError("HB533", f"Cannot read {path} ({error.strerror}).", "Pass a readable file.") from None


def _lines(file: int, *, follow: bool) -> Iterator[list[str]]:
    """Yield complete lines, as many as are available at once; an incomplete line waits for its end."""
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
        # an overlong line is invalid anyway, so do not keep it in memory until its end
        rest = rest if len(rest) <= _CHUNK else b"\0" * _CHUNK
        for start in range(0, len(whole), MAX_LINES):
            yield [_text(line) for line in whole[start : start + MAX_LINES]]


def _text(line: bytes) -> str:
    """Decode one line; an overlong line becomes an empty arrival."""
    return line.decode("utf-8", errors="replace").strip() if len(line) <= MAX_LINE_LENGTH else ""
