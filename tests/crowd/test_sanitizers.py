"""The round sanitizers, cross-training and what is published again."""

import ast
from pathlib import Path

import numpy as np
import pytest

import hubbub
from hubbub.crowd import impossibility
from hubbub.crowd.adversaries import posterior_mean, posterior_of_cross_training
from hubbub.crowd.cross_training import cross_train
from hubbub.crowd.disclaimers import KINDS, NOT_PRIVATE, SANITIZERS
from hubbub.crowd.experiments import measure_factors, sweep_rereleases, uniform
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import isolates_point
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.perturbation import Shape, perturb, sample_around
from hubbub.crowd.rerelease import average_releases, perturb_afresh, perturb_again
from hubbub.errors import CrowdError


@pytest.mark.row(85)
@pytest.mark.parametrize(("shape", "share"), [("ball", 8 / 10), ("sphere", 1.0), ("gaussian", 1.0)])
def test_the_noise_is_as_wide_as_the_crowd(rng: np.random.Generator, shape: Shape, share: float) -> None:
    """E‖noise‖² is τ² (d/(d+2) of it in the ball).

    40,000 draws, d = 8: the mean is off by 6 deviations (of at most 0.5/200) with a chance below 1e-6; noise scaled
    with τ²/(d+1) a coordinate would be off by 0.11.
    """
    centers = np.zeros((40_000, 8))
    noise = sample_around(centers, np.full(40_000, 3.0), shape, rng)
    squares = np.square(noise).sum(axis=1) / 9
    assert abs(squares.mean() - share) < 0.015
    if shape == "sphere":
        assert squares == pytest.approx(np.ones(40_000), rel=1e-12)
    if shape == "ball":
        assert squares.max() <= 1
    assert np.abs(noise.mean(axis=0)).max() < 0.05


@pytest.mark.row(85)
@pytest.mark.parametrize("shape", ["ball", "sphere"])
def test_nobody_moves_farther_than_the_crowd_reaches(rng: np.random.Generator, shape: Shape) -> None:
    points = rng.uniform(-1, 1, (500, 3))
    radius = NeighborIndex(points).query(points, t=7).radius
    away = np.linalg.norm(perturb(points, shape, t=7, rng=rng) - points, axis=1)
    assert (away <= radius * (1 + 1e-12)).all()
    if shape == "sphere":
        assert away == pytest.approx(radius)


def test_too_few_points_and_unknown_shapes_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(CrowdError, match="HB622"):
        perturb(np.zeros((3, 2)), "ball", t=4, rng=rng)
    with pytest.raises(CrowdError, match="HB624"):
        perturb(np.zeros((3, 2)), "cone", t=2, rng=rng)  # type: ignore[arg-type]
    with pytest.raises(CrowdError, match="HB622"):
        cross_train(np.zeros((30, 2)), t=10, rng=rng)


@pytest.mark.row(91)
def test_cross_training_moves_one_half_by_the_cells_of_the_other(rng: np.random.Generator) -> None:
    points = uniform(4000, 2, rng)
    given = cross_train(points, t=10, rng=rng)
    assert given.histogram.size == (~given.who).sum()
    assert (given.cells.parent_count >= 20).all()
    noise = (given.moved - points[given.who]) / given.cells.side[:, None]
    # about 4,000 standard normal draws: 6 deviations of mean and mean square, false alarm below 1e-6
    assert abs(noise.mean()) < 6 / np.sqrt(noise.size)
    assert abs(np.square(noise).mean() - 1) < 6 * np.sqrt(2 / noise.size)
    guesses = posterior_of_cross_training(given)
    inside = (guesses >= given.cells.low) & (guesses <= given.cells.low + given.cells.side[:, None])
    assert inside.all()


@pytest.mark.row(91)
def test_the_ball_of_the_posterior_mean_holds_the_parent_when_grown_tenfold_in_high_dimension(
    rng: np.random.Generator,
) -> None:
    """Lemma 5: α + 1 < 10 is enough in high dimension; `enlargement` has the exact figures, apart from this sampler.

    At d = 10 the share of 20,000 rows that need more than ten is 0.0033, with a deviation of 0.0004: 6 deviations.
    """
    assert (measure_factors(10, trials=20_000, rng=rng) > 10).mean() == pytest.approx(0.0033, abs=0.0025)
    for d, most in ((50, 8.5), (200, 6.8), (1000, 6.0)):
        seen = np.concatenate([measure_factors(d, trials=200, rng=rng) for _ in range(400 // d + 1)])
        assert seen.max() < most  # the chance of more is below 1e-6 for each row (enlargement_chance)


@pytest.mark.row(91)
def test_the_posterior_mean_is_that_of_a_cut_normal() -> None:
    """Against the closed form v′ + ρ(φ(a) − φ(b))/(Φ(b) − Φ(a))."""
    from scipy.stats import truncnorm

    for moved in (-3.0, 0.2, 0.5, 6.0):
        a = (0 - moved) / 1.0
        expected = truncnorm.mean(a, a + 1, loc=moved, scale=1.0)
        found = posterior_mean(np.array([[moved]]), np.zeros((1, 1)), np.ones(1), np.ones(1))
        assert found[0, 0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.row(94)
def test_published_again_the_noise_averages_out_and_kept_it_does_not(rng: np.random.Generator) -> None:
    """Noise drawn anew shrinks by √T, so averages isolate; 300 points, 64 releases. The seed is fixed."""
    points = uniform(300, 8, rng)
    fresh = sweep_rereleases(points, "sphere", [1, 4, 16, 64], t=10, c=4, rng=rng, keep=False)
    kept = sweep_rereleases(points, "sphere", [1, 4, 16, 64], t=10, c=4, rng=rng, keep=True)
    assert [share for _, share, *_ in fresh] == sorted(share for _, share, *_ in fresh)
    assert fresh[0][1] < 0.05 < 0.95 < fresh[-1][1]
    assert {share for _, share, *_ in kept} == {kept[0][1]}
    who = np.arange(300)
    away = [
        np.linalg.norm(
            average_releases([perturb_afresh(points, who, "sphere", t=10, rng=rng) for _ in range(times)])[1] - points,
            axis=1,
        )
        for times in (4, 64)
    ]
    assert away[0].mean() / away[1].mean() == pytest.approx(4, rel=0.1)


@pytest.mark.row(94)
def test_only_whose_crowd_changed_is_moved_anew(rng: np.random.Generator) -> None:
    points, who = uniform(200, 3, rng), np.arange(200)
    first = perturb_afresh(points, who, "ball", t=5, rng=rng)
    left = np.delete(who, 17)
    second = perturb_again(first, points[left], left, "ball", t=5, rng=rng)
    same = (second.moved == first.moved[left]).all(axis=1)
    assert np.array_equal(same, second.radius == first.radius[left])
    assert 0 < (~same).sum() < 60  # those who had the one who left among their five nearest
    joined, guesses = average_releases([first, second])
    assert np.array_equal(joined, left)
    assert np.array_equal(guesses[same], second.moved[same])


@pytest.mark.row(78)
@pytest.mark.parametrize("kind", ["histogram", "ball", "cross"])
def test_no_sanitizer_is_perfect(rng: np.random.Generator, kind: str) -> None:
    """Somebody who knows a masked point isolates it with the published data, and nobody without it."""
    points = uniform(500, 6, rng)
    published = {
        "histogram": build_histogram(points, t=5).leaves[0],
        "ball": perturb(points, "ball", t=5, rng=rng),
        "cross": cross_train(points, t=5, rng=rng).moved,
    }[kind]
    known = impossibility.mask_point(points[7], published)
    crowd = NeighborIndex(points)
    assert isolates_point(crowd, impossibility.unmask_point(known, published)[None], c=100, t=5)[0]
    without = np.array([impossibility.unmask_point(known, rng.random(8)) for _ in range(100)])
    assert not isolates_point(crowd, without, c=100, t=5).any()


def test_every_sanitizer_says_that_it_is_not_private() -> None:
    assert set(KINDS) == set(SANITIZERS)
    for promise in SANITIZERS.values():
        assert promise.warnings[0] == NOT_PRIVATE
        assert promise.does_not
    assert "NOT differentially private" in NOT_PRIVATE


def test_no_path_leads_from_the_crowd_to_a_ledger() -> None:
    """Follow every import, wherever in a file it stands, from this room on: no ledger, no price, no charge is there."""
    source = Path(hubbub.__file__).parent
    seen: set[str] = set()
    waiting = list((source / "crowd").rglob("*.py"))
    while waiting:
        path = waiting.pop()
        for name in _imported(path):
            if name in seen:
                continue
            seen.add(name)
            place = source.joinpath(*name.split(".")[1:])
            waiting += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists()]
    rooms = {name.split(".")[1] for name in seen if "." in name}
    assert rooms == {"answers", "core", "crowd", "errors"}
    assert {name.split(".")[2] for name in seen if name.startswith("hubbub.answers.")} == {"chart"}
    assert not {name for name in seen if name.endswith((".events", ".loss", ".release", ".call"))}


def _imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("hubbub.")}
