"""Clipped vectors on a grid: their norms in the engine, and how far neighbors are apart."""

from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.program_tables import World

from hubbub.analyses.programs.clusters import nearest
from hubbub.analyses.programs.inputs import numbered_cells, one_cell, program_input
from hubbub.analyses.programs.vectors import (
    STEPS,
    box,
    boxed,
    clipped,
    of_box,
    of_products,
    of_sums,
    products,
    totals,
)
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.sql.measures import Additive

SIZES = [1, 2, 5, 16]


def table(world: World, size: int, rows: int = 300, seed: int = 1, name: str = "t", **how: object) -> list[str]:
    """Rows all over their bounds and beyond, at the corners, at the centre, and broken ones."""
    draw = np.random.default_rng(seed)
    values = draw.normal(0, 6, (rows, size))
    values[:20] = np.sign(values[:20]) * 10
    values[20:25] = 0
    values[25] = np.nan
    values[26] = np.inf
    values[27] = 1e-300
    names = [f"c{j}" for j in range(size)]
    world.put(
        name,
        {"who": np.arange(rows) // 3, "row": np.arange(rows), **{each: values[:, j] for j, each in enumerate(names)}},
        bounds={"row": (0, rows), **{each: (-10 - j, 10) for j, each in enumerate(names)}},
        **how,  # type: ignore[arg-type]
    )
    return names


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("radius", ["0.001", "0.5", "3"])
def test_integers_of_any_row_are_within_the_stated_norm(world: World, size: int, radius: str) -> None:
    """Each row in a cell of its own: what it adds there is what a unit adds."""
    rows = 200
    names = table(world, size, rows=rows)
    place = program_input(world.setting(), "t", [*names, "row"])
    reach = place.contribution_bounds(1)
    units = [Fraction(radius)] * size
    inside, vectors = boxed(place, box(place, names), [place.column("row")])
    near, pulled = clipped(inside, vectors, origin=[Fraction(1, 10)] * size, units=units, kept=[f"x{size}"])
    asked: list[Additive] = [*totals(pulled), *products(pulled)]
    cells = numbered_cells(place.column("row"), rows)
    found = place.integers(world, near, cells, asked).through(lambda exact: exact)
    sums = of_sums(size, reach, Relation.ADD_REMOVE)
    squares = of_products(size, reach, Relation.ADD_REMOVE)
    assert np.abs(found[:size]).sum(axis=0).max() <= sums.l1
    assert (found[:size] ** 2).sum(axis=0).max() <= sums.l2_squared
    assert np.abs(found[size:]).sum(axis=0).max() <= squares.l1
    assert (found[size:] ** 2).sum(axis=0).max() <= squares.l2_squared
    # the bounds are nearly met, so that they would notice a clip that is too wide
    if radius != "3":
        assert (found[:size] ** 2).sum(axis=0).max() >= (STEPS - 10) ** 2
        assert np.abs(found[:size]).sum(axis=0).max() >= 0.9 * sums.l1


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=2, rows=2)])
def test_engine_sums_of_neighbors_are_within_the_stated_sensitivity(
    world: World, relation: Relation, unit: PrivacyUnit | None
) -> None:
    """Take each of some units away, or put another in its place: counts, box sums and clipped sums in cells."""
    size, k = 3, 4
    centres = np.random.default_rng(5).uniform(-0.5, 0.5, (k, size))
    names = table(world, size, rows=90, unit=unit, relation=relation)
    furthest = 0.0

    def integers() -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        place = program_input(world.setting(), "t", names)
        rows, columns, cell = nearest(place, box(place, names), centres)
        units = [Fraction(1, 4)] * size
        near, pulled = clipped(rows, columns, origin=[Fraction(0)] * size, units=units, kept=["cell"])
        boxed = place.integers(world, rows, numbered_cells(cell, k), totals(columns))
        balls = place.integers(world, near, numbered_cells(cell, k), totals(pulled))
        return opened(boxed, balls)

    place = program_input(world.setting(), "t", names)
    before = integers()
    boxed, ball = (
        of_box(size, place.contribution_bounds(k), relation),
        of_sums(size, place.contribution_bounds(k), relation),
    )
    for who in range(0, 30, 3):
        world.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM t")
        whose = f"who = {who}" if unit else f"rowid = {who}"
        if relation is Relation.ADD_REMOVE:
            world.connection.execute(f"DELETE FROM t WHERE {whose}")
        else:
            world.connection.execute(f"UPDATE t SET c0 = -c0, c1 = -c1, c2 = -c2 WHERE {whose}")
        moved = integers() - before
        world.connection.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM kept")
        assert np.abs(moved[0]).sum() <= boxed.l1
        assert (moved[0] ** 2).sum() <= boxed.l2_squared
        assert np.abs(moved[1]).sum() <= ball.l1
        assert (moved[1] ** 2).sum() <= ball.l2_squared
        furthest = max(furthest, (moved[1] ** 2).sum() / ball.l2_squared)
    assert furthest > 0.2  # a bound that is five times too small would be noticed


def opened(*secrets: object) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.stack([each.through(lambda found: found) for each in secrets])  # type: ignore[attr-defined]


def test_a_planted_wider_clip_is_noticed(world: World) -> None:
    """Rows that are clipped at a hundredth more than norm 1 are further apart than stated."""
    names = table(world, 2, rows=60)
    place = program_input(world.setting(), "t", names)
    limit = of_sums(2, place.contribution_bounds(1), Relation.ADD_REMOVE)
    shape = box(place, names)
    rows, columns = clipped(*boxed(place, shape), origin=[Fraction(0)] * 2, units=[Fraction(1, 1000)] * 2)
    wider = totals(columns, STEPS + STEPS // 100)
    found = place.integers(world, rows, one_cell(), wider).through(lambda exact: exact[:, 0])
    one = np.sqrt((found.astype(float) ** 2).sum())
    assert one > 0
    world.connection.execute("DELETE FROM t WHERE rowid > 0")
    alone = place.integers(world, rows, one_cell(), wider).through(lambda exact: exact[:, 0])
    assert (alone**2).sum() > limit.l2_squared
