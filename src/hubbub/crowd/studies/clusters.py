"""How much wider clusters of sanitized rows are (2005, § 5.1).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.learning import diameter, factor, farthest_first
from hubbub.crowd.perturbation import Shape, perturb
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, exactly, integers, no_progress

_SHAPES: tuple[Shape, ...] = ("ball", "sphere", "gaussian")


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    dimensions: tuple[str, ...] = ("1", "2", "3", "5", "10"),
    k: int = 4,
    t: int = 25,
    runs: int = 30,
) -> CrowdStudy:
    """Cluster sanitized rows and measure how much wider the widest cluster is in the sanitized data.

    `k` clusters of `t` rows each. After the ball and sphere sanitizers the widest of any clusters of at least t rows is
    at most three times as wide, so an algorithm that clusters the sanitized rows well clusters the true rows well. The
    Gaussian sanitizer moves some rows farther than their crowd reaches, and has no such bound. `farthest first` is an
    algorithm that sees only the sanitized rows; its clusters are judged on the true rows.
    """
    numbers.integer(k, "k", 1, 20)
    numbers.integer(t, "t", 2, 100)
    numbers.integer(runs, "runs", 1, 500)
    at = integers(dimensions, "dimensions", 1, 100)
    widest: dict[str, list[float]] = {f"{shape}: widest cluster": [] for shape in _SHAPES}
    widest |= {f"{shape}: farthest first, on the true rows": [] for shape in _SHAPES}
    for step, d in enumerate(at):
        progress(step / len(at), f"d = {d}")
        seen: dict[str, float] = dict.fromkeys(widest, 0.0)
        for _ in range(runs):
            labels = np.repeat(np.arange(k), t)
            points = rng.uniform(-1, 1, (k, d))[labels] + rng.normal(0, 0.05, (k * t, d))
            best = diameter(points, labels)
            for shape in _SHAPES:
                moved = perturb(points, shape, t=t, rng=rng)
                chosen = farthest_first(moved, k, least=t)
                ratio = diameter(points, chosen) / best
                for name, value in (
                    (f"{shape}: widest cluster", factor(points, moved, labels)),
                    (f"{shape}: farthest first, on the true rows", ratio if len(set(chosen.tolist())) == k else 0.0),
                ):
                    seen[name] = max(seen[name], value)
        for name, value in seen.items():
            widest[name].append(value)
    rows = tuple((name, *(f"{value:.2f}" if value else "–" for value in values)) for name, values in widest.items())
    bounded = max(max(widest[f"{shape}: widest cluster"]) for shape in ("ball", "sphere"))
    words = (
        f"The largest of {runs} runs with {k} clusters of {t} rows: after ball and sphere at most {bounded:.2f} times "
        "as wide; 3 is proved.",
        "A dash means that farthest first found fewer clusters of t rows in every run.",
        "Without a privacy guarantee, this utility is cheap: rows in dense crowds hardly move.",
    )
    curves = {
        name: [exactly(d, v) for d, v in zip(at, values, strict=True)]
        for name, values in widest.items()
        if "widest" in name
    }
    plot = Plot(f"Growth of the widest of {k} clusters", "dimension d", "times as wide", curves, None)
    return CrowdStudy("clusters", "Clusters of sanitized rows", words, ("", *(f"d = {d}" for d in at)), rows, (plot,))
