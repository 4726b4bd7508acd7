"""The distribution of fair coins: the δ of binomial noise at an ε, and the number of coins that a δ needs."""

from fractions import Fraction
from functools import lru_cache
from math import comb, exp, inf, lgamma, log, sqrt

from hubbub.core import deadline, reals
from hubbub.core.interval import ZERO, Interval
from hubbub.core.numbers import MAX_PLACES
from hubbub.core.reals import ceil_to

#: More coins are not tossed for one answer.
MAX_COINS = 1 << 18
_BITS = 256


@lru_cache(maxsize=256)
def binomial_delta(*, coins: int, sensitivity: int, epsilon: Fraction) -> Fraction:
    """Bound the δ at ε of an integer with the number of heads among fair coins added, from above, to 30 places.

    Theorem (Binomial noise). Let f move by at most D between neighbors, and let Z be the number of heads among N fair
    coins. Then f + Z is (ε, δ)-private with δ = Pr[Z ≤ k] − e^ε·Pr[Z ≤ k − D], k the largest number with
    Pr[Z = k] > e^ε·Pr[Z = k − D]. No smaller δ will do where f moves by D.
    Proof    Pr[Z = k]/Pr[Z = k − D] = Π (N − k + i)/(k − D + i) over i = 1, …, D falls with k, so the answers for
             which one dataset is more than e^ε likelier are those up to a k, and their excess is δ (Profile by
             enumeration); by symmetry the other direction gives the same. Pr[Z = k] is log-concave, so a smaller move
             has a smaller δ.
    Tested   tests/core/test_coins.py::test_delta_is_that_of_enumeration
    """
    if sensitivity > coins:
        return Fraction(1)
    growth = reals.exp(epsilon)
    low, high = sensitivity - 1, coins + sensitivity
    while high - low > 1:  # the largest k whose ratio is surely above e^ε is at least `low`
        middle = (low + high) // 2
        low, high = (middle, high) if _ratio(coins, middle, sensitivity) > growth[0] else (low, middle)
    # answers near the edge count with an excess of at least 0, whichever side of it they are on
    excess = _at_most(coins, low) - Interval.of(growth) * _at_most(coins, low - sensitivity)
    return min(Fraction(1), ceil_to(max(Fraction(0), Fraction(excess.high)), MAX_PLACES))


def coins_for(*, sensitivity: int, epsilon: Fraction, delta: Fraction) -> int | None:
    """Find an even number of coins whose δ is small enough, within a thousandth of the least; None if there is none."""
    likely = (sensitivity / float(epsilon)) ** 2 * 8 * log(1.25 / float(delta))
    if likely > 4 * MAX_COINS:
        return None
    low, high = 0, min(MAX_COINS, 2 * max(2, round(likely) // 2))
    goal, growth = float(delta), float(epsilon)
    while _rough_delta(high, sensitivity, growth) > goal:
        if high == MAX_COINS:
            return None
        low, high = high, min(MAX_COINS, 2 * high)
    while high - low > max(2, high // 1000):
        deadline.check()
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if _rough_delta(middle, sensitivity, growth) <= goal else (middle, high)
    while binomial_delta(coins=high, sensitivity=sensitivity, epsilon=epsilon) > delta:
        deadline.check()
        if high == MAX_COINS:
            return None
        high = min(MAX_COINS, high + 2 * max(1, high // 2000))
    return high


def _rough_delta(coins: int, sensitivity: int, epsilon: float) -> float:
    """Compute the δ in doubles, to search with."""
    if sensitivity > coins:
        return 1.0

    def mass(heads: int) -> float:
        return lgamma(coins + 1) - lgamma(heads + 1) - lgamma(coins - heads + 1) - coins * log(2)

    def surplus(heads: int) -> float:
        """Give the logarithm of Pr[heads]/(e^ε·Pr[heads − D]), which falls with the heads."""
        return inf if heads < sensitivity else mass(heads) - mass(heads - sensitivity) - epsilon

    low, high = sensitivity - 1, coins + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if surplus(middle) > 0 else (low, middle)
    total, heads = 0.0, low
    while heads >= 0:
        term = exp(mass(heads)) * (1 - exp(-surplus(heads)))
        total += term
        if 2 * heads < coins and term < total * 1e-9 and heads < low - sensitivity:
            break
        heads -= 1
    return total


def _ratio(coins: int, heads: int, sensitivity: int) -> Fraction:
    """Give Pr[heads]/Pr[heads − D]; more than any number where the latter is 0."""
    if heads < sensitivity:
        return Fraction(10**1000)
    top = bottom = 1
    for i in range(1, sensitivity + 1):
        top *= max(0, coins - heads + i)
        bottom *= heads - sensitivity + i
    return Fraction(top, bottom)


def _at_most(coins: int, heads: int) -> Interval:
    """Enclose Pr[Z ≤ heads]: terms from there downwards, and a geometric series for the rest."""
    if heads < 0:
        return ZERO
    if 2 * heads >= coins:
        return 1 - _at_most(coins, coins - heads - 1)
    term = _mass(coins, heads)
    result, least = term, exp(-160.0)
    first = float(term.high)
    while heads > 0 and float(term.high) > first * least:
        term = term * Fraction(heads, coins - heads + 1)
        result += term
        heads -= 1
    if heads > 0:
        falls = Fraction(heads, coins - heads + 1)
        result += Interval(ZERO.low, (term * (falls / (1 - falls))).high)
    return result


def _mass(coins: int, heads: int) -> Interval:
    """Enclose Pr[Z = heads] by the first bits of the binomial coefficient: a fraction in lowest terms takes seconds."""
    ways = comb(coins, heads)
    cut = max(0, ways.bit_length() - _BITS)
    top, scale = ways >> cut, 1 << (coins - cut)
    return Interval.of((Fraction(top, scale), Fraction(top + (cut > 0), scale)))


def deviation(coins: int) -> float:
    """Give the standard deviation of the number of heads."""
    return sqrt(coins) / 2
