"""The parts of a profile: the vectors of integers that are counted, and where each belongs in the model.

Tested in tests/analyses/test_profile.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hubbub.analyses.programs.inputs import ProgramInput, call, numbered_cells, one_cell, real, whole
from hubbub.core import numbers
from hubbub.core.schema import Bounds, Column, Kind
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.expressions import Col, Expr, Facts, Literal
from hubbub.sql.keys import Cells
from hubbub.sql.measures import Additive, BoundedSum, RowCount, Term
from hubbub.sql.relations import PerUnit, Rel, Scan, Truncate, UnitAggregate

#: Positions inside a bucket, and parts of its rows, are summed in steps of 1/HALF.
HALF = 500
#: Bins inside the bounds of a column. On each side there is one more of the width of the bounds, and one without end.
BINS = 32

_COUNTS = Facts(Bounds(Fraction(0), Fraction(1 << 40)), None, Fraction(1))
_ROUND_NUMBERS = [digit * 10**zeros for zeros in range(10) for digit in (1, 2, 5)]
_UNBOUNDED = [*(-number for number in reversed(_ROUND_NUMBERS)), 0, *_ROUND_NUMBERS]


@dataclass(frozen=True, slots=True)
class Part:
    """One vector to release: integers per cell, to which each unit adds in one cell only.

    Theorem (A unit is in one bucket). Let a relation have at most one row of each unit, and let a row add an integer
    between m ≤ 0 and M ≥ 0 to one cell. One unit more or less moves the vector by at most a = max(−m, M) in L1;
    another in its place by at most 2a, or by M − m if there is one cell.
    Proof    A unit's row is a function of that unit's own rows ("One owner for each row", "A cut keeps neighbors"), so
             nothing else moves; the rest is "Sensitivity of bounded cells" with one cell and one row.
    Charges  Laplace noise for that sensitivity, once.
    Tested   tests/contract/test_contract.py::test_neighbors_stay_within_what_each_noise_was_bought_for_and_reach_it
             tests/analyses/test_profile.py::test_every_unit_is_in_exactly_one_bucket_of_each_histogram
    """

    what: str
    subject: int  #: which of SHARES it belongs to
    rows: Rel
    cells: Cells
    measure: Additive
    weight: float = 1.0


def levels(most: int, *more: int, ones: int = 2) -> tuple[int, ...]:
    """Give the upper ends of buckets: single numbers up to `ones`, then doubling up to `most`, and some more.

    >>> levels(10, 6), levels(3, 50), levels(1)
    ((1, 2, 4, 6, 8, 10), (1, 2, 3), (1,))
    """
    doubled = (1 << exponent for exponent in range(most.bit_length()))
    return tuple(sorted({each for each in (*range(1, ones + 1), *doubled, *more, most) if 1 <= each <= most}))


class Sketch:
    """Collects the parts of a profile, and its model with the place of each part."""

    def __init__(self, inputs: ProgramInput, most: int) -> None:
        self.inputs = inputs
        self.parts: list[Part] = []
        self.unit = inputs.table.unit
        limits = inputs.limits
        declared = (1, 1) if self.unit is None else (self.unit.groups, self.unit.rows)
        self.levels = (1,) if limits is None else levels(most, declared[1])
        self.groups, self.bound = declared
        self.model: dict[str, Any] = {
            "format": 1,
            "table": inputs.table.name,
            "unit": None if self.unit is None else self.unit.column,
            "changed": inputs.relation.units_changed,
            "declared": {"groups": self.groups, "rows": self.bound},
            "groups": {},
            "values": {},
            "nulls": {},
        }

    def _add(self, part: Part) -> int:
        self.parts.append(part)
        return len(self.parts) - 1

    def add_rows(self) -> None:
        """Count units by their number of rows, and sum up where in its bucket each unit lies."""
        if self.inputs.limits is None:
            at = self._add(Part("number of rows", 0, self.inputs.rows, one_cell(), RowCount()))
            self.model["rows"] = {"levels": [1], "counts": at, "positions": [0], "half": HALF}
            return
        count = Col("n", Kind.INTEGER, _COUNTS)
        rows = PerUnit(self.inputs.rows, (), (("n", UnitAggregate("count", None, None, count)),))
        cells = numbered_cells(_bucket(count, self.levels), len(self.levels) + 1)
        at = self._add(Part("rows per unit", 0, rows, cells, RowCount(), 2.0))
        measure = _parts(_position(count, self.levels), -HALF)
        inside = self._add(Part("rows per unit, position in the bucket", 0, rows, cells, measure))
        self.model["rows"] = {"levels": list(self.levels), "counts": at, "positions": inside, "half": HALF}

    def add_column(self, column: Column) -> None:
        """Count units by the groups that they are in, and by the value of one of their rows."""
        listed = column.values is not None or column.kind is Kind.BOOLEAN
        if listed and self.inputs.limits is not None:
            self._add_groups(column)
        if column.kind.numeric and column.values is None:
            self._add_values(column)
        else:
            self._add_nulls(column)

    def _add_groups(self, column: Column) -> None:
        key = Col("x", column.kind, column_facts(column))
        count = len(key.facts.values or (False, True)) + key.facts.null
        one = Col("n", Kind.INTEGER, _COUNTS)
        each = PerUnit(
            Scan(self.inputs.table, (key,), (column.name,)),
            (("g", key),),
            (("n", UnitAggregate("count", None, None, one)),),
        )
        there = None if key.facts.null else call("not", call("is_null", Col("g", column.kind, key.facts)))
        kept = call("least", one, whole(self.bound))
        total, groups, bounded = (Col(name, Kind.INTEGER, _COUNTS) for name in "tgk")
        rows = PerUnit(
            each,
            (),
            (
                ("t", UnitAggregate("sum", one, None, total)),
                ("g", UnitAggregate("count", None, there, groups)),
                ("k", UnitAggregate("sum", kept, there, bounded)),
            ),
        )
        ends = levels(count, self.groups, ones=8)
        within = numbered_cells(
            call("case", call("gt", groups, whole(0)), _bucket(groups, ends), whole(len(ends))), len(ends)
        )  # a unit without a group is in none of them
        at = self._add(Part(f"groups per unit: {column.name}", 1, rows, within, RowCount()))
        entry = {"levels": list(ends), "counts": at, "values": count}
        self.model["groups"][column.name] = entry
        if self.unit is None or self.unit.auto:
            return
        # of more groups than count, a random choice is kept
        share = call("div", real(self.groups), call("greatest", groups, whole(self.groups)))
        stays = call("mul", call("coalesce", bounded, whole(0)), share)
        measure = _parts(_left(total, stays, self.levels), 0)
        cells = numbered_cells(_bucket(total, self.levels), len(self.levels) + 1)
        left = self._add(Part(f"rows left out of groups: {column.name}", 1, rows, cells, measure))
        entry |= {"left": left, "half": HALF}

    def _one_row(self, column: Column) -> Rel:
        """Read one row of each unit, without clamping or comparing with a list."""
        bare = replace(column, bounds=None, values=None, other=None, auto=False)
        table = replace(
            self.inputs.table,
            columns=tuple(bare if each.name == column.name else each for each in self.inputs.table.columns),
        )
        scan = Scan(table, (Col("x", column.kind, column_facts(bare)),), (column.name,))
        if self.inputs.limits is None:
            return scan
        options = self.inputs.render_options
        return Truncate(scan, 1, options.salt, options.hashing)

    def _add_values(self, column: Column) -> None:
        edges, inside = _edges(column)
        rows = self._one_row(column)
        x = Col("x", column.kind, column_facts(replace(column, bounds=None, auto=False)))
        tests: list[Expr] = [call("is_null", x), whole(0)]
        for place, edge in enumerate(edges):
            # the upper bound itself is inside
            tests += [call("le" if place >= inside[1] else "lt", x, real(edge)), whole(place + 1)]
        cells = numbered_cells(call("case", *tests, whole(len(edges) + 1)), len(edges) + 2)
        at = self._add(Part(f"values: {column.name}", 2, rows, cells, RowCount()))
        bounds = None if column.auto else column.bounds
        self.model["values"][column.name] = {
            "bounds": None if bounds is None else [numbers.brief(bounds.low), numbers.brief(bounds.high)],
            "edges": [float(edge) for edge in edges],
            "inside": list(inside),
            "counts": at,
        }

    def _add_nulls(self, column: Column) -> None:
        rows, x = self._one_row(column), Col("x", column.kind)
        tests: list[Expr] = [call("is_null", x), whole(0)]
        size = 2
        if column.values is not None:
            size = 3
            tests += [call("in", x, *(Literal(value, column.kind) for value in column.values)), whole(1)]
        cells = numbered_cells(call("case", *tests, whole(size - 1)), size)
        at = self._add(Part(f"NULLs: {column.name}", 2, rows, cells, RowCount(), 0.5))
        self.model["nulls"][column.name] = {"listed": column.values is not None, "counts": at}


def _bucket(number: Expr, ends: Sequence[int]) -> Expr:
    """Number the bucket of a count; the last one is for everything above all levels."""
    tests: list[Expr] = []
    for place, end in enumerate(ends):
        tests += [call("le", number, whole(end)), whole(place)]
    return call("case", *tests, whole(len(ends)))


def _position(number: Expr, ends: Sequence[int]) -> Expr:
    """Write where in its bucket a count lies, from −HALF to HALF; 0 above all levels."""
    tests: list[Expr] = []
    for low, high in pairwise((0, *ends)):
        if high - low > 1:
            steps = call("mul", call("sub", number, real(low + 1)), real(Fraction(2 * HALF, high - low - 1)))
            tests += [call("le", number, whole(high)), call("sub", steps, real(HALF))]
        else:
            tests += [call("le", number, whole(high)), real(0)]
    return call("case", *tests, real(0))


def _left(total: Expr, stays: Expr, ends: Sequence[int]) -> Expr:
    """Write how many of a unit's rows are left out, in parts of the upper end of its bucket, from 0 to HALF."""
    tests: list[Expr] = []
    lost = call("mul", call("sub", total, stays), real(HALF))
    for end in ends:
        tests += [call("le", total, whole(end)), call("div", lost, real(end))]
    return call("case", *tests, real(0))


def _parts(expr: Expr, low: int) -> BoundedSum:
    """Sum up an expression between `low` and HALF in whole steps."""
    bounds = Bounds(Fraction(low), Fraction(HALF))
    return BoundedSum((Term(expr, bounds, Fraction(0)),), (), None, Fraction(0), Fraction(1), low, HALF)


def _edges(column: Column) -> tuple[list[Fraction], tuple[int, int]]:
    """Give the edges of the bins of a numeric column, and the places of those at its bounds."""
    bounds = None if column.auto else column.bounds
    if bounds is None or not bounds.low < bounds.high:
        edges = [Fraction(edge) for edge in _UNBOUNDED]
        return edges, (0, len(edges))
    low, high, width = bounds.low, bounds.high, bounds.high - bounds.low
    bins = min(BINS, int(width)) if column.kind is Kind.INTEGER and width < BINS else BINS
    inner = [low + width * place / bins for place in range(bins + 1)]
    return [low - width, *inner, high + width], (1, 1 + bins)
