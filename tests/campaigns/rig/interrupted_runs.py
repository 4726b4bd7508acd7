"""Interrupt a run at every step, retry it on its charge, and record what each attempt did."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from tests.analyses.conftest import EXAMPLES

from hubbub.analyses.functions.function import FunctionRequest
from hubbub.answers.release import Release
from hubbub.core.secret import Secret
from hubbub.curator import Curator
from hubbub.curator.question import Question
from hubbub.engines.base import Arrays
from hubbub.errors import HubbubError
from hubbub.mechanisms.exponential import Exponential
from hubbub.noise.source import RandomSource, Words

#: One query of each kind, on the tables of the analyses.
QUERIES = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT region, SUM(z) AS z, AVG(x) AS x FROM people GROUP BY region",
    "SELECT z, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY z",
    "SELECT sick, MEDIAN(age) AS m FROM people GROUP BY sick",
    "SELECT region, item, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region, item)",
    "SELECT COUNT(DISTINCT patient) AS n FROM visits",
    "SELECT region FROM people GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2",
    "SELECT MODE(region) AS m, MIN(age) AS low FROM people",
)


#: A query with discovered groups, at an ε where several are released, so that their order matters.
FOUND = QUERIES[2]


class StoppedError(BaseException):
    """Simulates a kill: no handler of the product catches it."""


@dataclass
class RunTrace:
    """The steps of one run: statements, random words, visible steps, and its release."""

    stop: int | None = None  #: number of the point of interruption, from 0
    fail: bool = False  #: interrupt by an error instead of a kill
    events: list[tuple[str, str]] = field(default_factory=list)
    points: int = 0
    ended: str = ""

    def note(self, kind: str, what: str) -> None:
        self.events.append((kind, sha256(what.encode()).hexdigest()[:16] if kind == "statement" else what))

    def point(self) -> None:
        """Reach a point where a run may be interrupted."""
        self.points += 1
        if self.stop is not None and self.points - 1 == self.stop:
            raise RuntimeError("as an engine fails") if self.fail else StoppedError

    @property
    def drawn(self) -> list[str]:
        return [what for kind, what in self.events if kind == "words"]

    def begins(self, whole: "RunTrace") -> bool:
        """Return whether another run starts with the same steps."""
        return self.events == whole.events[: len(self.events)]


class _Words:
    def __init__(self, source: RandomSource, trace: RunTrace) -> None:
        self._source, self._trace = source, trace

    def words(self, count: int) -> Words:
        discovery_query = self._source.words(count)
        self._trace.note("words", sha256(discovery_query.tobytes()).hexdigest())
        return discovery_query


def shuffled(arrays: Arrays) -> Arrays:
    """Shuffle the rows of a result, as an engine may; the draws must not depend on the order."""
    size = len(next(iter(arrays.values()))) if arrays else 0
    order = np.random.default_rng().permutation(size)
    return {name: values[order] for name, values in arrays.items()}


class _Engine:
    """An engine with an interruption point before and after each statement, and shuffled rows."""

    def __init__(self, engine: Any, trace: RunTrace) -> None:
        self._engine, self._trace = engine, trace
        self.dialect = engine.dialect

    def run(self, sql: str) -> Secret[Arrays]:
        self._trace.point()
        self._trace.note("statement", sql)
        discovery_query: Secret[Arrays] = self._engine.run(sql)
        self._trace.point()
        return Secret(discovery_query.through(shuffled))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@contextmanager
def trace_run(curator: Curator, trace: RunTrace) -> Iterator[None]:
    """Record a run, and interrupt it where the trace says."""
    engine, sources, record = curator.engine, curator._draws.sources, curator.ledger.record

    def recorded(charge: Any, body: bytes) -> bytes:
        trace.note("record", sha256(body).hexdigest())
        trace.point()
        discovery_query = record(charge, body)
        trace.point()
        return discovery_query

    curator.engine = _Engine(engine, trace)
    curator._draws.sources = lambda seed: _Words(sources(seed), trace)
    curator.ledger.record = recorded  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        curator.engine, curator._draws.sources = engine, sources
        curator.ledger.record = record  # type: ignore[method-assign]


def attempt(curator: Curator, question: Question, key: str | None, trace: RunTrace) -> Release | None:
    """Run once; return None if it was interrupted or failed (the trace has the error code)."""

    def progress(done: float, what: str) -> None:
        trace.note("step", f"{done} {what}")
        trace.point()

    with trace_run(curator, trace):
        try:
            return curator.query("ana", question, key=key, progress=progress, cancelled=lambda: True)
        except StoppedError:
            trace.ended = "killed"
        except HubbubError as error:
            trace.ended = error.code
    return None


def every_stop(
    curator: Curator, question: Question, key: str, stops: Iterable[int] = range(1000)
) -> tuple[list[RunTrace], Release | None]:
    """Interrupt the run of one charge at each of these points, by kills and by errors; then let it finish."""
    tries: list[RunTrace] = []
    for stop in (*stops, None):
        tries.append(RunTrace(stop=stop, fail=stop is not None and stop % 3 == 1))
        release = attempt(curator, question, key, tries[-1])
        if release is not None:
            return tries, release
    return tries, None


def discovery_query() -> Question:
    """Return a query with discovered groups."""
    return Question(FOUND, epsilon="20", delta="1e-6")


def all_queries() -> Iterator[tuple[str, Question]]:
    """Yield every analysis, every kind of query, and a user-defined function."""
    for name, call in sorted(EXAMPLES.items()):
        yield name, Question(call, epsilon="0.5")
    for sql in QUERIES:
        yield sql, discovery_query() if sql == FOUND else Question(sql, epsilon="0.5")
    own = FunctionRequest.of(
        lambda rows: float(np.nansum(rows["x"])), "people", ["x"], sensitivity=2, step="0.01", bounds=(-500, 500)
    )
    yield "release", Question(own.text, epsilon="0.5", user_function=own.prepare)


@contextmanager
def first_selection() -> Iterator[list[tuple[Exponential, list[int]]]]:
    """Record the mechanism and the exact scores of every selection."""
    noted: list[tuple[Exponential, list[int]]] = []
    real: Callable[..., int] = Exponential.sample

    def sample(self: Exponential, value: Any, source: RandomSource) -> int:
        noted.append((self, [int(each) for each in value]))
        return real(self, value, source)

    Exponential.sample = sample  # type: ignore[method-assign]
    try:
        yield noted
    finally:
        Exponential.sample = real  # type: ignore[method-assign]


def likelihood(rate: float, one: Sequence[int], other: Sequence[int]) -> float:
    """Return the largest log-likelihood ratio of a selection, Pr ∝ exp(rate·score), for two score vectors."""

    def log_shares(scores: Sequence[int]) -> list[float]:
        top = max(scores)
        whole = math.log(math.fsum(math.exp(rate * (each - top)) for each in scores))
        return [rate * (each - top) - whole for each in scores]

    return max(abs(p - q) for p, q in zip(log_shares(one), log_shares(other), strict=True))
