"""Runs that are stopped at every step and tried again on their charge: what each drew, asked and showed, in order."""

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

#: Of each kind of query in SQL one, over tables of the analyses' town.
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


#: The query whose groups are found, at a price at which several show: of one alone there is no order.
FOUND = QUERIES[2]


class StoppedError(BaseException):
    """The process is taken for killed here: no handler of the product sees it."""


@dataclass
class RunTrace:
    """What one run did, in order: statements, words, steps that show, and the release it would record."""

    stop: int | None = None  #: at which point it is stopped, counted from 0
    fail: bool = False  #: by an error instead of a kill
    events: list[tuple[str, str]] = field(default_factory=list)
    points: int = 0
    ended: str = ""

    def note(self, kind: str, what: str) -> None:
        self.events.append((kind, sha256(what.encode()).hexdigest()[:16] if kind == "statement" else what))

    def point(self) -> None:
        """Come to a point where a run may be stopped."""
        self.points += 1
        if self.stop is not None and self.points - 1 == self.stop:
            raise RuntimeError("as an engine fails") if self.fail else StoppedError

    @property
    def drawn(self) -> list[str]:
        return [what for kind, what in self.events if kind == "words"]

    def begins(self, whole: "RunTrace") -> bool:
        """Say whether another run went on exactly as this one began."""
        return self.events == whole.events[: len(self.events)]


class _Words:
    def __init__(self, source: RandomSource, trace: RunTrace) -> None:
        self._source, self._trace = source, trace

    def words(self, count: int) -> Words:
        discovery_query = self._source.words(count)
        self._trace.note("words", sha256(discovery_query.tobytes()).hexdigest())
        return discovery_query


def shuffled(arrays: Arrays) -> Arrays:
    """Put the rows of a result in another order, as an engine may: which row gets which draw must not depend on it."""
    size = len(next(iter(arrays.values()))) if arrays else 0
    order = np.random.default_rng().permutation(size)
    return {name: values[order] for name, values in arrays.items()}


class _Engine:
    """The engine, with a point before and after each statement, and rows in any order."""

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
    """Note what a run does, and stop it where the trace says."""
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
    """Run once; None where it was stopped, or ended in an error, whose code the trace has then."""

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
    """Stop one charge's run at each of these points, one try a point, by kills and by errors; then let it end."""
    tries: list[RunTrace] = []
    for stop in (*stops, None):
        tries.append(RunTrace(stop=stop, fail=stop is not None and stop % 3 == 1))
        release = attempt(curator, question, key, tries[-1])
        if release is not None:
            return tries, release
    return tries, None


def discovery_query() -> Question:
    """Ask for groups that nobody declared."""
    return Question(FOUND, epsilon="20", delta="1e-6")


def all_queries() -> Iterator[tuple[str, Question]]:
    """Give every analysis, every kind of query, and a function of the owner's own."""
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
    """Note the mechanism and the exact scores of every selection."""
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
    """Give the largest log-likelihood ratio of one selection, Pr ∝ exp(rate·score), between two vectors of scores."""

    def log_shares(scores: Sequence[int]) -> list[float]:
        top = max(scores)
        whole = math.log(math.fsum(math.exp(rate * (each - top)) for each in scores))
        return [rate * (each - top) - whole for each in scores]

    return max(abs(p - q) for p, q in zip(log_shares(one), log_shares(other), strict=True))
