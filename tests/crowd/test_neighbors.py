"""Neighbors against all distances, and where single precision cannot tell."""

import numpy as np
import pytest

from hubbub.crowd import neighbors
from hubbub.crowd.neighbors import Floats, NeighborIndex


def brute(points: Floats, queries: Floats, t: int) -> tuple[Floats, Floats]:
    away = np.sqrt(np.square(queries[:, None] - points[None]).sum(axis=2))
    away.sort(axis=1)
    return away[:, 0], away[:, t - 1] if t <= len(points) else np.full(len(queries), np.inf)


@pytest.mark.parametrize(("d", "n", "t"), [(1, 3000, 10), (2, 2500, 2), (5, 2100, 50), (16, 2100, 10), (40, 300, 7)])
def test_nearest_and_t_radius_are_those_of_all_distances(rng: np.random.Generator, d: int, n: int, t: int) -> None:
    points, queries = rng.uniform(-1, 1, (n, d)), rng.uniform(-1.2, 1.2, (1100, d))
    points[:60] = points[60:120]  # some twice
    queries[:40] = points[:40]  # some at a point
    found = NeighborIndex(points).query(queries, t=t)
    nearest, radius = brute(points, queries, t)
    assert np.array_equal(found.nearest, nearest)
    assert np.array_equal(found.radius, radius)
    assert np.array_equal(np.linalg.norm(points[found.which] - queries, axis=1), found.nearest)


def test_what_single_precision_cannot_tell_is_told(rng: np.random.Generator) -> None:
    points = 1000 + rng.uniform(0, 1e-6, (3000, 3))  # a crowd far from the origin, all within 2^-10 of a float32 step
    points[0] = -1000  # and one far away
    queries = points[:50] + rng.normal(0, 1e-9, (50, 3))
    found = NeighborIndex(points).query(queries, t=5)
    nearest, radius = brute(points, queries, 5)
    assert np.array_equal(found.nearest, nearest)
    assert np.array_equal(found.radius, radius)


def test_without_the_margin_single_precision_would_err(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = rng.uniform(0, 1e-4, (5000, 2)) + np.repeat(rng.uniform(0, 100, (5, 2)), 1000, axis=0)
    queries = points[::10] + 1e-9
    right = NeighborIndex(points).query(queries, t=4).radius
    assert np.array_equal(right, brute(points, queries, 4)[1])
    monkeypatch.setattr(neighbors, "_SLACK", 0.0)
    assert not np.array_equal(NeighborIndex(points).query(queries, t=4).radius, right)


def test_a_crowd_in_one_place_has_radius_zero_and_too_few_have_none() -> None:
    points = np.zeros((7, 3))
    queries = np.array([[0.0, -0.0, 0.0], [1.0, 0.0, 0.0]])
    assert NeighborIndex(points).query(queries, t=7).radius.tolist() == [0.0, 1.0]
    assert NeighborIndex(points).query(queries, t=8).radius.tolist() == [np.inf, np.inf]


def test_many_equal_points_are_one_place_with_a_number(rng: np.random.Generator) -> None:
    points = rng.integers(0, 6, (50_000, 3)).astype(np.float64)  # 216 places
    crowd = NeighborIndex(points)
    found = crowd.query(points, t=200)
    nearest, radius = brute(points, points[:20], 200)
    assert np.array_equal(found.radius[:20], radius)
    assert not found.nearest.any()
    assert np.array_equal(nearest, np.zeros(20))
