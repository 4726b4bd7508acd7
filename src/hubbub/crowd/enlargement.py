"""How far a ball around the best guess must grow to hold the parent cell (2005, lemma 5), computed without sampling.

Cross-training publishes v′ = v + N(0, ρ²) with v uniform in a cell of side ρ. The posterior mean q is the guess with
the least expected squared distance. In each coordinate the farthest corner of the parent cell is at distance 2 − q (in
units of ρ) and the row at |v − q|, independently of the other coordinates. So the ball B(q, ‖v − q‖) must be enlarged
by more than x just if a sum of d independent copies of (2 − q)² − x²·(v − q)² is positive.
"""

import math
from functools import cache

import numpy as np

from hubbub.crowd.neighbors import Floats

_NODES = 120
_INSIDE, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@cache
def _coordinate() -> tuple[Floats, Floats, Floats]:
    """Return (2 − q)², (v − q)² and their weights, for nodes over v′ and v."""
    inside, weight = (_INSIDE + 1) / 2, _WEIGHTS / 2
    nodes, mass = np.polynomial.legendre.leggauss(_NODES)
    moved = 0.5 + 10 * nodes  # nine deviations beyond the cell
    density = np.exp(-0.5 * np.square(inside[None] - moved[:, None])) / math.sqrt(2 * math.pi)
    joint = 10 * mass[:, None] * weight[None] * density
    total = joint.sum(axis=1, keepdims=True)
    guess = (joint * inside[None]).sum(axis=1, keepdims=True) / total
    far = np.broadcast_to(np.square(2 - guess), joint.shape)
    return far.ravel(), np.square(inside[None] - guess).ravel(), (joint / joint.sum()).ravel()


def enlargement_limit() -> float:
    """Return the factor that suffices in high dimension: √(E(2 − q)²/E(v − q)²).

    Theorem (Lemma 5 in high dimension). As d grows, the factor that is needed tends to this value in probability.
    Proof    Both sums are of independent, bounded terms; apply the law of large numbers to each.
    Tested   tests/crowd/test_enlargement.py::test_the_factor_tends_to_its_limit
    """
    far, near, weight = _coordinate()
    return math.sqrt(float(far @ weight) / float(near @ weight))


def enlargement_chance(d: int, factor: float) -> float:
    """Return the probability that the ball must grow by more than `factor`, by inverting a characteristic function.

    Theorem (Inversion, Gil-Pelaez). For a sum S of d copies of g with characteristic function φ,
    Pr[S > 0] = ½ + (1/π)·∫₀^∞ Im(φ(s)^d)/s ds.
    Assumes  d ≥ 5, so that φ^d vanishes beyond the nodes of the integral; the error of both quadratures is below 1e-6.
    Tested   tests/crowd/test_enlargement.py::test_the_chance_is_what_is_seen
    """
    far, near, weight = _coordinate()
    g = far - factor**2 * near
    mean = float(g @ weight)
    deviation = math.sqrt(float(np.square(g - mean) @ weight))
    reach = 40 / (deviation * math.sqrt(d))
    nodes, mass = np.polynomial.legendre.leggauss(200)
    s = reach * (nodes + 1) / 2
    characteristic = np.exp(1j * np.outer(s, g)) @ weight
    integral = float((np.imag(characteristic**d) / s) @ mass) * reach / 2
    return min(1.0, max(0.0, 0.5 + integral / math.pi))


def enlargement_quantile(d: int, share: float) -> float:
    """Return the factor that suffices for this share of the rows."""
    low, high = 1.0, 33.0
    for _ in range(15):  # to a thousandth
        middle = (low + high) / 2
        low, high = (middle, high) if enlargement_chance(d, middle) > 1 - share else (low, middle)
    return high


def enlargement_rate(factor: float) -> float:
    """Return ρ such that the ball must grow by more than `factor` with probability at most ρ^d.

    Theorem (Lemma 5 with its constant). For every s ≥ 0, Pr[needed > x] ≤ (E exp(s·((2 − q)² − x²(v − q)²)))^d, and
    below 1 for some s if x exceeds `enlargement_limit`. This is the 2^{−Ω(d)} of lemma 5 for the posterior mean.
    Proof    Markov's inequality for exp(s·Σg), and independence of the coordinates.
    Tested   tests/crowd/test_enlargement.py::test_the_rate_bounds_the_chance_in_every_dimension
    """
    far, near, weight = _coordinate()
    g = far - factor**2 * near
    return min(float(np.exp(s * g) @ weight) for s in np.geomspace(1e-4, 2, 400))
