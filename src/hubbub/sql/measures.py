"""Measures: the integers that the engine adds up over the bounded rows of each cell, and their sensitivity.

Each real number is put on a grid, row by row: subtract a center, divide by a step, clamp to the number of steps that
the bounds allow, and round. Everything after that is exact.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from hubbub.core.schema import Bounds, Kind
from hubbub.core.unit import Relation
from hubbub.sql import render
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Col, Expr


@dataclass(frozen=True, slots=True)
class RowCount:
    """Counts the rows where the filter is true and no argument is NULL."""

    present: tuple[Expr, ...] = ()
    where: Expr | None = None

    @property
    def low(self) -> int:
        """The least that a row adds."""
        return 0

    @property
    def high(self) -> int:
        """The most that a row adds."""
        return 1

    def raw(self, dialect: Dialect) -> str:  # noqa: ARG002
        """Return no text: there is no number to clamp."""
        return ""

    def value(self, raw: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write what a row adds, or NULL where it adds nothing."""
        tests = _tests(self.present, self.where, dialect)
        return f"CASE WHEN {tests} THEN 1 END" if tests else "1"

    def total(self, column: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write the sum over rows."""
        return f"count({column})"


@dataclass(frozen=True, slots=True)
class UnitCount:
    """Counts the units with a row where the filter is true. Each adds 1 to a cell, however many rows it has."""

    where: Expr | None = None

    @property
    def low(self) -> int:
        """The least that a unit adds."""
        return 0

    @property
    def high(self) -> int:
        """The most that a unit adds."""
        return 1

    def raw(self, dialect: Dialect) -> str:  # noqa: ARG002
        """Return no text: there is no number to clamp."""
        return ""

    def value(self, raw: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write 1 where a row counts, or NULL."""
        return f"CASE WHEN {render.expression(self.where, dialect)} THEN 1 END" if self.where is not None else "1"

    def total(self, column: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write what one unit adds to a cell."""
        return f"max({column})"


@dataclass(frozen=True, slots=True)
class DistinctCount:
    """Counts the distinct values of an expression in a cell. A unit brings at most as many values as rows."""

    expr: Expr
    where: Expr | None = None

    @property
    def low(self) -> int:
        """The least that one value adds."""
        return 0

    @property
    def high(self) -> int:
        """The most that one value adds."""
        return 1

    def raw(self, dialect: Dialect) -> str:  # noqa: ARG002
        """Return no text: there is no number to clamp."""
        return ""

    def value(self, raw: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write the value to count, or NULL."""
        x = render.key(self.expr, dialect)
        return f"CASE WHEN {_tests((self.expr,), self.where, dialect)} THEN {x} END"


@dataclass(frozen=True, slots=True)
class Term:
    """A number within declared bounds, minus a center."""

    expr: Expr
    bounds: Bounds
    centre: Fraction

    @property
    def reach(self) -> Fraction:
        """The largest distance from the center."""
        return max(abs(self.bounds.low - self.centre), abs(self.bounds.high - self.centre))

    def text(self, dialect: Dialect) -> str:
        """Write the number minus its center, as a DOUBLE."""
        x = f"({render.expression(self.expr, dialect)})"
        return x if self.centre == 0 else f"({x} - {dialect.number(self.centre)})"


@dataclass(frozen=True, slots=True)
class BoundedSum:
    """Adds up a product of one or two terms, minus an offset, in whole steps: round((∏ termⱼ − offset)/step).

    `low` and `high` bound what a row can add, in steps.
    """

    terms: tuple[Term, ...]
    present: tuple[Expr, ...]
    where: Expr | None
    offset: Fraction
    step: Fraction
    low: int
    high: int

    @property
    def _whole(self) -> bool:
        """Whether the value is an integer even before rounding: an integer column with integer bounds."""
        numbers = [self.step, self.offset, *(n for t in self.terms for n in (t.centre, t.bounds.low, t.bounds.high))]
        columns = all(isinstance(term.expr, Col) and term.expr.kind is Kind.INTEGER for term in self.terms)
        return columns and self.step == 1 and all(number.denominator == 1 for number in numbers)

    def raw(self, dialect: Dialect) -> str:
        """Write what a row adds as a DOUBLE, before clamping."""
        product = dialect.product([term.text(dialect) for term in self.terms])
        if self.offset:
            product = f"({product} - {dialect.number(self.offset)})"
        return product if self.step == 1 else _scaled(product, self.step, dialect)

    def value(self, raw: str, dialect: Dialect) -> str:
        """Write what a row adds as an integer, or NULL, from the column that holds the raw number."""
        kind = dialect.narrow(max(-self.low, self.high))
        whole = clamped(raw, self.low, self.high, kind, dialect, whole=self._whole)
        own = {term.expr for term in self.terms}
        others = _tests(tuple(expr for expr in self.present if expr not in own), self.where, dialect)
        return f"CASE WHEN {others} THEN {whole} END" if others else whole

    def total(self, column: str, dialect: Dialect) -> str:
        """Write the sum over rows, exact for any number of rows."""
        return dialect.total(column, max(-self.low, self.high))


@dataclass(frozen=True, slots=True)
class DistinctSum:
    """Adds up a sum over the distinct values of an expression in a cell: each value adds once what one row would."""

    expr: Expr
    of: BoundedSum

    @property
    def low(self) -> int:
        """The least that one value adds."""
        return self.of.low

    @property
    def high(self) -> int:
        """The most that one value adds."""
        return self.of.high

    @property
    def where(self) -> Expr | None:
        """The filter."""
        return self.of.where

    @property
    def step(self) -> Fraction:
        """The step of the sum."""
        return self.of.step


@dataclass(frozen=True, slots=True)
class KeyWeight:
    """Adds up the weights by which groups are selected: a unit adds ⌊weight/√n⌋ to each of its first n ≤ keys groups.

    The groups of a unit are all those in which it has a row, in the order of their hash: contribution bounds do not
    apply. `where` is always None.
    """

    keys: int
    weight: int
    where: None = None

    @property
    def low(self) -> int:
        """The least that a unit adds."""
        return 0

    @property
    def high(self) -> int:
        """The most that a unit adds."""
        return self.weight


Additive = RowCount | UnitCount | BoundedSum  #: measures that share one statement
Distinct = DistinctCount | DistinctSum  #: measures of the distinct values in a cell, each with its own statement
Measure = Additive | Distinct | KeyWeight


@dataclass(frozen=True, slots=True)
class UnitContribution:
    """The most that one unit can touch in one grouping set: `touched` of `cells` cells, `rows` rows in each.

    `total` is the most rows in all cells together, if it is less than that.
    """

    cells: int
    touched: int
    rows: int
    total: int | None = None

    @property
    def full_cells(self) -> int:
        """The number of cells with all of their rows that cost at least as much as whatever the unit touches."""
        return self.touched if self.total is None else min(self.touched, -(-self.total // self.rows))


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest distance between neighbors over all cells of all grouping sets, in steps."""

    l1: int
    l2_squared: int


def sensitivity(measure: Measure, contributions: tuple[UnitContribution, ...], relation: Relation) -> Sensitivity:
    """Bound how much one unit changes the vector of a measure over all cells.

    Theorem (Sensitivity of bounded cells). Let a unit touch at most G of C cells and add between m ≤ 0 and M ≥ 0 to
    each, and let a = max(−m, M), d = M − m. One unit more or less moves the cells by at most G·a in L1 and G·a² in
    squared L2. Another unit in its place, where o = max(0, 2G − C) cells are touched by both at least, moves them by
    at most o·d + 2(G − o)·a in L1, and by max(G·d², o·d² + 2(G − o)·a²) in squared L2. Over several grouping sets
    these add up. All are attained.
    Proof    A cell touched by one of the two units moves by at most a, one touched by both by at most d ≤ 2a. With k
             cells touched by both there are at most 2(G − k) others, so L1 ≤ k·d + 2(G − k)·a, which falls in k, and
             k ≥ o. The squared norm k·d² + 2(G − k)·a² is linear in k on [o, G], so largest at an end.
             Measures of the different values fit in with m and M the sums of the least and the most of `rows` values: a
             unit adds to them only what some of its own values add, whatever the others have, and so does the unit in
             its place.
             The weights of n keys are at most W/√n each: W·√n in L1, W² in squared L2; for another unit in its place
             both double at most, as no weight is negative.
             With at most T rows in all cells together, r in each, and at most b = max|row| steps of each, a unit adds
             at most T·b in L1; in squared L2 at most (⌊T/r⌋r² + (T mod r)²)b², as a convex function of the rows of the
             cells is largest where they are unequal. Another unit in its place doubles the L1; the squared L2 doubles
             where no row adds with another sign, and is four times as large at most otherwise.
    Assumes  what a unit adds depends on its own rows alone, and is bounded in the engine (`bounding`).
    Tested   tests/sql/test_measures.py::test_brute_force_over_neighbors_finds_the_declared_sensitivity
    """
    if isinstance(measure, KeyWeight):
        moved, changed = measure.weight**2, relation.units_changed
        return Sensitivity(isqrt(moved * measure.keys) * changed, moved * changed)
    l1 = squared = 0
    for each in contributions:
        rows = 1 if isinstance(measure, UnitCount) else each.rows
        least, most = min(0, rows * measure.low), max(0, rows * measure.high)
        alone, both, touched = max(-least, most), most - least, each.touched
        if relation is Relation.ADD_REMOVE:
            moved, square = touched * alone, touched * alone**2
        else:
            shared = max(0, 2 * touched - each.cells)
            moved = shared * both + 2 * (touched - shared) * alone
            square = max(touched * both**2, shared * both**2 + 2 * (touched - shared) * alone**2)
        if each.total is not None:
            unit = _within_total(measure, each.total, rows)
            units = relation.units_changed
            signs = 1 if 0 in (least, most) else units
            moved, square = min(moved, units * unit.l1), min(square, units * signs * unit.l2_squared)
        l1, squared = l1 + moved, squared + square
    return Sensitivity(l1, squared)


def _within_total(measure: Measure, total: int, rows: int) -> Sensitivity:
    """Bound what one unit adds with at most `total` rows, and at most `rows` of them in each cell."""
    one = max(-min(0, measure.low), max(0, measure.high))
    full, rest = divmod(total, rows)
    return Sensitivity(total * one, (full * rows**2 + rest**2) * one**2)


def _tests(present: tuple[Expr, ...], where: Expr | None, dialect: Dialect) -> str:
    tests = [f"({render.expression(expr, dialect)}) IS NOT NULL" for expr in present]
    if where is not None:
        tests.append(f"coalesce({render.expression(where, dialect)}, FALSE)")
    return " AND ".join(tests)


def clamped(steps: str, low: int, high: int, kind: str, dialect: Dialect, *, whole: bool = False) -> str:
    """Write a DOUBLE as an integer between two others. NULL stays NULL, and NaN counts as larger than any number."""
    if not max(abs(low), abs(high)) < 1 << 53:
        raise AssertionError("a row adds more steps than a double can count")
    return (dialect.whole_steps if whole else dialect.steps)(steps, low, high, kind)


def _scaled(text: str, step: Fraction, dialect: Dialect) -> str:
    # multiply by 100 instead of dividing by 0.01, because 100 is exact
    if step.numerator == 1 and step.denominator < 1 << 53:
        return f"({text} * {dialect.number(step.denominator)})"
    return dialect.quotient(text, step)
