"""Screens about accuracy: sampled rows against noise, and how many queries noise below √n allows.

Tested in tests/semantics/screens/test_accuracy.py.
"""

from fractions import Fraction
from functools import lru_cache
from math import sqrt

import numpy as np

from hubbub.accounting.gaussian import variance_for
from hubbub.core.numbers import brief
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.gaussian import discrete_gaussian
from hubbub.noise.source import system
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen
from hubbub.semantics.screens.figures import Curves

_TRIALS = 4000
_SIZES = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)


def sampling_deviation(n: int, size: int, ones: int) -> float:
    """Give the standard deviation of n/m times the sum of m of n bits, sampled without replacement: hypergeometric."""
    if n == size:
        return 0.0
    return n * sqrt(ones / n * (1 - ones / n) / size * (n - size) / (n - 1))


@lru_cache(maxsize=32)
def sampled_pairs(*, n: int, size: int, epsilon: Fraction) -> Reading:
    """Compare the sum of bits from m sampled pairs (i, xᵢ) with the same sum with Laplace noise."""
    size, ones = min(size, n), n // 2
    chance = np.random.default_rng(n + size)  # reproducible; it protects nothing
    estimates = chance.hypergeometric(ones, n - ones, size, _TRIALS) * (n / size)
    simulated = float(np.sqrt(np.mean((estimates - ones) ** 2)))
    exact = sampling_deviation(n, size, ones)
    noise = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon)
    private = sqrt(noise.variance[1])
    sampled = [each for each in dict.fromkeys(sorted((*_SIZES, size))) if each <= n]
    return Reading(
        (
            f"To estimate any sum over {n:,} people, publish {size:,} random pairs (i, xᵢ) and scale up. For a sum of"
            f" bits, half of them 1, the error is {_brief(exact)} (standard deviation; {_brief(simulated)} in"
            f" {_TRIALS:,} simulated samples): at most n/(2√m), of the order n/√m of Dwork, McSherry, Nissim and Smith"
            " (2006).",
            f"Neighbors are only m/n = {size / n:.3g} apart in statistical difference, and yet the pairs have no ε:"
            " they show rows. Private answers to one query at a time are far more accurate: Laplace noise at ε ="
            f" {brief(epsilon)} has a standard deviation of {_brief(private)}, whatever n is.",
            "No ε-private release that is made once for all such sums can do as well, unless n grows exponentially"
            " with the number of attributes (`hubbub explain separation`).",
        ),
        ("pairs m", "error, exact", "n/√m", "statistical difference", "ε"),
        (
            *(
                (f"{m:,}", _brief(sampling_deviation(n, m, ones)), _brief(n / sqrt(m)), f"{m / n:.3g}", "∞")
                for m in sampled
            ),
            ("one private answer", _brief(private), "–", "–", brief(epsilon)),
        ),
        Curves(
            "Error of a sum, as a share of n",
            "log₁₀ of m",
            "error/n",
            (
                ("sampled pairs", tuple((float(np.log10(m)), sampling_deviation(n, m, ones) / n) for m in sampled)),
                ("n/√m", tuple((float(np.log10(m)), 1 / sqrt(m)) for m in sampled)),
                ("one private answer", tuple((float(np.log10(m)), private / n) for m in sampled)),
            ),
            at=float(np.log10(size)),
        ),
    )


@lru_cache(maxsize=32)
def few_queries(*, n: int, queries: int, epsilon: Fraction, delta: Fraction) -> Reading:
    """Compare the noise on each of q counts, at one privacy cost for all, with the sampling error √n."""
    one = variance_for(epsilon=epsilon, delta=delta, sensitivity_squared=1)
    gaussian, laplace = sqrt(queries * one), sqrt(2) * queries / float(epsilon)
    drawn = discrete_gaussian(variance=queries * one, count=_TRIALS, source=system())
    simulated = float(np.sqrt(np.mean(drawn.astype(np.float64) ** 2)))
    sampling = sqrt(n)
    most = int(n / one)
    pure = int(float(epsilon) * sampling / sqrt(2))
    counts = [each for each in dict.fromkeys(sorted((*_SIZES, queries))) if each <= max(n, queries)]
    places = np.linspace(0, np.log10(max(10, 2 * most, 2 * queries)), 40).tolist()
    return Reading(
        (
            f"{queries:,} counts over {n:,} people, at ε = {brief(epsilon)} and δ = {brief(delta)} for all of them"
            f" together: Gaussian noise on each has a standard deviation of {_brief(gaussian)} ({_brief(simulated)} in"
            f" {_TRIALS:,} samples), Laplace noise without δ {_brief(laplace)}. The sampling error, how far such"
            f" counts are from the population, is of the order √n = {_brief(sampling)}.",
            f"Noise stays below √n for up to {most:,} queries with Gaussian noise and {pure:,} with Laplace noise:"
            " noise grows with the square root of the number of queries, so a number that is sublinear in n costs"
            " noise o(√n), less than sampling does (Dwork 2011).",
            "Answers to n·log²n random sums reconstruct the data if their noise is below √n, however it is distributed"
            " (`hubbub attack reconstruction`).",
        ),
        ("queries", "Gaussian noise", "Laplace noise", "Gaussian/√n"),
        tuple(
            (
                f"{each:,}",
                _brief(sqrt(each * one)),
                _brief(sqrt(2) * each / float(epsilon)),
                f"{sqrt(each * one) / sampling:.3g}",
            )
            for each in counts
        ),
        Curves(
            "Noise of each answer, in units of √n",
            "log₁₀ of the number of queries",
            "noise/√n",
            (
                ("Gaussian noise", tuple((x, sqrt(10**x * one) / sampling) for x in places)),
                ("Laplace noise", tuple((x, sqrt(2) * 10**x / float(epsilon) / sampling) for x in places)),
                ("√n", tuple((x, 1.0) for x in places)),
            ),
            at=float(np.log10(queries)),
            top=2.0,
        ),
    )


def _brief(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


_PEOPLE = (100, 1_000, 10_000, 100_000, 1_000_000, 100_000_000)

SCREENS = (
    Screen(
        "sampled-pairs",
        "Accuracy from a few rows in the clear",
        "m random pairs (i, xᵢ) give any sum to about n/√m, and no privacy (Dwork and others 2006, section 4).",
        (
            base.whole("n", "People", 10_000, steps=_PEOPLE, low=2, high=10**9),
            base.whole("size", "Pairs m", 100, steps=_SIZES, low=1, high=10**9),
            base.epsilon(),
        ),
        sampled_pairs,
    ),
    Screen(
        "few-queries",
        "How many queries noise below √n allows",
        "Noise on each of q counts beside the sampling error √n (Dwork 2011).",
        (
            base.whole("n", "People", 1_000_000, steps=_PEOPLE, low=2, high=10**12),
            base.whole("queries", "Queries", 1_000, steps=(1, 10, 100, 1_000, 10_000, 100_000), low=1, high=10**8),
            base.epsilon(),
            base.delta(),
        ),
        few_queries,
    ),
)
