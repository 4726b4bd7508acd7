"""A median or another quantile with noise by its local sensitivity: CALL median(table => 'visits', column => 'cost').

SQL's median chooses among all values with the exponential mechanism. This one adds noise to the value itself, which is
little where many rows lie near it and does not depend on how many values there are.
"""

from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, Protection, Setting
from hubbub.analyses.local_sensitivity import (
    LocalStatistic,
    ProposedStatistic,
    SmoothStatistic,
    local_order_statistic,
    local_statistic,
)
from hubbub.analyses.rows import Rows, column, first_of_each, rows_per_unit, salted_order
from hubbub.core import numbers
from hubbub.core.schema import Column, Kind, Table
from hubbub.errors import QueryError
from hubbub.mechanisms.smooth import LocalValue
from hubbub.sql.bounding import ContributionBounds

_MAX_STEPS, _FARTHEST = 1 << 40, 1 << 52
_STEPS = 1024  #: steps of a real column that declares none

Numbers = NDArray[np.int64]


def median(
    setting: Setting,
    *,
    table: str,
    column: str,
    level: Fraction = Fraction(1, 2),
    step: Fraction | None = None,
    sensitivity: Literal["smooth", "propose"] = "smooth",
    bound: Fraction | None = None,
) -> SmoothStatistic | ProposedStatistic:
    """Prepare a quantile of a column, by default the median, with noise by its local sensitivity."""
    source, values, grid, low, high = _column(setting, table, column, step)
    rank = numbers.in_range(level, "level", Fraction(1, 1000), Fraction(1))
    rows = rows_per_unit(setting, source)
    read = Rows(source, (values,), setting.render_options)
    by_row = source.unit is None or source.unit.column is None

    def compute(found: Arrays, distances: int) -> LocalValue:
        taken = read.take(found)
        raw = taken.columns[values.name]
        there = ~np.isnan(raw)
        # row by row, so that rounding and clamping do not depend on other rows
        steps = np.clip(np.rint(np.nan_to_num(raw) / float(grid)), low, high).astype(np.int64)
        if taken.owners is not None:
            place = salted_order(steps, setting.render_options.salt)
            there[there] = first_of_each(taken.owners[there], place[there], rows)
        return local_quantile(np.sort(steps[there]), rank, low, high, rows, distances)

    whose = "one row" if by_row else f"up to {rows} rows of one unit"
    statistic = LocalStatistic(
        name="median" if rank == Fraction(1, 2) else "quantile",
        step=grid,
        low=low,
        high=high,
        largest=high - low,
        sql=read.sql,
        compute=compute,
        protection=Protection((source,), source.relation, None if by_row else ContributionBounds(1, rows)),
        why=f"protected: {whose}; at worst it moves the value across its whole range, {high - low:,} steps of"
        f" {numbers.brief(grid)}, but only as far as the next values where others lie close",
        changes=rows,
        rounding=Fraction(0) if grid == 1 and values.kind is Kind.INTEGER else Fraction(1, 2),
    )
    return local_statistic(setting, statistic, sensitivity, bound)


def local_quantile(ordered: Numbers, level: Fraction, low: int, high: int, rows: int, distances: int) -> LocalValue:
    """Give the ⌈level·n⌉-th of n sorted values, and how far one unit of `rows` rows can move it at each distance.

    Theorem (Local sensitivity of a quantile). The bounds of `local_order_statistic` hold for the sorted values of a
    dataset and a unit of c rows, added, removed or replaced (Nissim, Raskhodnikova and Smith 2007, for one row
    replaced).
    Proof    One row more shifts the order statistics one way: as ⌈level·n⌉ rises by 0 or 1 with n, either
             X′_t ≤ X_t ≤ X′_t+1 for all t, or X′_t−1 ≤ X_t ≤ X′_t for all t. So does one row less, and a row that moves
             up or down.
    Tested   tests/analyses/programs/test_median.py::test_bounds_hold_for_all_datasets_of_a_small_universe
    """
    place = -(-level.numerator * len(ordered) // level.denominator) - 1  # from 0; −1 if there are no rows
    return local_order_statistic(ordered, place, low, high, rows, distances)


def _column(setting: Setting, table: str, name: str, step: Any) -> tuple[Table, Column, Fraction, int, int]:
    """Find the column, and the steps in which it is counted."""
    source = setting.table(table)
    values = column(source, name, "column")
    if not values.kind.numeric or values.bounds is None or not values.bounds.low < values.bounds.high:
        raise QueryError(
            "HB679", f"{values.name} needs declared bounds.", "Declare bounds such as [0, 110] for a numeric column."
        )
    width = values.bounds.high - values.bounds.low
    declared = values.step if step is None else numbers.exact(step, "step")
    default = Fraction(1) if values.kind is Kind.INTEGER else width / _STEPS
    grid = default if declared is None else declared
    # from the step below to the step above, so that every value within the bounds is at most half a step from one
    low, high = (int(values.bounds.low // grid), int(-(-values.bounds.high // grid))) if grid > 0 else (0, 0)
    if not (grid <= width and 0 < high - low <= _MAX_STEPS and max(-low, high) <= _FARTHEST):
        raise QueryError("HB679", "The step does not fit the column's bounds.", "Use a smaller positive step.")
    return source, values, grid, low, high
