"""Data on few positions: an exact histogram isolates in every dimension (2005, remark 2).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.experiments import rough_distribution
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, measured, no_progress, point


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    dimensions: tuple[str, ...] = ("4", "8", "12", "16", "20"),
    n: int = 64,
    t: int = 10,
    trials: int = 1500,
) -> CrowdStudy:
    """Isolate rows of a distribution that is not smooth, with and without the histogram.

    In each of the 2^d first cells, mass 2^(−i) lies at a position p_i. Who sees that a cell holds m rows guesses its
    position p_(log m): at least one and fewer than `t` rows are exactly there with constant probability. Without the
    counts, a guess is in an empty cell nearly always. So the paper's assumption of a smooth distribution is needed.
    """
    numbers.integer(n, "n", 4, 5000)
    numbers.integer(t, "t", 2, 1000)
    numbers.integer(trials, "trials", 50, 20_000)
    at = integers(dimensions, "dimensions", 1, 40)
    rates = []
    for step, d in enumerate(at):
        progress(step / len(at), f"d = {d}")
        rates.append(rough_distribution(d, n=n, t=t, trials=trials, rng=rng))
    rows = tuple((str(d), measured(told), measured(blind)) for d, (told, blind) in zip(at, rates, strict=True))
    curves = {
        "with the histogram": [point(d, told) for d, (told, _) in zip(at, rates, strict=True)],
        "without it": [point(d, blind) for d, (_, blind) in zip(at, rates, strict=True)],
    }
    words = (
        f"{trials:,} databases of {n} rows. With the counts, isolation does not fall with the dimension; without them "
        "it halves with each further dimension.",
        "The theorem about recursive histograms therefore cannot hold for every distribution.",
    )
    plot = Plot(f"Rough data (n = {n}, t = {t})", "dimension d", "share of databases", curves)
    columns = ("d", "with the histogram", "without it")
    return CrowdStudy("smoothness", "Smoothness is needed", words, columns, rows, (plot,))
