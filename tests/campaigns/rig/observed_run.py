"""One question on one dataset, watched between its charge and its release: texts, draws, words, steps, the answer."""

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
from tests.campaigns.rig.draws import NO_LOSS, KeyedCounts, TapedDraw, charged_loss, is_scalar, pair_loss, tape_draws
from tests.campaigns.rig.seeded_source import SeededSource

import hubbub
from hubbub.core.events import Event
from hubbub.core.secret import Secret
from hubbub.curator import Curator, ignore_progress
from hubbub.curator.question import Question
from hubbub.curator.receipt import decode
from hubbub.engines.base import Arrays, Engine
from hubbub.engines.duckdb.connection import _fetch
from hubbub.errors import RunError

_ROOT = str(Path(hubbub.__file__).parent)
#: The ledger writes what is public by then, and its steps depend on how long it is. Cuts and trees of a graph are exact
#: functions of the data, worked out step by step inside a secret: what they take is time, which is not compared. The
#: walk down the tree of a choice follows what is chosen, which is shown. Exact arithmetic is a library like others.
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
    """Every line of this package that is run, in order, but of what is worked out once and kept."""

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
    """Find the functions of this package whose results are kept (functools.cache): of plans and scales, never of data.

    A kept result is found by its arguments, hashable numbers and texts; arrays of the data are none.
    """
    loaded = [module for name, module in list(sys.modules.items()) if name.startswith("hubbub")]
    wrapped = [each for module in loaded for each in vars(module).values() if hasattr(each, "cache_info")]
    return frozenset(each.__wrapped__.__code__ for each in wrapped if isinstance(each.__wrapped__, FunctionType))


class RecordingEngine:
    """An engine that keeps the texts it is told."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.texts: list[str] = []

    @property
    def dialect(self) -> str:
        return self._engine.dialect

    def run(self, sql: str) -> Secret[Arrays]:
        self.texts.append(sql)
        return self._engine.run(sql)

    def fingerprint(self, name: str) -> Secret[bytes]:
        return self._engine.fingerprint(name)

    def interrupt(self, caller: int | None = None) -> None:
        self._engine.interrupt(caller)

    def close(self) -> None:
        self._engine.close()


class InMemoryEngine:
    """A DuckDB in memory that a campaign changes between questions; results are fetched as the product does."""

    dialect = "duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def run(self, sql: str) -> Secret[Arrays]:
        return Secret(_fetch(self._connection.cursor(), sql))

    def fingerprint(self, name: str) -> Secret[bytes]:
        return Secret(name.encode())

    def interrupt(self, caller: int | None = None) -> None:
        """Nothing is running."""

    def close(self) -> None:
        """It belongs to somebody else."""


@dataclass(frozen=True)
class Observation:
    """All that was seen of one run."""

    event: Event
    derivation: tuple[str, ...]
    texts: tuple[str, ...]
    draws: tuple[TapedDraw, ...]
    words: int
    steps: tuple[Step, ...]
    shown: Any  #: the answer, or None where it failed
    paper: Any


def observe(
    curator: Curator, question: Question, *, key: str, seed: int, given: Sequence[TapedDraw] | None = None
) -> Observation:
    """Plan, charge and answer, as `Curator.query` does, and keep what can be seen after the charge."""
    told = curator.engine if isinstance(curator.engine, RecordingEngine) else RecordingEngine(curator.engine)
    curator.engine = told
    planned, text = curator._plan("ana", question, salt=curator._salt), question.text()
    charges, versions = curator._charge("ana", planned, text, key, None)
    source = SeededSource(seed)
    curator._draws.sources = lambda _: source
    told.texts.clear()
    shown, paper = None, None
    with tape_draws(source, given) as tape, Trace() as trace:
        try:
            stored = curator._answer(planned, text, charges, versions, progress=ignore_progress)
        except RunError:
            stored = None
    if stored is not None:
        outputs, ratio, model, paper = decode(stored)
        shown = [*outputs, ratio, model]
        paper = {name: value for name, value in paper.items() if name != "ledger"}
        # the rest of a version's name is drawn when the state is first seen, once for each side
        paper["data"] = [{**of, "version": of["version"].partition("-")[0]} for of in paper["data"]]
    return Observation(
        planned.event, planned.derivation, tuple(told.texts), tuple(tape), source.used, tuple(trace.steps), shown, paper
    )


def compare_observations(one: Observation, other: Observation) -> Iterator[str]:
    """Say what differs between two neighbors of one question, whose draws gave the same; nothing should."""
    if (one.event, one.derivation) != (other.event, other.derivation):
        yield "the plan differs"
    if one.texts != other.texts:
        yield "the engine's text differs"
    if (one.shown is None) != (other.shown is None):
        yield "one of them fails"
        return
    yield from _draws(one, other)
    if repr(one.shown) != repr(other.shown) or repr(one.paper) != repr(other.paper):
        yield "what is shown differs, though every draw gave the same"
    # a key that occurs is a draw: of groups that nobody declared the number of words tells how many there are
    if one.words != other.words and not _finds(one):
        yield f"{one.words} words and {other.words} are drawn"


def _draws(one: Observation, other: Observation) -> Iterator[str]:
    if len(one.draws) != len(other.draws):
        yield f"{len(one.draws)} draws and {len(other.draws)}"
        return
    total = NO_LOSS
    for place, (first, second) in enumerate(zip(one.draws, other.draws, strict=True)):
        if first.mechanism != second.mechanism:
            yield f"draw {place} has another mechanism"
        elif _silent(first):
            yield f"draw {place} takes no words of the source that it was handed"
        elif not isinstance(first.value, KeyedCounts) and np.shape(first.value) != np.shape(second.value):
            yield f"draw {place} has another shape"
        else:
            apart = pair_loss(first, second)
            total += apart
            if not apart.within:
                yield f"draw {place} is moved further than {first.mechanism} states"
    whole = charged_loss(one.event)
    pure = whole.pure is not None and total.pure is not None and total.pure > whole.pure
    if pure or (whole.pure is None and total.rho > whole.rho):
        yield "all draws together lose more than is charged"


def _silent(draw: TapedDraw) -> bool:
    """Say whether a draw used no randomness, though there was something to draw."""
    values = draw.value.counts if isinstance(draw.value, KeyedCounts) else np.atleast_1d(draw.value)
    return not draw.words and len(values) > (1 if is_scalar(draw.mechanism) else 0)


def _finds(seen: Observation) -> bool:
    return any(isinstance(draw.value, KeyedCounts) for draw in seen.draws)


def first_divergence(one: Observation, other: Observation) -> str:
    """Say where two runs take different steps, or nothing; where groups are found, samplers may run or not."""
    mine_all, theirs_all = one.steps, other.steps
    if _finds(one):
        mine_all, theirs_all = (
            tuple(s for s in x if not s[0].co_filename.startswith(_NOISE)) for x in (mine_all, theirs_all)
        )
    for mine, theirs in zip_longest(mine_all, theirs_all):
        if mine != theirs:
            places = [f"{Path(s[0].co_filename).name}:{s[1]}" if s else "the end" for s in (mine, theirs)]
            return f"the steps part at {places[0]} and {places[1]}"
    return ""
