"""Grey-box audit: run two neighbors with the same random words and compare every step after the charge.

Random queries on random tables (those of `neighbors`) go through the curator: plan, durable charge, run, noise, answer,
record. On the second neighbor every draw uses the same random words and returns the outcome of the first, as if the
noise had hidden the difference. Everything else must be equal: the plan and its SQL, the executed lines of this
package, which mechanisms draw, how many random words they use, the shapes of their values, and every byte of the
answer. Only the exact values of the draws may differ, by at most the sensitivity of each mechanism and by at most the
charge of all of them together, computed exactly. Analyses are compared in the same way.

Not compared: time; the steps inside libraries, of exact graph cuts and trees, and of the sampler that walks down the
tree of a selection, which follows its public outcome; for partition selection, the number of random words and the steps
of the samplers (each existing key is one draw).

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
from tests.analyses.conftest import EXAMPLES, IN_ADVANCE
from tests.campaigns import neighbors as neighbors
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.observed_run import (
    InMemoryEngine,
    Observation,
    compare_observations,
    first_divergence,
    observe,
)
from tests.campaigns.rig.random_sql import check_refusal, random_query
from tests.campaigns.rig.random_table import PUBLIC, RandomTable, define_view, found_bounds, random_table
from tests.fixtures.draws import difference
from tests.fixtures.neighboring_data import RELATIONS, NeighboringSessions, neighboring_sessions
from tests.fixtures.seeded_source import SeededSource

import hubbub.curator as curating
import hubbub.curator.query as querying
from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.config import load
from hubbub.core.schema import PrivacyUnit
from hubbub.curator import Curator
from hubbub.curator.draws import Draws
from hubbub.curator.question import Question
from hubbub.curator.seeds import Seeds
from hubbub.curator.versions import Versions
from hubbub.engines.multi_engine import engine_for
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import allocation as allot
from hubbub.sql.finish import declared_keys, finish
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import calibrate_noise
from hubbub.sql.plan import Plan, plan, settle

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
    """Counts of what was compared."""

    queries: int = 0
    refused: int = 0
    draws: int = 0
    steps: int = 0
    failed: int = 0
    number: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


class CuratorFactory:
    """Curators over in-memory tables, with one ledger."""

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
            "engine": InMemoryEngine(self.connection),
            "versions": Versions(folder / "versions.json"),
            "draws": Draws(Seeds(folder / "seeds", store.ledger)),
            "salt": "salt",
        }
        self._config = config

    def curator(self, world: RandomTable) -> Curator:
        """Return a curator of one table."""
        return Curator(self._config, {"t": world.table, "areas": PUBLIC}, **self._parts)

    def close(self) -> None:
        self._ledger.close()
        self.connection.close()


@contextmanager
def curator_factory() -> Iterator[CuratorFactory]:
    """Create one in a temporary folder, in memory if possible."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="hubbub-grey-", dir=memory if memory.is_dir() else None) as folder:
        made = CuratorFactory(Path(folder))
        try:
            yield made
        finally:
            made.close()


Side = Callable[[], Curator]


def compare_neighbors(
    one: Side, other: Side, question: Question, tally: Tally, *, equal: bool = False
) -> Iterator[str]:
    """Run a query on both neighbors and yield what distinguishes them; `equal` if they have the same rows."""
    tally.number += 1
    seed = tally.number

    def seen(side: Side, turn: str, given: Any = None) -> Observation:
        return observe(side(), question, key=f"grey {seed} {turn}", seed=seed, given=given)

    first = seen(one, "a")
    second = seen(other, "b", first.draws)
    tally.queries += 1
    tally.draws += len(first.draws)
    tally.steps += len(first.steps)
    tally.failed += first.shown is None
    yield from compare_observations(first, second)
    if equal and len(first.draws) == len(second.draws):
        for number, pair in enumerate(zip(first.draws, second.draws, strict=True)):
            if difference(*pair).any():
                yield f"The row order changes the exact value of draw {number}."
    if first_divergence(first, second):
        # a first run may fill caches: run it again
        parted = first_divergence(seen(one, "c", first.draws), second)
        if parted:
            yield parted


def fuzz(rng: random.Random, here: CuratorFactory, tally: Tally, *, queries: int = 6) -> Iterator[str]:
    """Run a few queries on two neighbors of a random table, or on the same rows in another order."""
    world = random_table(rng, here.connection, unit=found_bounds(rng))
    curator = here.curator(world)
    for _ in range(queries):
        text = random_query(rng, by_row=world.by_row)
        question = Question(text, epsilon=Fraction(1), delta=rng.choice((0, Fraction(1, 10**6))))
        gone = frozenset[int]() if not world.units or rng.random() < 0.15 else frozenset({rng.randrange(world.units)})
        rows = "rows0" if gone and rng.random() < 0.5 else "rows1"
        try:
            for complaint in compare_neighbors(
                _showing(here, world, curator),
                _showing(here, world, curator, rows, gone),
                question,
                tally,
                equal=not gone,
            ):
                yield f"{text}: {complaint}"
        except QueryError as error:
            check_refusal(error, text, by_row=world.by_row, delta=question.delta)
            tally.refused += 1


def _showing(
    here: CuratorFactory, world: RandomTable, curator: Curator, rows: str = "rows0", gone: frozenset[int] = frozenset()
) -> Side:
    def side() -> Curator:
        define_view(here.connection, world, rows=rows, gone=gone)
        return curator

    return side


#: Analyses whose noise has a δ always.
NEEDS_DELTA = ("binomial_count", "cube")


def compare_analyses(made: NeighboringSessions, tally: Tally, names: tuple[str, ...], *, every: bool) -> Iterator[str]:
    """Compare analyses on neighboring datasets, at two privacy costs or at one per relation."""
    prices: tuple[dict[str, int], ...] = ({"epsilon": 3}, {"epsilon": 1, "delta": 0})
    for place, relation in enumerate(RELATIONS):
        one, other = (session._curator for session in made.sessions("town", relation))
        for name in names:
            for price in prices if every else prices[place : place + 1]:
                if name in NEEDS_DELTA:
                    price = prices[0]
                question = Question(EXAMPLES[name], **price)  # type: ignore[arg-type]
                for complaint in compare_neighbors(lambda c=one: c, lambda c=other: c, question, tally):  # type: ignore[misc]
                    yield f"{relation}: {name}: {complaint}"


# --- planted leaks -----------------------------------------------------------------------------------------------


def _silent_for_nothing(self: Laplace, value: Any, source: Any) -> Any:
    """Add no noise to zeros."""
    if not isinstance(value, np.ndarray) or value.dtype != np.int64:
        return _LAPLACE(self, value, source)
    found = value.copy()
    found[value != 0] = _LAPLACE(self, value[value != 0], source)
    return found


_LAPLACE = Laplace.sample


def _exact_ends(made: Any, tables: Any, source: Any, *, raw: bool = False) -> Any:
    """Center intervals on the exact numbers."""
    answer = finish(made, tables, source, raw=raw)
    exact = sum(int(np.sum(np.nan_to_num(np.asarray(each["m0"], dtype=np.float64)))) for each in tables.values())
    return replace(answer, low=tuple(low + exact for low in answer.low))


def _fails_for_some(made: Any, tables: Any, source: Any, *, raw: bool = False) -> Any:
    """Fail for an odd number of rows."""
    if sum(int(np.sum(np.asarray(each["m0"], dtype=np.float64))) for each in tables.values()) % 2:
        raise ValueError("odd")
    return finish(made, tables, source, raw=raw)


def _looks_first(made: Any, tables: Any, source: Any, *, raw: bool = False) -> Any:
    """Take another code path for an empty table, with the same answer."""
    if all(not np.any(np.asarray(each["m0"])) for each in tables.values()):
        return _elsewhere(made, tables, source, raw=raw)
    return finish(made, tables, source, raw=raw)


def _elsewhere(made: Any, tables: Any, source: Any, *, raw: bool) -> Any:
    if made.cells:
        declared_keys(made)
    return finish(made, tables, source, raw=raw)


def _seeded(made: Any, tables: Any, _: Any, *, raw: bool = False) -> Any:
    """Use the same random words every time."""
    return finish(made, tables, SeededSource(0), raw=raw)


class _Hinted:
    """An engine whose SQL depends on the size of the table."""

    dialect = "duckdb"

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def run(self, sql: str) -> Any:
        size = self._engine.run("SELECT count(*) AS n FROM t").through(lambda found: int(found["n"][0]))
        return self._engine.run(f"{sql} /* about {size} rows */")


def _halved(kind: Any, moved: Sensitivity, portion: Fraction) -> Any:
    return calibrate_noise(kind, Sensitivity(-(-moved.l1 // 2), -(-moved.l2_squared // 4)), portion)


def _spoiled(planner: Callable[..., Plan], spoil: Callable[[Plan], Plan], *args: Any, **options: Any) -> Plan:
    return spoil(planner(*args, **options))


_ALL, _COUNT = "SELECT count(*) FROM t", "SELECT k, count(*) FROM t GROUP BY k"
_BY_ROW = PrivacyUnit(None)
#: name → (patched object, attribute, replacement, unit, query)
LEAKS: dict[str, tuple[Any, str, Any, PrivacyUnit, str]] = {
    "no noise for an empty cell": (Laplace, "sample", _silent_for_nothing, _BY_ROW, _COUNT),
    "intervals around the exact numbers": (querying, "finish", _exact_ends, _BY_ROW, _COUNT),
    "a failure that depends on the data": (querying, "finish", _fails_for_some, _BY_ROW, _ALL),
    "another way for an empty table": (querying, "finish", _looks_first, _BY_ROW, f"{_ALL} WHERE y > 3"),
    "the engine's text by the data": (curating, "engine_for", lambda *a: _Hinted(engine_for(*a)), _BY_ROW, _COUNT),
    "noise of a seed": (querying, "finish", _seeded, _BY_ROW, _ALL),
    "half the sensitivity": (allot, "calibrate_noise", _halved, _BY_ROW, "SELECT sum(y) FROM t"),
    **{
        name: (querying, planner.__name__, partial(_spoiled, planner, each.spoil), each.unit, each.text)
        for name, each in neighbors.PLANTED.items()
        # the statements of bounds that are found are written once they are
        for planner in (settle if name.startswith("found bound") else plan,)
        if name != "sensitivity of adding under replace"  # it changes the stated sensitivity, not the draws
    },
}


def is_detected(seed: str, here: CuratorFactory, leak: tuple[Any, str, Any, PrivacyUnit, str]) -> bool:
    """Return whether a planted leak is detected on one of 60 random datasets, which depend on the seed alone."""
    place, name, wrong, unit, text = leak
    rng = random.Random(seed)
    for _ in range(60):
        world = random_table(rng, here.connection, unit=unit)
        if world.units < 1:
            continue
        curator = here.curator(world)
        gone = frozenset({rng.randrange(world.units)}) if rng.random() < 0.6 else frozenset[int]()
        sides = _showing(here, world, curator), _showing(here, world, curator, "rows1", gone)
        with patch.object(place, name, wrong):
            try:
                if any(
                    True
                    for _ in compare_neighbors(
                        *sides,
                        Question(text, epsilon=Fraction(1), delta=0),
                        Tally(number=rng.getrandbits(40)),
                        equal=not gone,
                    )
                ):
                    return True
            except AssertionError:  # the pattern does not occur: a single group
                continue
    return False


# --- the campaign ------------------------------------------------------------------------------------------------

QUICK = tuple(name for name in EXAMPLES if name not in IN_ADVANCE | {"synthetic", "synthetic_tables"})


def detect() -> list[str]:
    """Audit the current code for a few seconds and return the problems."""
    rng, tally = random.Random(20261116), Tally()
    found: list[str] = []
    with curator_factory() as here:
        while tally.queries < 45:
            found += fuzz(rng, here, tally)
    with neighboring_sessions() as made:
        found += compare_analyses(made, tally, ("moments", "tabulate", "decision_tree"), every=False)
    return found


def batch(goal: int, seed: int) -> tuple[list[str], Tally]:
    """Run this many random queries with a separate ledger."""
    rng, tally, complaints = random.Random(seed), Tally(), list[str]()
    with curator_factory() as here:
        while tally.queries < goal:
            complaints += fuzz(rng, here, tally)
    return complaints, tally


def batches(report: Report, goal: int) -> Iterator[tuple[list[str], Tally]]:
    """Run all batches, at full scale in one process per core; the seeds start at 20261117."""
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
    tally, complaints = Tally(), list[str]()
    goal = report.scale(ci=40, full=100_000)
    for heard, seen in batches(report, goal):
        complaints, tally = complaints + heard, tally + seen
    asked = tally.queries
    with curator_factory() as here:
        with neighboring_sessions() as made:
            complaints += compare_analyses(
                made, tally, (*QUICK, "synthetic", "synthetic_tables") if report.full else QUICK, every=report.full
            )
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
            report.target(f"planted: {name}", is_detected(f"20261116 {name}", here, leak), at_least=1)


if __name__ == "__main__":
    run(body)
