"""What no table is counted for: running counts of a stream, an owner's own function, strangers' code on blocks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.contract.analyses import ALL, FOUR, PEOPLE, REPLACE, Reach
from tests.contract.search import Begin, Subject
from tests.contract.tables import DELTA, ROW, Analysis, World, price
from tests.contract.watched import Data

from hubbub.analyses.base import EngineRun, PreparedAnalysis, Setting
from hubbub.analyses.functions.function import FunctionRequest
from hubbub.analyses.functions.sample_and_aggregate import AggregateRequest, SampleAndAggregate
from hubbub.analyses.streams.stream import _add_arrivals, _start
from hubbub.analyses.streams.terms import Terms
from hubbub.analyses.tables.running_sums import RunningSums, cell_sums, running_sums
from hubbub.analyses.threshold import Comparison, OpenSession, above_threshold, compare
from hubbub.core.call import AnalysisCall
from hubbub.core.events import Event, LaplaceEvent
from hubbub.core.schema import PrivacyUnit as Whose
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.curator.batch import PreparedBatch, prepare_batch
from hubbub.noise.source import RandomSource
from hubbub.sql.aggregates.formula import Resolution
from hubbub.sql.aggregates.table import formulas
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.keys import cells
from hubbub.sql.measures import BoundedSum, RowCount
from hubbub.sql.noise_budget import noise_budgets

# --- streams ----------------------------------------------------------------------------------------------------------


@dataclass
class Counted:
    """A running count: each unit is one arrival, and where one is missing nothing arrives at that time."""

    terms: Terms
    event: Event
    epsilon: Fraction
    delta: Fraction

    def run(self, data: Data, source: RandomSource) -> None:
        """Feed all arrivals at once: what one of them moves, it moves in the blocks that end after it."""
        lines = [str(unit[0][0]) if unit else "" for unit in data]
        lines = (lines + [""] * self.terms.length)[: self.terms.length]
        _add_arrivals(self.terms, _start(self.terms, source), self.terms.parse_lines(lines), source)


#: name → what is said, and what may arrive
STREAMS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "bins by a tree": ({"bins": ("a", "b")}, ("a", "b", "z", "")),
    "numbers by a tree": ({"bound": 3}, (0, 3, 9, "x")),
    "bins by the root": ({"bins": ("a", "b"), "method": "root"}, ("a", "b", "z")),
    "numbers by the root": ({"bound": 3, "method": "root"}, (0, 3, 9)),
}
HORIZON = 7  #: three levels, all of which the first arrival is in


def streams() -> Iterator[tuple[str, Subject, Reach]]:
    """Count over seven arrivals; the changed one comes first, so that it is in as many blocks as can be."""
    for name, (said, pool) in STREAMS.items():
        for relation, delta in product(Relation, (Fraction(0), DELTA)):
            if said.get("method") == "root" and not delta:
                continue
            subject = Subject(
                f"stream of {name} {relation.value} δ={float(delta):g}",
                relation,
                ((pool, ()),),
                1,
                partial(_counted, said, relation, delta),
                parted=True,
                begin=(((), ((pool[0],),), ((pool[1],),)),),
            )
            yield name, subject, {}


def _counted(said: Mapping[str, Any], relation: Relation, delta: Fraction, *, silent: bool) -> Counted:
    cost = price(delta, silent=silent)
    terms = Terms(name="s", kind="count", epsilon=cost, delta=delta, horizon=HORIZON, relation=relation, **said)
    return Counted(terms, terms.event, cost, delta)


# --- sessions of above threshold --------------------------------------------------------------------------------------


@dataclass
class Compared:
    """One question of a session: the noise on its value, which is made for the sensitivity of the session."""

    world: World
    question: Comparison
    event: Event
    epsilon: Fraction
    delta: Fraction

    def run(self, data: Data, source: RandomSource) -> None:
        """Compare it."""
        self.world.show(data)
        self.question.run(_Run(self.world, source))


def sessions(*, full: bool) -> Iterator[tuple[str, Subject, Reach]]:
    """Ask counts and sums, at the sensitivity that a session is opened with for them."""
    for (sql, most), (unit, relation, delta) in product(
        (("SELECT COUNT(*) FROM t WHERE k = 'a'", None), ("SELECT SUM(i) FROM t WHERE k = 'a'", 3)),
        ALL if full else FOUR,
    ):
        several = 1 if unit == ROW else unit.rows
        subject = Subject(
            f"above_threshold: {sql} {unit.column} {relation.value} δ={float(delta):g}",
            relation,
            PEOPLE.only(["k", "i"]),
            1 if unit == ROW else 6,
            partial(_compared, sql, None if most is None else Fraction(most * several), unit, relation),
            begin=(((), (_counted_row("a"),) * several, (_counted_row("b"),) * several),),
        )
        yield sql, subject, {}


def _counted_row(k: str) -> tuple[Any, ...]:
    return (-1.0, -1.0, k, True, True, 3, "p")


def _compared(sql: str, most: Fraction | None, unit: Whose, relation: Relation, *, silent: bool) -> Compared:
    setting = Setting(
        {"t": PEOPLE.table(unit, relation)}, price(Fraction(0), silent=silent), Fraction(0), RenderOptions("salt")
    )
    opened = above_threshold(setting, table="t", name="s", threshold=Fraction(1), sensitivity=most)
    question = compare(setting, table="t", name="s", query=sql)
    question.covers(opened.terms)
    mechanism = opened.terms.mechanism
    event = LaplaceEvent(mechanism.sensitivity, mechanism.query_scale)
    asked = replace(question, session=OpenSession(1, opened.terms, 1, 0, 0))
    return Compared(PEOPLE, asked, event, event.sensitivity / event.scale, Fraction(0))


# --- running totals ---------------------------------------------------------------------------------------------------

#: Sums of values of either sign, of one sign, and counts; each along a key, and beside another one.
TOTALS = {
    "SELECT i, k, SUM(x - 1) FROM t GROUP BY i, k": ["i", "k", "x"],
    "SELECT i, k, SUM(x) FROM t GROUP BY i, k": ["i", "k", "x"],
    "SELECT i, SUM(x + 1) FROM t WHERE f GROUP BY i": ["i", "f", "x"],
    "SELECT i, k, COUNT(x) FROM t GROUP BY i, k": ["i", "k", "x"],
}


@dataclass
class Totals:
    """The draws behind the running totals of a query for values."""

    world: World
    sums: RunningSums
    event: Event
    epsilon: Fraction
    delta: Fraction

    def run(self, data: Data, source: RandomSource) -> None:
        """Draw."""
        self.world.show(data)
        run = _Run(self.world, source)
        run.ask(self.sums.counted.sql).through(lambda found: self.sums.totals(found, run))


def totals(*, full: bool) -> Iterator[tuple[str, Subject, Reach]]:
    """Measure for running totals; a cell in the middle has less weight than the heaviest ones."""
    for (text, used), (unit, relation, delta) in product(TOTALS.items(), ALL if full else FOUR):
        many = 1 if unit == ROW else unit.groups * unit.rows
        rows = [(x, -1.0, k, True, True, i, "p") for i, k, x in ((0, "a", 1.0), (3, "b", 1.0), (0, "a", -1.0))]
        subject = Subject(
            f"running totals: {text} {unit.column} {relation.value} δ={float(delta):g}",
            relation,
            PEOPLE.only(used),
            1 if unit == ROW else 6,
            partial(_totals, text, unit, relation, delta),
            begin=tuple(((), (one,) * many, (two,) * many) for one, two in permutations(rows, 2)),
        )
        yield text, subject, {0: 0.4} if relation is REPLACE else {}


def _totals(text: str, unit: Whose, relation: Relation, delta: Fraction, *, silent: bool) -> Totals:
    cost, options = price(delta, silent=silent), RenderOptions("salt")
    query = bind(text, tables={"t": PEOPLE.table(unit, relation)})
    (formula,) = formulas(query.aggregates, Resolution(1 << 10)).values()
    (measure,), (each,) = formula.measures, cells(query)
    assert isinstance(measure, RowCount | BoundedSum)
    counted = cell_sums(query, each, measure, options)
    found = running_sums(counted, 0, range(each.domains[0].size), noise_budgets(cost, delta))
    assert found is not None
    return Totals(PEOPLE, found, found.mechanism.event, cost, delta)


# --- batches ----------------------------------------------------------------------------------------------------------

#: Questions that share measurements, over one column and over two, and one that is drawn by itself.
_ENDS = [(a, b) for a in range(4) for b in range(a, 4)]
QUESTIONS = (
    *(f"SELECT COUNT(*) FROM t WHERE i BETWEEN {a} AND {b}" for a, b in _ENDS),
    *(f"SELECT f, COUNT(*) FROM t WHERE i >= {a} GROUP BY f" for a in range(4)),
    *(f"SELECT COUNT(*) FROM t WHERE i BETWEEN {a} AND {b} AND {f}" for a, b in _ENDS for f in ("f", "NOT f")),
    "SELECT k, COUNT(*) FROM t GROUP BY k",
    *(f"SELECT f, COUNT(*) FROM t WHERE k = '{k}' GROUP BY f" for k in "abc"),
    *(f"SELECT COUNT(*) FROM t WHERE k <> '{k}' AND NOT f" for k in "abc"),
    "SELECT SUM(i) FROM t WHERE k = 'b'",
)


@dataclass
class Measured(Analysis):
    """The draws of a batch, without what is computed from them."""

    def run(self, data: Data, source: RandomSource) -> None:
        """Draw."""
        assert isinstance(self.prepared, PreparedBatch)
        self.world.show(data)
        run = EngineRun(self.world.ask, source, lambda _, __: None)
        self.prepared._measured(run)
        for each in self.prepared.answers:
            if isinstance(each, PreparedAnalysis):
                each.run(run)


#: Of a strategy that is not the same for all cells only the heaviest cells reach the bound; a replaced unit takes from
#: one cell what it gives to another, and sums that hold both do not move.
OF_BATCH: dict[Relation, Reach] = {Relation.ADD_REMOVE: {0: 0.2, 1: 0.2}, REPLACE: {0: 0.2, 1: 0.2, 2: 0.45}}


def batches(*, full: bool) -> Iterator[tuple[Subject, Reach]]:
    """Ask them together."""
    for unit, relation, delta in ALL if full else FOUR:
        table = PEOPLE.table(unit, relation)
        many = 1 if unit == ROW else unit.groups * unit.rows

        def make(*, silent: bool, table: Table = table, delta: Fraction = delta) -> Measured:
            cost, rendering = price(delta, silent=silent), RenderOptions("salt")
            call = AnalysisCall("batch", {"queries": list(QUESTIONS)})
            prepared = prepare_batch(
                call, {"t": table}, lambda _: rendering, lambda *_: delta, epsilon=cost, most=10**6
            )
            assert prepared.shared is not None
            return Measured(PEOPLE, prepared, prepared.event, prepared.epsilon, prepared.delta)

        begin = tuple(
            ((), (_cell(one),) * many, (_cell(two),) * many)
            for one, two in permutations([("a", True, 0), ("b", False, 3), ("c", True, 2)], 2)
        )
        subject = Subject(
            f"batch {unit.column} {relation.value} δ={float(delta):g}",
            relation,
            PEOPLE.only(["k", "f", "i"]),
            1 if unit == ROW else 6,
            make,
            begin=begin,
        )
        yield subject, OF_BATCH[relation]


def _cell(values: tuple[str, bool, int]) -> tuple[Any, ...]:
    k, f, i = values
    return (-1.0, -1.0, k, f, True, i, "p")


# --- an owner's function ----------------------------------------------------------------------------------------------


@dataclass
class Asked:
    """Something prepared that reads rows."""

    world: World
    prepared: PreparedAnalysis
    event: Event
    epsilon: Fraction
    delta: Fraction

    def run(self, data: Data, source: RandomSource) -> None:
        """Run it."""
        self.world.show(data)
        self.prepared.run(_Run(self.world, source))


@dataclass
class _Run:
    world: World
    source: RandomSource

    def ask(self, sql: str) -> Any:
        return self.world.ask(sql)

    def progress(self, done: float, what: str) -> None:
        """Nobody listens."""


def total(rows: Mapping[str, NDArray[Any]]) -> float:
    """Add up i, which lies in 0, …, 3; what is missing counts 0."""
    return float(np.nansum(rows["i"]))


def both(rows: Mapping[str, NDArray[Any]]) -> list[float]:
    """Add up i and x, which lies in [−1, 1]."""
    return [float(np.nansum(rows["i"])), float(np.nansum(rows["x"]))]


#: metric → function, columns, sensitivity under add/remove and under replace, by hand; and how many numbers
RELEASES: dict[str, tuple[Any, list[str], tuple[float, float], int]] = {
    "absolute": (total, ["i"], (3, 3), 1),
    "l1": (both, ["i", "x"], (4, 5), 2),
    "l2": (both, ["i", "x"], (4, 5), 2),
}


def releases() -> Iterator[tuple[str, Subject, Reach]]:
    """Release sums of a row's numbers, whose sensitivity is known."""
    ends: Begin = ((), ((1.0, 0.0, "a", True, True, 3, "p"),), ((-1.0, 0.0, "a", True, True, 0, "p"),))
    # a step for each number's rounding; the sum of two norms bounds the Euclidean one from above
    reach: dict[str, Reach] = {"absolute": {}, "l1": {0: 0.9}, "l2": {0: 0.45}}
    for metric, relation in product(RELEASES, Relation):
        make = partial(_released, metric, relation)
        name = f"release in {metric} {relation.value}"
        yield metric, Subject(name, relation, PEOPLE.only(["i", "x"]), 1, make, begin=(ends,)), reach[metric]


def _released(metric: Any, relation: Relation, *, silent: bool) -> Asked:
    function, columns, moved, outputs = RELEASES[metric]
    delta = DELTA if metric == "l2" else Fraction(0)
    order = FunctionRequest.of(
        function,
        "t",
        columns,
        sensitivity=Fraction(moved[relation is REPLACE]),
        metric=metric,
        outputs=outputs,
        step=Fraction(1, 8),
        total=True,
    )
    setting = Setting({"t": PEOPLE.table(ROW, relation)}, price(delta, silent=silent), delta, RenderOptions("salt"))
    prepared = order.prepare(setting)
    return Asked(PEOPLE, prepared, prepared.event, setting.epsilon, prepared.delta)


# --- code of strangers on blocks --------------------------------------------------------------------------------------


class Inside:
    """In the place of a box: a function that stands in this process, and does its worst."""

    def run(self, rows: Mapping[str, NDArray[Any]]) -> tuple[float, ...] | None:
        """Jump from end to end with any row more or less; or fail."""
        size = len(rows["i"])
        return None if size == 5 else (1e9, 0.0) if size % 2 else (-1e9, 1e9)


class Placed(SampleAndAggregate):
    """Blocks by the place of a unit, not by words: the pairing of neighbors that the theorem speaks of."""

    def split(self, found: Any, source: RandomSource) -> list[Mapping[str, NDArray[Any]]]:
        """Give each unit the block of its number."""
        del source
        taken = self.rows.take(found)
        # i tells which unit it is, as the rows of a table whose unit is the row have no owner
        units = np.nan_to_num(taken.columns["i"]).astype(np.int64) if taken.owners is None else taken.owners
        return [taken.only(units % self.order.blocks == block) for block in range(self.order.blocks)]


def aggregates(*, full: bool) -> Iterator[tuple[str, Subject, Reach]]:
    """Aggregate two numbers over five blocks."""
    for how, (unit, relation, _) in product(("mean", "median"), ALL if full else FOUR):
        name = f"sample_and_aggregate by {how} {unit.column or 'row'} {relation.value}"
        columns, rows = PEOPLE.only(["i"] if unit != ROW else []), 1 if unit == ROW else 6
        yield how, Subject(name, relation, columns, rows, partial(_aggregated, how, unit, relation)), {}


def _aggregated(how: Any, unit: Whose, relation: Relation, *, silent: bool) -> Asked:
    text = "def f(rows):\n    return 0, 0\n"
    order = AggregateRequest.of(text, "t", ["i"], bounds=[(-1, 1), (0, 8)], blocks=5, how=how)
    cost = price(Fraction(0), silent=silent)
    made = order.prepare(
        Setting({"t": PEOPLE.table(unit, relation)}, cost, Fraction(0), RenderOptions("salt")),
        Inside(),  # type: ignore[arg-type]
    )
    prepared = Placed(**{each.name: getattr(made, each.name) for each in fields(made)})
    return Asked(PEOPLE, prepared, prepared.event, prepared.epsilon, prepared.delta)
