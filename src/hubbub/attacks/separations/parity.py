"""Exact distinguishability of "everyone satisfies a parity" and "no one does" from a published noisy view.

People hold d bits each. A parity r asks of x whether r·x = 1 (mod 2); D_r are the x with r·x = 0. The difference here
is the statistical distance between the views of people from D_r and of people from the rest: the best guess of which it
was is correct with probability ½ + difference/2.
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
    """Return Σ_x values[…, x]·(−1)^{r·x} for every r (Walsh and Hadamard), over the last axis, of 2^d places."""
    found = values.copy()
    size = found.shape[-1]
    half = 1
    while half < size:
        pairs = found.reshape(*found.shape[:-1], size // (2 * half), 2, half)
        found = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2)
        found = found.reshape(values.shape)
        half *= 2
    return found


def differences(distribution: Floats) -> Floats:
    """Return for every parity r the difference between Z(D_r) and Z(the rest), where distribution[x, z] = Pr[Z(x) = z].

    Both are Pr[Z(D) = z] ± 2^{−d}·Σ_x Pr[Z(x) = z]·(−1)^{r·x}, so the difference is the sum of the latter's absolute
    values over all z. That of r = 0, which is no parity, is 1.
    """
    found: Floats = np.abs(walsh_hadamard(distribution.T)).sum(axis=0) / len(distribution)
    return found


def joint_differences(distribution: Floats, people: int) -> Floats:
    """Return the difference between everyone and no one for all tuples of parities, one axis per person.

    `distribution[x, z]` is Pr[San(x) = z] of any published view of n people, x = x₁ + 2^d·x₂ + …
    Distribution 0 has weights Π(1 + (−1)^{rᵢ·xᵢ}) and distribution 1 has Π(1 − (−1)^{rᵢ·xᵢ}), so their difference has
    the terms of odd sets of people, twice.
    """
    bits = (len(distribution).bit_length() - 1) // people
    side = 1 << bits
    waves = walsh_hadamard(distribution.T).reshape(-1, *[side] * people) / len(distribution)
    odd = np.zeros_like(waves)
    for chosen in range(1, 1 << people):
        if chosen.bit_count() % 2:
            # those outside the set have parity 0 in the term; axes run from the last person to the first
            place = (slice(None), *(slice(None) if chosen >> k & 1 else slice(0, 1) for k in reversed(range(people))))
            odd += waves[place]
    found: Floats = np.abs(odd).sum(axis=0)
    return found


def response(bits: int, epsilon: float) -> Floats:
    """Return randomized response over all 2^d values: the truth is e^ε times as likely as each other value."""
    side = 1 << numbers.integer(bits, "bits", 1, 12)
    return (np.ones((side, side)) + expm1(epsilon) * np.eye(side)) / (exp(epsilon) + side - 1)


def bitwise(bits: int, epsilon: float) -> Floats:
    """Return the distribution of randomized response of each bit at ε/d."""
    told = 1 / (1 + exp(-epsilon / numbers.integer(bits, "bits", 1, 12)))
    distribution = np.ones((1, 1))
    for _ in range(bits):
        distribution = np.asarray(
            np.kron(distribution, np.array([[told, 1 - told], [1 - told, told]])), dtype=np.float64
        )
    return distribution


def one_parity(bits: int, epsilon: float, parity: int) -> Floats:
    """Return randomized response to one parity alone: it reveals that one, by tanh(ε/2), and no other."""
    values = np.arange(1 << numbers.integer(bits, "bits", 1, 12)) & parity
    odd = np.array([value.bit_count() % 2 for value in values.tolist()])
    told = 1 / (1 + exp(-epsilon))
    return np.where(odd[:, None] == np.arange(2), told, 1 - told)


def joint_response(distribution: Floats, people: int) -> Floats:
    """Write out the distribution of several people's independent responses, joined."""
    joined = distribution
    for _ in range(people - 1):
        joined = np.asarray(np.kron(distribution, joined), dtype=np.float64)
    return joined


def noisy_histogram(bits: int, people: int, epsilon: float) -> Floats:
    """Write out the histogram of all 2^d values with two-sided geometric noise of scale 2/ε, clamped into 0…n.

    Clamping loses nothing here: for a true count in 0…n, what lies beyond tells of the count just what 0 or n tells.
    """
    side = 1 << bits
    cell = _clamped(people, epsilon)
    members = np.arange(side**people)[:, None] // side ** np.arange(people) % side
    counts = (members[:, :, None] == np.arange(side)).sum(axis=1)
    distribution = np.ones((len(counts), 1))
    for place in range(side):
        distribution = (distribution[:, :, None] * cell[counts[:, place]][:, None, :]).reshape(len(counts), -1)
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
    """Return the difference of 2^d-ary randomized response, the same for every parity: (e^ε − 1)/(e^ε + 2^d − 1).

    >>> round(response_difference(6, 1.0), 4), f"{response_difference(20, 1.0):.1e}"
    (0.0261, '1.6e-06')
    """
    return expm1(epsilon) / (exp(epsilon) + 2.0**bits - 1)


def subset_difference(bits: int, epsilon: float) -> float:
    """Return that of subset response: a random set of values that is e^ε times as likely with one's own value in it.

    Sets of about 2^d/(1+e^ε) values are near the best response there is (Ye and Barg 2018); the most telling of the
    sizes about it is taken, and 1, which is 2^d-ary response. A set with j of its k values in D_r has a probability in
    proportion to 1 + (e^ε − 1)·2j/2^d; j is hypergeometric, by symmetry the same for every parity.
    """
    side = 1 << numbers.integer(bits, "bits", 1, 24)
    best = round(side / (1 + exp(epsilon)))
    return max(_of_size(size, side, epsilon) for size in {1, best - 1, best, best + 1} if 0 < size < side)


def _of_size(size: int, side: int, epsilon: float) -> float:
    # beyond 13 deviations of the hypergeometric distribution nothing is left that a double would show
    reach = int(13 * (size / 4) ** 0.5) + 13
    inside = np.arange(max(0, size - side // 2, size // 2 - reach), min(size, side // 2, size // 2 + reach) + 1)
    ways = _choose(side // 2, inside) + _choose(side // 2, size - inside)
    share = np.exp(ways - _choose(side, np.array([size]))[0])
    # all sets together weigh (1 + (e^ε − 1)·k/2^d) times their number
    apart = expm1(epsilon) * 2 / side * np.abs(2 * inside - size)
    return float((share * apart).sum() / 2 / (1 + expm1(epsilon) * size / side))


def _choose(among: int, chosen: NDArray[np.int64]) -> Floats:
    return np.array([lgamma(among + 1) - lgamma(k + 1) - lgamma(among - k + 1) for k in chosen.tolist()])


@cache
def _quadrature() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes.astype(np.float64), weights.astype(np.float64)


def repeated(difference: float, people: int) -> float:
    """Return the difference of n independent two-valued views that tell apart by so much each: two binomials, exactly.

    For randomized response, whether z lies in D_r is all that it tells; it is so with probability (1 ± difference)/2.
    """
    people = numbers.integer(people, "people", 1, 10**9)
    least = people // 2 + 1
    if difference * people**0.5 < 1:
        # the integral of the density of the tail: no two nearly equal numbers are subtracted
        nodes, weights = _quadrature()
        p = 0.5 + difference / 2 * nodes
        front = lgamma(people + 1) - lgamma(least) - lgamma(people - least + 1)
        density = np.exp(front + (least - 1) * np.log(p) + (people - least) * np.log1p(-p))
        return float(difference / 2 * (weights * density).sum())
    return binomial.tail(least, people, (1 + difference) / 2) - binomial.tail(least, people, (1 - difference) / 2)


def histogram_difference(bits: int, people: int, epsilon: float) -> float:
    """Return that of a noisy histogram of n people with one parity for all, exactly, though it has 2^d cells.

    A histogram has the probability A(its cells in D_r) or A(its cells outside), times that of noise alone, where A is
    the mean over everybody's place of the product of likelihood ratios. Cells clamped into 0…n are of n + 1 kinds, the
    order within each half says nothing, and the two halves of noise are independent: so the difference is ½·E|A − A′|
    over two independent draws of A.
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
    # [t^n] Π_cells Σ_k ratio(k)·t^k/k!, times n!/half^n: everybody's place is uniform in the half
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
    """List all ways to write a total as a sum of so many counts."""
    found = np.arange(total + 1)[:, None]
    for _ in range(kinds - 2):
        left = total - found.sum(axis=1)
        rows = np.repeat(np.arange(len(found)), left + 1)
        starts = np.cumsum(left + 1) - (left + 1)
        found = np.column_stack([found[rows], np.arange(len(rows)) - starts[rows]])
    return np.column_stack([found, total - found.sum(axis=1)]) if kinds > 1 else np.array([[total]])


def _product(series: Floats, kinds: NDArray[np.int64], degree: int) -> Floats:
    """Return the coefficient of t^degree of Π_j (Σ_k series[k, j]·t^k)^{kinds[:, j]}, for every row."""
    half = int(kinds[0].sum())
    found = np.zeros((len(kinds), degree + 1))
    found[:, 0] = 1
    for j in range(kinds.shape[1]):
        powers = np.zeros((half + 1, degree + 1))
        powers[0, 0] = 1
        for step in range(half):
            powers[step + 1] = np.convolve(powers[step], series[:, j])[: degree + 1]
        factor = powers[kinds[:, j]]
        found = np.stack([(found[:, : k + 1] * factor[:, k::-1]).sum(axis=1) for k in range(degree + 1)], axis=1)
    last: Floats = found[:, degree]
    return last


def query_difference(people: int, epsilon: float) -> float:
    """Return that of one private answer: the count of those with the parity, with two-sided geometric noise at ε."""
    q = exp(-epsilon)
    middle = people // 2
    return 1 - (q ** (middle + 1) + q ** (people - middle)) / (1 + q)


def query_error(epsilon: float) -> float:
    """Return the mean absolute error of that answer: 2q/(1−q²), which tends to 1/ε."""
    q = exp(-epsilon)
    return 2 * q / (1 - q * q)
