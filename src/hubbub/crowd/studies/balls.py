"""Masses and volumes of a ball that wins (2005, § 4.1, lemmas 1 and 2), computed without sampling.

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.experiments import uniform
from hubbub.crowd.isolation import ball_wins, isolates_point
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, exactly, integers, no_progress, real
from hubbub.crowd.theory import lost_share, masses, secure

_GUESSES = 500


def _ball_and_point(n: int, t: int, rng: np.random.Generator) -> tuple[int, int]:
    """Count the guesses for which ball and point adversary agree, and those that isolate, trying 41 radii each."""
    crowd, guesses = NeighborIndex(uniform(n, 2, rng)), uniform(_GUESSES, 2, rng)
    points = isolates_point(crowd, guesses, c=3, t=t)
    balls = np.zeros(_GUESSES, dtype=np.bool_)
    nearest = crowd.query(guesses, t=t).nearest
    for factor in np.linspace(0.5, 2.5, 41):  # 1 is among them
        balls |= ball_wins(crowd, guesses, factor * nearest, c=3, t=t)
    return int((balls == points).sum()), int(points.sum())


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    dimensions: tuple[str, ...] = ("1", "2", "5", "10", "20", "40"),
    beta: float = 1 / 15,
    n: int = 1000,
    t: int = 10,
    chance: float = 0.001,
) -> CrowdStudy:
    """Compute what a winning ball needs, and how little of it a small ball has.

    Lemma 1: a ball that wins with probability over `chance` has mass over chance/n, and the ball c times as wide has
    mass below (2t + 8·ln(1/chance))/n. Lemma 2: within a cell, a ball of radius at most β√d has an exponentially small
    share of the volume of the ball three times as wide, inside the cell (3^(−d)), in its corner and on its border; a
    larger ball contains everything when it is enlarged by 2/β + 1.
    """
    beta = real(beta, "beta", 0.001, 0.99)
    numbers.integer(n, "n", 50, 5000)
    numbers.integer(t, "t", 2, n // 4)
    at = integers(dimensions, "dimensions", 1, 100)
    needs = masses(n=n, t=t, epsilon=chance)
    shares: dict[str, list[float]] = {"inside the cell": [], "center at a corner": [], "center on a face": []}
    for step, d in enumerate(at):
        progress(step / len(at), f"d = {d}")
        radius = beta * d**0.5
        middle, corner = np.full(d, 0.5), np.zeros(d)
        face = middle.copy()
        face[0] = 0.0
        for name, center in zip(shares, (middle, corner, face), strict=True):
            shares[name].append(lost_share(center, radius))
    rows = tuple(
        (str(d), *(f"{values[i]:.3g}" for values in shares.values()), f"{3.0**-d:.3g}") for i, d in enumerate(at)
    )
    agree, won = _ball_and_point(n, t, rng)
    words = (
        f"Lemma 1 at n = {n:,}, t = {t}, success probability {chance:g}: mass over {needs.inside:.3g} inside, below "
        f"{needs.around:.3g} around. The ratio that a winner needs is at least {needs.inside / needs.around:.3g}.",
        f"Lemma 2: the ratio is at most the volumes below, computed with proven upper bounds at β = {beta:.3g}; it "
        "falls exponentially with d, so no ball wins in high dimension.",
        f"A ball of radius over β√d contains the cube when enlarged by 2/β + 1 = {secure(beta):.3g} (121 for the "
        "printed β = 1/60, 31 for 1/15): c-isolation by it is impossible.",
        f"Naming a ball or only its center is the same (§ 4.1): of {_GUESSES} guesses in the plane at c = 3, {won} "
        f"isolate, and for {agree} of {_GUESSES} a ball wins at some radius just if its center isolates.",
    )
    curves = {
        name: [exactly(d, np.log10(value)) for d, value in zip(at, values, strict=True)]
        for name, values in shares.items()
    }
    plot = Plot(
        f"Share of the ball three times as wide (β = {beta:.3g})", "dimension d", "log₁₀ of the share", curves, 0.0
    )
    columns = ("d", *shares, "3^(−d)")
    return CrowdStudy("balls", "What a winning ball needs", words, columns, rows, (plot,))
