"""The choice of a bound for rows with two owners, and the noise at it, on all small datasets."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.core.unit import Relation
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system
from hubbub.sql.expressions import Col
from hubbub.sql.keys import Cells, Domain
from hubbub.sql.measures import RowCount
from hubbub.sql.owner_levels import RESOLUTION, OwnerLevels, bounds_up_to, owner_levels
from hubbub.sql.query import Key

EPSILON = Fraction(2)
#: Two patients and two doctors who can have rows in common, in a fixed order.
PAIRS = [(1, 11), (0, 10), (0, 11), (1, 10)]

Table = Mapping[str, NDArray[Any]]


WHOLE = Cells((), ())


def planned(
    relation: Relation = Relation.ADD_REMOVE, cells: Cells = WHOLE, *, one_entity: bool = False
) -> tuple[OwnerLevels, Fraction]:
    """Plan a choice among the bounds 1, 2 and 4; return it and the budget of the noise."""
    return owner_levels(
        RowCount(),
        0,
        maximum=4,
        cells=cells,
        one_entity=one_entity,
        portion=EPSILON,
        relation=relation,
        sql="",
    )


def choice(relation: Relation = Relation.ADD_REMOVE, cells: Cells = WHOLE, *, one_entity: bool = False) -> OwnerLevels:
    return planned(relation, cells, one_entity=one_entity)[0]


def table(weights: Mapping[tuple[int, int, int], int]) -> Table:
    """Write rows (patient, doctor, cell) with their numbers as a statement returns them, in the order of PAIRS."""
    present = [(pair, cell, weights.get((*pair, cell), 0)) for cell in (0, 1) for pair in PAIRS]
    rows = [(*pair, cell, weight) for pair, cell, weight in present if weight]
    names = ("u", "w", "cell", "m0")
    return {name: np.array([row[i] for row in rows], dtype=np.int64) for i, name in enumerate(names)}


def datasets(most: int) -> Iterator[dict[tuple[int, int, int], int]]:
    for weights in product(range(most + 1), repeat=len(PAIRS)):
        yield {(*pair, 0): weight for pair, weight in zip(PAIRS, weights, strict=True) if weight}


def without(weights: Mapping[tuple[int, int, int], int], owner: int) -> dict[tuple[int, int, int], int]:
    return {row: weight for row, weight in weights.items() if owner not in row[:2]}


def test_bounds_are_halves_of_the_maximum() -> None:
    assert bounds_up_to(10, 1) == (1, 2, 3, 5, 10)
    assert bounds_up_to(4 * 800, 800)[0] == 100


@pytest.mark.usefixtures("few_rounds")
def test_one_owner_moves_scores_by_at_most_their_sensitivity() -> None:
    level = choice()
    assert level.mechanism.sensitivity == RESOLUTION
    moved = {
        level.moved(table(weights), table(without(weights, owner)))
        for weights in list(datasets(3))[::3]
        for owner in (0, 1, 10, 11)
    }
    # the bound is reached up to rounding
    assert RESOLUTION // 2 < max(moved) <= RESOLUTION


@pytest.mark.usefixtures("few_rounds")
def test_two_owners_in_each_others_place_move_scores_by_at_most_twice_that() -> None:
    level = choice(Relation.REPLACE)
    moved = 0
    for weights in list(datasets(2))[::2]:
        rest = without(weights, 0)
        for here, there in product(range(3), repeat=2):
            other = rest | {key: n for key, n in (((0, 10, 0), here), ((0, 11, 0), there)) if n}
            moved = max(moved, level.moved(table(weights), table(other)))
    assert RESOLUTION // 2 < moved <= level.mechanism.sensitivity == 2 * RESOLUTION


def law(level: OwnerLevels, noise: Laplace, data: Table) -> dict[tuple[int, int], tuple[float, float]]:
    """Enclose the probabilities of a bound and a noisy sum, all sums below and above a window as its ends."""
    chances = level.mechanism.distribution(level.exact(data).tolist()).mass
    outcomes = {}
    for place, chance in chances.items():
        bound = level.levels[place]
        scaled = Laplace(sensitivity=noise.sensitivity * bound, scale=noise.scale * bound)
        (total,) = level.truncated(data, bound).tolist()
        for answer, mass in scaled.distribution(total, (-3, 12)).mass.items():
            outcomes[bound, answer] = (float(chance[0] * mass[0]), float(chance[1] * mass[1]))
    return outcomes


@pytest.mark.usefixtures("few_rounds")
def test_the_enumerated_loss_of_choice_and_noise_is_within_the_charge() -> None:
    level, left = planned()
    noise = Laplace(sensitivity=1, scale=1 / left)
    limit = np.exp(float(EPSILON)) * (1 + 1e-9)
    worst = 0.0
    for weights in list(datasets(2))[::5]:
        for owner in (0, 10):
            one, two = (law(level, noise, table(each)) for each in (weights, without(weights, owner)))
            worst = max(worst, *(one[key][1] / two[key][0] for key in one), *(two[key][1] / one[key][0] for key in one))
    assert worst <= limit
    # half of the budget is the noise, and that half is reached
    assert worst > np.exp(float(left))


def test_cells_are_truncated_one_by_one() -> None:
    key = Key("k", Col("k", Kind.INTEGER))
    cells = Cells((0,), (Domain(key, (0, 1)),))
    level = choice(cells=cells)
    data = table({(0, 10, 0): 3, (0, 10, 1): 3, (1, 11, 1): 1})
    assert level.truncated(data, 2).tolist() == [2, 3]


@pytest.mark.parametrize("one_entity", [False, True])
def test_equal_names_are_one_owner_only_in_one_entity(*, one_entity: bool) -> None:
    level = choice(one_entity=one_entity)
    rows = {"u": [7, 8], "w": [8, 9], "cell": [0, 0], "m0": [2, 2]}
    data = {name: np.array(values, dtype=np.int64) for name, values in rows.items()}
    assert level.truncated(data, 2).tolist() == [2 if one_entity else 4]


def test_owners_of_different_integer_types_are_told_apart() -> None:
    """2⁵³ and 2⁵³ + 1 are one double, and numpy adds signed and unsigned integers to one array as doubles."""
    level, low = choice(one_entity=True), 2**53
    data = {"u": np.array([low, 1]), "w": np.array([2, low + 1], dtype=np.uint64), "cell": np.zeros(2, dtype=np.int64)}
    assert level.truncated({**data, "m0": np.array([2, 2])}, 2).tolist() == [4]
    same = {**data, "w": np.array([2, low], dtype=np.uint64)}
    assert level.truncated({**same, "m0": np.array([2, 2])}, 2).tolist() == [2]


def test_a_choice_is_one_of_the_bounds() -> None:
    level = choice()
    chosen = level.choose(table({(0, 10, 0): 3}), system())
    assert chosen.bound in level.levels
    assert chosen.most == float("inf")
