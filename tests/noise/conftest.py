"""What the tests of samplers share: an independent arithmetic at 140 digits, and a test of fit."""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

Integers = NDArray[np.int64]
Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]

CONTEXT = Context(prec=140, Emin=-(10**8), Emax=10**8)


@pytest.fixture(scope="session")
def true_exp() -> Callable[[Fraction], Fraction]:
    """Give eˣ to 140 digits, by plain decimals that share nothing with the enclosures but the decimal module."""
    return lambda x: Fraction(CONTEXT.exp(CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))))


@pytest.fixture(scope="session")
def expansion() -> Callable[[Fraction, int], list[int]]:
    """Give the first words of the binary expansion of p in [0, 1)."""

    def words(p: Fraction, count: int) -> list[int]:
        digits = (p.numerator << (64 * count)) // p.denominator
        return [digits >> (64 * (count - 1 - i)) & (2**64 - 1) for i in range(count)]

    return words


def chi_square(sample: Integers, edges: NDArray[np.float64], cdf: Cdf) -> float:
    """Give the p-value of the counts between edges (values ≤ edge), bins of less than 50 expected being joined."""
    kept: list[float] = []
    shares: list[float] = []
    for edge, p in zip(edges, cdf(edges), strict=True):
        if min(p - sum(shares), 1 - p) * len(sample) >= 50:
            kept.append(float(edge))
            shares.append(float(p) - sum(shares))
    shares.append(1 - sum(shares))
    counts = np.bincount(np.searchsorted(np.array(kept), sample), minlength=len(shares))
    return float(stats.chisquare(counts, np.array(shares) * len(sample)).pvalue)


@pytest.fixture(scope="session")
def fit() -> Callable[[Integers, Cdf, float], float]:
    """Give a test of fit: the sample, its supposed distribution function and its scale, to one p-value.

    χ² over about 160 bins out to 10 scales, binomial tests of both tails at 3, 4.5 and 7 scales, and χ² of the last 8
    binary digits where the scale is so large that they must be uniform. The least p-value is multiplied by the number
    of tests, so that a limit of 1e-6 raises a false alarm with probability at most 1e-6.
    """

    def test(sample: Integers, cdf: Cdf, scale: float) -> float:
        values = [chi_square(sample, np.unique(np.round(scale * np.linspace(-10, 10, 161))), cdf)]
        for far in np.ceil(scale * np.array([3, 4.5, 7])):
            below, above = cdf(np.array([-far, far - 1]))
            values.append(float(stats.binomtest(int((sample <= -far).sum()), len(sample), below).pvalue))
            values.append(float(stats.binomtest(int((sample >= far).sum()), len(sample), 1 - above).pvalue))
        if scale >= 1e5:
            values.append(float(stats.chisquare(np.bincount(sample & 255, minlength=256)).pvalue))
        return min(1.0, min(values) * len(values))

    return test
