"""SUM and AVG. They share their noisy sums with each other and with a COUNT of the same column.

Tested in tests/sql/test_aggregates.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hubbub.core.schema import Kind
from hubbub.sql.aggregates.formula import (
    TYPICAL_ROWS,
    Floats,
    Formula,
    FormulaAggregate,
    Resolution,
    bounded,
    term,
    total,
)
from hubbub.sql.measures import BoundedSum, RowCount
from hubbub.sql.query import Aggregate


@dataclass(frozen=True)
class Sum(FormulaAggregate):
    """SUM(x)."""

    name: str = "sum"

    def kind(self, aggregate: Aggregate) -> Kind:
        """Return the kind of the argument."""
        return aggregate.arguments[0].kind

    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:
        """Sum about the middle of the bounds if the rows are counted anyway, which is more accurate; else about 0."""
        return _centered_sum(aggregate, resolution) if counted else _plain_sum(aggregate, resolution)


@dataclass(frozen=True)
class Average(FormulaAggregate):
    """AVG(x)."""

    name: str = "avg"
    counts_rows: bool = True

    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:  # noqa: ARG002
        """Divide the sum about the middle of the bounds by the count, and add the middle."""
        count, measure = _count_and_sum(aggregate, "AVG", resolution)
        step, centre = float(measure.step), float(measure.terms[0].centre)
        (x,) = aggregate.arguments
        bounds = bounded(x, "AVG")
        low, high = float(bounds.low), float(bounds.high)

        def value(sums: Sequence[Floats]) -> Floats:
            return centre + sums[1] * step / sums[0]

        return Formula(
            (count, measure),
            value,
            low=low,
            high=high,
            integer=False,
            linear=False,
            typical=_typical(measure),
            size=(high - low) / 2 or 1.0,
            count=0,
        )


def plain_average(aggregate: Aggregate, resolution: Resolution) -> Formula:
    """Divide a sum about 0 by a count: less accurate, and both may come from releases of their own."""
    centered = Average().formula(aggregate, resolution, counted=False)
    (measure,) = _plain_sum(aggregate, resolution).measures
    step = float(measure.step) if isinstance(measure, BoundedSum) else 1.0
    bounds = bounded(aggregate.arguments[0], "AVG")
    return replace(
        centered,
        measures=(centered.measures[0], measure),
        value=lambda sums: sums[1] * step / sums[0],
        typical=(float(TYPICAL_ROWS), TYPICAL_ROWS * float(bounds.low + bounds.high) / 2 / step),
    )


def _plain_sum(aggregate: Aggregate, resolution: Resolution) -> Formula:
    """Sum about 0: one measure."""
    (x,) = aggregate.arguments
    measure = total((term(x, "SUM", centred=False),), (x,), aggregate.where, resolution)
    step = float(measure.step)
    most = max(abs(measure.low), abs(measure.high), 1)
    low, high = _signs(aggregate)
    return Formula(
        (measure,),
        lambda sums: sums[0] * step,
        low=low,
        high=high,
        integer=x.kind is Kind.INTEGER and measure.step.denominator == 1,
        linear=True,
        typical=(TYPICAL_ROWS * (measure.low + measure.high) / 2,),
        size=TYPICAL_ROWS * most * step,
        count=None,
    )


def _centered_sum(aggregate: Aggregate, resolution: Resolution) -> Formula:
    """Sum about the middle of the bounds, and add the middle once for each row."""
    count, measure = _count_and_sum(aggregate, "SUM", resolution)
    step, centre = float(measure.step), float(measure.terms[0].centre)
    (x,) = aggregate.arguments
    bounds = bounded(x, "SUM")
    low, high = _signs(aggregate)
    integer = x.kind is Kind.INTEGER and measure.step.denominator == 1 and measure.terms[0].centre.denominator == 1

    def value(sums: Sequence[Floats]) -> Floats:
        return sums[0] * centre + sums[1] * step

    return Formula(
        (count, measure),
        value,
        low=low,
        high=high,
        integer=integer,
        linear=True,
        typical=_typical(measure),
        size=TYPICAL_ROWS * float(max(abs(bounds.low), abs(bounds.high))) or 1.0,
        count=0,
    )


def _count_and_sum(aggregate: Aggregate, function: str, resolution: Resolution) -> tuple[RowCount, BoundedSum]:
    """Return the two measures that SUM, AVG and COUNT of one column share."""
    (x,) = aggregate.arguments
    measure = total((term(x, function, centred=True),), (x,), aggregate.where, resolution)
    return RowCount((x,), aggregate.where), measure


def _typical(measure: BoundedSum) -> tuple[float, ...]:
    return float(TYPICAL_ROWS), TYPICAL_ROWS * measure.high / 2


def _signs(aggregate: Aggregate) -> tuple[float | None, float | None]:
    bounds = bounded(aggregate.arguments[0], "SUM")
    return (0.0 if bounds.low >= 0 else None), (0.0 if bounds.high <= 0 else None)
