"""The recursive histogram against a recursion written out."""

import numpy as np
import pytest

from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.neighbors import Floats
from hubbub.errors import CrowdError


def written_out(points: Floats, low: Floats, side: float, t: int) -> dict[tuple[float, ...], int]:
    """Leaves by their corner and side, by recursion over all 2^d parts."""
    if len(points) < 2 * t:
        return {(*low.tolist(), side): len(points)}
    found: dict[tuple[float, ...], int] = {}
    for part in range(1 << len(low)):
        corner = low + side / 2 * np.array([part >> axis & 1 for axis in range(len(low))])
        last = corner + side / 2 == 1
        here = ((points >= corner) & ((points < corner + side / 2) | (last & (points == 1)))).all(axis=1)
        found |= written_out(points[here], corner, side / 2, t)
    return found


@pytest.mark.row(79)
@pytest.mark.parametrize(("d", "n", "t"), [(1, 400, 3), (2, 1000, 10), (3, 500, 2), (4, 39, 20)])
def test_the_cells_are_those_of_the_recursion(rng: np.random.Generator, d: int, n: int, t: int) -> None:
    points = rng.uniform(-1, 1, (n, d)) ** 3
    points[0] = 1.0
    low, side, count = build_histogram(points, t=t).leaves
    found = {(*a, b): c for a, b, c in zip(low.tolist(), side.tolist(), count.tolist(), strict=True)}
    whole = written_out(points, np.full(d, -1.0), 2.0, t)
    assert found == {cell: number for cell, number in whole.items() if number}


@pytest.mark.row(79)
@pytest.mark.parametrize("d", [1, 2, 5, 16, 200])
def test_no_leaf_is_a_crowd_of_two_and_every_parent_is(rng: np.random.Generator, d: int) -> None:
    points, t = rng.uniform(-1, 1, (2000, d)), 10
    histogram = build_histogram(points, t=t)
    _, _, count = histogram.leaves
    assert count.sum() == 2000
    assert count.max() < 2 * t
    places = histogram.locate(points)
    assert (places.parent_count >= 2 * t).all()
    assert (places.count >= 1).all()
    assert ((points >= places.low) & (points <= places.low + places.side[:, None])).all()
    assert np.array_equal(places.parent_side, 2 * places.side)
    for level in histogram.levels:
        assert (level.count[level.split] >= 2 * t).all()


@pytest.mark.row(79)
def test_two_hundred_columns_take_no_more_cells_than_points(rng: np.random.Generator) -> None:
    histogram = build_histogram(rng.uniform(-1, 1, (5000, 200)), t=10)
    assert sum(len(level.count) for level in histogram.levels) == 5001  # the cube, and a cell for everybody


def test_a_place_where_nobody_is_lies_in_an_empty_cell_of_the_right_depth(rng: np.random.Generator) -> None:
    points = rng.uniform(0, 1, (500, 2))  # only the upper right quarter
    places = build_histogram(points, t=10).locate(np.array([[-0.5, -0.5], [-0.9, 0.9]]))
    assert places.count.tolist() == [0, 0]
    assert places.side.tolist() == [1.0, 1.0]
    assert places.low.tolist() == [[-1.0, -1.0], [-1.0, 0.0]]
    assert places.parent_count.tolist() == [500, 500]


def test_a_table_below_two_crowds_is_one_cell(rng: np.random.Generator) -> None:
    low, side, count = build_histogram(rng.uniform(-1, 1, (19, 3)), t=10).leaves
    assert (low.tolist(), side.tolist(), count.tolist()) == ([[-1.0, -1.0, -1.0]], [2.0], [19])


def test_depth_one_is_the_plain_histogram(rng: np.random.Generator) -> None:
    _, side, count = build_histogram(rng.uniform(-1, 1, (1000, 2)), t=2, depth=1).leaves
    assert (side.tolist(), int(count.sum()), len(count)) == ([1.0] * 4, 1000, 4)


def test_equal_points_that_no_cutting_parts_are_refused() -> None:
    points = np.full((30, 3), 0.25)
    with pytest.raises(CrowdError, match="HB622"):
        build_histogram(points, t=10)
    assert build_histogram(points, t=16).leaves[2].tolist() == [30]


def test_points_outside_of_the_cube_are_refused() -> None:
    for wrong in (1.01, float("nan")):
        with pytest.raises(CrowdError, match="HB622"):
            build_histogram(np.full((5, 1), wrong), t=2)
