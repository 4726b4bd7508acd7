"""What is learned from moved points."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from hubbub.crowd.learning import (
    agree,
    cluster,
    covariance_of,
    diameter,
    factor,
    farthest_first,
    mixture,
    noise_variance,
    projection,
    single_linkage,
)
from hubbub.crowd.perturbation import Shape, perturb
from hubbub.crowd.theory import corrected_separation, separation
from hubbub.errors import CrowdError


def recovered(rng: np.random.Generator, apart: float, shape: Shape, n: int = 600) -> bool:
    points, labels = mixture(apart, k=3, d=60, n=n, rng=rng)
    half = n // 2
    a, b = (perturb(part, shape, t=10, rng=rng) for part in (points[:half], points[half:]))
    return agree(np.concatenate(cluster(a, b, 3)), labels)


@pytest.mark.row(89)
@pytest.mark.parametrize("shape", ["gaussian", "ball", "sphere"])
def test_a_mixture_is_recovered_exactly_at_separation_fifteen(rng: np.random.Generator, shape: Shape) -> None:
    """d = 60, k = 3: five of five; nearer by half it is not. The seed is fixed."""
    assert [recovered(rng, 15, shape) for _ in range(5)] == [True] * 5
    assert not any(recovered(rng, 6, shape) for _ in range(5))


@pytest.mark.row(89)
def test_a_mixture_is_recovered_at_the_separation_of_the_theorem(rng: np.random.Generator) -> None:
    """Both the printed and the corrected separation are far more than is needed; the corrected one is the larger."""
    noise = np.sqrt(60) * 1.5 / (2 * np.sqrt(60))  # 2·σ₂·√d bounds a t-radius of about 1.5·√d
    facts: dict[str, Any] = {"deviation": 1.0, "noise": noise, "least_share": 0.25, "k": 3, "n": 600, "delta": 0.01}
    printed, corrected = separation(**facts), corrected_separation(**facts)
    assert 15 < printed < corrected < 1.2 * printed
    assert all(recovered(rng, apart, "gaussian") for apart in (printed, corrected))


@pytest.mark.row(90)
def test_the_systematic_error_is_within_the_lemma(rng: np.random.Generator) -> None:
    """Lemma 3: what the projection of the other half loses of a mean is at most 16(σ₁ + σ₂)/√w."""
    points, labels = mixture(15, k=3, d=60, n=600, rng=rng)
    moved = perturb(points, "gaussian", t=10, rng=rng)
    noise = np.linalg.norm(moved - points, axis=1).max() / (2 * np.sqrt(60))
    across = projection(moved, 3)
    for label in range(3):
        mean = points[labels == label].mean(axis=0)
        lost = np.linalg.norm(mean - mean @ across.T @ across)
        assert lost < 16 * (1 + noise) / np.sqrt((labels == label).mean())
        assert lost < 3  # and far below in fact


@pytest.mark.parametrize("k", [1, 2, 5])
def test_single_linkage_is_that_of_scipy(rng: np.random.Generator, k: int) -> None:
    points = rng.standard_normal((300, 3))
    points[:20] = points[20:40]  # ties
    assert agree(single_linkage(points, k), fcluster(linkage(points, "single"), k, "maxclust").astype(np.int64))


@pytest.mark.row(86)
@pytest.mark.parametrize("shape", ["ball", "sphere"])
def test_clusters_grow_at_most_threefold(rng: np.random.Generator, shape: Shape) -> None:
    """The widest seen is 1.7 to 2; noise of twice the radius, the planted error, breaks the bound."""
    seen = []
    for _ in range(30):
        labels = np.repeat(np.arange(4), 25)
        points = rng.uniform(-1, 1, (4, 2))[labels] + rng.normal(0, 0.05, (100, 2))
        moved = perturb(points, shape, t=25, rng=rng)
        seen.append(factor(points, moved, labels))
        assert factor(points, moved, farthest_first(moved, 4, least=25)) <= 3
    assert 1.3 < max(seen) <= 3
    ends = np.array([[0.0], [0.0], [1.0], [1.0]])
    assert factor(ends, np.array([[-2.0], [0.0], [1.0], [3.0]]), np.zeros(4, dtype=np.int64)) > 3


@pytest.mark.row(86)
@pytest.mark.parametrize("shape", ["ball", "sphere"])
def test_the_best_clustering_grows_at_most_threefold(rng: np.random.Generator, shape: Shape) -> None:
    """All partitions of 9 points into 2 clusters of at least 3, before and after: the least diameters compared."""
    partitions = [np.array(each) for each in product((0, 1), repeat=9) if 3 <= sum(each) <= 6]
    seen = []
    for _ in range(20):
        points = rng.standard_normal((9, 2))
        moved = perturb(points, shape, t=3, rng=rng)
        before, after = (min(diameter(each, labels) for labels in partitions) for each in (points, moved))
        seen.append(after / before)
    assert max(seen) <= 3
    assert max(seen) > 1


def test_clusters_below_a_crowd_are_not_made(rng: np.random.Generator) -> None:
    points = np.concatenate([rng.normal(0, 0.01, (50, 2)), [[9.0, 9.0]]])
    assert set(farthest_first(points, 2, least=2).tolist()) == {0}
    assert set(farthest_first(points, 2, least=1).tolist()) == {0, 1}


def test_halves_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CrowdError, match="HB623"):
        cluster(np.zeros((5, 3)), np.zeros((5, 2)), 2)
    with pytest.raises(CrowdError, match="HB623"):
        cluster(np.zeros((5, 3)), np.zeros((5, 3)), 4)


@pytest.mark.row(103)
@pytest.mark.parametrize("shape", ["ball", "sphere", "gaussian"])
def test_round_noise_adds_a_multiple_of_the_identity(rng: np.random.Generator, shape: Shape) -> None:
    """400 perturbations of the same 200 rows: the mean covariance that is added is a multiple of the identity.

    Each entry is a mean of 400 with a deviation below 0.1, so 6 deviations are below 0.03 and a false alarm is below
    1e-8. Noise along one axis only, the planted error, adds ten times that.
    """
    points = rng.standard_normal((200, 3)) * [1, 2, 0.5]
    truth = np.cov(points.T)
    added = np.mean([np.cov(perturb(points, shape, t=8, rng=rng).T) - truth for _ in range(400)], axis=0)
    size = added.trace() / 3
    assert np.abs(added - size * np.eye(3)).max() < 0.03 < 0.3 * size
    squeezed = points + (perturb(points, shape, t=8, rng=rng) - points) * [3, 0, 0]
    assert np.abs(np.cov(squeezed.T) - truth - size * np.eye(3)).max() > 0.2


@pytest.mark.row(103)
def test_the_covariance_is_recovered_better_than_as_published(rng: np.random.Generator) -> None:
    """1,000 correlated rows: the corrected error is below half of the other. The seed is fixed."""
    shapes: tuple[Shape, ...] = ("ball", "sphere", "gaussian")
    for shape in shapes:
        points = np.sqrt(0.5) * (rng.standard_normal((1000, 1)) + rng.standard_normal((1000, 10)))
        moved = perturb(points, shape, t=10, rng=rng)
        truth = np.cov(points.T)
        raw = np.linalg.norm(np.cov(moved.T) - truth)
        assert np.linalg.norm(covariance_of(moved, shape, t=10) - truth) < 0.5 * raw
        noise = np.square(moved - points).sum(axis=1).mean() / 10
        assert noise_variance(moved, shape, t=10) == pytest.approx(noise, rel=0.4)
