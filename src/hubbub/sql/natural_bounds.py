"""Bounds of counts and sums within a unit, from the declared number of rows of a unit (`rows_total`).

    SELECT AVG(n) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person)

If nobody has more than 10 rows, n is at most 10. A value is clamped to such bounds where an aggregate needs bounds and
has no others, as a column is to its declared ones.

Tested in tests/sql/test_natural_bounds.py.
"""

from collections.abc import Iterator, MutableMapping
from fractions import Fraction

from hubbub.core.schema import Bounds, Kind, Table
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, facts
from hubbub.sql.fanout import contribution
from hubbub.sql.functions import build
from hubbub.sql.relations import Rel, owner_columns, scans

#: Wider bounds come from the column type rather than from a declaration, and the noise would be useless.
MAX_BOUND = Fraction(2) ** 53

#: What counts and sums within a unit are between, by column.
NaturalBounds = MutableMapping[str, Bounds]


def useful(bounds: Bounds | None) -> bool:
    """Tell whether noise for these bounds would leave something of an answer."""
    return bounds is not None and max(abs(bounds.low), abs(bounds.high)) <= MAX_BOUND


def most_rows(rel: Rel) -> int | None:
    """Return how many rows of a relation one unit has by declaration, or None if that is not declared.

    Every private table must have `rows_total`, or the privacy ID as its key: `groups` and `rows` alone say how many
    rows a query uses, not how many there are. Both are 1 where the owner declares nothing.
    """
    tables = [scan.table for scan in scans(rel) if not scan.table.public]
    alone = len(owner_columns(rel)) == 1 and not any(unit.auto for unit in (table.unit for table in tables) if unit)
    if not alone or not all(map(_declared, tables)):
        return None
    bounds = contribution(rel)
    return bounds.groups * bounds.rows if bounds.total is None else bounds.total


def _declared(table: Table) -> bool:
    """Tell whether the owner says how many rows of a table a unit has: a number, or the privacy ID is its key."""
    unit = table.unit
    if unit is None or unit.rows_total is not None:
        return unit is not None
    return table.unique is not None and set(table.unique) <= {unit.column} and unit.groups * unit.rows == 1


def of_aggregate(function: str, argument: Expr | None, rel: Rel | None) -> Bounds | None:
    """Return what a count or a sum over the rows of one unit is between, if the number of its rows is declared."""
    most = None if rel is None or function not in ("count", "count_distinct", "sum") else most_rows(rel)
    if most is None:
        return None
    if function.startswith("count"):
        return Bounds(Fraction(0), Fraction(most))
    known = None if argument is None else facts(argument).bounds
    if known is None:
        return None
    return Bounds(min(known.low, Fraction(0)) * most, max(known.high, Fraction(0)) * most)


def clamped(naturals: NaturalBounds, expr: Expr) -> Expr:
    """Clamp the counts and sums within an expression to their bounds, and compute its facts again.

    Theorem (Clamped counts). An aggregate of the result has the sensitivity that its facts state, whatever rows_total
    says of the data.
    Proof    Each column that gets bounds here is read through GREATEST and LEAST with constants, whose facts hold for
             every value ("Facts hold in doubles").
    Assumes  nothing of the data. Only if a unit has more rows than declared does clamping change a value.
    Charges  nothing.
    Tested   tests/sql/test_natural_bounds.py::test_more_rows_than_declared_are_clamped
    """
    if isinstance(expr, Col):
        bounds = naturals.get(expr.name)
        if bounds is None or useful(facts(expr).bounds):
            return expr
        low, high = (_literal(end, expr.kind) for end in (bounds.low, bounds.high))
        below = build("least", (expr, high))
        within = None if below is None else build("greatest", (below, low))
        # NULL must stay NULL: GREATEST and LEAST pass over it
        there = build("is_null", (expr,))
        if within is None or there is None:
            return expr
        return build("case", (there, Literal(None, expr.kind), within)) or expr
    if isinstance(expr, FunctionCall):
        args = tuple(clamped(naturals, arg) for arg in expr.args)
        return expr if args == expr.args else build(expr.function, args) or expr
    return expr


def clamps(expr: Expr) -> Iterator[Bounds]:
    """List the bounds to which counts and sums within an expression are clamped."""
    match expr:
        case FunctionCall(
            "case",
            (
                FunctionCall("is_null", (Col() as tested,)),
                Literal(None),
                FunctionCall("greatest", (FunctionCall("least", (Col() as within, Literal(high))), Literal(low))),
            ),
        ) if tested == within and isinstance(low, int | Fraction) and isinstance(high, int | Fraction):
            yield Bounds(Fraction(low), Fraction(high))
        case FunctionCall():
            for arg in expr.args:
                yield from clamps(arg)


def _literal(end: Fraction, kind: Kind) -> Literal:
    return Literal(int(end) if kind is Kind.INTEGER else end, kind)


def note(naturals: NaturalBounds, column: Col, expr: Expr) -> None:
    """Remember the bounds of a column that is computed from counts and sums."""
    if naturals and column.kind.numeric and not useful(facts(expr).bounds):
        bounds = facts(clamped(naturals, expr)).bounds
        if bounds is not None and useful(bounds):
            naturals[column.name] = bounds
