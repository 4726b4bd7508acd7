"""What isolation is, checked on the definition itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hubbub.crowd.isolation import Rate, ball_wins, doubling, isolates_among, isolates_point, isolates_projected
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.errors import CrowdError

GRID = st.integers(-20, 20).map(float)
POINTS = st.integers(1, 3).flatmap(lambda d: arrays.arrays(np.float64, (9, d), elements=GRID))


def by_definition(points: Floats, guess: Floats, y: Floats, c: float, t: int) -> bool:
    """|B(q, c·|q − y|) ∩ RDB| < t, counted."""
    away = np.square(points - guess).sum(axis=1)
    return int((away <= c * c * np.square(guess - y).sum()).sum()) < t


@pytest.mark.row(76)
@given(POINTS, st.data(), st.sampled_from([1.0, 2.0, 4.0]), st.integers(2, 6))
def test_where_the_nearest_is_not_isolated_nobody_is(points: Floats, data: st.DataObject, c: float, t: int) -> None:
    guess = data.draw(arrays.arrays(np.float64, points.shape[1], elements=GRID))
    isolated = [by_definition(points, guess, y, c, t) for y in points]
    nearest = int(np.square(points - guess).sum(axis=1).argmin())
    assert isolated[nearest] == any(isolated)
    assert isolates_point(NeighborIndex(points), guess[None], c=c, t=t)[0] == any(isolated)


@pytest.mark.row(76)
@given(POINTS, st.integers(1, 9))
def test_the_t_radius_is_the_least_radius_of_a_ball_with_t_points(points: Floats, t: int) -> None:
    radius = NeighborIndex(points).query(points[:3], t=t).radius
    for center, reach in zip(points[:3], radius, strict=True):
        away = np.sqrt(np.square(points - center).sum(axis=1))
        assert (away <= reach).sum() >= t > (away < reach).sum()


@pytest.mark.row(77)
@given(POINTS, st.data(), st.sampled_from([1.0, 2.0, 4.0]), st.integers(2, 6))
def test_a_ball_wins_somewhere_just_if_the_point_isolates(
    points: Floats, data: st.DataObject, c: float, t: int
) -> None:
    guess = data.draw(arrays.arrays(np.float64, points.shape[1], elements=GRID))
    away = np.sqrt(np.square(points - guess).sum(axis=1))
    radii = np.concatenate([away, away / c, (away[:, None] + away / c).ravel() / 2, [0.0, 0.3, 100.0]])
    crowd, guesses = NeighborIndex(points), np.broadcast_to(guess, (len(radii), len(guess)))
    won = ball_wins(crowd, guesses, radii, c=c, t=t)
    counted = [(away <= r).any() and (away <= c * r).sum() < t for r in radii]
    exact = np.abs(np.subtract.outer(away, np.concatenate([radii, c * radii]))).min(axis=0) > 1e-9
    for place, (one, other) in enumerate(zip(won, counted, strict=True)):
        assert one == other or not (exact[place] and exact[place + len(radii)])  # rounding decides at the border alone
    assert won.any() == isolates_point(crowd, guess[None], c=c, t=t)[0]


def test_only_victims_count_where_others_are_known(rng: np.random.Generator) -> None:
    points = np.array([[0.0], [0.1], [5.0], [9.0]])
    guesses = np.array([[0.0], [5.0]])
    assert isolates_point(NeighborIndex(points), guesses, c=4, t=2).tolist() == [True, True]
    assert isolates_among(NeighborIndex(points), guesses, points[1:], c=4, t=2).tolist() == [False, True]


@pytest.mark.row(92)
def test_in_few_coordinates_a_guess_must_be_nearer_by_phi(rng: np.random.Generator) -> None:
    """φ(k) = 2^{d/k}: one coordinate of sixteen needs 65,536 times c; a plain c would call most guesses isolations."""
    assert [doubling(16)(k) for k in (16, 8, 4, 1)] == [2, 4, 16, 65536]
    points = rng.uniform(-1, 1, (1000, 16))
    guesses = points[:200] + rng.normal(0, 1e-4, (200, 16))
    plain = isolates_projected(points, guesses[:, :1], [0], c=3, t=10, phi=lambda _: 1.0)
    strict = isolates_projected(points, guesses[:, :1], [0], c=3, t=10)
    assert Rate.of(plain).share > 0.9
    assert Rate.of(strict).share == 0
    whole = isolates_projected(points, guesses, range(16), c=3, t=10)
    assert np.array_equal(whole, isolates_point(NeighborIndex(points), guesses, c=6, t=10))


@pytest.mark.parametrize(("c", "t"), [(0.5, 10), (float("nan"), 10), (float("inf"), 10), (3, 1)])
def test_parameters_that_mean_nothing_are_refused(c: float, t: int) -> None:
    with pytest.raises(CrowdError, match="HB623"):
        isolates_point(NeighborIndex(np.zeros((3, 1))), np.zeros((1, 1)), c=c, t=t)


def test_coordinates_of_a_projection_are_named_once() -> None:
    with pytest.raises(CrowdError, match="HB623"):
        isolates_projected(np.zeros((3, 4)), np.zeros((1, 2)), [1, 1], c=3, t=2)


def test_rates_add_up_and_have_exact_intervals() -> None:
    total = Rate(3, 10) + Rate(0, 90)
    assert (total.share, Rate(0, 0).share, Rate(0, 0).interval()) == (0.03, 0.0, (0.0, 1.0))
    assert total.interval() == pytest.approx((0.00623, 0.08518), abs=1e-5)
