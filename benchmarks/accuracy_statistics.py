"""Tests, survival curves and Poisson regression on made-up people: how often they err, and what the noise costs.

For each test stand in one run: how often a true null hypothesis is rejected at 5%, by the valid p-value and by one that
reads noisy numbers as exact; and how often an effect is found, with the noise and without it. Bands of survival curves:
how often they hold the whole curve, and how wide they are beside those of the same people without noise.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.accuracy_statistics
"""

from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tests.campaigns.frame import Report, run

from hubbub.analyses.programs.vectors import STEPS
from hubbub.analyses.statistics import null
from hubbub.analyses.statistics.chi_square_null import chi_square_p
from hubbub.analyses.statistics.kaplan_meier import TimeNoise, band
from hubbub.analyses.statistics.log_rank import log_rank_p
from hubbub.analyses.statistics.mean_null import MeanNoise, compare_means
from hubbub.analyses.tables.product_strategies import ProductStrategy
from hubbub.analyses.tables.strategies import best, identity
from hubbub.core.unit import Relation
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

Floats = NDArray[np.float64]
#: What a test rejects at 5%: with the noise allowed for, with noisy numbers read as exact, and with exact numbers.
Rejected = tuple[bool, bool, bool]
EPSILONS = ("0.1", "0.5", "2")
TIMES = 24


def measure(report: Report) -> None:
    trials = report.scale(ci=60, full=300)
    null.DRAWS = report.scale(ci=199, full=399)
    slack = 5 * sqrt(0.05 * 0.95 / trials)
    for name, trial in (("chi_square", _table), ("two_means", _means), ("log_rank", _log_rank)):
        for epsilon in EPSILONS:
            draw = np.random.default_rng(41)
            same, other = (
                np.mean([trial(draw, epsilon, effect) for _ in range(trials)], axis=0) for effect in (False, True)
            )
            report.target(f"{name}_{epsilon}_false_alarms", float(same[0]), at_most=0.05 + slack)
            report.figure(f"{name}_{epsilon}_naive_false_alarms", float(same[1]))
            report.figure(f"{name}_{epsilon}_power", float(other[0]))
            report.figure(f"{name}_{epsilon}_power_without_noise", float(other[2]))
    for epsilon in EPSILONS:
        held, width, bare = _bands(trials, epsilon)
        report.target(f"survival_{epsilon}_bands_hold", held, at_least=0.95 - slack)
        report.figure(f"survival_{epsilon}_width", width)
        report.figure(f"survival_{epsilon}_width_without_noise", bare)


def _table(draw: np.random.Generator, epsilon: str, effect: bool) -> Rejected:  # noqa: FBT001
    """Compare a table of 2 × 3 cells and 1,000 rows; with an effect of size w = 0.12."""
    chances = np.outer([0.5, 0.5], [0.3, 0.3, 0.4])
    if effect:
        chances += 0.033 * np.outer([1, -1], np.sqrt([0.3, 0.3, 0.4]) * np.array([1, -1, 0])) / sqrt(0.6)
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=Fraction(epsilon))
    exact = draw.multinomial(1000, chances.ravel() / chances.sum())
    noisy = np.asarray(mechanism.sample(exact, system()), dtype=np.float64).reshape(2, 3)
    p = [
        stats.chi2_contingency(np.maximum(each, 0.5), correction=False).pvalue for each in (noisy, exact.reshape(2, 3))
    ]
    return chi_square_p(noisy, mechanism, draw)[1] <= null.ALPHA, bool(p[0] <= null.ALPHA), bool(p[1] <= null.ALPHA)


def _means(draw: np.random.Generator, epsilon: str, effect: bool) -> Rejected:  # noqa: FBT001
    """Compare outcomes of two values in two groups of 500; with an effect of 10 points."""
    groups = [np.where(draw.uniform(size=500) < chance, 1.0, -1.0) for chance in (0.3, 0.4 if effect else 0.3)]
    noise = MeanNoise(Laplace.from_epsilon(sensitivity=STEPS + 1, epsilon=Fraction(epsilon)), None, STEPS)
    ones = np.array([[np.sum(each > 0) for each in groups], [np.sum(each < 0) for each in groups]], dtype=np.int64)
    noisy = np.asarray(noise.sums.sample(STEPS * ones, system()), dtype=np.float64) / STEPS
    p = [stats.chi2_contingency(np.maximum(each, 0.5), correction=False).pvalue for each in (noisy, ones)]
    return compare_means(noisy, noise, draw)[2] <= null.ALPHA, bool(p[0] <= null.ALPHA), bool(p[1] <= null.ALPHA)


def _log_rank(draw: np.random.Generator, epsilon: str, effect: bool) -> Rejected:  # noqa: FBT001
    """Compare two groups of 500; with an effect, one has a hazard that is 1.35 times as large."""
    exact = np.stack([_people(draw, 500, 0.05, 0.03), _people(draw, 500, 0.0675 if effect else 0.05, 0.03)])
    noise = _noise(2, epsilon)
    noisy = _noisy(exact, noise)

    def usual(counts: Floats) -> bool:
        events, left = counts[:, 1], np.maximum(np.cumsum(counts.sum(axis=1)[:, ::-1], axis=1)[:, ::-1], 1.0)
        share = left[0] / left.sum(axis=0)
        excess = float((events[0] - share * events.sum(axis=0)).sum())
        variance = float((share * (1 - share) * np.maximum(events.sum(axis=0), 0)).sum())
        return bool(stats.chi2.sf(excess**2 / max(variance, 1e-9), 1) <= null.ALPHA)

    return log_rank_p(noisy, noise, draw)[1] <= null.ALPHA, usual(noisy), usual(exact.astype(np.float64))


def _bands(trials: int, epsilon: str) -> tuple[float, float, float]:
    """Give how often the bands of 1,000 people hold the true curve, and their mean width with noise and without."""
    draw = np.random.default_rng(42)
    noise, none = _noise(1, epsilon), _noise(1, "10000")
    true = 0.95 ** np.arange(1, TIMES + 1)
    held, widths = 0, []
    for _ in range(trials):
        exact = _people(draw, 1000, 0.05, 0.03)
        _, low, high = band(_noisy(exact, noise), noise, draw)
        _, least, most = band(exact.astype(np.float64), none, draw)
        held += bool(((low <= true) & (true <= high)).all())
        widths.append((float((high - low).mean()), float((most - least).mean())))
    return held / trials, *np.mean(widths, axis=0).tolist()


def _noise(groups: int, epsilon: str) -> TimeNoise:
    strategy = ProductStrategy((identity(2 * groups), best(TIMES, "prefixes", "laplace")))
    moved = strategy.sensitivity(contribution=1, relation=Relation.ADD_REMOVE)
    return TimeNoise(strategy, Laplace.from_epsilon(sensitivity=moved.l1, epsilon=Fraction(epsilon)))


def _noisy(exact: NDArray[np.int64], noise: TimeNoise) -> Floats:
    sums = noise.mechanism.sample(noise.strategy.measured(exact.reshape(-1)), system())
    return noise.strategy.estimated(np.asarray(sums)).reshape(exact.shape)


def _people(draw: np.random.Generator, rows: int, hazard: float, censoring: float) -> NDArray[np.int64]:
    at = draw.geometric(hazard, rows) - 1
    end = np.minimum(draw.geometric(censoring, rows) - 1, TIMES - 1)
    counts = np.zeros((2, TIMES), dtype=np.int64)
    np.add.at(counts, ((at <= end).astype(int), np.minimum(at, end)), 1)
    return counts


if __name__ == "__main__":
    run(measure)
