"""What is learned from moved points."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from hubbub.crowd.learning import agree, cluster, diameter, factor, farthest_first, projection, single_linkage
from hubbub.crowd.neighbors import Floats, Indices
from hubbub.crowd.perturbation import Shape, perturb
from hubbub.crowd.theory import corrected_separation, separation
from hubbub.errors import CrowdError


def mixture(rng: np.random.Generator, apart: float, *, k: int = 3, d: int = 60, n: int = 600) -> tuple[Floats, Indices]:
    """Spherical Gaussians of deviation 1 whose means are all `apart` from each other."""
    axes, _ = np.linalg.qr(rng.standard_normal((d, k)))
    labels = rng.integers(0, k, n)
    return (axes.T * apart / np.sqrt(2))[labels] + rng.standard_normal((n, d)), labels


def recovered(rng: np.random.Generator, apart: float, shape: Shape, n: int = 600) -> bool:
    points, labels = mixture(rng, apart, n=n)
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
    points, labels = mixture(rng, 15)
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
