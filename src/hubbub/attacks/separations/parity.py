"""Exact distinguishability of "everyone satisfies a parity" and "no one does" from a published noisy view.

Each person holds d bits. A value x satisfies a parity r if r·x = 1 (mod 2); D_r is the set of x with r·x = 0. The
difference is the statistical distance between the views of people from D_r and of people from the rest: the best guess
of which it was is correct with probability ½ + difference/2.

Tested in tests/attacks/test_separation.py.
"""

from functools import cache
from math import comb, exp, expm1, lgamma, log

import numpy as np
from numpy.typing import NDArray

from hubbub.core import binomial, numbers
from hubbub.errors import ParameterError

Floats = NDArray[np.float64]

_NODES = 64
_MAX_STATES = 400_000


def walsh_hadamard(values: Floats) -> Floats:
    """Return Σ_x values[…, x]·(−1)^{r·x} for every r, over the last axis of length 2^d (Walsh–Hadamard transform)."""
    result = values.copy()
    size = result.shape[-1]
    half = 1
    while half < size:
        pairs = result.reshape(*result.shape[:-1], size // (2 * half), 2, half)
        result = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2)
        result = result.reshape(values.shape)
        half *= 2
    return result


def differences(distribution: Floats) -> Floats:
    """Return for every parity r the difference between Z(D_r) and Z(the rest), where distribution[x, z] = Pr[Z(x) = z].

    Both are Pr[Z(D) = z] ± 2^{−d}·Σ_x Pr[Z(x) = z]·(−1)^{r·x}, so the difference is the sum over z of the absolute
    values of the second term. The entry for r = 0, which is not a parity, is 1.
    """
    result: Floats = np.abs(walsh_hadamard(distribution.T)).sum(axis=0) / len(distribution)
    return result


def joint_differences(distribution: Floats, people: int) -> Floats:
    """Return the difference between everyone and no one for all tuples of parities, one axis per person.

    `distribution[x, z]` is Pr[San(x) = z] of any published view of n people, x = x₁ + 2^d·x₂ + …
    Distribution 0 has weights Π(1 + (−1)^{rᵢ·xᵢ}) and distribution 1 has Π(1 − (−1)^{rᵢ·xᵢ}), so their difference is
    twice the sum of the terms of odd sets of people.
    """
    bits = (len(distribution).bit_length() - 1) // people
    side = 1 << bits
    waves = walsh_hadamard(distribution.T).reshape(-1, *[side] * people) / len(distribution)
    odd = np.zeros_like(waves)
    for chosen in range(1, 1 << people):
        if chosen.bit_count() % 2:
            # people outside the set have parity 0 in the term; axes run from the last person to the first
            term = (slice(None), *(slice(None) if chosen >> k & 1 else slice(0, 1) for k in reversed(range(people))))
            odd += waves[term]
    result: Floats = np.abs(odd).sum(axis=0)
    return result


def response(bits: int, epsilon: float) -> Floats:
    """Return randomized response over 2^d values: the truth is e^ε times as likely as any other value."""
    side = 1 << numbers.integer(bits, "bits", 1, 12)
    return (np.ones((side, side)) + expm1(epsilon) * np.eye(side)) / (exp(epsilon) + side - 1)


def bitwise(bits: int, epsilon: float) -> Floats:
    """Return the distribution of randomized response on each bit at ε/d."""
    truth = 1 / (1 + exp(-epsilon / numbers.integer(bits, "bits", 1, 12)))
    distribution = np.ones((1, 1))
    for _ in range(bits):
        distribution = np.asarray(
            np.kron(distribution, np.array([[truth, 1 - truth], [1 - truth, truth]])), dtype=np.float64
        )
    return distribution


def one_parity(bits: int, epsilon: float, parity: int) -> Floats:
    """Return randomized response to one parity: the difference is tanh(ε/2) for it and 0 for all others."""
    values = np.arange(1 << numbers.integer(bits, "bits", 1, 12)) & parity
    odd = np.array([value.bit_count() % 2 for value in values.tolist()])
    truth = 1 / (1 + exp(-epsilon))
    return np.where(odd[:, None] == np.arange(2), truth, 1 - truth)


def joint_response(distribution: Floats, people: int) -> Floats:
    """Return the joint distribution of several people's independent responses."""
    joined = distribution
    for _ in range(people - 1):
        joined = np.asarray(np.kron(distribution, joined), dtype=np.float64)
    return joined


def noisy_histogram(bits: int, people: int, epsilon: float) -> Floats:
    """Return a histogram of all 2^d values with two-sided geometric noise of scale 2/ε, clamped to 0…n.

    Clamping loses no information: for a true count in 0…n, values beyond the range carry the same likelihood ratios
    as 0 or n.
    """
    side = 1 << bits
    cell = _clamped(people, epsilon)
    members = np.arange(side**people)[:, None] // side ** np.arange(people) % side
    counts = (members[:, :, None] == np.arange(side)).sum(axis=1)
    distribution = np.ones((len(counts), 1))
    for value in range(side):
        distribution = (distribution[:, :, None] * cell[counts[:, value]][:, None, :]).reshape(len(counts), -1)
    return distribution


def _clamped(people: int, epsilon: float) -> Floats:
    """Return Pr[clamped count = z] for true counts 0…n."""
    q = exp(-epsilon / 2)
    z = np.arange(people + 1)
    mass: Floats = (1 - q) / (1 + q) * q ** np.abs(z - z[:, None]).astype(np.float64)
    mass[:, 0] = q ** z.astype(np.float64) / (1 + q)
    mass[:, -1] = mass[::-1, 0] if people else 1.0
    return mass


def response_difference(bits: int, epsilon: float) -> float:
    """Return the difference of 2^d-ary randomized response for every parity: (e^ε − 1)/(e^ε + 2^d − 1).

    >>> round(response_difference(6, 1.0), 4), f"{response_difference(20, 1.0):.1e}"
    (0.0261, '1.6e-06')
    """
    return expm1(epsilon) / (exp(epsilon) + 2.0**bits - 1)


def subset_difference(bits: int, epsilon: float) -> float:
    """Return the difference of subset response: a random set, e^ε times as likely if it contains the true value.

    Sets of about 2^d/(1+e^ε) values are nearly optimal (Ye and Barg 2018). The best of the sizes near this number is
    used, or 1, which is 2^d-ary response. A set with j of its k values in D_r has probability proportional to
    1 + (e^ε − 1)·2j/2^d; j is hypergeometric, by symmetry the same for every parity.
    """
    side = 1 << numbers.integer(bits, "bits", 1, 24)
    best = round(side / (1 + exp(epsilon)))
    return max(_of_size(size, side, epsilon) for size in {1, best - 1, best, best + 1} if 0 < size < side)


def _of_size(size: int, side: int, epsilon: float) -> float:
    # beyond 13 standard deviations, the hypergeometric mass is below the precision of doubles
    radius = int(13 * (size / 4) ** 0.5) + 13
    inside = np.arange(max(0, size - side // 2, size // 2 - radius), min(size, side // 2, size // 2 + radius) + 1)
    ways = _choose(side // 2, inside) + _choose(side // 2, size - inside)
    share = np.exp(ways - _choose(side, np.array([size]))[0])
    # the total weight of all sets is (1 + (e^ε − 1)·k/2^d) times their number
    gap = expm1(epsilon) * 2 / side * np.abs(2 * inside - size)
    return float((share * gap).sum() / 2 / (1 + expm1(epsilon) * size / side))


def _choose(among: int, chosen: NDArray[np.int64]) -> Floats:
    return np.array([lgamma(among + 1) - lgamma(k + 1) - lgamma(among - k + 1) for k in chosen.tolist()])


@cache
def _quadrature() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes.astype(np.float64), weights.astype(np.float64)


def repeated(difference: float, people: int) -> float:
    """Return the exact difference of n independent two-valued views with this difference each, from two binomials.

    Randomized response reveals only whether z is in D_r, which happens with probability (1 ± difference)/2.
    """
    people = numbers.integer(people, "people", 1, 10**9)
    least = people // 2 + 1
    if difference * people**0.5 < 1:
        # integrate the density of the tail, to avoid subtracting nearly equal numbers
        nodes, weights = _quadrature()
        p = 0.5 + difference / 2 * nodes
        front = lgamma(people + 1) - lgamma(least) - lgamma(people - least + 1)
        density = np.exp(front + (least - 1) * np.log(p) + (people - least) * np.log1p(-p))
        return float(difference / 2 * (weights * density).sum())
    return binomial.tail(least, people, (1 + difference) / 2) - binomial.tail(least, people, (1 - difference) / 2)


def histogram_difference(bits: int, people: int, epsilon: float) -> float:
    """Return the exact difference of a noisy histogram of n people in 2^d cells, with one parity for all people.

    The probability of a histogram is A(cells in D_r) or A(cells outside), times its probability under noise alone,
    where A is the mean of the product of likelihood ratios over all assignments of people to cells. A cell clamped to
    0…n has n + 1 possible values, the order within each half carries no information, and the two halves are independent
    under noise, so the difference is ½·E|A − A′| for two independent copies of A.
    """
    half = 1 << (bits - 1)
    if comb(half + people, people) > _MAX_STATES:
        raise ParameterError(
            "HB197",
            f"A histogram of {people} people in {2 * half} cells has too many states to enumerate.",
            "Use fewer people or bits.",
        )
    kinds = _compositions(half, people + 1)
    mass = _clamped(people, epsilon)
    # [t^n] Π_cells Σ_k ratio(k)·t^k/k!, times n!/half^n: people are uniform in the half
    series = mass / mass[0] / np.exp([lgamma(k + 1) for k in range(people + 1)])[:, None]
    weight = _product(series, kinds, people) * exp(lgamma(people + 1) - people * log(half))
    chance = np.exp(
        lgamma(half + 1) + (kinds * np.log(mass[0]) - np.vectorize(lgamma, otypes=[float])(kinds + 1.0)).sum(axis=1)
    )
    order = np.argsort(weight)
    a, p = weight[order], chance[order]
    below = np.cumsum(p) - p
    # E|A − A′| = 2·Σ a·p·(mass below − mass above)
    return float((a * p * (below - (p.sum() - below - p))).sum())


def _compositions(total: int, kinds: int) -> NDArray[np.int64]:
    """List all ways to write a total as an ordered sum of `kinds` counts."""
    counts = np.arange(total + 1)[:, None]
    for _ in range(kinds - 2):
        left = total - counts.sum(axis=1)
        rows = np.repeat(np.arange(len(counts)), left + 1)
        starts = np.cumsum(left + 1) - (left + 1)
        counts = np.column_stack([counts[rows], np.arange(len(rows)) - starts[rows]])
    return np.column_stack([counts, total - counts.sum(axis=1)]) if kinds > 1 else np.array([[total]])


def _product(series: Floats, kinds: NDArray[np.int64], degree: int) -> Floats:
    """Return the coefficient of t^degree of Π_j (Σ_k series[k, j]·t^k)^{kinds[:, j]}, for every row."""
    half = int(kinds[0].sum())
    product = np.zeros((len(kinds), degree + 1))
    product[:, 0] = 1
    for j in range(kinds.shape[1]):
        powers = np.zeros((half + 1, degree + 1))
        powers[0, 0] = 1
        for step in range(half):
            powers[step + 1] = np.convolve(powers[step], series[:, j])[: degree + 1]
        factor = powers[kinds[:, j]]
        product = np.stack([(product[:, : k + 1] * factor[:, k::-1]).sum(axis=1) for k in range(degree + 1)], axis=1)
    last: Floats = product[:, degree]
    return last


def query_difference(people: int, epsilon: float) -> float:
    """Return the difference of one private count of people who satisfy the parity, with geometric noise at ε."""
    q = exp(-epsilon)
    middle = people // 2
    return 1 - (q ** (middle + 1) + q ** (people - middle)) / (1 + q)


def query_error(epsilon: float) -> float:
    """Return the mean absolute error of one private answer: 2q/(1−q²), which tends to 1/ε."""
    q = exp(-epsilon)
    return 2 * q / (1 - q * q)
