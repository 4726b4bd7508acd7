"""How far the best guess stays from a row of cross-training (2005, § 6, lemma 5).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.enlargement import enlargement_chance, enlargement_limit, enlargement_quantile, enlargement_rate
from hubbub.crowd.experiments import measure_factors
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, exactly, integers, no_progress, real


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    dimensions: tuple[str, ...] = ("10", "20", "50", "200", "1000"),
    quantile: float = 0.997,
    trials: int = 1000,
) -> CrowdStudy:
    """Compute by how much the ball around the posterior mean must grow to contain the parent cell.

    Lemma 5 states a constant α < 9: with probability 1 − 2^(−Ω(d)), the ball enlarged by α + 1 contains the parent
    cell, so the guess does not isolate the row. For the posterior mean, hubbub computes the exact distribution of the
    needed factor, without sampling, and the constant of the Ω. `trials` simulated rows stand beside it.
    """
    real(quantile, "quantile", 0.5, 0.9999)
    numbers.integer(trials, "trials", 100, 20_000)
    at = integers(dimensions, "dimensions", 5, 2000)
    rows, exact, seen = [], [], []
    for step, d in enumerate(at):
        progress(step / len(at), f"d = {d}")
        needed = enlargement_quantile(d, quantile)
        factors = np.concatenate(
            [measure_factors(d, trials=min(trials, 200), rng=rng) for _ in range(-(-trials // 200))]
        )
        sampled = float(np.quantile(factors, quantile))
        rows.append(
            (str(d), f"{needed:.2f}", f"{sampled:.2f}", f"{factors.max():.2f}", f"{enlargement_chance(d, 10):.2g}")
        )
        exact.append(exactly(d, needed))
        seen.append(exactly(d, sampled))
    words = (
        f"The factor that suffices for a share of {quantile:g} of the rows tends to {enlargement_limit():.3f} in high "
        "dimension, far below the ten of lemma 5.",
        f"A factor of ten fails with probability at most {enlargement_rate(10):.3f}^d: this is the 2^(−Ω(d)) of the "
        "lemma, with its constant, for the posterior mean. At d = 10 ten is not always enough.",
        "This bounds one adversary without auxiliary information. The histogram of the other half is exact, and tells "
        "who knows all rows but one where the last one is.",
    )
    curves = {"exact": exact, f"seen in {trials:,} rows": seen}
    plot = Plot(
        f"Factor that suffices for {quantile:g} of the rows", "dimension d", "factor", curves, None, logarithmic=True
    )
    columns = ("d", f"exact, {quantile:g}", f"seen, {quantile:g}", "largest seen", "Pr[10 is not enough]")
    return CrowdStudy(
        "cross-training", "Cross-training: distance of the best guess", words, columns, tuple(rows), (plot,)
    )
