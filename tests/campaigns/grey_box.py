"""The audit from half inside: two neighbors get the same random words, and every step after the charge is compared.

Random queries over random tables (those of the fuzzing of neighbors) go through the curator: plan, durable charge,
run, noise, answer, record. On the second neighbor each draw is made with the same words, and gives what it gave on the
first, as if the noise had filled the gap. From there on the two must be the same: the plan and the engine's text, the
lines of this package that are run, which mechanisms draw, with how many words, on vectors of what shape, and every byte
that is shown. What differs is what goes into the draws, and that by no more than each mechanism states and all of them
together are charged for, which is worked out exactly. The programs and releases are compared in the same way.

Not compared: time; the steps inside libraries, of exact cuts and trees, and of the walk down the tree of a choice,
which follows what is chosen; of groups that nobody declared, how many words are drawn and what the samplers do (one key
that occurs is one draw, no key is none).

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.grey_box
"""

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
from tests.analyses.conftest import EXAMPLES
from tests.campaigns import neighbors as neighbors
from tests.campaigns.frame import Report, run
from tests.campaigns.neighbors import PUBLIC, World, a_world, show
from tests.campaigns.rig.asking import a_query
from tests.campaigns.rig.pairs import RELATIONS, Towns, towns
from tests.campaigns.rig.watching import Lent, Seen, compared, stepped, watch
from tests.campaigns.rig.words import Seeded

import hubbub.curator as curating
from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.config import load
from hubbub.core.schema import Unit
from hubbub.curator import Curator
from hubbub.curator.draws import Draws
from hubbub.curator.question import Question
from hubbub.curator.seeds import Seeds
from hubbub.curator.versions import Versions
from hubbub.engines.several import serving
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import allocation as allot
from hubbub.sql.finish import declared, finish
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import mechanism
from hubbub.sql.plan import plan

_YAML = """
version: 1
datasets:
  t:
    source: t.csv
    unit: row
    columns: {x: {type: real, bounds: [0, 1]}}
    budget: {epsilon: 1000000, delta: 0.4}
analysts:
  ana: {t: {epsilon: 1000000, delta: 0.4}}
"""


@dataclass
class Tally:
    """What was seen."""

    queries: int = 0
    refused: int = 0
    draws: int = 0
    steps: int = 0
    failed: int = 0
    number: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


class Ground:
    """A curator over tables in memory that change from world to world."""

    def __init__(self, folder: Path) -> None:
        (folder / "t.csv").write_text("x\n1\n")
        (folder / "hubbub.yaml").write_text(_YAML)
        self.connection = duckdb.connect(":memory:", config={"threads": 1})
        self.connection.execute("CREATE TABLE areas (area VARCHAR, zone VARCHAR)")
        self.connection.execute("INSERT INTO areas VALUES ('North', 'a'), ('Ça', 'b'), ('🙂', 'a'), (NULL, 'b')")
        config = load(folder / "hubbub.yaml")
        store = SqliteStore(folder / "ledger.db")
        self._ledger = Ledger.open(store, policy=config.policy, anchor=FileAnchor(folder / "ledger.anchor"))
        self._parts: dict[str, Any] = {
            "ledger": self._ledger,
            "engine": Lent(self.connection),
            "versions": Versions(folder / "versions.json"),
            "draws": Draws(Seeds(folder / "seeds", store.ledger)),
            "salt": "salt",
        }
        self._config = config

    def curator(self, world: World) -> Curator:
        """Curate one world."""
        return Curator(self._config, {"t": world.table, "areas": PUBLIC}, **self._parts)

    def close(self) -> None:
        self._ledger.close()
        self.connection.close()


@contextmanager
def ground() -> Iterator[Ground]:
    """Make one in a folder that goes away, in memory where there is one."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="hubbub-grey-", dir=memory if memory.is_dir() else None) as folder:
        made = Ground(Path(folder))
        try:
            yield made
        finally:
            made.close()


Side = Callable[[], Curator]


def both(one: Side, other: Side, question: Question, tally: Tally) -> Iterator[str]:
    """Ask both neighbors, and say what tells them apart."""
    tally.number += 1
    seed = tally.number

    def seen(side: Side, turn: str, given: Any = None) -> Seen:
        return watch(side(), question, key=f"grey {seed} {turn}", seed=seed, given=given)

    first = seen(one, "a")
    second = seen(other, "b", first.draws)
    tally.queries += 1
    tally.draws += len(first.draws)
    tally.steps += len(first.steps)
    tally.failed += first.shown is None
    yield from compared(first, second)
    if stepped(first, second):
        # whatever else a first run does first: once more
        parted = stepped(seen(one, "c", first.draws), second)
        if parted:
            yield parted


def fuzz(rng: random.Random, here: Ground, tally: Tally, *, queries: int = 6) -> Iterator[str]:
    """One world and a few queries, each on two neighbors; or on the same rows in another order."""
    world = a_world(rng, here.connection)
    curator = here.curator(world)
    for _ in range(queries):
        text = a_query(rng, by_row=world.by_row)
        question = Question(text, epsilon=Fraction(1), delta=rng.choice((0, Fraction(1, 10**6))))
        gone = frozenset[int]() if not world.units or rng.random() < 0.15 else frozenset({rng.randrange(world.units)})
        rows = "rows0" if gone and rng.random() < 0.5 else "rows1"
        try:
            for complaint in both(
                _showing(here, world, curator), _showing(here, world, curator, rows, gone), question, tally
            ):
                yield f"{text}: {complaint}"
        except QueryError:
            tally.refused += 1


def _showing(
    here: Ground, world: World, curator: Curator, rows: str = "rows0", gone: frozenset[int] = frozenset()
) -> Side:
    def side() -> Curator:
        show(here.connection, world, rows=rows, gone=gone)
        return curator

    return side


def programs(made: Towns, tally: Tally, names: tuple[str, ...], *, every: bool) -> Iterator[str]:
    """Compare analyses on their neighboring towns, at two prices or at one for each relation."""
    prices: tuple[dict[str, int], ...] = ({"epsilon": 3}, {"epsilon": 1, "delta": 0})
    for place, relation in enumerate(RELATIONS):
        one, other = (session._curator for session in made.sessions("town", relation))
        for name in names:
            for price in prices if every else prices[place : place + 1]:
                try:
                    question = Question(EXAMPLES[name], **price)  # type: ignore[arg-type]
                    for complaint in both(lambda c=one: c, lambda c=other: c, question, tally):  # type: ignore[misc]
                        yield f"{relation}: {name}: {complaint}"
                except QueryError:
                    tally.refused += 1


# --- planted leaks -----------------------------------------------------------------------------------------------


def _silent_for_nothing(self: Laplace, value: Any, source: Any) -> Any:
    """Draw no noise where there is nothing to hide."""
    if not isinstance(value, np.ndarray) or value.dtype != np.int64:
        return _LAPLACE(self, value, source)
    found = value.copy()
    found[value != 0] = _LAPLACE(self, value[value != 0], source)
    return found


_LAPLACE = Laplace.sample


def _exact_ends(made: Any, tables: Any, source: Any, *, raw: bool = False) -> Any:
    """Centre intervals on the exact numbers."""
    answer = finish(made, tables, source, raw=raw)
    exact = sum(int(np.sum(np.nan_to_num(np.asarray(each["m0"], dtype=np.float64)))) for each in tables.values())
    return replace(answer, low=tuple(low + exact for low in answer.low))


def _fails_for_some(made: Any, tables: Any, source: Any, *, raw: bool = False) -> Any:
    """Stumble over an odd number of rows."""
    if sum(int(np.sum(np.asarray(each["m0"], dtype=np.float64))) for each in tables.values()) % 2:
        raise ValueError("odd")
    return finish(made, tables, source, raw=raw)


def _looks_first(made: Any, tables: Any, source: Any, *, raw: bool = False) -> Any:
    """Go another way where there is nothing, with the same answer."""
    if all(not np.any(np.asarray(each["m0"])) for each in tables.values()):
        return _elsewhere(made, tables, source, raw=raw)
    return finish(made, tables, source, raw=raw)


def _elsewhere(made: Any, tables: Any, source: Any, *, raw: bool) -> Any:
    if made.cells:
        declared(made)
    return finish(made, tables, source, raw=raw)


def _seeded(made: Any, tables: Any, _: Any, *, raw: bool = False) -> Any:
    """Take the same words each time."""
    return finish(made, tables, Seeded(0), raw=raw)


class _Hinted:
    """An engine whose text is tuned to the size of the table."""

    dialect = "duckdb"

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def run(self, sql: str) -> Any:
        size = self._engine.run("SELECT count(*) AS n FROM t").through(lambda found: int(found["n"][0]))
        return self._engine.run(f"{sql} /* about {size} rows */")


def _halved(kind: Any, moved: Sensitivity, portion: Fraction) -> Any:
    return mechanism(kind, Sensitivity(-(-moved.l1 // 2), -(-moved.l2_squared // 4)), portion)


_ALL, _COUNT = "SELECT count(*) FROM t", "SELECT k, count(*) FROM t GROUP BY k"
_BY_ROW = Unit(None)
#: name → (what is patched, by what, unit, question)
LEAKS: dict[str, tuple[Any, str, Any, Unit, str]] = {
    "no noise for an empty cell": (Laplace, "sample", _silent_for_nothing, _BY_ROW, _COUNT),
    "intervals around the exact numbers": (curating, "finish", _exact_ends, _BY_ROW, _COUNT),
    "a failure that depends on the data": (curating, "finish", _fails_for_some, _BY_ROW, _ALL),
    "another way for an empty table": (curating, "finish", _looks_first, _BY_ROW, f"{_ALL} WHERE y > 3"),
    "the engine's text by the data": (curating, "serving", lambda *a: _Hinted(serving(*a)), _BY_ROW, _COUNT),
    "noise of a seed": (curating, "finish", _seeded, _BY_ROW, _ALL),
    "half the sensitivity": (allot, "mechanism", _halved, _BY_ROW, "SELECT sum(y) FROM t"),
    **{
        name: (curating, "plan", lambda *a, spoil=each.spoil, **k: spoil(plan(*a, **k)), each.unit, each.text)
        for name, each in neighbors.PLANTED.items()
        if name != "sensitivity of adding under replace"  # which spoils what is stated, and not what is drawn
    },
}


def caught(rng: random.Random, here: Ground, leak: tuple[Any, str, Any, Unit, str]) -> bool:
    """Say whether a planted leak shows within a few worlds."""
    place, name, wrong, unit, text = leak
    for _ in range(60):
        world = a_world(rng, here.connection, unit=unit)
        if world.units < 1:
            continue
        curator = here.curator(world)
        gone = frozenset({rng.randrange(world.units)}) if rng.random() < 0.6 else frozenset[int]()
        sides = _showing(here, world, curator), _showing(here, world, curator, "rows1", gone)
        with patch.object(place, name, wrong):
            try:
                if any(
                    True
                    for _ in both(
                        *sides, Question(text, epsilon=Fraction(1), delta=0), Tally(number=rng.getrandbits(40))
                    )
                ):
                    return True
            except AssertionError:  # one group for all: nothing to plant
                continue
    return False


# --- the campaign ------------------------------------------------------------------------------------------------

QUICK = tuple(name for name in EXAMPLES if name not in ("stream", "synthetic"))


def detect() -> list[str]:
    """Look at the product as it is now, in a few seconds; give what is wrong with it."""
    rng, tally = random.Random(20261116), Tally()
    found: list[str] = []
    with ground() as here:
        while tally.queries < 45:
            found += fuzz(rng, here, tally)
    with towns() as made:
        found += programs(made, tally, ("moments", "tabulate", "decision_tree"), every=False)
    return found


def batch(goal: int, seed: int) -> tuple[list[str], Tally]:
    """Ask so many random queries over a ledger of their own."""
    rng, tally, complaints = random.Random(seed), Tally(), list[str]()
    with ground() as here:
        while tally.queries < goal:
            complaints += fuzz(rng, here, tally)
    return complaints, tally


def batches(report: Report, goal: int) -> Iterator[tuple[list[str], Tally]]:
    """Ask them all, at full scale in as many processes as there are cores; the seeds are 20261117 and on."""
    each = min(goal, 200)
    seeds = range(20261117, 20261117 + -(-goal // each))
    if not report.full:
        yield from map(partial(batch, each), seeds)
        return
    with get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=20) as pool:
        found = pool.imap_unordered(partial(batch, each), seeds)
        for _ in report.progress(seeds, "grey box"):
            yield next(found)


def body(report: Report) -> None:
    rng, tally, complaints = random.Random(20261116), Tally(), list[str]()
    goal = report.scale(ci=120, full=100_000)
    for heard, seen in batches(report, goal):
        complaints, tally = complaints + heard, tally + seen
    asked = tally.queries
    with ground() as here:
        with towns() as made:
            complaints += programs(made, tally, (*QUICK, "synthetic") if report.full else QUICK, every=report.full)
        for complaint in complaints[:20]:
            report.say(complaint)
        report.figure("refused queries", tally.refused)
        report.figure("draws compared", tally.draws)
        report.figure("lines compared", tally.steps)
        report.figure("failed on both sides alike", tally.failed)
        report.figure("calls of analyses", tally.queries - asked)
        report.target("random queries", asked, at_least=goal)
        report.target("queries that tell neighbors apart", len(complaints), at_most=0)
        for name, leak in LEAKS.items():
            report.target(f"planted: {name}", caught(rng, here, leak), at_least=1)


if __name__ == "__main__":
    run(body)
