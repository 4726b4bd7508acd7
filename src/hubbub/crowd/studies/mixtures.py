"""Learning a mixture of Gaussians from sanitized rows (2005, § 5.2, theorem 3 and lemmas 3 and 4).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.isolation import Rate
from hubbub.crowd.learning import agree, cluster, mixture, projection
from hubbub.crowd.perturbation import Shape, perturb
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, no_progress, point, share
from hubbub.crowd.theory import corrected_separation, random_error, separation

_SHAPES: tuple[Shape, ...] = ("gaussian", "ball", "sphere")


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    separations: tuple[str, ...] = ("6", "9", "12", "15", "20"),
    k: int = 3,
    d: int = 60,
    n: int = 600,
    t: int = 10,
    runs: int = 5,
) -> CrowdStudy:
    """Learn a mixture of `k` spherical Gaussians from rows that were sanitized, and compare with theorem 3.

    The rows are split in two halves, each is sanitized on its own, projected by the k best directions of the other
    half, and clustered by single linkage: Cluster(A, B, k) of the paper. A run succeeds if the clusters are exactly
    the components. `separations` are distances of the means, in standard deviations of a component.
    """
    numbers.integer(k, "k", 2, 10)
    numbers.integer(d, "d", k, 200)
    numbers.integer(n, "n", 20 * k, 3000)
    numbers.integer(t, "t", 2, n // 4)
    numbers.integer(runs, "runs", 1, 200)
    at = integers(separations, "separations", 1, 1000)
    curves: dict[str, list[tuple[float, float, float, float]]] = {shape: [] for shape in _SHAPES}
    noise, lost = 0.0, 0.0
    for step, apart in enumerate(at):
        for number, shape in enumerate(_SHAPES):
            progress((step + number / len(_SHAPES)) / len(at), f"separation {apart}, {shape}")
            right = 0
            for _ in range(runs):
                points, labels = mixture(apart, k=k, d=d, n=n, rng=rng)
                halves = points[: n // 2], points[n // 2 :]
                moved = [perturb(half, shape, t=t, rng=rng) for half in halves]
                right += agree(np.concatenate(cluster(moved[0], moved[1], k)), labels)
                noise = max(noise, float(np.linalg.norm(moved[0] - halves[0], axis=1).max()) / (2 * np.sqrt(d)))
                across = projection(moved[1], k)
                means = np.array([points[labels == label].mean(axis=0) for label in range(k)])
                lost = max(lost, float(np.linalg.norm(means - means @ across.T @ across, axis=1).max()))
            curves[shape].append(point(apart, Rate(right, runs)))
    facts = {"deviation": 1.0, "noise": noise, "least_share": 1 / k}
    printed = separation(**facts, k=k, n=n, delta=0.01)
    corrected = corrected_separation(**facts, k=k, n=n, delta=0.01)
    exact, bound, wrong = random_error(k=1, c=2)
    rows = tuple((shape, *(f"{share(y)}" for _, y, *_ in points)) for shape, points in curves.items())
    words = (
        f"{k} Gaussians in {d} dimensions, {n} rows, {runs} runs each. Theorem 3 asks for a separation of "
        f"{printed:.0f} as printed, {corrected:.0f} with the corrected lemma 4; far less is needed.",
        f"Lemma 3: the projection loses at most {lost:.2f} of a mean here; the lemma allows "
        f"{16 * (1 + noise) * np.sqrt(k):.0f}.",
        f"Lemma 4 is false as printed: for k = 1, c = 2 the random error has probability {exact:.4f} > {wrong:.4f}; "
        f"with exponent c²/2 the bound is {bound:.4f}.",
    )
    plot = Plot(f"Exact recovery (k = {k}, d = {d}, n = {n})", "separation of means", "share of runs", curves)
    columns = ("sanitizer", *(f"{apart} sd" for apart in at))
    return CrowdStudy("mixtures", "Learning a mixture from sanitized rows", words, columns, rows, (plot,))
