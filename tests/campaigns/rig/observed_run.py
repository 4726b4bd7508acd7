"""Observe a query between its charge and its release: SQL, draws, random words, executed lines, and the answer."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Self

import duckdb
import numpy as np
from tests.fixtures.draws import NO_LOSS, KeyedCounts, TapedDraw, charged_loss, is_scalar, pair_loss, tape_draws
from tests.fixtures.seeded_source import SeededSource

import hubbub
from hubbub.answers.options import ignore_progress
from hubbub.core.events import Event
from hubbub.core.secret import Secret
from hubbub.curator import Curator
from hubbub.curator.question import Question
from hubbub.curator.receipt import decode
from hubbub.engines.base import Arrays, Engine
from hubbub.engines.duckdb.connection import _fetch
from hubbub.errors import RunError

_ROOT = str(Path(hubbub.__file__).parent)
#: Not traced: the ledger, which writes public facts, and whose steps depend on its length; graph cuts and trees, which
#: are exact functions of the data inside a secret and differ only in time; the sampler of selections, which follows its
#: public outcome; exact arithmetic, which is a library.
_APART = tuple(
    str(Path(hubbub.__file__).parent / name)
    for name in (
        "accounting",
        "analyses/graphs/cuts.py",
        "analyses/graphs/trees.py",
        "noise/choice.py",
        "noise/comparison.py",
        "core/reals.py",
        "core/interval.py",
        "core/normal.py",
        "core/distributions.py",
        "core/numbers.py",
    )
)
_NOISE = str(Path(hubbub.__file__).parent / "noise")

Step = tuple[CodeType, int]


class Trace:
    """Records every executed line of this package, except in cached functions."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._kept = _kept(len(sys.modules))
        self._inside = 0

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        if code in self._kept:
            self._inside += 1
            return self._ended
        if self._inside or not code.co_filename.startswith(_ROOT) or code.co_filename.startswith(_APART):
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            self.steps.append((frame.f_code, frame.f_lineno))
        return self._line

    def _ended(self, _frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "return":
            self._inside -= 1
        return self._ended


@cache
def _kept(_modules: int) -> frozenset[CodeType]:
    """Return the cached functions of this package (functools.cache): functions of plans and scales, never of data.

    Their arguments are hashable numbers and texts; arrays of data are not hashable.
    """
    loaded = [module for name, module in list(sys.modules.items()) if name.startswith("hubbub")]
    wrapped = [each for module in loaded for each in vars(module).values() if hasattr(each, "cache_info")]
    return frozenset(each.__wrapped__.__code__ for each in wrapped if isinstance(each.__wrapped__, FunctionType))


class RecordingEngine:
    """An engine that records its SQL."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.texts: list[str] = []

    @property
    def dialect(self) -> str:
        return self._engine.dialect

    def run(self, sql: str) -> Secret[Arrays]:
        self.texts.append(sql)
        return self._engine.run(sql)

    def content_hash(self, name: str) -> Secret[bytes] | None:
        return self._engine.content_hash(name)

    def fingerprint(self, name: str) -> Secret[bytes]:
        return self._engine.fingerprint(name)

    def interrupt(self, caller: int | None = None) -> None:
        self._engine.interrupt(caller)

    def close(self) -> None:
        self._engine.close()


class InMemoryEngine:
    """An in-memory DuckDB that a campaign changes between queries; it fetches results as the product does."""

    dialect = "duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def run(self, sql: str) -> Secret[Arrays]:
        return Secret(_fetch(self._connection.cursor(), sql))

    def content_hash(self, name: str) -> Secret[bytes] | None:  # noqa: ARG002
        return None

    def fingerprint(self, name: str) -> Secret[bytes]:
        return Secret(name.encode())

    def interrupt(self, caller: int | None = None) -> None:
        """Do nothing: no query is running."""

    def close(self) -> None:
        """Do nothing: the campaign owns the connection."""


@dataclass(frozen=True)
class Observation:
    """Everything that was observed of one run."""

    event: Event
    derivation: tuple[str, ...]
    texts: tuple[str, ...]
    draws: tuple[TapedDraw, ...]
    words: int
    steps: tuple[Step, ...]
    shown: Any  #: the answer, or None if it failed
    paper: Any


def observe(
    curator: Curator, question: Question, *, key: str, seed: int, given: Sequence[TapedDraw] | None = None
) -> Observation:
    """Plan, charge and answer like `Curator.query`, and record everything after the charge."""
    told = curator.engine if isinstance(curator.engine, RecordingEngine) else RecordingEngine(curator.engine)
    curator.engine = told
    planned, text = curator._plan("ana", question, salt=curator._salt), question.text()
    versions = curator._data_versions(planned)
    charges = curator._charge("ana", planned, text, versions, key, None, publish=False, event=planned.event)
    source = SeededSource(seed)
    curator._draws.sources = lambda _: source
    told.texts.clear()
    shown, paper = None, None
    with tape_draws(source, given) as tape, Trace() as trace:
        try:
            stored = curator._answer(planned, text, charges, versions, planned.left_out(), progress=ignore_progress)
        except RunError:
            stored = None
    if stored is not None:
        found = decode(stored)
        shown = [*found.outputs, found.ratio, found.model]
        paper = {name: value for name, value in found.receipt.items() if name != "ledger"}
        # the rest of a version is random, once for each side
        paper["data"] = [{**of, "version": of["version"].partition("-")[0]} for of in paper["data"]]
    return Observation(
        planned.event, planned.derivation, tuple(told.texts), tuple(tape), source.used, tuple(trace.steps), shown, paper
    )


def compare_observations(one: Observation, other: Observation) -> Iterator[str]:
    """Yield the differences between the runs of two neighbors with the same outcomes; there should be none."""
    if (one.event, one.derivation) != (other.event, other.derivation):
        yield "The plans differ."
    if one.texts != other.texts:
        yield "The SQL differs."
    if (one.shown is None) != (other.shown is None):
        yield "Only one of them fails."
        return
    yield from _draws(one, other)
    if repr(one.shown) != repr(other.shown) or repr(one.paper) != repr(other.paper):
        yield "The answers differ although all outcomes are equal."
    # each discovered key is one draw, so the number of random words depends on the number of keys
    if one.words != other.words and not _finds(one):
        yield f"The runs use {one.words} and {other.words} random words."


def _draws(one: Observation, other: Observation) -> Iterator[str]:
    if len(one.draws) != len(other.draws):
        yield f"The runs make {len(one.draws)} and {len(other.draws)} draws."
        return
    total = NO_LOSS
    for place, (first, second) in enumerate(zip(one.draws, other.draws, strict=True)):
        if first.mechanism != second.mechanism:
            yield f"Draw {place} has another mechanism."
        elif _silent(first):
            yield f"Draw {place} uses no random words of its source."
        elif not isinstance(first.value, KeyedCounts) and np.shape(first.value) != np.shape(second.value):
            yield f"Draw {place} has another shape."
        else:
            apart = pair_loss(first, second)
            total += apart
            if not apart.within:
                yield f"Draw {place} exceeds the sensitivity of {first.mechanism}."
    whole = charged_loss(one.event)
    pure = whole.pure is not None and total.pure is not None and total.pure > whole.pure
    if pure or (whole.pure is None and total.rho > whole.rho):
        yield "All draws together cost more than was charged."


def _silent(draw: TapedDraw) -> bool:
    """Return whether a draw used no randomness although it should have."""
    values = draw.value.counts if isinstance(draw.value, KeyedCounts) else np.atleast_1d(draw.value)
    return not draw.words and len(values) > (1 if is_scalar(draw.mechanism) else 0)


def _finds(seen: Observation) -> bool:
    return any(isinstance(draw.value, KeyedCounts) for draw in seen.draws)


def first_divergence(one: Observation, other: Observation) -> str:
    """Return where two runs diverge, or ""; with discovered groups, the steps of samplers are ignored."""
    mine_all, theirs_all = one.steps, other.steps
    if _finds(one):
        mine_all, theirs_all = (
            tuple(s for s in x if not s[0].co_filename.startswith(_NOISE)) for x in (mine_all, theirs_all)
        )
    for mine, theirs in zip_longest(mine_all, theirs_all):
        if mine != theirs:
            places = [f"{Path(s[0].co_filename).name}:{s[1]}" if s else "the end" for s in (mine, theirs)]
            return f"The runs diverge at {places[0]} and {places[1]}."
    return ""
