"""Running totals in SQL: `SELECT month, SUM(SUM(cost)) OVER (ORDER BY month) … GROUP BY month`, and sliding windows.

Where sums that are chosen for such totals give them with less noise than adding up noisy counts or sums, the query is
planned with these sums, and says so; otherwise it stays as it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Protection, Published, Run
from hubbub.analyses.tables.running_sums import RunningSums, cell_sums, running_sums
from hubbub.analyses.tables.strategy_search import Floats
from hubbub.answers.left_out import LeftOut
from hubbub.core.events import Composed
from hubbub.core.numbers import brief
from hubbub.curator import receipt as receipts
from hubbub.curator.left_out import describe
from hubbub.curator.query import PreparedQuery
from hubbub.curator.question import Question
from hubbub.curator.total_columns import TotalColumn, ranks_of, total_column
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.sql.after import run_after
from hubbub.sql.after_intervals import ROW_ID
from hubbub.sql.aggregates.formula import Formula, Resolution
from hubbub.sql.aggregates.table import formulas
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.finish import declared_keys
from hubbub.sql.measures import BoundedSum, RowCount
from hubbub.sql.noise_budget import noise_budgets
from hubbub.sql.plan import Plan
from hubbub.sql.presentation import Answer
from hubbub.sql.query import After, Query

#: What the receipt calls such an answer.
NAME = "running_totals"
#: The most steps that a row adds to a sum: the first two to choose the sums, of the others the finest that can be used.
#: Noise on weighted sums must stay in the range of the samplers, and no interval allows for the rounding of rows.
_STEPS, _FINER = (1 << 20, 1 << 16), (1 << 30, 1 << 28, 1 << 26, 1 << 24, 1 << 22)
#: A sliding window must have at least this share less variance: it is searched for, and may be the counts themselves.
_GAIN = 0.99


@dataclass(frozen=True, kw_only=True)
class PreparedRunningTotals(PreparedAnalysis):
    """A query for running totals that is answered from sums chosen for them.

    Assumes  "Running totals" of `RunningSums`.
    Charges  `event`: the noise of the measured sums, once.
    Tested   tests/curator/test_running_totals.py::test_totals_without_noise_are_exact

    sums     the measured sums
    formula  how a value follows from its steps, and its range
    query    the plan with noise on every count or sum, for its keys
    """

    sums: RunningSums
    formula: Formula
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
        most = self.sums.counted.rows
        return replace(stated, groups=None, rows=most, rows_total=None, counts="rows", by=None, filtered=True)

    @property
    def after(self) -> After:
        """The query over the counts or sums."""
        if self.query.query.after is None:
            raise AssertionError("a running total is a query over counts or sums")
        return self.query.query.after

    def run(self, run: Run) -> Published:
        """Measure, estimate the totals, and let the query put them into its order."""
        run.progress(0.0, "counting rows")
        table = run.ask(self.sums.counted.sql)
        totals: Floats = table.through(lambda found: self.sums.totals(found, run))
        answer = self._answer(totals)
        columns, _ = receipts.outputs(answer)
        run.progress(1.0, "done")
        return Published(tuple(columns))

    def _answer(self, steps: Floats) -> Answer:
        """Let the query order what the totals are made of, and attach the intervals."""
        formula, whole = self.formula, self.formula.integer
        totals = formula.value([steps])
        half = self.sums.half_widths() * _step(formula)
        totals = np.rint(totals) if whole else totals
        shown = declared_keys(self.query).shown
        names, keys = [name for name, _ in self.after.released[0].columns], self.query.query.keys
        released: dict[str, NDArray[Any]] = {
            name: shown[keys[place].name] for name, place in zip(names, self.column.keys, strict=False)
        }
        parts = self._parts(totals)
        released[names[-1]] = parts.astype(np.int64) if whole else parts
        *columns, rows = run_after(self.after, {self.after.released[0].name: released}, most=len(totals) + 1)
        at = np.asarray(rows, dtype=np.int64)
        place, nothing = self.column.place, np.full(len(at), np.nan)
        low, high = [nothing for _ in columns], [nothing for _ in columns]
        # what is shown is in the range of its values; the intervals are those of the estimates, and hold what is shown
        least, most = formula.range(found=False)
        value = np.clip(totals[at], least, most)
        columns[place] = value.astype(np.int64) if whole else value
        low[place] = np.fmin(np.clip(totals[at] - half[at], least, most), columns[place])
        high[place] = np.fmax(np.clip(totals[at] + half[at], least, most), columns[place])
        output = [name for name, _ in self.after.outputs if name != ROW_ID]
        return Answer(tuple(output), tuple(columns), tuple(low), tuple(high), nothing)

    def _parts(self, totals: Floats) -> Floats:
        """Give the values whose totals these are, among cells that differ in the ordered key alone.

        That is the difference of each total to the one before it, and where a window leaves a value behind, that value.
        """
        moved = np.moveaxis(totals.reshape(self.sums.shape), self.column.along, 0)
        parts = np.empty_like(moved)
        order = np.argsort(np.asarray(self.ranks))
        values = np.diff(moved[order], axis=0, prepend=0)
        for place in range(self.column.width or len(values), len(values)):
            values[place] += values[place - (self.column.width or 0)]
        parts[order] = values
        return np.moveaxis(parts, 0, self.column.along).reshape(-1)


def running_totals(
    planned: PreparedQuery, question: Question, options: RenderOptions, *, delta: Fraction
) -> PreparedAnalysis:
    """Plan a query for running totals with sums chosen for them, if that is more exact; otherwise return it unchanged.

    More exact: the mean variance over all totals is smaller than that of adding up the planned values, and so is the
    largest. Both follow from the plan alone.
    """
    column = total_column(planned)
    asked = question.wants_accuracy() or question.joint or question.weights or question.raw or question.combine
    asked = asked or question.noise is not None
    if column is None or asked or planned.given != (None, None) or not _is_plain(planned.plan):
        return planned
    (cells,) = planned.plan.cells
    ranks = ranks_of(cells.domains[column.along])
    if ranks is None or cells.kept is not None:
        return planned
    chosen = _chosen(planned, column, ranks, options, delta)
    return planned if chosen is None else _prepared(planned, *chosen, column, ranks, delta=delta)


def _chosen(
    planned: PreparedQuery, column: TotalColumn, ranks: Sequence[int], options: RenderOptions, delta: Fraction
) -> tuple[RunningSums, Formula] | None:
    """Choose sums that are more exact than adding up the planned values, with how a value follows from its steps."""
    plan = planned.plan
    (noised,), (shown,), (cells,) = plan.measures, plan.formulas.values(), plan.cells
    added = (noised.deviation * _step(shown)) ** 2 * column.terms(ranks) * (1.0 if column.width is None else _GAIN)
    for steps in _STEPS:
        (formula,) = formulas(plan.query.aggregates, Resolution(steps)).values()
        (measure,) = formula.measures
        if not isinstance(measure, RowCount | BoundedSum):
            return None
        try:
            counted = cell_sums(replace(plan.query, after=None), cells, measure, options)
        except (QueryError, ParameterError):
            return None
        found = running_sums(counted, column.along, ranks, noise_budgets(planned.epsilon, delta), column.width)
        if found is not None:
            own = found.variances * _step(formula) ** 2
            better = own.mean() < added.mean() and own.max() < added.max()
            return _finest(found, formula, plan.query, options) if better else None
    return None


def _finest(found: RunningSums, formula: Formula, query: Query, options: RenderOptions) -> tuple[RunningSums, Formula]:
    """Round the values of rows as finely as the noise of the chosen sums allows."""
    for steps in _FINER:
        (finer,) = formulas(query.aggregates, Resolution(steps)).values()
        (measure,) = finer.measures
        if measure == found.counted.measure or not isinstance(measure, BoundedSum):
            break  # it is exact already
        counted = cell_sums(replace(query, after=None), found.counted.cells, measure, options)
        again = found.measuring(counted)
        if again is not None:
            return again, finer
    return found, formula


def _step(formula: Formula) -> float:
    """Give the value of one step of the only measure of a formula."""
    return float(abs(formula.value([np.ones(1)])[0]))


def _is_plain(plan: Plan) -> bool:
    """Tell whether a plan adds noise to one measure of each declared cell, whose bounds are declared as well."""
    limits = plan.limits
    found = bool(plan.levels) or plan.inputs is not None or bool(plan.owners) or plan.work is not None
    chosen = plan.threshold is not None or bool(plan.choices) or plan.top is not None
    auto = limits is not None and (limits.auto or limits.owners > 1)
    linear = [formula.linear and len(formula.measures) == 1 for formula in plan.formulas.values()] == [True]
    return linear and not (found or chosen or auto) and all(each.event is not None for each in plan.measures)


def _prepared(
    planned: PreparedQuery,
    found: RunningSums,
    formula: Formula,
    column: TotalColumn,
    ranks: Sequence[int],
    *,
    delta: Fraction,
) -> PreparedRunningTotals:
    plan = planned.plan
    half = float(found.half_widths().max()) * _step(formula)
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
        statements=(found.counted.sql,),
        sums=found,
        formula=formula,
        query=plan,
        column=column,
        ranks=tuple(ranks),
    )


def _derivation(found: RunningSums, column: TotalColumn, half: float, summed: float) -> tuple[str, ...]:
    moved, counted = found.sensitivity, found.counted
    kept = "each row is its own unit" if counted.by_row else f"a unit counts with at most {_rows(counted.rows)}"
    if isinstance(counted.measure, BoundedSum):
        step, most = brief(counted.measure.step), counted.contribution // counted.rows
        kept += f", and a row adds at most {most:,} {'step' if most == 1 else 'steps'} of {step}"
    noise = (
        f"they move by at most √{moved.l2_squared:,} (L2): Gaussian noise of variance {brief(found.mechanism.variance)}"
        if isinstance(found.mechanism, Gaussian)
        else f"they move by at most {moved.l1:,} (L1): Laplace noise of scale {brief(found.mechanism.scale)}"
    )
    strategy = {
        "dense": "weighted sums of all values",
        "root": "the square root of the matrix of running totals",
        "groups": "single values and groups of them",
    }
    values = "counts" if isinstance(counted.measure, RowCount) else "sums"
    return (
        f"{column.text} along {column.key}: {found.sums:,} weighted sums of the {values} of each value, by "
        f"{strategy.get(found.strategy.name, found.strategy.name)}; {kept}",
        noise,
        f"totals are estimated from these sums by least squares: at most ±{half:.4g}, and about ±{summed:.4g} if noisy "
        f"{values} were added up",
    )


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"
