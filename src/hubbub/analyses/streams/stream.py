"""A stream at work: arrivals in, answers out, and between two of them a state that outlives the process.

    make → (feed → feed → …) → said

Whoever feeds says how many lines of its own came before, so that a line that is sent again, after a kill or a lost
answer, is recognized and not taken twice. Nothing is shown that is not yet on the disk, so a kill between a draw and
its writing loses draws that nobody saw, and no others.
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
from hubbub.analyses.streams.state import Arrays, OnStep, Stored, no_step
from hubbub.analyses.streams.terms import Terms
from hubbub.errors import StreamError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Source

FORMAT = 1
#: Lines of one feeding, and characters of one line.
MOST_LINES = 1 << 16
LONGEST_LINE = 200
#: Feeders that a stream remembers.
MOST_FEEDERS = 1000

#: Half widths of 95% intervals in standard deviations: of one Laplace draw, which bounds that of several, and normal.
_LAPLACE, _NORMAL = 2.12, 1.96


@dataclass(frozen=True, slots=True)
class Value:
    """One answer with its 95% interval."""

    name: str
    value: float
    low: float
    high: float


class Stream:
    """A stream that this process holds. Use `made` or `opened`."""

    def __init__(self, path: Path, stored: Stored, on_step: OnStep) -> None:
        self._path = path
        self._stored = stored
        self._on_step = on_step
        self.terms = Terms.read(stored.facts["terms"])

    # --- beginning ----------------------------------------------------------------------------------------------------

    @classmethod
    def make(
        cls,
        path: Path,
        terms: Terms,
        source: Source,
        *,
        identity: str | None = None,
        paid: dict[str, Any] | None = None,
        on_step: OnStep = no_step,
    ) -> Self:
        """Begin a stream: its first draws are on the disk when this returns."""
        if path.exists():
            raise StreamError("HB531", f"there is a stream called {terms.name} already.", "Choose another name.")
        facts = {
            "stream": FORMAT,
            "id": identity or token_hex(16),
            "terms": terms.form(),
            "paid": paid,
            "arrivals": 0,
            "feeders": {},
            "told": [],
        }
        made = cls(path, Stored(facts, _start(terms, source)), on_step)
        states.save(path, made._stored, on_step)
        return made

    @classmethod
    def load(cls, path: Path, on_step: OnStep = no_step) -> Self:
        """Go on with a stream."""
        stored = states.load(path)
        if stored.facts.get("stream") != FORMAT:
            raise states.damaged()
        return cls(path, stored, on_step)

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """Which charge, or which making, this stream belongs to."""
        return str(self._stored.facts["id"])

    @property
    def paid(self) -> dict[str, Any] | None:
        """By whom, and on which dataset, it was paid for."""
        found: dict[str, Any] | None = self._stored.facts["paid"]
        return found

    @property
    def arrivals(self) -> int | None:
        """How many arrivals a count has taken; None of a density, which keeps no such number."""
        return None if self.terms.kind == "density" else int(self._stored.facts["arrivals"])

    @property
    def room(self) -> int | None:
        """How many more arrivals can be taken; None where there is no end."""
        return None if self.terms.horizon is None else self.terms.horizon - int(self._stored.facts["arrivals"])

    def taken(self, feeder: str) -> int:
        """Say how many lines of a feeder were taken; 0 of a density, which does not count them."""
        return 0 if self.terms.kind == "density" else int(self._stored.facts["feeders"].get(feeder, 0))

    # --- arrivals -----------------------------------------------------------------------------------------------------

    def feed(self, lines: Sequence[str], *, feeder: str, before: int | None = None, source: Source) -> int:
        """Take lines, one arrival each, and say how many were new; all of them are on the disk when this returns.

        `before` says how many lines of this feeder came before these: those that were taken already are passed over.

        A density counts no lines: a line that comes again is one more arrival of its element, which changes neither
        the estimate nor the promise.

        Theorem (Taken once). However often a feeder sends its lines to a count again, through kills at any moment, each
        of them is taken once, and no draw that anybody could have seen is made again.
        Proof    The number of lines taken and everything drawn for them are replaced by one rename. Before it, the old
                 number and the old draws stand, and nothing that depends on new ones was shown; after it, lines up to
                 the new number are passed over.
        Assumes  one holder at a time (`opened` locks); a feeder numbers its lines in one way; the disk keeps its word.
        Tested   tests/analyses/streams/test_crash.py::test_a_kill_at_any_step_loses_nothing_and_draws_nothing_again
                 tests/analyses/streams/test_crash.py::test_a_feeder_that_is_killed_again_and_again_comes_to_the_same_count
        """
        self._refuse_undercharged()
        known, feeders = self.taken(feeder), self._stored.facts["feeders"]
        skipped = 0 if before is None or self.terms.kind == "density" else known - before
        if skipped < 0:
            raise StreamError(
                "HB533",
                f"{known} lines of {feeder} were taken, and these begin after {before}.",
                "Send what lies between first.",
            )
        fresh = list(lines[skipped:])
        if len(lines) > MOST_LINES or any(len(line) > LONGEST_LINE for line in fresh):
            raise StreamError(
                "HB533", f"at most {MOST_LINES} lines of {LONGEST_LINE} characters are taken at once.", "Send fewer."
            )
        if self.room is not None and len(fresh) > self.room:
            raise StreamError(
                "HB533",
                f"this stream ends after {self.terms.horizon} arrivals, and {self.room} more can be taken.",
                "Make a new stream, or one over a window.",
            )
        if feeder not in feeders and len(feeders) >= MOST_FEEDERS:
            raise StreamError("HB533", f"a stream has at most {MOST_FEEDERS} feeders.", "Use one of the names again.")
        if not fresh:
            return 0
        arrays = _taken(self.terms, self._stored.arrays, self.terms.numbered(fresh), source)
        arrivals = self._stored.facts["arrivals"] + len(fresh)
        self._keep(arrays, arrivals=arrivals, feeders={**feeders, feeder: known + len(fresh)})
        return len(fresh)

    # --- answers ------------------------------------------------------------------------------------------------------

    def tell(self, source: Source) -> None:
        """Draw one of a density's answers; it is on the disk when this returns, and shows from then on."""
        if self.terms.kind != "density":
            raise StreamError("HB534", "a count is answered after every arrival, by itself.", "Read it.")
        self._refuse_undercharged()
        told = self._stored.facts["told"]
        if len(told) >= self.terms.outputs:
            raise StreamError(
                "HB534", f"all {self.terms.outputs} answers of this stream are given.", "Read them, or make a new one."
            )
        bits = _unpacked(self._stored.arrays["bits"], self.terms.density.size)
        noisy = self.terms.density.tell(bits, source)
        self._keep(self._stored.arrays, told=[*told, {"ones": noisy}])

    def values(self) -> tuple[Value, ...]:
        """Give the newest answer: of a count for each bin, of a density for the whole."""
        if self.terms.kind == "density":
            told, made = self._stored.facts["told"], self.terms.density
            if not told:
                return ()
            found = made.estimate(told[-1]["ones"])
            half = _LAPLACE * made.deviation(Fraction(found).limit_denominator(10**6))
            return (Value("density", found, found - half, found + half),)
        newest, deviation = self._newest()
        wide = _LAPLACE if isinstance(self.terms.counter.noise, Laplace) else _NORMAL
        names = self.terms.bins or ("count",)
        return tuple(
            Value(name, value, value - wide * deviation, value + wide * deviation)
            for name, value in zip(names, newest.tolist(), strict=True)
        )

    def series(self) -> NDArray[np.float64]:
        """Give all running counts of the horizon, or of the block that runs: one row an arrival, one column a bin."""
        return self.terms.counter.estimates(_counting(self._stored.arrays))

    def told(self) -> list[float]:
        """List a density's answers."""
        made = self.terms.density
        return [made.estimate(each["ones"]) for each in self._stored.facts["told"]]

    def form(self) -> dict[str, Any]:
        """Give what is public of it, for JSON."""
        counts = self.terms.kind == "count"
        return {
            "name": self.terms.name,
            "terms": self.terms.form(),
            "paid": self.paid,
            "arrivals": self.arrivals,
            "values": [
                {"name": each.name, "value": each.value, "low": each.low, "high": each.high} for each in self.values()
            ],
            "told": [] if counts else [{"value": value} for value in self.told()],
            "answers_left": None if counts else self.terms.outputs - len(self._stored.facts["told"]),
            "state": "private" if self.terms.private_state or not counts else "secret",
        }

    def _newest(self) -> tuple[NDArray[np.float64], float]:
        """Give the newest running counts and their deviation; over a window, from the block before and this one."""
        counter, arrays = self.terms.counter, self._stored.arrays
        now, place = counter.latest(_counting(arrays)), _time(arrays)
        deviation = counter.deviation(0, place)
        if "previous" not in arrays:
            return now, deviation
        before = arrays["previous"].astype(np.float64)
        rest = before[-1] - (before[place - 1] if place else 0.0)
        return now + rest, float(np.hypot(deviation, counter.deviation(place, self.terms.length)))

    def _refuse_undercharged(self) -> None:
        if self.terms.undercharged:
            raise StreamError(
                "HB666",
                "this stream was charged for one element, and a replaced unit changes two.",
                "Its earlier answers can be read. End it and buy a new stream.",
            )

    def _keep(self, arrays: Arrays, **changes: Any) -> None:
        facts = {**self._stored.facts, **changes}
        if self.terms.kind == "density":
            # a look into the state must not tell how many arrivals there were: states of before did
            facts |= {"arrivals": 0, "feeders": {}, "told": [{"ones": each["ones"]} for each in facts["told"]]}
        stored = replace(self._stored, facts=facts, arrays=arrays)
        self._on_step("drawn")
        states.save(self._path, stored, self._on_step)
        self._stored = stored


@contextmanager
def opened(folder: Path, name: str, on_step: OnStep = no_step) -> Iterator[Stream]:
    """Hold a stream of a folder and go on with it."""
    if not states.path_of(folder, name).exists():
        raise states.missing(name)
    with states.held(folder, name) as path:
        path.with_suffix(".new").unlink(missing_ok=True)  # of a kill: draws that nobody saw, and a second look
        yield Stream.load(path, on_step)


@contextmanager
def made(folder: Path, terms: Terms, source: Source) -> Iterator[Stream]:
    """Make a stream that belongs to no dataset, and hold it."""
    with states.held(folder, terms.name) as path:
        yield Stream.make(path, terms, source)


def _start(terms: Terms, source: Source) -> Arrays:
    if terms.kind == "density":
        return {"bits": np.packbits(terms.density.start(source))}
    return terms.counter.start(source)


def _taken(terms: Terms, arrays: Arrays, arrived: NDArray[np.int64], source: Source) -> Arrays:
    if terms.kind == "density":
        made = terms.density
        return {"bits": np.packbits(made.take(_unpacked(arrays["bits"], made.size), arrived, source))}
    counter, previous = terms.counter, {k: v for k, v in arrays.items() if k == "previous"}
    running = _counting(arrays)
    while terms.window is not None and len(arrived) >= terms.window - _time(running):
        # the block is full: its answers are kept for the window's sake, and a new one begins
        room = terms.window - _time(running)
        running = counter.take(running, arrived[:room], source)
        previous, arrived = {"previous": counter.estimates(running)}, arrived[room:]
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
