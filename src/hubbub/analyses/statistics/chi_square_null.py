"""The chi-square statistic of noisy tables, and its law where the null hypothesis holds.

Tested in tests/analyses/statistics/test_chi_square.py.
"""

from collections.abc import Callable, Iterator
from math import sqrt

import numpy as np

from hubbub.analyses.statistics import null as nulls
from hubbub.analyses.statistics.null import Floats, largest_p, simulated_noise
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise

#: How many more values of what is not known are tried, each as likely as a repetition of the experiment makes it.
_OTHERS = 4
_MOST_NUMBERS = 2_000_000


def fitted(tables: Floats, shares: Floats | None) -> Floats:
    """Give the counts that the null hypothesis leads to expect, for each table of an array.

    tables  (…, rows, columns); for goodness of fit (…, cells, 1)
    shares  the shares of the cells, if they are given; otherwise rows and columns are independent
    """
    total = np.maximum(tables.sum(axis=(-2, -1)), 1.0)[..., None, None]
    if shares is not None:
        return np.asarray(total * shares)
    # a margin that the noise made negative stands for a few rows
    rows, columns = (np.maximum(tables.sum(axis=axis, keepdims=True), 0.5) for axis in (-1, -2))
    return np.asarray(
        total * (rows / rows.sum(axis=-2, keepdims=True)) * (columns / columns.sum(axis=-1, keepdims=True))
    )


def chi_square_statistic(tables: Floats, variance: float, shares: Floats | None = None) -> Floats:
    """Give Σ (count − expected)²/(expected + variance of the noise): Pearson's statistic where there is no noise."""
    expected = fitted(tables, shares)
    return np.asarray(((tables - expected) ** 2 / (expected + variance)).sum(axis=(-2, -1)))


def chi_square_p(
    table: Floats, mechanism: AdditiveNoise, generator: np.random.Generator, shares: Floats | None = None
) -> tuple[float, float]:
    """Give the statistic of a noisy table and its p-value, by simulation of tables and their noise."""
    statistic = float(chi_square_statistic(table, standard_deviation(mechanism) ** 2, shares))
    return statistic, largest_p(statistic, _nulls(table, mechanism, generator, shares))[0]


def _nulls(
    table: Floats, mechanism: AdditiveNoise, generator: np.random.Generator, shares: Floats | None
) -> Iterator[Callable[[], Floats]]:
    deviation = standard_deviation(mechanism)
    total = max(1.0, float(table.sum()))
    spread = 3 * deviation * sqrt(table.size)
    draws = min(nulls.DRAWS, max(199, _MOST_NUMBERS // table.size))

    def simulated(expected: Floats, count: int) -> Floats:
        chances = expected.reshape(-1) / expected.sum()
        rows = max(1, round(float(expected.sum())))
        tables = generator.multinomial(rows, chances, count) + simulated_noise(
            mechanism, (count, table.size), generator
        )
        return tables.reshape(count, *table.shape)

    def null(expected: Floats) -> Callable[[], Floats]:
        return lambda: chi_square_statistic(simulated(expected, draws), deviation**2, shares)

    best = fitted(table, shares)
    yield null(best)
    for other in (max(1.0, total - spread), total + spread):
        yield null(best * (other / total))
    if shares is None:
        for other in fitted(simulated(best, _OTHERS), None):
            yield null(other)
