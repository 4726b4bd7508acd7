"""The adversaries at work: figures of the paper's sanitizers over the dimension. Seeds are fixed.

Where a figure is compared, the tolerance is at least six deviations of what was drawn, so that another seed would fail
with a chance below 1e-6.
"""

import numpy as np
import pytest

from hubbub.crowd import experiments
from hubbub.crowd.experiments import EXPERIMENTS, by_itself, rate, rough_distribution, sweep, two_points
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import Rate, isolates_point
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.theory import ball_floor, uniform_chance


@pytest.mark.row(80)
def test_the_cell_center_isolates_in_few_dimensions_and_nobody_in_many(rng: np.random.Generator) -> None:
    """1,000 uniform points, t = 10, c = 3: most cell centers isolate at d = 2, few at d = 5, hardly any from 10 on.

    At the innermost cell, away from the border, the chance is 1 − (1 − c^{−d})^{t−1}: 65 %, 3.6 %, 0.02 %.
    """
    shares = {
        d: rate(experiments.by_cell_center, n=1000, d=d, t=10, c=3, databases=8, rng=rng).share for d in (2, 5, 10, 20)
    }
    assert 0.55 < shares[2] < 0.85
    assert 0.01 < shares[5] < 0.15
    assert shares[10] < 0.005
    assert shares[20] < 0.005
    inner = Rate(0, 0)
    for _ in range(300):
        points = experiments.uniform(1000, 5, rng)
        centers = build_histogram(points, t=10).centers
        middle = centers[[np.abs(centers).max(axis=1).argmin()]]
        inner += Rate.of(isolates_point(NeighborIndex(points), middle, c=3, t=10))
    assert inner.interval(0.999999)[0] <= uniform_chance(c=3, t=10, d=5) <= inner.interval(0.999999)[1] + 0.02


@pytest.mark.row(84)
def test_who_knows_half_of_the_points_isolates_no_more_in_high_dimension(rng: np.random.Generator) -> None:
    shares = {d: rate(experiments.by_half, n=1000, d=d, t=10, c=3, databases=6, rng=rng).share for d in (2, 5, 10, 20)}
    assert shares[2] > 0.3
    assert shares[2] > shares[5] > shares[10]
    assert shares[10] < 0.01
    assert shares[20] < 0.005


@pytest.mark.row(88)
def test_a_published_point_isolates_by_itself_in_few_dimensions(rng: np.random.Generator) -> None:
    """The ball sanitizer, q = x′, n = 1000, t = 10, c = 4: 92.6, 41.8, 1.0 and 0 % at d = 1, 2, 5 and 10."""
    found = {d: rate(by_itself("ball"), n=1000, d=d, t=10, c=4, databases=5, rng=rng) for d in (1, 2, 5, 10)}
    for d, figure, room in ((1, 0.926, 0.03), (2, 0.418, 0.06), (5, 0.010, 0.01), (10, 0.0, 0.002)):
        assert found[d].share == pytest.approx(figure, abs=room)
    for d in (1, 2, 5):
        assert found[d].interval(0.999999)[0] > ball_floor(n=1000, t=10, d=d)
    sphere = rate(by_itself("sphere"), n=1000, d=1, t=10, c=4, databases=1, rng=rng)
    assert sphere.share < 1


@pytest.mark.row(87)
def test_two_points_hide_each_other_in_high_dimension(rng: np.random.Generator) -> None:
    shares = [two_points(d, c=4, trials=300, rng=rng).share for d in (2, 3, 5, 9)]
    assert shares[0] > 0.8
    assert shares == sorted(shares, reverse=True)
    assert shares[2] < 0.15
    assert shares[3] < 0.02


@pytest.mark.row(87)
def test_one_point_hides_although_all_others_are_known(rng: np.random.Generator) -> None:
    shares = [experiments.all_but_one(d, n=50, c=4, trials=300, rng=rng).share for d in (2, 3, 9)]
    assert shares[0] > 0.1
    assert shares[0] > shares[1] > shares[2]
    assert shares[2] < 0.02


@pytest.mark.row(83)
def test_where_data_is_not_smooth_a_histogram_isolates_at_every_dimension(rng: np.random.Generator) -> None:
    """Remark 2. With the counts the chance stays above a third; without them it halves with each dimension."""
    told, blind = zip(*(rough_distribution(d, n=64, t=10, trials=1500, rng=rng) for d in (8, 12, 16, 20)), strict=True)
    assert all(1 / 3 < each.share < 0.8 for each in told)
    assert abs(told[0].share - told[-1].share) < 0.1
    assert blind[0].share > 0.03
    assert blind[2].share < 0.005
    assert blind[3].share == 0


def test_a_sweep_measures_every_adversary_with_intervals(rng: np.random.Generator) -> None:
    heard: list[tuple[float, str]] = []
    curves = sweep(
        "c", [2, 8], rng=rng, n=200, d=3, t=5, databases=1, progress=lambda done, what: heard.append((done, what))
    )
    assert set(curves) == set(EXPERIMENTS)
    assert heard == [(0.5, "c = 2"), (1.0, "c = 8")]
    for points in curves.values():
        (_, first, *_), (_, last, low, high) = points
        assert first >= last
        assert low <= last <= high
