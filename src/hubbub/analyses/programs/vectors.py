"""Rows as vectors: numeric columns, centered, clipped to norm 1, and summed on a grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.programs.inputs import ProgramInput, added, call, column_bounds, real
from hubbub.core.schema import Bounds, Kind
from hubbub.core.unit import Relation
from hubbub.sql import relations
from hubbub.sql.expressions import Col, Facts
from hubbub.sql.measures import BoundedSum, Sensitivity, Term, UnitContribution
from hubbub.sql.relations import Project, Rel

Floats = NDArray[np.float64]

#: Steps of the grid per unit of length.
STEPS = 1 << 16

_SIDE = Bounds(Fraction(-1), Fraction(1))
#: Public numbers are rounded to this grid before they become constants of a query, so that the SQL stays short.
_FINE = 1 << 24


@dataclass(frozen=True, slots=True)
class Box:
    """The declared bounds of some columns: z = (x − centre)/half lies in [−1, 1] for each."""

    names: tuple[str, ...]
    centre: tuple[Fraction, ...]
    half: tuple[Fraction, ...]

    def inside(self, values: Floats) -> Floats:
        """Convert numbers to the box's coordinates."""
        return (values - self.middle) / self.widths

    def outside(self, coordinates: Floats) -> Floats:
        """Convert the box's coordinates to numbers."""
        return self.middle + coordinates * self.widths

    @property
    def middle(self) -> Floats:
        """The center, as numbers."""
        return np.array([float(each) for each in self.centre])

    @property
    def widths(self) -> Floats:
        """The half widths, as numbers."""
        return np.array([float(each) for each in self.half])


def box(inputs: ProgramInput, names: Sequence[str]) -> Box:
    """Give the box of some columns, all of which need bounds."""
    bounds = [column_bounds(inputs, name) for name in names]
    return Box(
        tuple(names),
        tuple((each.low + each.high) / 2 for each in bounds),
        tuple((each.high - each.low) / 2 for each in bounds),
    )


def on_grid(value: float) -> Fraction:
    """Round a public number to the grid of constants."""
    return Fraction(round(float(value) * _FINE), _FINE)


def boxed(inputs: ProgramInput, shape: Box, kept: Sequence[Col] = ()) -> tuple[Rel, tuple[Col, ...]]:
    """Write rows as z = (x − centre)/half for each column, in [−1, 1] up to rounding, with other columns to keep."""
    written = [
        call("mul", call("sub", inputs.column(name), real(centre)), real(1 / half))
        for name, centre, half in zip(shape.names, shape.centre, shape.half, strict=True)
    ]
    columns = tuple(Col(f"z{j}", Kind.REAL, each.facts) for j, each in enumerate(written))
    outputs = tuple((col.name, each) for col, each in zip(columns, written, strict=True))
    return Project(inputs.rows, outputs + tuple((each.name, each) for each in kept)), columns


def clipped(
    rows: Rel,
    vector: Sequence[Col],
    *,
    origin: Sequence[Fraction],
    units: Sequence[Fraction],
    kept: Sequence[str] = (),
    norm: Literal["l1", "l2"] = "l2",
) -> tuple[Rel, tuple[Col, ...]]:
    """Write rows whose vectors are centered at an origin, scaled by units, and clipped to norm 1.

    Theorem (Clipped rows on a grid). Let y = w/√max(q, 1) with q the sum of the squares of w, all computed in doubles.
    Then ‖y‖₂ ≤ 1 + 2⁻⁴⁰ for at most 64 coordinates. The integers k = round(y·S) of m coordinates have
    ‖k‖₂ ≤ S(1 + 2⁻⁴⁰) + √m/2 and ‖k‖₁ ≤ √m·‖k‖₂; the integers of the m = d(d+1)/2 products yᵢyⱼ, i ≤ j, have
    ‖k‖₂ ≤ S(1 + 2⁻³⁸) + √m/2 and ‖k‖₁ ≤ S(1 + 2⁻³⁸)(d + 1)/2 + m/2. With norm l1, y = w/max(q, 1) with q the sum
    of |w|: ‖y‖₁ ≤ 1 + 2⁻⁴⁰ and ‖k‖₁ ≤ S(1 + 2⁻⁴⁰) + m/2 likewise.
    Proof    A sum of d squares has a relative error of at most (d + 1)·2⁻⁵³ (what underflows adds less than 2⁻¹⁰⁰⁰);
             root and quotient add less than 2⁻⁴¹ each. If q ≥ 1 the quotient has norm 1 up to these; if not, w has.
             Rounding moves each integer by at most ½, and a product by one rounding more. The products of i ≤ j are
             part of y·yᵀ, whose norm is ‖y‖²; their L1 norm is (‖y‖₁² + ‖y‖₂²)/2 ≤ (d + 1)‖y‖₂²/2.
    Assumes  IEEE arithmetic; a square root that errs by less than 2⁻⁴¹ of its value.
    Tested   tests/analyses/programs/test_vectors.py::test_integers_of_any_row_are_within_the_stated_norm
             tests/analyses/programs/test_vectors.py::test_engine_sums_of_neighbors_are_within_the_stated_sensitivity
    """
    names = [f"w{j}" for j in range(len(vector))]
    shifted = [
        call("mul", call("sub", each, real(at)), real(1 / unit))
        for each, at, unit in zip(vector, origin, units, strict=True)
    ]
    others = [each for each in relations.columns(rows) if each.name in kept]
    first = Project(rows, tuple(zip(names, shifted, strict=True)) + tuple((each.name, each) for each in others))
    moved = [Col(name, Kind.REAL, each.facts) for name, each in zip(names, shifted, strict=True)]
    if norm == "l1":
        length = call("greatest", added([call("abs", each) for each in moved]), real(1))
    else:
        length = call("sqrt", call("greatest", added([call("mul", each, each) for each in moved]), real(1)))
    outer = Col("length", Kind.REAL, length.facts)
    passed = tuple((each.name, each) for each in others)
    second = Project(first, (*((each.name, each) for each in moved), ("length", length), *passed))
    pulled = tuple((f"y{j}", call("div", each, outer)) for j, each in enumerate(moved))
    return Project(second, pulled + passed), tuple(Col(f"y{j}", Kind.REAL, Facts(_SIDE)) for j in range(len(vector)))


def totals(columns: Sequence[Col], steps: int = STEPS) -> list[BoundedSum]:
    """Measure the sum of each coordinate, in steps of 1/S."""
    return [
        BoundedSum((Term(each, _SIDE, Fraction(0)),), (), None, Fraction(0), Fraction(1, steps), -steps, steps)
        for each in columns
    ]


def products(columns: Sequence[Col]) -> list[BoundedSum]:
    """Measure the sum of each product of two coordinates, in steps of 1/S: (0, 0), (0, 1), …, (1, 1), …"""
    made = []
    for i, one in enumerate(columns):
        for other in columns[i:]:
            terms = (Term(one, _SIDE, Fraction(0)), Term(other, _SIDE, Fraction(0)))
            low = 0 if one is other else -STEPS
            made.append(BoundedSum(terms, (), None, Fraction(0), Fraction(1, STEPS), low, STEPS))
    return made


def of_sums(dimensions: int, contribution: UnitContribution, relation: Relation) -> Sensitivity:
    """Bound the sensitivity of the sums of clipped vectors over all cells; see `over_cells`."""
    rounding = (isqrt(dimensions) + 2) // 2 + 1  # more than √m/2, and S·2⁻⁴⁰ < 1
    return over_cells(isqrt(dimensions * (STEPS + rounding) ** 2) + 1, (STEPS + rounding) ** 2, contribution, relation)


def of_products(dimensions: int, contribution: UnitContribution, relation: Relation) -> Sensitivity:
    """Bound the sensitivity of the sums of products of clipped vectors; see `over_cells`."""
    count = dimensions * (dimensions + 1) // 2
    rounding = (isqrt(count) + 2) // 2 + 1
    l1 = -(-(STEPS + 1) * (dimensions + 1) // 2) + count // 2 + 1
    return over_cells(l1, (STEPS + rounding) ** 2, contribution, relation)


def of_box(dimensions: int, contribution: UnitContribution, relation: Relation, steps: int = STEPS) -> Sensitivity:
    """Bound the sensitivity of the sums of d coordinates that each lie in [−1, 1]; see `over_cells`."""
    return over_cells(dimensions * steps, dimensions * steps**2, contribution, relation)


def over_cells(l1: int, l2_squared: int, contribution: UnitContribution, relation: Relation) -> Sensitivity:
    """Bound the sensitivity of sums to which a row adds, in one cell, integers of these norms.

    Theorem (Vectors in bounded cells). Let a row add a vector of norm at most D to one of C cells, and let a unit keep
    at most G cells and r rows in each. One unit more or less moves all cells together by at most G·r·D in L1, or
    √G·r·D in L2; another in its place by at most twice that.
    Proof    A unit adds at most r·D to a cell, and G cells with disjoint coordinates add up (L1) or add up in squares
             (L2). A replacement is one unit less and one more: the triangle inequality.
    Assumes  the engine keeps a unit's rows whole (`bounding`): all coordinates of a row, or none.
    Tested   tests/analyses/programs/test_vectors.py::test_engine_sums_of_neighbors_are_within_the_stated_sensitivity
    """
    changed = relation.units_changed
    return Sensitivity(
        changed * contribution.touched * contribution.rows * l1,
        changed**2 * contribution.touched * contribution.rows**2 * l2_squared,
    )
