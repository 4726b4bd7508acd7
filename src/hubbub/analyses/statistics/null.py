"""Simulate what a statistic is where there is no effect, with the privacy noise in it.

Everything here is post-processing: it sees noisy numbers and the public law of their noise.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import expm1, sqrt

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Setting
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise

Floats = NDArray[np.float64]

#: How often each null hypothesis is simulated, and the least p-value that follows.
DRAWS = 4_999
LEAST = 1 / (DRAWS + 1)
#: The significance level and the probability of detection that estimates speak of.
ALPHA, POWER = 0.05, 0.8
#: Up to this deviation the law of Gaussian noise is listed integer by integer.
_LISTED = 30.0


def one_row_each(setting: Setting) -> Setting:
    """Let each privacy unit count with one row: tests assume that the rows are independent of each other.

    Theorem (Independent rows). Let units be independent of each other, and let each keep at most one row in one cell,
    chosen by its own rows and a fixed salt. Then the rows that are kept are independent.
    Proof    They are functions of independent things.
    Tested   tests/analyses/statistics/test_null.py::test_a_unit_counts_with_one_row
    """
    return replace(setting, groups=1, rows=1)


def simulated_noise(mechanism: AdditiveNoise, shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """Draw numbers with the law of a mechanism's noise. For simulations only: privacy does not depend on them.

    Tested   tests/analyses/statistics/test_null.py::test_simulated_noise_has_the_law_of_the_mechanism
    """
    if isinstance(mechanism, Laplace):
        chance = -expm1(-1 / float(mechanism.scale))
        return (generator.geometric(chance, shape) - generator.geometric(chance, shape)).astype(np.float64)
    deviation = standard_deviation(mechanism)
    if deviation > _LISTED:
        return np.rint(generator.normal(0.0, deviation, shape))
    most = int(10 * deviation) + 2
    values = np.arange(-most, most + 1)
    weights = np.exp(-(values**2) / (2 * max(float(mechanism.variance), 1e-9)))
    return generator.choice(values, shape, p=weights / weights.sum()).astype(np.float64)


def largest_p(statistic: float, nulls: Iterable[Callable[[], Floats]]) -> tuple[float, float]:
    """Give the largest p-value over some null hypotheses, and the largest of their 95% points.

    Theorem (Simulated p-value). Where the statistic S and the simulated S₁, …, S_R are independent draws of one law,
    (1 + #{Sᵢ ≥ S})/(R + 1) is at most α with probability at most α, for each α.
    Proof    The rank of S among R + 1 exchangeable numbers, ties counted against it, is at least uniform.
    Assumes  one of the null hypotheses has the law of the data. What is not known (sizes, shares, spreads) is estimated
             from the noisy numbers, and the largest p-value over the estimate and values around it is taken; that
             this is enough is shown by simulation, not by proof.
    Tested   tests/analyses/statistics/test_null.py::test_a_simulated_p_value_is_at_least_uniform
             tests/analyses/statistics/test_chi_square.py::test_a_true_null_hypothesis_is_rejected_no_more_than_stated
             tests/analyses/statistics/test_means.py::test_equal_means_are_rejected_no_more_than_stated
    """
    p, critical = 0.0, 0.0
    for null in nulls:
        simulated = null()
        p = max(p, (1 + int(np.count_nonzero(simulated >= statistic * (1 - 1e-9)))) / (len(simulated) + 1))
        critical = max(critical, float(np.quantile(simulated, 1 - ALPHA, method="higher")))
    return p, critical


def noncentrality(degrees: int) -> float:
    """Give the noncentrality at which a chi-square test at 5% finds an effect with probability 0.8, by simulation.

    >>> round(noncentrality(1) ** 0.5, 1)
    2.8
    """
    some = np.random.default_rng(1)
    first, rest = some.normal(size=20_000), some.chisquare(degrees - 1, 20_000) if degrees > 1 else np.zeros(20_000)
    critical = float(np.quantile(first**2 + rest, 1 - ALPHA))
    low, high = 0.0, 10.0 * sqrt(degrees) + 100.0
    for _ in range(40):
        middle = (low + high) / 2
        power = float(np.mean((first + sqrt(middle)) ** 2 + rest > critical))
        low, high = (middle, high) if power < POWER else (low, middle)
    return high
