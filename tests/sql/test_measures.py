from fractions import Fraction
from itertools import combinations, product

import pytest

from hubbub.core.schema import Bounds, Kind
from hubbub.core.unit import Relation
from hubbub.sql.expressions import Col
from hubbub.sql.measures import (
    BoundedSum,
    DistinctSum,
    Measure,
    RowCount,
    Term,
    UnitContribution,
    UnitCount,
    sensitivity,
)

X = Col("x", Kind.REAL)


def total(low: int, high: int) -> BoundedSum:
    term = Term(X, Bounds(Fraction(low), Fraction(high)), Fraction(0))
    return BoundedSum((term,), (X,), None, Fraction(0), Fraction(1), low, high)


def contributions(measure: Measure, reach: UnitContribution) -> set[tuple[int, ...]]:
    """Every vector that one unit can add, with rows at the ends of what a row can add or not counted at all."""
    rows = 1 if isinstance(measure, UnitCount) else reach.rows
    ends = sorted({sum(row) for row in product((0, measure.low, measure.high), repeat=rows)})
    found = set()
    for cells in combinations(range(reach.cells), reach.touched):
        for amounts in product(ends, repeat=reach.touched):
            vector = [0] * reach.cells
            for cell, amount in zip(cells, amounts, strict=True):
                vector[cell] = amount
            found.add(tuple(vector))
    return found


@pytest.mark.row(27)
@pytest.mark.parametrize(
    "measure",
    [RowCount(), UnitCount(), total(0, 3), total(-2, 3), total(-3, -1), total(2, 5), DistinctSum(X, total(-2, 3))],
)
@pytest.mark.parametrize(
    "reach",
    [
        UnitContribution(1, 1, 1),
        UnitContribution(3, 1, 2),
        UnitContribution(3, 2, 1),
        UnitContribution(4, 2, 1),
        UnitContribution(2, 2, 2),
    ],
)
def test_brute_force_over_neighbors_finds_the_declared_sensitivity(measure: Measure, reach: UnitContribution) -> None:
    added = contributions(measure, reach)
    moves = {
        Relation.ADD_REMOVE: added,
        Relation.REPLACE: {tuple(x - y for x, y in zip(a, b, strict=True)) for a in added for b in added},
    }
    for relation, moved in moves.items():
        stated = sensitivity(measure, (reach,), relation)
        assert stated.l1 == max(sum(map(abs, move)) for move in moved)
        assert stated.l2_squared == max(sum(x * x for x in move) for move in moved)


def test_grouping_sets_add_up() -> None:
    one = sensitivity(RowCount(), (UnitContribution(4, 2, 3),), Relation.ADD_REMOVE)
    both = sensitivity(RowCount(), (UnitContribution(4, 2, 3), UnitContribution(1, 1, 3)), Relation.ADD_REMOVE)
    assert (one.l1, one.l2_squared) == (6, 18)
    assert (both.l1, both.l2_squared) == (6 + 3, 18 + 9)


@pytest.mark.row(27)
def test_replacing_is_not_adding() -> None:
    reach = (UnitContribution(5, 1, 1),)
    assert sensitivity(RowCount(), reach, Relation.ADD_REMOVE).l1 == 1
    assert sensitivity(RowCount(), reach, Relation.REPLACE).l1 == 2
    assert sensitivity(RowCount(), reach, Relation.REPLACE).l2_squared == 2
