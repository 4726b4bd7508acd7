"""Why no sanitizer is perfect: an adversary for any useful release (2005, § 3).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.crowd import impossibility
from hubbub.crowd.cross_training import cross_train
from hubbub.crowd.experiments import uniform
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import Rate, isolates_point
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.perturbation import Shape, perturb
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, measured, no_progress, point

_ROUND: tuple[Shape, ...] = ("ball", "sphere", "gaussian")
_NOTHING = "nothing is published"


def _publish(points: Floats, t: int, rng: np.random.Generator) -> dict[str, NDArray[np.generic]]:
    low, side, count = build_histogram(points, t=t).leaves
    releases: dict[str, NDArray[np.generic]] = {"histogram": np.column_stack([low, side, count])}
    releases |= {shape: perturb(points, shape, t=t, rng=rng) for shape in _ROUND}
    releases["cross-training"] = cross_train(points, t=t, rng=rng).moved
    releases[_NOTHING] = np.zeros(0)
    return releases


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    n: int = 300,
    d: int = 5,
    t: int = 5,
    c: float = 100.0,
    trials: int = 40,
) -> CrowdStudy:
    """Isolate one person with any sanitizer, by auxiliary information that is useless without the release.

    A sanitizer would be perfect if, for every adversary who sees the release, a simulator without it isolated each
    person equally often, whatever auxiliary information both have (§ 3, with a sum over the people). Take a value that
    the release determines and nobody can guess, and use it as a one-time pad on one person's row. Adversary and
    simulator both get the padded row. The adversary removes the pad; the simulator holds random bits. If a release
    determines no such value, it is of no use: a sanitizer that publishes nothing is perfect.

    Theorem (No useful sanitizer is perfect). Let a release have the same value on two databases with probability at
    most p. The adversary isolates the padded row with probability 1, and no simulator isolates it more often than with
    its best guess without the row, plus p.
    Proof    The pad is a function of the release. Given any value of the padded row, all rows are equally likely to
             a simulator who cannot guess the pad; the best pad is guessed with probability at most p.
    Assumes  the pad hides as a random function does (SHAKE-256).
    Tested   tests/crowd/test_studies.py::test_every_useful_release_unlocks_the_padded_row_and_nothing_else_does
    """
    numbers.integer(n, "n", 50, 2000)
    numbers.integer(trials, "trials", 5, 500)
    adversary: dict[str, Rate] = {}
    simulator: dict[str, Rate] = {}
    for trial in range(trials):
        progress(trial / trials, f"database {trial + 1} of {trials}")
        points = uniform(n, numbers.integer(d, "d", 1, 50), rng)
        crowd, victim = NeighborIndex(points), points[rng.integers(n)]
        other = _publish(uniform(n, d, rng), t, rng)
        for name, published in _publish(points, t, rng).items():
            if name == _NOTHING:  # no pad can be made from it: adversary and simulator know the same, a random row
                known = impossibility.mask_point(victim, rng.random(8))
            else:
                known = impossibility.mask_point(victim, published)
            guesses = impossibility.unmask_point(known, published), impossibility.unmask_point(known, other[name])
            for rates, guess in zip((adversary, simulator), guesses, strict=True):
                hit = isolates_point(crowd, guess[None], c=c, t=t)
                rates[name] = rates.get(name, Rate(0, 0)) + Rate.of(hit)
    rows = tuple((name, measured(adversary[name]), measured(simulator[name])) for name in adversary)
    words = (
        f"{trials} databases of {n:,} rows in {d} dimensions, c = {c:g}, t = {t}. One row is padded with a hash of the "
        "release; the padded row is the auxiliary information of both.",
        "With every sanitizer the adversary recovers the row exactly, and the simulator isolates nobody: the "
        "difference is 1, where a perfect sanitizer would keep it near 0. Only publishing nothing is perfect.",
        "Differential privacy does not prevent this and does not promise to: with a release made without that person "
        "the adversary learns the same, so the person's own row is not what told it (see `hubbub explain dalenius`).",
    )
    curve = {
        "adversary, sees the release": [point(index, rate) for index, rate in enumerate(adversary.values(), 1)],
        "simulator, does not": [point(index, rate) for index, rate in enumerate(simulator.values(), 1)],
    }
    names = ", ".join(f"{index} {name}" for index, name in enumerate(adversary, 1))
    plot = Plot("Isolation with the padded row", names, "share of databases", curve)
    columns = ("release", "adversary isolates the person", "simulator isolates anyone")
    return CrowdStudy("perfect", "No sanitizer is perfect", words, columns, rows, (plot,))
