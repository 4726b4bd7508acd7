"""The search for strategies: which sums to measure so that all ranges, or all prefixes, can be told best from them.

Nothing here touches data or decides anything about privacy: what is found is rounded to integers, and the sensitivity
is computed from those. Floats, and deterministic.

Estimates are free, so the search must be cheap: at most 0.3 s of one core for 1,024 bins. Both workloads have a gram
matrix with the entries u[min(i, j)]·v[max(i, j)], so a product with it takes two running sums, and no step of the
search for groups multiplies two large matrices. The search for the dense strategy runs on a coarse grid.

Tested in tests/analyses/tables/test_strategies.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core import deadline

Floats = NDArray[np.float64]
Slope = Callable[[Floats], tuple[float, Floats]]

_MEMORY = 8  # steps that the search remembers
_ROUNDS = 150
_ENOUGH = 1e-5  # stops where a step gains no more than this share
_HEAVY = 1e6  # groups that count so much more than bins are no strategy, and I + BBᵀ has no inverse in doubles
_FIXED_POINT = 40
_COARSE = 128  # bins of the grid on which the fixed point is found


@dataclass(frozen=True, eq=False)
class Gram:
    """WᵀW/rows of a workload W: the entry (i, j) is before[min(i, j)]·behind[max(i, j)].

    >>> Gram(np.array([1.0, 2.0]), np.array([2.0, 1.0])).matrix.tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """

    before: Floats
    behind: Floats

    @property
    def diagonal(self) -> Floats:
        """How often each bin is in a range."""
        return self.before * self.behind

    @property
    def matrix(self) -> Floats:
        """All of it."""
        place = np.arange(len(self.before))
        found: Floats = self.before[np.minimum.outer(place, place)] * self.behind[np.maximum.outer(place, place)]
        return found

    @property
    def mirrored(self) -> bool:
        """Whether the first bin stands to the workload as the last one does, and so on."""
        return bool(np.allclose(self.before / self.before[-1], self.behind[::-1] / self.behind[0]))

    def right_of(self, rows: Floats) -> Floats:
        """Give rows·matrix, by running sums."""
        up_to = np.cumsum(rows * self.before, axis=1)
        beyond = np.cumsum((rows * self.behind)[:, ::-1], axis=1)[:, ::-1] - rows * self.behind
        found: Floats = up_to * self.behind + beyond * self.before
        return found


@dataclass(frozen=True, eq=False)
class DenseGram:
    """WᵀW of any workload, entry by entry."""

    matrix: Floats

    @property
    def diagonal(self) -> Floats:
        """How often each bin is in a query."""
        return np.diag(self.matrix)

    def right_of(self, rows: Floats) -> Floats:
        """Give rows·matrix."""
        found: Floats = rows @ self.matrix
        return found


def ranges_gram(size: int) -> Gram:
    """Give how often two bins are in one range of so many bins, over the number of ranges."""
    place = np.arange(size, dtype=np.float64)
    return Gram((place + 1) / (size * (size + 1) / 2), size - place)


def prefixes_gram(size: int) -> Gram:
    """Give how often two bins are in one prefix (running total), over their number."""
    return Gram(np.full(size, 1 / float(size)), size - np.arange(size, dtype=np.float64))


def grouped(gram: Gram | DenseGram, groups: int) -> Floats:
    """Find overlapping groups of bins that are best measured beside the bins themselves, under an L1 sensitivity.

    The strategy is (I; B)·D with D such that every column adds up to 1 (McKenna, Miklau, Hay and Machanavajjhala 2018);
    what is minimised over B ≥ 0 is tr((AᵀA)⁻¹·gram), the mean variance of the answers for a unit of noise.
    """
    size = len(gram.diagonal)
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


def _grouped_error(weights: Floats, gram: Gram | DenseGram) -> tuple[float, Floats]:
    """Give tr(D⁻¹(I + BᵀB)⁻¹D⁻¹·gram) and its slope in B, by the inverse of the small matrix M = I + BBᵀ.

    With S = D⁻¹·gram·D⁻¹ and H = M⁻¹BS the error is tr S − ΣB∘H. Its slope at fixed D is −2·B(I + BᵀB)⁻¹S(I + BᵀB)⁻¹,
    which is −2·(H − HBᵀ·M⁻¹B), and that in the totals 1/D is 2·diag(S − BᵀH)/totals.
    """
    if not weights.max(initial=0.0) < _HEAVY:  # the search then takes a smaller step
        return math.inf, np.zeros_like(weights)
    totals = 1 + weights.sum(axis=0)
    inner = np.linalg.solve(np.eye(len(weights)) + weights @ weights.T, weights)
    middle = gram.right_of(inner * totals) * totals
    scaled = gram.diagonal * totals**2
    left = scaled - (weights * middle).sum(axis=0)
    return float(left.sum()), 2 * (left / totals - middle + (middle @ weights.T) @ inner)


def descend(slope: Slope, start: Floats) -> Floats:
    """Go downhill by L-BFGS with backtracking, until it hardly goes on."""
    x = start
    value, gradient = slope(x)
    steps: list[Floats] = []
    turns: list[Floats] = []
    for _ in range(_ROUNDS):
        deadline.check()
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


def dense(gram: Gram) -> Floats:
    """Find the strategy with columns of length 1 whose answers have the least mean variance, under an L2 sensitivity.

    With X = AᵀA the problem is convex: least tr(X⁻¹·gram) with a diagonal of ones. At the optimum X⁻¹·gram·X⁻¹ is
    diagonal, so X = V^(−½)·M^½·V^(−½) with M = V^½·gram·V^½, and the diagonal is one where V is that of M^½ (Denisov,
    McMahan, Rush, Smith and Thakurta 2022): a fixed point that is found by iterating. V changes smoothly from bin to
    bin, so it is found on a coarse grid and read off between; A is M^¼·V^(−½), its columns scaled to length 1.
    """
    size = len(gram.before)
    coarse = gram if size <= _COARSE else _thinned(gram, _COARSE)
    diagonal = np.sqrt(coarse.diagonal) + 1e-12
    for _ in range(_FIXED_POINT):
        before, diagonal = diagonal, np.diag(_power(_weighted(coarse, diagonal), 0.5, mirrored=gram.mirrored)).copy()
        if np.abs(diagonal - before).max() < 1e-4 * diagonal.max():
            break
    if coarse is not gram:
        diagonal = np.interp(_middles(size), _middles(_COARSE), diagonal)
    found = _power(_weighted(gram, diagonal), 0.25, mirrored=gram.mirrored) / np.sqrt(diagonal)
    return np.asarray(found / np.sqrt((found**2).sum(axis=0)), dtype=np.float64)


def dense_of(matrix: Floats) -> Floats:
    """Find the strategy of `dense` for the gram matrix of any workload.

    A little of the identity is added, so that the strategy has an inverse where the workload does not read all bins.
    """
    size = len(matrix)
    whole = matrix + np.eye(size) * (1e-9 * float(np.trace(matrix)) / size)
    diagonal = np.sqrt(np.diag(whole))
    for _ in range(_FIXED_POINT):
        deadline.check()
        root = np.sqrt(diagonal)
        before, diagonal = diagonal, np.diag(_power(whole * np.outer(root, root), 0.5, mirrored=False)).copy()
        if np.abs(diagonal - before).max() < 1e-3 * diagonal.max():
            break
    root = np.sqrt(diagonal)
    found = _power(whole * np.outer(root, root), 0.25, mirrored=False) / root
    return np.asarray(found / np.sqrt((found**2).sum(axis=0)), dtype=np.float64)


def _weighted(gram: Gram, diagonal: Floats) -> Floats:
    root = np.sqrt(diagonal)
    return Gram(gram.before * root, gram.behind * root).matrix


def _thinned(gram: Gram, size: int) -> Gram:
    """Give the workload on a grid of fewer bins."""
    at, known = _middles(size), _middles(len(gram.before))
    return Gram(np.interp(at, known, gram.before), np.interp(at, known, gram.behind))


def _middles(size: int) -> Floats:
    """Give the middles of so many bins between 0 and 1."""
    return (np.arange(size, dtype=np.float64) + 0.5) / size


def _power(matrix: Floats, exponent: float, *, mirrored: bool) -> Floats:
    """Give a power of a positive matrix."""

    def power(part: Floats) -> Floats:
        values, vectors = np.linalg.eigh((part + part.T) / 2)
        found: Floats = (vectors * np.maximum(values, 0) ** exponent) @ vectors.T
        return found

    return by_halves(power, matrix) if mirrored else power(matrix)


def by_halves(function: Callable[[Floats], Floats], matrix: Floats) -> Floats:
    """Apply a function of matrices to one that stays the same when rows and columns are reversed.

    Such a matrix maps vectors that are their own mirror images to such vectors, and those that change their sign to
    such vectors; so it falls into two blocks of half the size, and cubic work costs a quarter.
    """
    size = len(matrix)
    half, odd = size // 2, size % 2
    corner, across = matrix[:half, :half], matrix[:half, ::-1][:, :half]
    even = np.empty((half + odd, half + odd))
    even[:half, :half] = corner + across
    if odd:
        even[half, :half], even[:half, half] = np.sqrt(2) * matrix[half, :half], np.sqrt(2) * matrix[:half, half]
        even[half, half] = matrix[half, half]
    same, other = function(even), function(corner - across)
    found = np.empty_like(matrix)
    found[:half, :half] = (same[:half, :half] + other) / 2
    found[:half, size - half :] = ((same[:half, :half] - other) / 2)[:, ::-1]
    if odd:
        found[:half, half], found[half, :half] = same[:half, half] / np.sqrt(2), same[half, :half] / np.sqrt(2)
        found[half, size - half :] = found[half, :half][::-1]
        found[half, half] = same[half, half]
    found[size - half :] = found[:half][::-1, ::-1]
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
