"""The search for strategies: which sums to measure so that all ranges, or all prefixes, can be told best from them.

Nothing here touches data or decides anything about privacy: what is found is rounded to integers, and the sensitivity
is computed from those. Floats, and deterministic.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Slope = Callable[[Floats], tuple[float, Floats]]

_MEMORY = 8  # steps that the search remembers
_ROUNDS = 150
_ENOUGH = 1e-5  # stops where a step gains no more than this share
_FIXED_POINT = 40


def ranges_gram(size: int) -> Floats:
    """Give WᵀW/rows for all ranges of so many bins: how often two bins are in one range, over their number."""
    place = np.arange(size)
    pairs: Floats = (np.minimum.outer(place, place) + 1.0) * (size - np.maximum.outer(place, place))
    return pairs / (size * (size + 1) / 2)


def prefixes_gram(size: int) -> Floats:
    """Give WᵀW/rows for the prefixes (running totals) of so many bins."""
    place = np.arange(size)
    return (size - np.maximum.outer(place, place)) / float(size)


def grouped(gram: Floats, groups: int) -> Floats:
    """Find overlapping groups of bins that are best measured beside the bins themselves, under an L1 sensitivity.

    The strategy is (I; B)·D with D such that every column adds up to 1 (McKenna, Miklau, Hay and Machanavajjhala 2018);
    what is minimised over B ≥ 0 is tr((AᵀA)⁻¹·gram), the mean variance of the answers for a unit of noise.
    """
    size = len(gram)
    middles = (np.arange(groups)[:, None] + 0.5) * size / groups
    place = np.arange(size)
    # blocks side by side, each a little different, since the search cannot tell apart what is alike
    start = np.where(np.abs(place - middles) <= size / groups / 2, 0.9, 0.02)
    start *= 1 + 0.3 * np.sin(np.outer(np.arange(groups) + 1, place) * 0.7)

    def slope(root: Floats) -> tuple[float, Floats]:
        shaped = root.reshape(groups, size)
        value, gradient = _grouped_error(shaped**2, gram)
        return value, (2 * gradient * shaped).ravel()  # squares stay non-negative without a bound to watch

    return descend(slope, np.sqrt(start).ravel()).reshape(groups, size) ** 2


def _grouped_error(weights: Floats, gram: Floats) -> tuple[float, Floats]:
    """Give tr(D⁻¹(I + BᵀB)⁻¹D⁻¹·gram) and its slope in B, by the inverse of the small matrix I + BBᵀ."""
    totals = 1 + weights.sum(axis=0)
    inner = np.linalg.solve(np.eye(len(weights)) + weights @ weights.T, weights)
    scaled = gram * totals[:, None] * totals[None, :]
    once = scaled - weights.T @ (inner @ scaled)
    twice = once - (once @ weights.T) @ inner
    by_totals = 2 * (np.diag(gram) * totals - ((weights.T @ inner) * gram) @ totals)
    return float(np.trace(once)), -2 * weights @ twice + by_totals


def descend(slope: Slope, start: Floats) -> Floats:
    """Go downhill by L-BFGS with backtracking, until it hardly goes on."""
    x = start
    value, gradient = slope(x)
    steps: list[Floats] = []
    turns: list[Floats] = []
    for _ in range(_ROUNDS):
        way = _direction(gradient, steps, turns)
        fall = float(gradient @ way)
        if not fall < 0:
            return x
        length = 1.0
        while True:
            next_value, next_gradient = slope(x + length * way)
            if next_value <= value + 1e-4 * length * fall or length < 1e-8:
                break
            length /= 2
        if not next_value < value:
            return x
        step, turn = length * way, next_gradient - gradient
        if step @ turn > 1e-10 * np.linalg.norm(step) * np.linalg.norm(turn):
            steps, turns = [*steps, step][-_MEMORY:], [*turns, turn][-_MEMORY:]
        gained = value - next_value
        x, value, gradient = x + step, next_value, next_gradient
        if gained < _ENOUGH * value:
            return x
    return x


def _direction(gradient: Floats, steps: list[Floats], turns: list[Floats]) -> Floats:
    if not steps:
        return -gradient / max(float(np.abs(gradient).max()), 1e-300) * 0.1
    way, kept = -gradient, []
    for step, turn in zip(reversed(steps), reversed(turns), strict=True):
        share = (step @ way) / (step @ turn)
        kept.append(share)
        way = way - share * turn
    way = way * ((steps[-1] @ turns[-1]) / (turns[-1] @ turns[-1]))
    for step, turn, share in zip(steps, turns, reversed(kept), strict=True):
        way = way + step * (share - (turn @ way) / (step @ turn))
    return way


def dense(gram: Floats) -> Floats:
    """Find the strategy with columns of length 1 whose answers have the least mean variance, under an L2 sensitivity.

    With X = AᵀA the problem is convex: least tr(X⁻¹·gram) with a diagonal of ones. At the optimum X⁻¹·gram·X⁻¹ is
    diagonal, so X = V^(−½)·(V^½·gram·V^½)^½·V^(−½), and the diagonal is one where V is that of the root in the middle
    (Denisov, McMahan, Rush, Smith and Thakurta 2022): a fixed point that is found by iterating. A is X's root.
    """
    diagonal = np.sqrt(np.diag(gram)) + 1e-12
    for _ in range(_FIXED_POINT):
        middle = _root(np.sqrt(diagonal)[:, None] * gram * np.sqrt(diagonal)[None, :])
        before, diagonal = diagonal, np.diag(middle).copy()
        if np.abs(diagonal - before).max() < 1e-3 * diagonal.max():
            break
    scale = 1 / np.sqrt(diagonal)
    return _root(scale[:, None] * middle * scale[None, :])


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    found: Floats = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return found


def square_root(size: int) -> Floats:
    """Give the square root of the matrix of prefixes: a lower triangular Toeplitz matrix of C(2k, k)/4ᵏ.

    Its columns have squared length Σ (C(2k, k)/4ᵏ)² at most, about 1 + ln(n)/π, and so have its rows (Fichtenberger,
    Henzinger and Upadhyay 2023).
    """
    ratios = 1 - 0.5 / np.arange(1, size)
    column = np.concatenate([[1.0], np.cumprod(ratios)])
    gap = np.subtract.outer(np.arange(size), np.arange(size))
    return np.where(gap >= 0, column[np.abs(gap)], 0.0)
