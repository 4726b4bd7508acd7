"""Running totals in SQL: `SELECT month, SUM(COUNT(*)) OVER (ORDER BY month) … GROUP BY month`, and sliding windows.

Where sums that are chosen for such totals give them with less noise than adding up noisy counts, the query is
planned with these sums, and says so; otherwise it stays as it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import sqlglot
from numpy.typing import NDArray
from sqlglot import exp

from hubbub.analyses.base import PreparedAnalysis, Protection, Published, Run
from hubbub.analyses.tables.running_counts import RunningCounts, running_counts
from hubbub.analyses.tables.shared_counts import counted_table
from hubbub.analyses.tables.strategy_search import Floats
from hubbub.answers.left_out import LeftOut
from hubbub.core.events import Composed
from hubbub.core.numbers import brief
from hubbub.core.schema import Kind
from hubbub.curator import receipt as receipts
from hubbub.curator.left_out import describe
from hubbub.curator.query import PreparedQuery
from hubbub.curator.question import Question
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.sql.after import run_after
from hubbub.sql.after_intervals import ROW_ID
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.expressions import Col
from hubbub.sql.finish import declared_keys
from hubbub.sql.keys import Domain
from hubbub.sql.linear_counts import linear_question
from hubbub.sql.noise_budget import noise_budgets
from hubbub.sql.plan import Plan
from hubbub.sql.presentation import Answer
from hubbub.sql.query import After

#: What the receipt calls such an answer.
NAME = "running_totals"
#: Keys whose order is the same for hubbub and for the engine that adds up.
_ORDERED = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.INTEGER})
_FRAMES = frozenset(
    {("ROWS", "UNBOUNDED", "PRECEDING", "CURRENT ROW"), ("RANGE", "UNBOUNDED", "PRECEDING", "CURRENT ROW")}
)
#: A sliding window must have at least this share less variance: it is searched for, and may be the counts themselves.
_GAIN = 0.99
#: Frames of more rows have no key of so many values.
_DIGITS = 6
_CLAUSES = frozenset({"expressions", "from", "from_", "order"})


@dataclass(frozen=True)
class TotalColumn:
    """The one column of a query over released counts that is a running total.

    place  its place in the answer
    along  the place of its ordered key among the keys
    key    the name of that key, as it is released
    keys   for each released key, its place among the keys of the query
    width  of a sliding window, how many values it has; None: from the first value on
    """

    place: int
    along: int
    key: str
    keys: tuple[int, ...]
    width: int | None = None

    def terms(self, ranks: Sequence[int]) -> NDArray[np.int64]:
        """Give the number of counts in each total."""
        most = len(ranks) if self.width is None else self.width
        return np.minimum(1 + np.asarray(ranks, dtype=np.int64), most).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class PreparedRunningTotals(PreparedAnalysis):
    """A query for running totals that is answered from sums chosen for them.

    Assumes  "Running totals" of `RunningCounts`.
    Charges  `event`: the noise of the measured sums, once.
    Tested   tests/curator/test_running_totals.py::test_totals_without_noise_are_exact

    counts   the measured sums
    query    the plan with noise on every count, for its keys
    """

    counts: RunningCounts
    query: Plan
    column: TotalColumn
    ranks: tuple[int, ...]

    def receipt(self) -> dict[str, Any]:
        """Say how it is answered."""
        return {"analysis": NAME}

    def left_out(self) -> LeftOut:
        """State the one bound on all rows of a unit, and what the query reads otherwise than it is stored."""
        stated = describe(self.query)
        if stated.unit is None:
            return stated
        most = self.counts.block.counted.contribution
        return replace(stated, groups=None, rows=most, rows_total=None, counts="rows", by=None, filtered=True)

    @property
    def after(self) -> After:
        """The query over the counts."""
        if self.query.query.after is None:
            raise AssertionError("a running total is a query over counts")
        return self.query.query.after

    def run(self, run: Run) -> Published:
        """Measure, estimate the totals, and let the query put them into its order."""
        run.progress(0.0, "counting rows")
        table = run.ask(self.counts.block.counted.sql)
        totals: Floats = table.through(lambda found: self.counts.totals(found, run))
        answer = self._answer(totals)
        columns, _ = receipts.outputs(answer)
        run.progress(1.0, "done")
        return Published(tuple(columns))

    def _answer(self, totals: Floats) -> Answer:
        """Add up the steps between rounded totals in the order of the query, and attach the intervals."""
        half = self.counts.half_widths()
        shown = declared_keys(self.query).shown
        names, keys = [name for name, _ in self.after.released[0].columns], self.query.query.keys
        released: dict[str, NDArray[Any]] = {
            name: shown[keys[place].name] for name, place in zip(names, self.column.keys, strict=False)
        }
        released[names[-1]] = self._steps(np.rint(totals)).astype(np.int64)
        *columns, rows = run_after(self.after, {self.after.released[0].name: released}, most=len(totals) + 1)
        at = np.asarray(rows, dtype=np.int64)
        place, nothing = self.column.place, np.full(len(at), np.nan)
        low, high = [nothing for _ in columns], [nothing for _ in columns]
        # counts are whole and never negative; the intervals are those of the estimates, and hold what is shown
        columns[place] = np.maximum(np.rint(totals[at]), 0).astype(np.int64)
        low[place] = np.fmin(np.maximum(totals[at] - half[at], 0), columns[place])
        high[place] = np.fmax(totals[at] + half[at], columns[place])
        output = [name for name, _ in self.after.outputs if name != ROW_ID]
        return Answer(tuple(output), tuple(columns), tuple(low), tuple(high), nothing)

    def _steps(self, totals: Floats) -> Floats:
        """Give the counts whose totals these are, among cells that differ in the ordered key alone.

        That is the difference of each total to the one before it, and where a window leaves a count behind, that count.
        """
        shape = [domain.size for domain in self.query.cells[0].domains]
        moved = np.moveaxis(totals.reshape(shape), self.column.along, 0)
        steps = np.empty_like(moved)
        order = np.argsort(np.asarray(self.ranks))
        counts = np.diff(moved[order], axis=0, prepend=0)
        for place in range(self.column.width or len(counts), len(counts)):
            counts[place] += counts[place - (self.column.width or 0)]
        steps[order] = counts
        return np.moveaxis(steps, 0, self.column.along).reshape(-1)


def running_totals(
    planned: PreparedQuery, question: Question, options: RenderOptions, *, delta: Fraction
) -> PreparedAnalysis:
    """Plan a query for running totals with sums chosen for them, if that is more exact; otherwise return it unchanged.

    More exact: the mean variance over all totals is smaller than that of adding up the planned counts, and so is the
    largest. Both follow from the plan alone.
    """
    column = _total(planned)
    asked = question.wants_accuracy() or question.joint or question.weights or question.raw or question.combine
    asked = asked or question.noise is not None
    if column is None or asked or planned.given != (None, None) or planned.plan.work is not None:
        return planned
    plan = planned.plan
    ranks = _ranks(plan.cells[0].domains[column.along])
    linear = linear_question(replace(plan, query=replace(plan.query, after=None))) if ranks is not None else None
    if ranks is None or linear is None or len(linear.measures) != 1 or len(linear.measures[0]) != 1:
        return planned
    tables = {table.name: table for table in planned.tables}
    try:
        counted = counted_table(
            linear.table, [linear.columns[name] for name in sorted(linear.columns)], tables, options
        )
        found = running_counts(
            linear, column.along, ranks, counted, noise_budgets(planned.epsilon, delta), column.width
        )
    except (QueryError, ParameterError):
        return planned
    if found is None:
        return planned
    share = 1.0 if column.width is None else _GAIN
    added = plan.measures[0].deviation ** 2 * column.terms(ranks) * share
    if not (found.variances.mean() < added.mean() and found.variances.max() < added.max()):
        return planned
    return _prepared(planned, found, column, ranks, delta=delta)


def _prepared(
    planned: PreparedQuery,
    found: RunningCounts,
    column: TotalColumn,
    ranks: Sequence[int],
    *,
    delta: Fraction,
) -> PreparedRunningTotals:
    plan = planned.plan
    half = float(found.half_widths().max())
    summed = planned.expected[0].plus_minus * math.sqrt(column.terms(ranks).max())
    name = "" if plan.query.after is None else plan.query.after.outputs[column.place][0]
    expected = replace(
        planned.expected[0],
        name=name,
        plus_minus=half,
        relative=planned.expected[0].relative * half / planned.expected[0].plus_minus,
    )
    gaussian = found.budget.noise == "gaussian"
    return PreparedRunningTotals(
        protection=Protection(planned.tables, planned.relation, None),
        epsilon=planned.epsilon,
        delta=delta if gaussian else Fraction(0),
        event=Composed(((found.mechanism.event, 1),)),
        noise=found.budget.noise,
        derivation=_derivation(found, column, half, summed),
        expected=(expected,),
        cells=planned.cells,
        statements=(found.block.counted.sql,),
        counts=found,
        query=plan,
        column=column,
        ranks=tuple(ranks),
    )


def _derivation(found: RunningCounts, column: TotalColumn, half: float, summed: float) -> tuple[str, ...]:
    moved, counted = found.block.sensitivity, found.block.counted
    unit = None if counted.table.unit is None else counted.table.unit.column
    kept = "each row is its own unit" if unit is None else f"a unit counts with at most {_rows(counted.contribution)}"
    noise = (
        f"they move by at most √{moved.l2_squared:,} (L2): Gaussian noise of variance {brief(found.mechanism.variance)}"
        if isinstance(found.mechanism, Gaussian)
        else f"they move by at most {moved.l1:,} (L1): Laplace noise of scale {brief(found.mechanism.scale)}"
    )
    strategy = {
        "dense": "weighted sums of all counts",
        "root": "the square root of the matrix of running totals",
        "groups": "single counts and groups of them",
    }
    what = "running totals" if column.width is None else f"sums of the last {column.width} values"
    return (
        f"{what} along {column.key}: {found.block.strategy.sums:,} weighted sums of counts of "
        f"{counted.table.name}, by {strategy.get(found.strategy.name, found.strategy.name)}; {kept}",
        noise,
        f"totals are estimated from these sums by least squares: at most ±{half:.4g}, and about ±{summed:.4g} if noisy "
        "counts were added up",
    )


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


def _ranks(domain: Domain) -> list[int] | None:
    """Number the values of an ordered key from the smallest; NULL comes last."""
    values: list[Any] = list(domain.values)
    if domain.key.expr.kind not in _ORDERED or len(set(values)) != len(values):
        return None
    order = {value: rank for rank, value in enumerate(sorted(values))}
    return [order[value] for value in values] + ([len(values)] if domain.null else [])


def _total(planned: PreparedQuery) -> TotalColumn | None:
    """Find the running total of a query that selects its keys and one running total of its count, and nothing else."""
    plan, after = planned.plan, planned.plan.query.after
    query = plan.query
    if after is None or after.public or len(after.released) != 1 or planned.values is not None or planned.joint:
        return None
    limited = query.having is not None or query.limit is not None or query.top or len(query.sets) != 1
    if (
        limited
        or len(plan.cells) != 1
        or len(plan.groups) != 1
        or len(plan.measures) != 1
        or len(query.aggregates) != 1
    ):
        return None
    *names, count = [name for name, _ in after.released[0].columns]
    inner = [key.name for key in query.keys]
    selected = [(name, expr.name) for name, expr in query.select[:-1] if isinstance(expr, Col)]
    if [name for name, _ in query.select] != [*names, count] or sorted(name for _, name in selected) != sorted(inner):
        return None
    if not isinstance(query.select[-1][1], Col) or [name for name, _ in after.outputs][-1:] != [ROW_ID]:
        return None
    return _window(after, [inner.index(name) for _, name in selected], names, count)


def _window(after: After, places: Sequence[int], keys: Sequence[str], count: str) -> TotalColumn | None:
    tree = sqlglot.parse_one(after.sql, read="duckdb")
    if not isinstance(tree, exp.Select) or any(value and name not in _CLAUSES for name, value in tree.args.items()):
        return None
    source = tree.args.get("from") or tree.args.get("from_")
    if not isinstance(source, exp.From) or not isinstance(source.this, exp.Table) or source.this.args.get("joins"):
        return None
    if source.this.name != after.released[0].name or len(tree.expressions) != len(after.outputs):
        return None
    totals: list[TotalColumn] = []
    for place, each in enumerate(tree.expressions[:-1]):
        shown = each.this if isinstance(each, exp.Alias) else each
        if isinstance(shown, exp.Column) and shown.name in keys:
            continue
        key, width = _ordered_key(shown, keys, count)
        if key is None:
            return None
        totals.append(TotalColumn(place, places[keys.index(key)], key, tuple(places), width))
    return totals[0] if len(totals) == 1 else None


def _ordered_key(shown: exp.Expression, keys: Sequence[str], count: str) -> tuple[str | None, int | None]:
    """Give the key that SUM(count) OVER (PARTITION BY all other keys ORDER BY key) runs along, and the window's width.

    Every cell of the keys is released, so that a frame of n rows is one of n values of the key.
    """
    if not isinstance(shown, exp.Window) or type(shown.this) is not exp.Sum or not _is_column(shown.this.this, count):
        return None, None
    parts = shown.args.get("partition_by") or []
    order, spec = shown.args.get("order"), shown.args.get("spec")
    known = {"this", "partition_by", "order", "spec", "over"}
    if any(value and name not in known for name, value in shown.args.items()) or not isinstance(order, exp.Order):
        return None, None
    terms = order.expressions
    if len(terms) != 1 or not isinstance(terms[0], exp.Ordered) or terms[0].args.get("desc"):
        return None, None
    if terms[0].args.get("nulls_first") or not isinstance(terms[0].this, exp.Column):
        return None, None
    key = terms[0].this.name
    others = [each.name for each in parts if isinstance(each, exp.Column)]
    if len(others) != len(parts) or key not in keys or sorted([*others, key]) != sorted(keys):
        return None, None
    if spec is None:
        return key, None
    kind, *frame = (str(spec.args.get(name)) for name in ("kind", "start", "start_side", "end"))
    if spec.args.get("exclude"):
        return None, None
    if (kind, *frame) in _FRAMES:
        return key, None
    before = frame[0] if kind == "ROWS" and frame[1:] == ["PRECEDING", "CURRENT ROW"] else ""
    return (key, int(before) + 1) if before.isascii() and before.isdecimal() and len(before) < _DIGITS else (None, None)


def _is_column(expression: exp.Expression | None, name: str) -> bool:
    return isinstance(expression, exp.Column) and expression.name == name
