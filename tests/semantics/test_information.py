"""Bits about one person: exact maxima by enumeration over priors, mechanisms and channels."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from random import Random

import mpmath
import numpy as np
import pytest

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.mechanisms.enumeration import delta_at, worst_ratio
from hubbub.semantics import tradeoff
from hubbub.semantics.information import bits_about_a_fact, bits_about_a_person

EPSILONS = (Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3))
PRIORS = tuple(k / 40 for k in range(1, 40))


def mutual(prior: Sequence[float], rows: Sequence[Sequence[float]]) -> float:
    """The mutual information, in bits, of an input with this prior and the output of a channel with these rows."""
    total = 0.0
    for output in zip(*rows, strict=True):
        mean = sum(b * p for b, p in zip(prior, output, strict=True))
        total += sum(b * p * math.log2(p / mean) for b, p in zip(prior, output, strict=True) if p)
    return total


@pytest.mark.row(112)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 50)])
def test_randomized_response_attains_the_bits_over_all_priors(epsilon: Fraction, delta: Fraction) -> None:
    """Randomized response (with δ, one that sometimes tells the truth): most at the prior ½, where it is the bound."""
    e, d = math.exp(epsilon), float(delta)
    row = [(1 - d) * e / (1 + e), (1 - d) / (1 + e), d, 0.0]
    rows = [row, [row[1], row[0], 0.0, d]]
    told = [mutual((prior, 1 - prior), rows) for prior in PRIORS]
    bound = float(bits_about_a_fact([(epsilon, delta)]))
    assert max(told) == told[len(told) // 2] == pytest.approx(bound, abs=1e-12)
    with mpmath.workdps(30):
        flip = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator))
        entropy = -flip * mpmath.log(flip, 2) - (1 - flip) * mpmath.log(1 - flip, 2)
        assert bound == pytest.approx(float(d + (1 - d) * (1 - entropy)), abs=1e-14)
    assert bound < float(epsilon) * math.log2(math.e) + d  # what the definition alone gives


@pytest.mark.row(112)
def test_no_random_pair_tells_more_for_any_prior() -> None:
    """The bound from the pair's own profile, for every prior; nine tenths of it are exceeded by some pair."""
    random = Random(12)
    nearly = 0
    for _ in range(60):
        rows = [[random.choice((1, 2, 5, 30, 100)) for _ in range(5)] for _ in range(2)]
        p, q = (exact_distribution({t: Fraction(w, sum(row)) for t, w in enumerate(row)}) for row in rows)
        grid = [Fraction(k, 4) for k in range(20)]
        bound = float(bits_about_a_fact([(epsilon, delta_at(p, q, epsilon)[1]) for epsilon in grid]))
        channel = [[float(mass) for mass, _ in each.mass.values()] for each in (p, q)]
        told = max(mutual((prior, 1 - prior), channel) for prior in PRIORS)
        assert told <= bound + 1e-12
        nearly += told > 0.9 * bound
    assert nearly > 3


@pytest.mark.row(112)
@pytest.mark.parametrize("sigma", [2, 4])
def test_gaussian_noise_tells_what_quadrature_gives(sigma: int) -> None:
    """The capacity of the binary-input Gaussian channel, below the simple bound μ²/8 nats."""
    curve = tradeoff.gaussian_noise(sensitivity_squared=1, variance=Fraction(sigma * sigma))
    mu = 1 / sigma
    x = np.linspace(-12, 12, 40_001)
    p, q = np.exp(-((x - mu / 2) ** 2) / 2), np.exp(-((x + mu / 2) ** 2) / 2)
    exact = float((p * np.log2(2 * p / (p + q))).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi))
    assert exact < mu * mu / 8 * math.log2(math.e)
    assert exact <= float(curve.bits()) <= 1.01 * exact


@pytest.mark.row(112)
def test_a_random_set_of_values_approaches_the_bits_about_a_person() -> None:
    """ε = 1: sets that hold the true value with odds e. One of three comes within 0.1%, one of two does not."""
    bound = float(bits_about_a_person(Fraction(1)))
    told = {}
    for values, size in ((2, 1), (3, 1), (8, 3)):
        sets = list(combinations(range(values), size))
        weights = [[math.e if value in chosen else 1.0 for chosen in sets] for value in range(values)]
        rows = [[w / sum(row) for w in row] for row in weights]
        told[values] = mutual([1 / values] * values, rows)
    assert told[2] == pytest.approx(float(bits_about_a_fact([(Fraction(1), Fraction(0))])), abs=1e-12)
    assert told[2] < 0.91 * bound
    assert told[8] < told[3] < bound
    assert told[3] > 0.999 * bound
    with mpmath.workdps(30):
        for epsilon in EPSILONS:
            x = mpmath.mpf(epsilon.numerator) / epsilon.denominator
            formula = (mpmath.log(mpmath.expm1(x) / x) + x / mpmath.expm1(x) - 1) / mpmath.log(2)
            assert float(bits_about_a_person(epsilon)) == pytest.approx(float(formula), rel=1e-9)


@pytest.mark.row(112)
def test_no_random_channel_tells_more_about_a_person() -> None:
    """Channels with four values and their true ε, random priors; the bound of half that ε is exceeded by some."""
    random = Random(13)
    planted = 0
    for _ in range(150):
        rows = [[random.choice((2, 3, 4, 9)) for _ in range(4)] for _ in range(4)]
        channel: list[FiniteDistribution[int]] = [
            exact_distribution({t: Fraction(w, sum(row)) for t, w in enumerate(row)}) for row in rows
        ]
        epsilon = max(Fraction(worst_ratio(p, q)[1]) for p, q in combinations(channel, 2))
        if not epsilon:
            continue
        weights = [random.randint(1, 9) for _ in rows]
        prior = [w / sum(weights) for w in weights]
        told = mutual(prior, [[float(mass) for mass, _ in row.mass.values()] for row in channel])
        assert told <= float(bits_about_a_person(epsilon)) + 1e-12
        planted += told > float(bits_about_a_person(epsilon / 2))
    assert planted > 3


@pytest.mark.row(112)
def test_few_bits_do_not_imply_privacy() -> None:
    """Publishing one random person's row (remark 1): 1/n of a bit about each of n people, and no ε."""
    people = 100
    rows = [[1 / people, 0.0, 1 - 1 / people], [0.0, 1 / people, 1 - 1 / people]]
    assert mutual((0.5, 0.5), rows) == pytest.approx(1 / people, abs=1e-12)
    p, q = (
        exact_distribution({t: Fraction(mass).limit_denominator(1000) for t, mass in enumerate(row)}) for row in rows
    )
    assert worst_ratio(p, q)[0] == math.inf
