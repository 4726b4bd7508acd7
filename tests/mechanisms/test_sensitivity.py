"""Sensitivity by brute force: every pair of neighbors over a small domain."""

from collections.abc import Iterator
from itertools import product

import pytest

from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms import sensitivity

Rows = tuple[int, ...]  # the values of one unit's rows


def units(domain: tuple[int, ...], rows: int) -> list[Rows]:
    return [owned for size in range(rows + 1) for owned in product(domain, repeat=size)]


def neighbors(domain: tuple[int, ...], rows: int, relation: Relation) -> Iterator[tuple[Rows, Rows]]:
    """What differs between neighbors: one unit's rows against none, or against another's."""
    for owned in units(domain, rows):
        yield owned, ()
        if relation is Relation.REPLACE:
            yield from ((owned, other) for other in units(domain, rows))


def counts(rows: Rows, cells: int) -> list[int]:
    return [rows.count(cell) for cell in range(cells)]


@pytest.mark.row(28)
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_brute_force_over_neighbors_finds_the_declared_sensitivity(relation: Relation, rows: int) -> None:
    for lower, upper in ((0, 1), (-2, 1), (1, 3), (-3, -1)):
        domain = tuple(range(lower, upper + 1))
        moved = max(abs(sum(x) - sum(y)) for x, y in neighbors(domain, rows, relation))
        assert moved == sensitivity.of_sum(lower=lower, upper=upper, rows=rows, relation=relation)
    cells = 3
    differences = [
        [a - b for a, b in zip(counts(x, cells), counts(y, cells), strict=True)]
        for x, y in neighbors(tuple(range(cells)), rows, relation)
    ]
    assert max(sum(map(abs, d)) for d in differences) == sensitivity.of_histogram(rows=rows, relation=relation)
    squared = max(sum(e * e for e in d) for d in differences)
    assert squared == sensitivity.of_histogram_squared(rows=rows, relation=relation)


@pytest.mark.row(28)
def test_a_histogram_moves_by_two_under_replace_and_by_one_under_add_remove() -> None:
    """And a sum of bits by one under both. A symmetric difference of one does not cover a replacement."""
    of = {relation: sensitivity.of_histogram(rows=1, relation=relation) for relation in Relation}
    assert of == {Relation.ADD_REMOVE: 1, Relation.REPLACE: 2}
    sums = {relation: sensitivity.of_sum(lower=0, upper=1, rows=1, relation=relation) for relation in Relation}
    assert sums == {Relation.ADD_REMOVE: 1, Relation.REPLACE: 1}
    assert Relation.REPLACE.units_changed == 2


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "1", None, 10**40])
def test_bad_bounds_are_refused(bad: int) -> None:
    with pytest.raises(ParameterError):
        sensitivity.of_histogram(rows=bad, relation=Relation.REPLACE)
    with pytest.raises(ParameterError):
        sensitivity.of_histogram_squared(rows=bad, relation=Relation.REPLACE)
    with pytest.raises(ParameterError):
        sensitivity.of_sum(lower=0, upper=1, rows=bad, relation=Relation.REPLACE)


def test_a_relation_is_a_relation() -> None:
    for wrong in ("add_remove", None, 1):
        with pytest.raises(ParameterError):
            sensitivity.of_histogram(rows=1, relation=wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        sensitivity.of_sum(lower=1, upper=0, rows=1, relation=Relation.REPLACE)
    with pytest.raises(ParameterError):
        sensitivity.of_sum(lower=0, upper=0, rows=1, relation=Relation.REPLACE)  # nothing to protect, nothing to noise
