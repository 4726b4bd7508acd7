"""The paper's bounds for crowd sanitizers, as numbers.

They bound isolation of uniform points of a cube by an adversary without auxiliary information. None of them makes a
sanitizer private.
"""

import math
from dataclasses import dataclass

import numpy as np

from hubbub.crowd.neighbors import Floats
from hubbub.errors import CrowdError


def uniform_chance(*, c: float, t: int, d: int) -> float:
    """Return the probability that a guess (c,t)-isolates a point if points are spread evenly around it.

    Theorem (Isolation in an even crowd). Around q let the points be a Poisson process of constant density. Then q
    (c,t)-isolates its nearest point with probability 1 − (1 − c^{−d})^{t−1}, whatever the density.
    Proof    Order the points by the volume of the ball they reach; the volumes V₁ < V₂ < … are the arrivals of a
             Poisson process on the line. q isolates just if V_t > c^d·V₁. Given V_t the others are uniform below it,
             and V₁ is the least of t − 1 of them: Pr[V₁ ≥ V_t·c^{−d}] = (1 − c^{−d})^{t−1}.
    Tested   tests/crowd/test_theory.py::test_the_chance_in_an_even_crowd_is_what_is_seen

    >>> [round(uniform_chance(c=3, t=10, d=d), 4) for d in (2, 5, 10)]
    [0.6536, 0.0364, 0.0002]
    """
    return -math.expm1((t - 1) * math.log1p(-(float(c) ** -d))) if c > 1 else 1.0


def center_chance(*, n: int, d: int, c: float, t: int) -> float:
    """Return the probability that the center of a first cell (c,t)-isolates one of n uniform points of the cube.

    Theorem (Isolation from a fixed guess). Let F be the distribution of a point's distance from the guess. With nearest
    distance r, each other point is within c·r with probability (F(cr) − F(r))/(1 − F(r)), independently, so the guess
    isolates with probability E[Pr[Bin(n − 1, ·) ≤ t − 2]] over the nearest of n.
    Assumes  that the cell's center was chosen before the data, as in proposition 2, whose 2^d cells are fixed. F is a
             volume, exact while the ball is inside the cube and rounded to a grid beyond; the error is below 0.002.
    Tested   tests/crowd/test_theory.py::test_the_chance_of_a_first_center_is_what_is_seen

    >>> [round(center_chance(n=1000, d=d, c=3, t=10), 3) for d in (2, 5)]
    [0.654, 0.037]
    """
    if c <= 1:
        return 1.0
    radius = np.geomspace(1e-12, math.sqrt(d) * 0.76, 900)
    covered = _volumes(np.full(d, 0.25), radius)
    nodes, mass = np.polynomial.legendre.leggauss(200)
    fine = (nodes + 1) / 2
    ranks, weight = fine**6, 3 * fine**5 * mass  # more nodes where the nearest point is unusually near
    within = -np.expm1(np.log1p(-ranks) / n)  # quantiles of the least of n uniform shares
    nearest = np.exp(np.interp(np.log(within), np.log(covered), np.log(radius)))
    around = np.interp(nearest * c, radius, covered, right=1.0)
    small = nearest * c <= 0.25
    around[small] = within[small] * c**d
    others = np.clip((around - within) / (1 - within), 0, 1)
    return float(np.dot([_few(n - 1, float(share), t - 2) for share in others], weight))


def _few(n: int, share: float, most: int) -> float:
    """Return Pr[Bin(n, share) ≤ most]."""
    if share >= 1:
        return 0.0 if most < n else 1.0
    odds = math.log(share) - math.log1p(-share) if share else -math.inf
    log = n * math.log1p(-share)
    terms = [math.exp(log)]
    for k in range(1, min(most, n) + 1):
        log += math.log((n - k + 1) / k) + odds
        terms.append(math.exp(log))
    return min(1.0, math.fsum(terms))


def _volumes(center: Floats, radii: Floats, *, steps: int = 400) -> Floats:
    """Return the volume of balls around a point of the cell [0, 1]^d whose coordinates are equal."""
    d, near = len(center), float(min(center[0], 1 - center[0]))
    ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1)
    volumes = np.array(
        [ball * radius**d if radius <= near else _volume(center[0], radius, d, steps) for radius in radii]
    )
    return np.asarray(np.maximum.accumulate(np.clip(volumes, 1e-300, 1)))


def _volume(coordinate: float, radius: float, d: int, steps: int) -> float:
    edges = np.sqrt(np.arange(steps + 1) / steps) * radius
    covered = np.clip(coordinate + edges, 0, 1) - np.clip(coordinate - edges, 0, 1)
    step = np.diff(covered)
    # a square in the k-th part counts as its middle: k + ½, so d of them sum to an integer and d/2
    power = _power(step, d, steps)
    cut = steps - d / 2
    whole = int(np.floor(cut))
    return float(power[:whole].sum() + (cut - whole) * power[whole]) if whole >= 0 else 0.0


def _power(values: Floats, d: int, most: int) -> Floats:
    """Convolve a distribution d times with itself, up to the index `most`."""
    result, base = np.zeros(most + 1), np.zeros(most + 1)
    result[0], base[: len(values)] = 1.0, values
    while d:
        if d % 2:
            result = np.convolve(result, base)[: most + 1]
        base = np.convolve(base, base)[: most + 1]
        d //= 2
    return result


def ball_floor(*, n: int, t: int, d: int) -> float:
    """Return e^{−d}/ln(n/t), a lower bound on the success of an adversary of the ball sanitizer, up to a constant.

    The paper shows that for every distribution some adversary isolates with probability Ω(e^{−d}/log(n/t)), without a
    constant, so this is only a reference value. Guessing the published point does far better.
    """
    return math.exp(-d) / math.log(n / t)


@dataclass(frozen=True, slots=True)
class Masses:
    """Masses that a ball adversary needs (lemma 1): at least `inside` within r, at most `around` within c·r.

    Theorem (Masses of a winning ball). If a ball (q, r) wins with probability over ε given the histogram, then
    Pr_f[B(q, r)] > ε/n and Pr_f[B(q, c·r)] < (2t + 8·ln(1/ε))/n, where f is uniform in each cell with the cell's share.
    Proof    Given the histogram the points of a cell are uniform in it, so the number X in a ball is a sum of
             independent binomials with mean μ = n·Pr_f. A point inside: Pr[X ≥ 1] ≤ μ. Few in the larger ball:
             Pr[X < t] ≤ Pr[X ≤ μ/2] ≤ e^{−μ/8} by Chernoff where μ ≥ 2t, and μ ≥ 8·ln(1/ε) makes it ≤ ε.
    Assumes  natural logarithms.
    Tested   tests/crowd/test_theory.py::test_a_ball_outside_of_the_masses_wins_with_at_most_epsilon
    """

    inside: float
    around: float


def masses(*, n: int, t: int, epsilon: float) -> Masses:
    """Return the two masses for n points and a success probability ε."""
    if not 0 < epsilon < 1:
        raise CrowdError(
            "HB623", "ε, here a success probability, must be between 0 and 1.", "Use a value such as 0.001."
        )
    return Masses(epsilon / n, (2 * t + 8 * math.log(1 / epsilon)) / n)


def secure(beta: float) -> float:
    """Return c_secure = 2/β + 1 of lemma 2: a ball of radius over β·√d, enlarged by it, contains the whole cube.

    Theorem (Large balls hold the cube). If B(q, r) meets the cube [-1, 1]^d and r > β·√d, then B(q, (2/β + 1)·r) holds
    the whole cube.
    Proof    The cube has diameter 2·√d < 2r/β. A point of it within r of q is within 2r/β of all the cube.
    Tested   tests/crowd/test_theory.py::test_balls_beyond_beta_hold_the_whole_cube

    >>> round(secure(1 / 60)), round(secure(1 / 15))
    (121, 31)
    """
    return 2 / beta + 1


def volume_in_cell(center: Floats, radius: float, *, steps: int = 2000) -> tuple[float, float]:
    """Return lower and upper bounds of the volume of B(center, radius) within the cell [0, 1]^d.

    A uniform point of the cell is in the ball if and only if its d squared distances sum to at most r². The
    distribution of each is known exactly; it is rounded to a grid of `steps`, down for the upper bound and up for the
    lower one, and convolved.
    """
    if radius <= 0:
        return 0.0, 0.0
    edges = np.sqrt(np.arange(steps + 1) / steps) * radius
    ends = []
    for upward in (True, False):
        distribution = np.zeros(steps + 1)
        distribution[0] = 1.0
        for coordinate in center:
            covered = np.clip(coordinate + edges, 0, 1) - np.clip(coordinate - edges, 0, 1)
            step = np.diff(covered)
            one = np.concatenate([[0.0], step]) if upward else np.concatenate([step, [0.0]])
            distribution = np.convolve(distribution, one)[: steps + 1]
        ends.append(float(distribution[: steps + 1].sum() if upward else distribution[:steps].sum()))
    return ends[0], ends[1]


def lost_share(center: Floats, radius: float, *, steps: int = 2000) -> float:
    """Return an upper bound of the ball's share of the volume of the ball three times as wide (lemma 2, part 1).

    Theorem (Balls inside of a cell). If the ball three times as wide lies inside the cell, the share is exactly 3^{−d}.
    Tested   tests/crowd/test_theory.py::test_the_share_of_the_inner_ball_falls_with_the_dimension
    """
    low, _ = volume_in_cell(center, 3 * radius, steps=steps)
    _, high = volume_in_cell(center, radius, steps=steps)
    return high / low if low > 0 else math.inf


def separation(*, deviation: float, noise: float, least_share: float, k: int, n: int, delta: float) -> float:
    """Return the separation of the means in theorem 3, as printed: 4(σ₁ + σ₂)(16/√w_min + √(k·ln(kn/δ))).

    σ₁ is the largest deviation of a component, 2·σ₂·√d bounds the perturbation of a point. With the corrected tail of
    lemma 4 (`random_error`) the second root is √(2k·ln(2kn/δ)); see `corrected_separation`.
    """
    return 4 * (deviation + noise) * (16 / math.sqrt(least_share) + math.sqrt(k * math.log(k * n / delta)))


def corrected_separation(*, deviation: float, noise: float, least_share: float, k: int, n: int, delta: float) -> float:
    """Return the separation of theorem 3 with the exponent that lemma 4 needs.

    Theorem (Separation of mixtures). With c² = 2·ln(2kn/δ) all n random errors are at most c(σ₁ + σ₂)√k except with
    probability δ, so means that are 4(σ₁ + σ₂)(16/√w_min + √(2k·ln(2kn/δ))) apart are separated with the paper's
    probability.
    Assumes  lemma 3, whose bound on a random matrix is cited there, d < n/2, and radii that are fixed beforehand.
    Tested   tests/crowd/test_learning.py::test_a_mixture_is_recovered_at_the_separation_of_the_theorem
    """
    root = math.sqrt(2 * k * math.log(2 * k * n / delta))
    return 4 * (deviation + noise) * (16 / math.sqrt(least_share) + root)


def random_error(*, k: int, c: float) -> tuple[float, float, float]:
    """Return Pr[χ_k > c·√k] exactly, the corrected bound 2k·e^{−c²/2} of lemma 4, and the printed one 2k·e^{−c²}.

    Theorem (Random error of a projection). A k-dimensional normal vector with deviation σ is longer than c·σ·√k with
    probability at most 2k·e^{−c²/2}. With e^{−c²}, as printed, it is false: k = 1, c = 2 has .0455 > .0366.
    Proof    A vector longer than c·σ·√k has a coordinate beyond c·σ, and Pr[|N(0,1)| > c] ≤ 2e^{−c²/2}.
    Tested   tests/crowd/test_theory.py::test_the_random_error_needs_half_the_exponent

    >>> [round(value, 4) for value in random_error(k=1, c=2)]
    [0.0455, 0.2707, 0.0366]
    """
    return chi_tail(k, c * math.sqrt(k)), 2 * k * math.exp(-c * c / 2), 2 * k * math.exp(-c * c)


def chi_tail(k: int, length: float) -> float:
    """Return the probability that a k-dimensional standard normal vector is longer than `length`: a finite sum."""
    half = length * length / 2
    if k % 2:
        terms = (half ** (j - 0.5) / math.gamma(j + 0.5) for j in range(1, (k - 1) // 2 + 1))
        return math.erfc(math.sqrt(half)) + math.exp(-half) * math.fsum(terms)
    return math.exp(-half) * math.fsum(half**j / math.factorial(j) for j in range(k // 2))


def needed_factor(guesses: Floats, truth: Floats, parent_low: Floats, parent_side: Floats) -> Floats:
    """Return the factor by which B(q, ‖v − q‖) must grow to contain the parent cell (lemma 5: α + 1 < 10 suffices)."""
    high = parent_low + parent_side[:, None]
    corner = np.maximum(np.abs(guesses - parent_low), np.abs(high - guesses))
    factor: Floats = np.linalg.norm(corner, axis=1) / np.linalg.norm(truth - guesses, axis=1)
    return factor
