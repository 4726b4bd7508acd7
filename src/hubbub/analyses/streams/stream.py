"""A stream: its arrivals, its answers, and the state on disk that outlives the process.

    create_stream → (feed → feed → …) → values

A feeder states how many of its lines came before, so a line that is sent again after a crash or a lost response is
recognized and counted once. Answers are shown only after they are on disk, so a crash loses only noise that nobody
has seen.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.state import Arrays, OnStep, StoredState, no_step
from hubbub.analyses.streams.terms import Terms
from hubbub.errors import StreamError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource

FORMAT = 1
#: Maximum lines per call of `feed`, and characters per line.
MAX_LINES = 1 << 16
MAX_LINE_LENGTH = 200
#: Maximum number of feeders whose line counts a stream keeps.
MAX_FEEDERS = 1000

#: Half widths of 95% intervals in standard deviations: one Laplace sample (a bound for sums of several), and normal.
_LAPLACE, _NORMAL = 2.12, 1.96


@dataclass(frozen=True, slots=True)
class StreamValue:
    """One answer with its 95% confidence interval."""

    name: str
    value: float
    low: float
    high: float


class Stream:
    """A stream that this process has locked. Use `create_stream` or `open_stream`."""

    def __init__(self, path: Path, stored: StoredState, on_step: OnStep) -> None:
        self._path = path
        self._stored = stored
        self._on_step = on_step
        self.terms = Terms.read(stored.facts["terms"])

    # --- creation -----------------------------------------------------------------------------------------------------

    @classmethod
    def make(
        cls,
        path: Path,
        terms: Terms,
        source: RandomSource,
        *,
        identity: str | None = None,
        paid: dict[str, Any] | None = None,
        on_step: OnStep = no_step,
    ) -> Self:
        """Create a stream; its initial state is on disk when this returns."""
        if path.exists():
            raise StreamError("HB531", f"A stream named {terms.name} already exists.", "Choose another name.")
        facts = {
            "stream": FORMAT,
            "id": identity or token_hex(16),
            "terms": terms.to_json(),
            "paid": paid,
            "arrivals": 0,
            "feeders": {},
            "told": [],
        }
        stream = cls(path, StoredState(facts, _start(terms, source)), on_step)
        states.save(path, stream._stored, on_step)
        return stream

    @classmethod
    def load(cls, path: Path, on_step: OnStep = no_step) -> Self:
        """Load a stream from its file."""
        stored = states.load(path)
        if stored.facts.get("stream") != FORMAT:
            raise states.damaged()
        return cls(path, stored, on_step)

    # --- facts --------------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """The hash of the charge that paid for this stream, or a random id if it belongs to no dataset."""
        return str(self._stored.facts["id"])

    @property
    def paid(self) -> dict[str, Any] | None:
        """The analyst, dataset and charge that paid for it."""
        paid: dict[str, Any] | None = self._stored.facts["paid"]
        return paid

    @property
    def arrivals(self) -> int | None:
        """Number of arrivals in a count; None for a density, which does not count arrivals."""
        return None if self.terms.kind == "density" else int(self._stored.facts["arrivals"])

    @property
    def remaining(self) -> int | None:
        """Number of further arrivals that the stream accepts; None if unlimited."""
        return None if self.terms.horizon is None else self.terms.horizon - int(self._stored.facts["arrivals"])

    def lines_taken(self, feeder: str) -> int:
        """Return how many lines of a feeder were counted; 0 for a density, which does not count lines."""
        return 0 if self.terms.kind == "density" else int(self._stored.facts["feeders"].get(feeder, 0))

    # --- arrivals -----------------------------------------------------------------------------------------------------

    def feed(self, lines: Sequence[str], *, feeder: str, before: int | None = None, source: RandomSource) -> int:
        """Add lines, one arrival each, and return how many were new; all of them are on disk when this returns.

        `before` is the number of lines that this feeder sent before these. Lines that were counted already are skipped.

        A density counts no lines: a repeated line is one more arrival of its element, which changes neither the
        estimate nor the privacy guarantee.

        Theorem (Taken once). However often a feeder sends its lines to a count again, with crashes at any moment, each
        line is counted once, and no noise that anybody could have seen is sampled again.
        Proof    One rename replaces both the number of lines taken and all noise sampled for them. Before it, the old
                 number and the old noise are in place, and nothing that depends on the new noise was shown; after it,
                 lines up to the new number are skipped.
        Assumes  one holder at a time (`open_stream` locks); a feeder always numbers its lines in the same way; the disk
                 keeps what fsync confirmed.
        Tested   tests/analyses/streams/test_crash.py::test_a_kill_at_any_step_loses_nothing_and_draws_nothing_again
                 tests/analyses/streams/test_crash.py::test_a_feeder_that_is_killed_again_and_again_comes_to_the_same_count
        """
        self._refuse_undercharged()
        known, feeders = self.lines_taken(feeder), self._stored.facts["feeders"]
        skipped = 0 if before is None or self.terms.kind == "density" else known - before
        if skipped < 0:
            raise StreamError(
                "HB533",
                f"Lines are missing: {known} lines of feeder {feeder} were received, but before is {before}.",
                f"Resend the lines from {known + 1} on.",
            )
        fresh = list(lines[skipped:])
        if len(lines) > MAX_LINES or any(len(line) > MAX_LINE_LENGTH for line in fresh):
            raise StreamError(
                "HB533",
                f"A request can hold at most {MAX_LINES} lines of {MAX_LINE_LENGTH} characters each.",
                "Send fewer or shorter lines.",
            )
        if self.remaining is not None and len(fresh) > self.remaining:
            raise StreamError(
                "HB533",
                f"This stream ends after {self.terms.horizon} arrivals and accepts only {self.remaining} more.",
                "Create a new stream, or one over a window.",
            )
        if feeder not in feeders and len(feeders) >= MAX_FEEDERS:
            raise StreamError("HB533", f"A stream can have at most {MAX_FEEDERS} feeders.", "Reuse a feeder name.")
        if not fresh:
            return 0
        arrays = _add_arrivals(self.terms, self._stored.arrays, self.terms.parse_lines(fresh), source)
        arrivals = self._stored.facts["arrivals"] + len(fresh)
        self._keep(arrays, arrivals=arrivals, feeders={**feeders, feeder: known + len(fresh)})
        return len(fresh)

    # --- answers ------------------------------------------------------------------------------------------------------

    def draw_answer(self, source: RandomSource) -> None:
        """Sample the next answer of a density; it is on disk when this returns, and `values` shows it from then on."""
        if self.terms.kind != "density":
            raise StreamError(
                "HB534",
                "Only a density stream answers on request; a count is updated after every arrival.",
                "Read the current count instead.",
            )
        self._refuse_undercharged()
        told = self._stored.facts["told"]
        if len(told) >= self.terms.outputs:
            raise StreamError(
                "HB534",
                f"This stream has already given all of its answers ({self.terms.outputs}).",
                "Read the earlier answers, or create a new stream.",
            )
        bits = _unpacked(self._stored.arrays["bits"], self.terms.density.size)
        noisy = self.terms.density.noisy_count(bits, source)
        self._keep(self._stored.arrays, told=[*told, {"ones": noisy}])

    def values(self) -> tuple[StreamValue, ...]:
        """Return the latest answer: one value per bin for a count, a single value for a density."""
        if self.terms.kind == "density":
            answers, density = self.answers(), self.terms.density
            if not answers:
                return ()
            latest = answers[-1]
            half = _LAPLACE * density.deviation(Fraction(latest).limit_denominator(10**6))
            return (StreamValue("density", latest, latest - half, latest + half),)
        newest, deviation = self._newest()
        wide = _LAPLACE if isinstance(self.terms.counter.noise, Laplace) else _NORMAL
        names = self.terms.bins or ("count",)
        return tuple(
            StreamValue(name, value, value - wide * deviation, value + wide * deviation)
            for name, value in zip(names, newest.tolist(), strict=True)
        )

    def series(self) -> NDArray[np.float64]:
        """Return all running counts of the horizon or of the current block: a row per arrival, a column per bin."""
        return self.terms.counter.estimates(_counting(self._stored.arrays))

    def answers(self) -> list[float]:
        """List the answers of a density so far."""
        density = self.terms.density
        return [density.estimate(each["ones"]) for each in self._stored.facts["told"]]

    def to_json(self) -> dict[str, Any]:
        """Return its public facts as JSON values."""
        counts = self.terms.kind == "count"
        return {
            "name": self.terms.name,
            "terms": self.terms.to_json(),
            "paid": self.paid,
            "arrivals": self.arrivals,
            "values": [
                {"name": each.name, "value": each.value, "low": each.low, "high": each.high} for each in self.values()
            ],
            "told": [] if counts else [{"value": value} for value in self.answers()],
            "answers_left": None if counts else self.terms.outputs - len(self._stored.facts["told"]),
            "state": "private" if self.terms.private_state or not counts else "secret",
        }

    def _newest(self) -> tuple[NDArray[np.float64], float]:
        """Return the latest running counts and their deviation; a window combines the previous block and this one."""
        counter, arrays = self.terms.counter, self._stored.arrays
        now, time = counter.latest(_counting(arrays)), _time(arrays)
        deviation = counter.deviation(0, time)
        if "previous" not in arrays:
            return now, deviation
        before = arrays["previous"].astype(np.float64)
        rest = before[-1] - (before[time - 1] if time else 0.0)
        return now + rest, float(np.hypot(deviation, counter.deviation(time, self.terms.length)))

    def _refuse_undercharged(self) -> None:
        if self.terms.undercharged:
            raise StreamError(
                "HB666",
                "This stream was charged for one changed element, but replacing a privacy unit changes two.",
                "Read its earlier answers if you need them, then end it and create a new stream.",
            )

    def _keep(self, arrays: Arrays, **changes: Any) -> None:
        facts = {**self._stored.facts, **changes}
        if self.terms.kind == "density":
            # the state must not reveal the number of arrivals; states of earlier versions recorded it
            facts |= {"arrivals": 0, "feeders": {}, "told": [{"ones": each["ones"]} for each in facts["told"]]}
        stored = replace(self._stored, facts=facts, arrays=arrays)
        self._on_step("drawn")
        states.save(self._path, stored, self._on_step)
        self._stored = stored


@contextmanager
def open_stream(folder: Path, name: str, on_step: OnStep = no_step) -> Iterator[Stream]:
    """Lock a stream of a folder and load it."""
    if not states.path_of(folder, name).exists():
        raise states.missing(name)
    with states.lock_stream(folder, name) as path:
        path.with_suffix(".new").unlink(
            missing_ok=True
        )  # left by a crash: unseen noise, and a second copy of the state
        yield Stream.load(path, on_step)


@contextmanager
def create_stream(folder: Path, terms: Terms, source: RandomSource) -> Iterator[Stream]:
    """Create a stream that belongs to no dataset, and lock it."""
    with states.lock_stream(folder, terms.name) as path:
        yield Stream.make(path, terms, source)


def _start(terms: Terms, source: RandomSource) -> Arrays:
    if terms.kind == "density":
        return {"bits": np.packbits(terms.density.start(source))}
    return terms.counter.start(source)


def _add_arrivals(terms: Terms, arrays: Arrays, arrived: NDArray[np.int64], source: RandomSource) -> Arrays:
    if terms.kind == "density":
        density = terms.density
        return {"bits": np.packbits(density.take(_unpacked(arrays["bits"], density.size), arrived, source))}
    counter, previous = terms.counter, {k: v for k, v in arrays.items() if k == "previous"}
    running = _counting(arrays)
    while terms.window is not None and len(arrived) >= terms.window - _time(running):
        # the block is full: keep its answers for the window, and start a new one
        remaining = terms.window - _time(running)
        running = counter.take(running, arrived[:remaining], source)
        previous, arrived = {"previous": counter.estimates(running)}, arrived[remaining:]
        running = counter.start(source)
    if len(arrived):
        running = counter.take(running, arrived, source)
    return {**running, **previous}


def _counting(arrays: Arrays) -> Arrays:
    return {name: each for name, each in arrays.items() if name != "previous"}


def _time(running: Arrays) -> int:
    return len(running["answers"] if "answers" in running else running["measured"])


def _unpacked(packed: NDArray[np.generic], size: int) -> NDArray[np.bool_]:
    return np.unpackbits(packed.astype(np.uint8), count=size).astype(np.bool_)
