"""Many counts of one table from few measured sums: which columns are measured together, how, and for which share.

Counts whose columns nest share one block of measurements. Values that no question tells apart are one bin, and each
block is measured by a product strategy that is searched for the questions it serves.

Tested in tests/curator/test_batch.py.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hubbub.analyses.base import Run
from hubbub.analyses.tables.marginals import Counts
from hubbub.analyses.tables.product_strategies import ProductStrategy, product_strategy
from hubbub.analyses.tables.strategy_search import Floats
from hubbub.core import deadline
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.sql import bounding
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Literal
from hubbub.sql.fanout import strict
from hubbub.sql.keys import Cells, cells
from hubbub.sql.linear_counts import ColumnValues, LinearCount, LinearQuestion
from hubbub.sql.measures import RowCount, Sensitivity
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget
from hubbub.sql.plan import bound_work, privacy_terms
from hubbub.sql.query import Query

#: Most cells of a block, as the engine counts them.
MAX_COUNTED = 200_000
#: How often the weights of questions that got worse are raised.
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class SharedQuestion:
    """A question with the standard deviation of each of its measures where the price is split evenly."""

    question: LinearQuestion
    evenly: tuple[float, ...]

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        return frozenset(self.question.columns)

    def counts(self) -> Iterator[tuple[LinearCount, float]]:
        """List its vectors of counts, with the standard deviation of each where the price is split evenly."""
        for measure, deviation in zip(self.question.measures, self.evenly, strict=True):
            yield from ((count, deviation) for count in measure)


@dataclass(frozen=True, eq=False)
class CountedTable:
    """The exact counts of some columns of a table, bounded by unit: the statement, and what one unit adds at most."""

    table: Table
    columns: tuple[ColumnValues, ...]
    sql: str
    cells: Cells
    relation: Relation
    contribution: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each column."""
        return tuple(each.size for each in self.columns)


def counted_table(
    table: Table, columns: Sequence[ColumnValues], tables: Mapping[str, Table], options: RenderOptions
) -> CountedTable:
    """Write the statement that counts the rows of a table by some columns.

    Theorem (One bound for all cells). With at most T rows kept of each unit, in an order that depends on its own rows
    alone, one unit adds u ≥ 0 to the counts of all cells together, Σu ≤ T; T is 1 where each row is its own unit.
    Proof    `Truncate` keeps T rows of each unit before anything is counted, and each row is in one cell.
    Assumes  the theorem of `statements_at` on truncated rows.
    Tested   tests/curator/test_batch.py::test_neighbors_stay_within_the_sensitivity_that_a_batch_was_charged_for
    """
    keys = ", ".join(DUCKDB.identifier(each.name) for each in columns)
    named = max((each.name for each in table.columns), key=len) + "_"
    text = f"SELECT COUNT(*) AS {DUCKDB.identifier(named)} FROM {DUCKDB.identifier(table.name)}"  # noqa: S608 - names of declared columns
    query = with_nulls(bind(text + (f" GROUP BY {keys}" if keys else ""), tables=tables))
    (each,) = cells(query)
    if [tuple(domain.values) for domain in each.domains] != [tuple(column.values) for column in columns]:
        raise AssertionError("a key has other values than its column")
    relation, limits = privacy_terms(query, None, None)
    if limits is None:
        total, rows = 1, bound_work(query, None, None, options)
    else:
        total = limits.groups * limits.rows if limits.total is None else limits.total
        rows = bound_work(query, None, None, options, total)
    sql = bounding.sums(rows, each, [RowCount()], limits=None, options=options)
    return CountedTable(table, tuple(columns), sql, each, relation, total)


def with_nulls(query: Query) -> Query:
    """Count rows without a value too: each row has a cell, so that sums over a column leave nothing out."""
    keys = tuple(
        replace(key, expr=replace(key.expr, facts=replace(key.expr.facts, null=True)))
        for key in query.keys
        if not isinstance(key.expr, Literal)
    )
    if len(keys) != len(query.keys):
        raise AssertionError("a key is a column")
    return replace(query, keys=keys, relation=strict(query.relation))


@dataclass(frozen=True, eq=False)
class SharedBlock:
    """Some questions that are told from one set of measured sums.

    bins  for each column, the bin of each value; −1 for values that no question reads
    """

    counted: CountedTable
    bins: tuple[Counts, ...]
    places: tuple[int, ...]
    questions: tuple[SharedQuestion, ...]
    strategy: ProductStrategy

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of the measured sums."""
        return self.strategy.sensitivity(contribution=self.counted.contribution, relation=self.counted.relation)

    def matrices(self, count: LinearCount) -> list[Floats]:
        """Give the matrix of a count for each column, by bins."""
        return [
            binned(count.matrices.get(column.name), bins)
            for column, bins in zip(self.counted.columns, self.bins, strict=True)
        ]

    def variances(self, question: SharedQuestion) -> list[list[Floats]]:
        """Give the variances of all counts, for noise of variance 1 on every measured sum."""
        return [
            [self.strategy.variances(self.matrices(count)) for count in measure]
            for measure in question.question.measures
        ]

    def through(self, found: Mapping[str, Counts], mechanism: AdditiveNoise, run: Run) -> Floats:
        """Add up the bins of a result of the engine, measure them with noise, and estimate the bins."""
        exact = np.zeros(self.counted.cells.size, dtype=np.int64)
        at = np.asarray(found["cell"], dtype=np.int64)
        known = at >= 0
        np.add.at(exact, at[known], np.asarray(found["m0"], dtype=np.int64)[known])
        whole = exact.reshape(self.counted.shape)
        for axis, bins in enumerate(self.bins):
            size = int(bins.max()) + 1
            moved = np.moveaxis(whole, axis, 0)
            added = np.zeros((size, *moved.shape[1:]), dtype=np.int64)
            np.add.at(added, bins[bins >= 0], moved[bins >= 0])
            whole = np.moveaxis(added, 0, axis)
        noisy = mechanism.sample(self.strategy.measured(np.ascontiguousarray(whole).reshape(-1)), run.source)
        return self.strategy.estimated(noisy)

    def answer(self, estimated: Floats, count: LinearCount) -> Floats:
        """Add up estimated bins to the cells of an answer."""
        found = estimated
        for axis, matrix in enumerate(self.matrices(count)):
            found = np.moveaxis(np.tensordot(matrix, found, axes=(1, axis)), 0, axis)
        return self.in_order(found, count)

    def in_order(self, found: Floats, count: LinearCount) -> Floats:
        """Bring an array with an axis for each column into the order of the cells of an answer."""
        names = [column.name for column in self.counted.columns]
        keys = [names.index(name) for name in count.matrices]
        order = [*keys, *(place for place in range(len(names)) if place not in keys)]
        return np.ascontiguousarray(found.transpose(order)).reshape(-1)


@dataclass(frozen=True, eq=False)
class SharedCounts:
    """Blocks with the noise of each; every question is in one block."""

    blocks: tuple[SharedBlock, ...]
    budget: NoiseBudget
    mechanisms: tuple[AdditiveNoise, ...]
    variances: Mapping[int, list[list[Floats]]]  #: of the answers, by the place of the question

    def deviations(self, place: int) -> list[float]:
        """Give the largest standard deviation of each measure of a question."""
        return [math.sqrt(max(float(part.max()) for part in measure)) for measure in self.variances[place]]


def share_counts(
    questions: Mapping[int, SharedQuestion],
    budgets: Sequence[NoiseBudget],
    tables: Mapping[str, Table],
    options: Mapping[str, RenderOptions],
) -> SharedCounts | None:
    """Plan the measurements of some questions, if possible so that none is less exact than with an even split.

    None if they cannot be measured at this price. Whether some question is less exact, `ratios` tells.
    """
    layout = [
        (places, counted_table(table, columns, tables, options[table.name]))
        for table, columns, places in _layout(questions)
    ]
    plans = [each for each in (_shared(questions, layout, budget) for budget in budgets) if each is not None]

    def loss(shared: SharedCounts) -> tuple[float, float]:
        compared = ratios(shared, questions).values()
        return max(1.0, *compared), sum(each**2 for each in compared)

    return min(plans, key=loss, default=None)


def can_be_measured(question: LinearQuestion) -> bool:
    """Tell whether a question has few enough cells, and counts something."""
    size = math.prod(each.size for each in question.columns.values())
    parts = [matrix for measure in question.measures for count in measure for matrix in count.matrices.values()]
    return size <= MAX_COUNTED and all(matrix.any() for matrix in parts)


def ratios(shared: SharedCounts, questions: Mapping[int, SharedQuestion]) -> dict[int, float]:
    """Compare the standard deviations of each question with those of an even split: the largest quotient."""
    return {
        place: max(own / evenly for own, evenly in zip(shared.deviations(place), questions[place].evenly, strict=True))
        for place in questions
    }


def _layout(
    questions: Mapping[int, SharedQuestion],
) -> list[tuple[Table, tuple[ColumnValues, ...], tuple[int, ...]]]:
    """Put each question into a block whose columns include its own: the smallest set that no other set includes."""
    blocks: list[tuple[Table, tuple[ColumnValues, ...], tuple[int, ...]]] = []
    for name in dict.fromkeys(each.question.table.name for each in questions.values()):
        own = {place: each for place, each in questions.items() if each.question.table.name == name}
        known = {key: value for each in own.values() for key, value in each.question.columns.items()}
        sets = {each.columns for each in own.values()}
        largest = [each for each in sets if not any(each < other for other in sets)]
        largest.sort(key=lambda each: (math.prod(known[key].size for key in each), sorted(each)))
        members: dict[frozenset[str], list[int]] = {each: [] for each in largest}
        for place, each in own.items():
            members[next(block for block in largest if each.columns <= block)].append(place)
        table = next(iter(own.values())).question.table
        blocks += [
            (table, tuple(known[key] for key in sorted(block)), tuple(places)) for block, places in members.items()
        ]
    return blocks


def _shared(
    questions: Mapping[int, SharedQuestion],
    layout: Sequence[tuple[tuple[int, ...], CountedTable]],
    budget: NoiseBudget,
) -> SharedCounts | None:
    """Search strategies and shares; raise the weights of questions that are less exact than evenly, a few times."""
    weights = dict.fromkeys(questions, 1.0)
    found: SharedCounts | None = None
    for _ in range(_ROUNDS):
        deadline.check()
        blocks = [
            _block(counted, places, [questions[place] for place in places], [weights[p] for p in places], budget)
            for places, counted in layout
        ]
        try:
            found = _with_noise(blocks, questions, weights, budget)
        except ParameterError:  # noise beyond the range of the samplers
            return found
        compared = ratios(found, questions)
        if max(compared.values()) <= 1:
            break
        weights = {place: weight * max(1.0, 1.2 * compared[place]) ** 2 for place, weight in weights.items()}
    return found


def _block(
    counted: CountedTable,
    places: tuple[int, ...],
    questions: Sequence[SharedQuestion],
    weights: Sequence[float],
    budget: NoiseBudget,
) -> SharedBlock:
    """Merge values that no question tells apart, and search a strategy for the bins."""
    counts = [
        (count, weight / deviation**2)
        for question, weight in zip(questions, weights, strict=True)
        for count, deviation in question.counts()
    ]
    bins = tuple(
        bins_of([count.matrices.get(column.name) for count, _ in counts], column.size) for column in counted.columns
    )
    grams = [np.zeros((int(each.max()) + 1,) * 2) for each in bins]
    for count, weight in counts:
        parts = [
            binned(count.matrices.get(column.name), each) for column, each in zip(counted.columns, bins, strict=True)
        ]
        sizes = [float((part**2).sum()) / len(part) for part in parts]
        for axis, part in enumerate(parts):
            others = math.prod(size for place, size in enumerate(sizes) if place != axis)
            grams[axis] += weight * others / len(part) * (part.T @ part)
    return SharedBlock(counted, bins, places, tuple(questions), product_strategy(grams, budget.noise))


def bins_of(matrices: Sequence[Floats | None], size: int) -> Counts:
    """Number the values of a column so that values with equal columns in all matrices are one bin."""
    rows = [np.ones((1, size)) if matrix is None else matrix for matrix in matrices]
    stacked = np.unique(np.vstack(rows), axis=0)
    used = stacked.any(axis=0)
    found = np.full(size, -1, dtype=np.int64)
    if used.any():
        found[used] = np.unique(stacked[:, used], axis=1, return_inverse=True)[1].reshape(-1)
    return found


def binned(matrix: Floats | None, bins: Counts) -> Floats:
    """Give the columns of a matrix for bins; a column that a count does not read adds up all bins."""
    size = int(bins.max()) + 1
    if matrix is None:
        return np.ones((1, size))
    first = np.zeros(size, dtype=np.int64)
    first[bins[bins >= 0][::-1]] = np.flatnonzero(bins >= 0)[::-1]
    return matrix[:, first]


def _with_noise(
    blocks: Sequence[SharedBlock],
    questions: Mapping[int, SharedQuestion],
    weights: Mapping[int, float],
    budget: NoiseBudget,
) -> SharedCounts:
    """Split a budget over blocks: the sum of the questions' weighted variances is smallest."""
    unit = {
        place: block.variances(question)
        for block in blocks
        for place, question in zip(block.places, block.questions, strict=True)
    }
    needs = []
    for block in blocks:
        moved = budget.deviation(block.sensitivity) ** 2
        needs.append(
            sum(
                weights[place] * float(part.mean()) * moved / deviation**2
                for place in block.places
                for measure, deviation in zip(unit[place], questions[place].evenly, strict=True)
                for part in measure
            )
        )
    power = 1 / 3 if budget.noise == "laplace" else 1 / 2
    raw = np.array(needs) ** power
    raw = np.maximum(raw, raw.max() / 1000)
    shares = (raw / raw.sum()).tolist()
    mechanisms = budget.mechanisms([block.sensitivity for block in blocks], shares)
    placed = [replace(budget, amount=part) for part in budget.portions(shares)]
    scaled = {
        place: [[part * own.deviation(block.sensitivity) ** 2 for part in measure] for measure in unit[place]]
        for block, own in zip(blocks, placed, strict=True)
        for place in block.places
    }
    return SharedCounts(tuple(blocks), budget, mechanisms, scaled)
