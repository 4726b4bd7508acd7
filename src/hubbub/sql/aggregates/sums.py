"""SUM and AVG. Where a query has both, or a COUNT of the same column beside, they share their noisy sums."""

from collections.abc import Sequence

from hubbub.core.schema import Kind
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Floats, Formula, Grid, bounded, term, total
from hubbub.sql.measures import Rows, Total
from hubbub.sql.query import Aggregate


def sum_alone(aggregate: Aggregate, grid: Grid) -> Formula:
    """Sum from 0: one measure, where nothing else is asked about the column."""
    (x,) = aggregate.arguments
    measure = total((term(x, "SUM", centred=False),), (x,), aggregate.where, grid)
    step = float(measure.step)
    most = max(abs(measure.low), abs(measure.high), 1)
    low, high = _signs(aggregate)
    typical = (TYPICAL_ROWS * (measure.low + measure.high) / 2,)
    whole = x.kind is Kind.INTEGER and measure.step.denominator == 1
    return Formula(
        (measure,),
        lambda sums: sums[0] * step,
        low=low,
        high=high,
        integer=whole,
        linear=True,
        typical=typical,
        size=TYPICAL_ROWS * most * step,
        count=None,
    )


def sum_shared(aggregate: Aggregate, grid: Grid) -> Formula:
    """Sum from the middle of the bounds, and add the middle for each row counted."""
    count, measure = pair(aggregate, "SUM", grid)
    step, centre = float(measure.step), float(measure.terms[0].centre)
    (x,) = aggregate.arguments
    bounds = bounded(x, "SUM")
    low, high = _signs(aggregate)
    whole = x.kind is Kind.INTEGER and measure.step.denominator == 1 and measure.terms[0].centre.denominator == 1
    size = TYPICAL_ROWS * float(max(abs(bounds.low), abs(bounds.high))) or 1.0

    def value(sums: Sequence[Floats]) -> Floats:
        return sums[0] * centre + sums[1] * step

    return Formula(
        (count, measure),
        value,
        low=low,
        high=high,
        integer=whole,
        linear=True,
        typical=_typical(measure),
        size=size,
        count=0,
    )


def avg(aggregate: Aggregate, grid: Grid) -> Formula:
    """Divide the sum about the middle of the bounds by the count, and add the middle."""
    count, measure = pair(aggregate, "AVG", grid)
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


def pair(aggregate: Aggregate, function: str, grid: Grid) -> tuple[Rows, Total]:
    """Give the two measures that SUM, AVG and COUNT of one column share."""
    (x,) = aggregate.arguments
    measure = total((term(x, function, centred=True),), (x,), aggregate.where, grid)
    return Rows((x,), aggregate.where), measure


def _typical(measure: Total) -> tuple[float, ...]:
    return float(TYPICAL_ROWS), TYPICAL_ROWS * measure.high / 2


def _signs(aggregate: Aggregate) -> tuple[float | None, float | None]:
    bounds = bounded(aggregate.arguments[0], "SUM")
    return (0.0 if bounds.low >= 0 else None), (0.0 if bounds.high <= 0 else None)
