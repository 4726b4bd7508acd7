"""What leaves the engine: integers for each row, added up over a cell's bounded rows, and how far one unit moves them.

A real number is put on a grid row by row: taken from a centre, divided by a step, clamped into the whole steps that its
bounds allow, and rounded. Everything after that is exact.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.schema import Bounds, Kind
from hubbub.core.unit import Relation
from hubbub.sql import render
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Col, Expr


@dataclass(frozen=True, slots=True)
class Rows:
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
        """Write nothing: there is no number to clamp."""
        return ""

    def value(self, raw: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write what a row adds, NULL where nothing."""
        tests = _tests(self.present, self.where, dialect)
        return f"CASE WHEN {tests} THEN 1 END" if tests else "1"

    def total(self, column: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write the sum over rows."""
        return f"count({column})"


@dataclass(frozen=True, slots=True)
class Units:
    """Counts the units that have a row where the filter is true: each adds 1 to a cell, however many rows it has."""

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
        """Write nothing: there is no number to clamp."""
        return ""

    def value(self, raw: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write whether a row counts, NULL where not."""
        return f"CASE WHEN {render.expression(self.where, dialect)} THEN 1 END" if self.where is not None else "1"

    def total(self, column: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write what one unit adds to a cell."""
        return f"max({column})"


@dataclass(frozen=True, slots=True)
class Distinct:
    """Counts the different values of an expression in a cell; each unit brings at most as many as it may bring rows."""

    expr: Expr
    where: Expr | None = None

    @property
    def low(self) -> int:
        """The least that a unit's value adds."""
        return 0

    @property
    def high(self) -> int:
        """The most that a unit's value adds."""
        return 1

    def raw(self, dialect: Dialect) -> str:  # noqa: ARG002
        """Write nothing: there is no number to clamp."""
        return ""

    def value(self, raw: str, dialect: Dialect) -> str:  # noqa: ARG002
        """Write the value that is counted, NULL where none."""
        x = render.key(self.expr, dialect)
        return f"CASE WHEN {_tests((self.expr,), self.where, dialect)} THEN {x} END"


@dataclass(frozen=True, slots=True)
class Term:
    """A number inside declared bounds, taken from a centre."""

    expr: Expr
    bounds: Bounds
    centre: Fraction

    @property
    def reach(self) -> Fraction:
        """How far it can be from the centre."""
        return max(abs(self.bounds.low - self.centre), abs(self.bounds.high - self.centre))

    def text(self, dialect: Dialect) -> str:
        """Write it less its centre, as a DOUBLE."""
        x = f"({render.expression(self.expr, dialect)})"
        return x if self.centre == 0 else f"({x} - {dialect.number(self.centre)})"


@dataclass(frozen=True, slots=True)
class Total:
    """Adds up a product of one or two terms, less an offset, in whole steps: round((∏ termⱼ − offset)/step).

    low and high are in steps, and enclose what a row can add.
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
        """Say whether what a row would add is whole before it is rounded: an integer column in whole bounds."""
        numbers = [self.step, self.offset, *(n for t in self.terms for n in (t.centre, t.bounds.low, t.bounds.high))]
        columns = all(isinstance(term.expr, Col) and term.expr.kind is Kind.INTEGER for term in self.terms)
        return columns and self.step == 1 and all(number.denominator == 1 for number in numbers)

    def raw(self, dialect: Dialect) -> str:
        """Write what a row would add as a DOUBLE, not yet clamped."""
        product = dialect.product([term.text(dialect) for term in self.terms])
        if self.offset:
            product = f"({product} - {dialect.number(self.offset)})"
        return product if self.step == 1 else _scaled(product, self.step, dialect)

    def value(self, raw: str, dialect: Dialect) -> str:
        """Write what a row adds as an integer, NULL where nothing, from the column that holds the raw number."""
        kind = dialect.narrow(max(-self.low, self.high))
        whole = clamped(raw, self.low, self.high, kind, dialect, whole=self._whole)
        own = {term.expr for term in self.terms}
        others = _tests(tuple(expr for expr in self.present if expr not in own), self.where, dialect)
        return f"CASE WHEN {others} THEN {whole} END" if others else whole

    def total(self, column: str, dialect: Dialect) -> str:
        """Write the sum over rows, exact however many they are."""
        return dialect.total(column, max(-self.low, self.high))


Additive = Rows | Units | Total  #: what one statement adds up for all
Measure = Additive | Distinct


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a unit reaches in one grouping set: `touched` of `cells` cells, `rows` rows in each."""

    cells: int
    touched: int
    rows: int


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far neighbors are apart over all cells of all grouping sets, in steps."""

    l1: int
    l2_squared: int


def sensitivity(measure: Measure, reaches: tuple[Reach, ...], relation: Relation) -> Sensitivity:
    """Bound how far one unit moves the vector of a measure over all cells.

    Theorem (Sensitivity of bounded cells). Let a unit touch at most G of C cells and add between m ≤ 0 and M ≥ 0 to
    each, and let a = max(−m, M), d = M − m. One unit more or less moves the cells by at most G·a in L1 and G·a² in
    squared L2. Another unit in its place, where o = max(0, 2G − C) cells are touched by both at least, moves them by
    at most o·d + 2(G − o)·a in L1, and by max(G·d², o·d² + 2(G − o)·a²) in squared L2. Over several grouping sets
    these add up. All are attained.
    Proof    A cell touched by one of the two units moves by at most a, one touched by both by at most d ≤ 2a. With k
             cells touched by both there are at most 2(G − k) others, so L1 ≤ k·d + 2(G − k)·a, which falls in k, and
             k ≥ o. The squared norm k·d² + 2(G − k)·a² is linear in k on [o, G], so largest at an end.
             The number of different values fits in with m = 0 and M = rows: a unit adds to it between nothing and the
             number of its own values, whatever the others have, and so does the unit in its place.
    Assumes  what a unit adds depends on its own rows alone, and is bounded in the engine (`bounding`).
    Tested   tests/sql/test_measures.py::test_brute_force_over_neighbors_finds_the_declared_sensitivity
    """
    l1 = squared = 0
    for reach in reaches:
        rows = 1 if isinstance(measure, Units) else reach.rows
        least, most = min(0, rows * measure.low), max(0, rows * measure.high)
        alone, both, touched = max(-least, most), most - least, reach.touched
        if relation is Relation.ADD_REMOVE:
            l1 += touched * alone
            squared += touched * alone**2
        else:
            shared = max(0, 2 * touched - reach.cells)
            l1 += shared * both + 2 * (touched - shared) * alone
            squared += max(touched * both**2, shared * both**2 + 2 * (touched - shared) * alone**2)
    return Sensitivity(l1, squared)


def _tests(present: tuple[Expr, ...], where: Expr | None, dialect: Dialect) -> str:
    tests = [f"({render.expression(expr, dialect)}) IS NOT NULL" for expr in present]
    if where is not None:
        tests.append(f"coalesce({render.expression(where, dialect)}, FALSE)")
    return " AND ".join(tests)


def clamped(steps: str, low: int, high: int, kind: str, dialect: Dialect, *, whole: bool = False) -> str:
    """Write a DOUBLE as a whole number between two others; NULL stays NULL, NaN counts as larger than any number."""
    if not max(abs(low), abs(high)) < 1 << 53:
        raise AssertionError("a row adds fewer steps than a double can count")
    return (dialect.whole_steps if whole else dialect.steps)(steps, low, high, kind)


def _scaled(text: str, step: Fraction, dialect: Dialect) -> str:
    # 100 and not 0.01 where that is the exact one
    if step.numerator == 1 and step.denominator < 1 << 53:
        return f"({text} * {dialect.number(step.denominator)})"
    return dialect.quotient(text, step)
