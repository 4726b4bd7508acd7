"""Whether a statistical test on sanitized rows keeps its level and its power (2005, § 7, utility).

Tested in tests/crowd/test_studies.py.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.crowd.isolation import Rate
from hubbub.crowd.neighbors import Floats
from hubbub.crowd.perturbation import Shape, perturb
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, measured, no_progress, point, real
from hubbub.crowd.studies.covariance import correlated

_NORMAL_95 = 1.959963984540054
_SHAPES: tuple[Shape, ...] = ("ball", "gaussian")


def means_differ(values: Floats, group: NDArray[np.bool_]) -> bool:
    """Test at 5% whether two groups have different means (Welch, with normal quantiles)."""
    first, second = values[group], values[~group]
    error = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return bool(abs(first.mean() - second.mean()) > _NORMAL_95 * error)


def correlation_differs(rows: Floats, expected: float) -> bool:
    """Test at 5% whether the correlation of two columns differs from an expected one (Fisher)."""
    seen = float(np.corrcoef(rows[:, 0], rows[:, 1])[0, 1])
    return bool(abs(math.atanh(seen) - math.atanh(expected)) * math.sqrt(len(rows) - 3) > _NORMAL_95)


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    dimensions: tuple[str, ...] = ("2", "5", "10", "20"),
    n: int = 400,
    t: int = 10,
    effect: float = 0.3,
    trials: int = 400,
) -> CrowdStudy:
    """Run two tests at level 5% on true and on sanitized rows, and count how often they reject.

    The first test compares the means of two groups: without an effect it should reject 5% of the time (its level), with
    a difference of `effect` standard deviations as often as possible (its power). The second tests the true correlation
    of two columns, ½: it should also reject 5% of the time. Noise with mean zero leaves the first test valid and costs
    it power; it weakens correlations, so the second test rejects a true hypothesis. A test on sanitized rows is valid
    only if the noise is part of its model.
    """
    numbers.integer(n, "n", 4 * t, 5000)
    numbers.integer(trials, "trials", 50, 5000)
    effect = real(effect, "effect", 0.0, 5.0)
    at = integers(dimensions, "dimensions", 2, 60)
    rates: dict[str, list[Rate]] = {}
    for step, d in enumerate(at):
        progress(step / len(at), f"d = {d}")
        here: dict[str, int] = {}
        for _ in range(trials):
            points, group = correlated(n, d, rng), rng.random(n) < 0.5
            moved = points.copy()
            moved[:, 0] += effect * group
            released = {"true rows": (points, moved)} | {
                shape: (perturb(points, shape, t=t, rng=rng), perturb(moved, shape, t=t, rng=rng)) for shape in _SHAPES
            }
            for name, (without, with_effect) in released.items():
                for label, rejected in (
                    ("means, no effect (level)", means_differ(without[:, 0], group)),
                    (f"means, effect {effect:g} (power)", means_differ(with_effect[:, 0], group)),
                    ("correlation ½, true (level)", correlation_differs(without, 0.5)),
                ):
                    here[f"{name}: {label}"] = here.get(f"{name}: {label}", 0) + rejected
        for name, count in here.items():
            rates.setdefault(name, []).append(Rate(count, trials))
    rows = tuple((name, *(measured(rate) for rate in values)) for name, values in sorted(rates.items()))
    words = (
        f"{trials} databases of {n} rows, t = {t}; the share of rejected hypotheses, with 95% intervals.",
        "Differences of means can be tested on sanitized rows at their stated level, with less power. Tests of "
        "anything that the noise changes, such as a variance or a correlation, cannot.",
        "A differentially private answer states its noise, so its intervals and tests can count it.",
    )
    curves = {
        name: [point(d, rate) for d, rate in zip(at, values, strict=True)]
        for name, values in rates.items()
        if "ball" in name
    }
    plot = Plot(f"Tests on rows of the ball sanitizer (n = {n})", "dimension d", "share rejected", curves)
    return CrowdStudy(
        "tests",
        "Validity of tests on sanitized rows",
        words,
        ("rows and test", *(f"d = {d}" for d in at)),
        rows,
        (plot,),
    )
