"""The distribution that explains noisy marginals best, among those that factor over their pairs (Private-PGM).

Tested in tests/analyses/synthetic/test_estimation.py.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.synthetic.junction_tree import Clique, Floats, JunctionTree, calibrated, junction_tree
from hubbub.core import deadline

Whole = NDArray[np.int64]

#: How many earlier steps the descent remembers.
_MEMORY = 20
#: After so many steps without progress in a row, the descent forgets the earlier ones.
_PATIENCE = 6
#: The most that a potential changes in one step.
_FARTHEST = 2.0
#: The least weight of the entropy in squared rows, so that the problem is well-conditioned where there is little noise.
_LEAST_PULL = 0.25
#: The least count of a level to start with, in deviations of its noise.
FLOOR = 0.25


@dataclass(frozen=True)
class NoisyMarginal:
    """Noisy sums of a table's cells over one or two ascending columns.

    groups      for each column, the group of each of its categories; there is one sum for each combination of groups
    deviation   the standard deviation of the noise of each sum
    """

    columns: Clique
    groups: tuple[tuple[int, ...], ...]
    noisy: Floats
    deviation: float


@dataclass(frozen=True)
class Estimated:
    """A distribution over a junction tree: the table of each clique, and the potentials of the measurements."""

    tree: JunctionTree
    tables: tuple[Floats, ...]
    potentials: tuple[Floats, ...]


class _Factor:
    """One measurement inside its clique: from potentials to factors, and from the clique's table to sums."""

    def __init__(self, each: NoisyMarginal, sizes: Sequence[int], tree: JunctionTree) -> None:
        # the smallest clique with the columns
        holding = [place for place, clique in enumerate(tree.cliques) if {*each.columns} <= {*clique}]
        self.place = min(holding, key=lambda place: math.prod(sizes[c] for c in tree.cliques[place]))
        clique = tree.cliques[self.place]
        self.sums = len(each.noisy)
        self.over = tuple(axis for axis, c in enumerate(clique) if c not in each.columns)
        # the sum that each cell of the columns belongs to
        self.at: Whole = np.zeros((), dtype=np.int64)
        for groups in each.groups:
            self.at = self.at[..., None] * (max(groups) + 1) + np.array(groups, dtype=np.int64)
        self.shape = [sizes[c] if c in each.columns else 1 for c in clique]

    def laid(self, values: Floats) -> Floats:
        """Align a value for each sum with the axes of the clique."""
        return values[self.at].reshape(self.shape)

    def summed(self, tables: Sequence[Floats]) -> Floats:
        """Sum the clique's table as it was measured."""
        table = tables[self.place].sum(axis=self.over)
        found: Floats = np.bincount(self.at.ravel(), table.ravel(), self.sums).astype(np.float64)
        return found


class _Product:
    """The product of a start and of the factors of all measurements, over the cliques of their junction tree."""

    def __init__(self, sizes: Sequence[int], measured: Sequence[NoisyMarginal]) -> None:
        self.tree = junction_tree(sizes, [(one, other) for one, other in _wide(measured)])
        self.shapes = [[sizes[c] for c in clique] for clique in self.tree.cliques]
        self.factors = [_Factor(each, sizes, self.tree) for each in measured]
        self.ends = np.cumsum([factor.sums for factor in self.factors])[:-1]
        self.start: list[Floats] = [np.ones([1] * len(shape)) for shape in self.shapes]
        for factor, each in zip(self.factors, measured, strict=True):
            if len(each.columns) == 1:
                share = np.maximum(each.noisy, FLOOR * each.deviation)
                self.start[factor.place] = self.start[factor.place] * factor.laid(share / share.sum())

    def marginals(self, potentials: Floats) -> tuple[tuple[Floats, ...], float]:
        """Give the normalized table of each clique, and ln Z."""
        product, top = list(self.start), 0.0
        for factor, own in zip(self.factors, np.split(potentials, self.ends), strict=True):
            most = float(own.max())
            top += most
            product[factor.place] = product[factor.place] * factor.laid(np.exp(own - most))
        whole = [np.broadcast_to(each, shape) for each, shape in zip(product, self.shapes, strict=True)]
        tables, log_sum = calibrated(self.tree, whole)
        return tables, top + log_sum

    def sums(self, tables: Sequence[Floats]) -> Floats:
        """Sum the tables as they were measured, one measurement after the other."""
        return np.concatenate([factor.summed(tables) for factor in self.factors])


def _wide(measured: Sequence[NoisyMarginal]) -> list[Clique]:
    return [each.columns for each in measured if len(each.columns) == 2]


def estimate(
    sizes: Sequence[int],
    measured: Sequence[NoisyMarginal],
    total: float,
    *,
    steps: int,
    prior: float,
    start: Sequence[Floats] = (),
) -> Estimated:
    """Find the most probable distribution, by a fixed number of steps.

    It minimizes Σ‖n·Sₖp − yₖ‖²/(2σₖ²) + prior·n·KL(p‖q) over all distributions p: Sₖ sums cells as measurement k did,
    yₖ are its noisy sums, n is the total, and in q all columns are independent, each as it was measured by itself. The
    solution is p in proportion to q·exp(ΣSₖᵀθₖ) with one potential for each sum, where θ minimizes the convex
    n·ln Z(θ) − Σ⟨θₖ, yₖ⟩ + prior·Σσₖ²‖θₖ‖²/2. This is done by L-BFGS, in units in which each sum has a curvature of
    about one. Noisy numbers and public sizes are all that enters.

    prior   the weight of a row's entropy beside the measurements
    start   potentials to begin with; measurements without any begin with zero
    """
    product = _Product(sizes, measured)
    noisy = np.concatenate([each.noisy for each in measured])
    variances = np.concatenate([np.full(len(each.noisy), each.deviation**2) for each in measured])
    pulls = np.maximum(prior * variances, _LEAST_PULL)
    unit = 1 / np.sqrt(np.maximum(noisy, 1.0) + pulls)

    def slope(place: Floats) -> tuple[float, Floats]:
        potentials = place * unit
        tables, log_sum = product.marginals(potentials)
        if not math.isfinite(log_sum):
            return math.inf, np.zeros_like(place)
        pull = pulls * potentials
        value = total * log_sum - float((potentials * noisy).sum()) + 0.5 * float((pull * potentials).sum())
        return value, (total * product.sums(tables) - noisy + pull) * unit

    first = np.zeros(len(noisy))
    if start:
        known = np.concatenate(list(start))
        first[: len(known)] = known
    potentials = _descended(slope, first / unit, unit, steps) * unit
    tables, _ = product.marginals(potentials)
    return Estimated(product.tree, tables, tuple(np.split(potentials, product.ends)))


def _descended(slope: Callable[[Floats], tuple[float, Floats]], start: Floats, unit: Floats, steps: int) -> Floats:
    """Go downhill by L-BFGS with backtracking, computing the slope a fixed number of times."""
    x = start
    value, gradient = slope(x)
    moves: list[tuple[Floats, Floats, float]] = []
    way, failed = -gradient, 0
    length = _length(way, unit)
    fall = -float((gradient * gradient).sum())
    for _ in range(steps):
        deadline.check()
        tried = x + length * way
        new_value, new_gradient = slope(tried)
        if not (math.isfinite(new_value) and new_value <= value + 1e-4 * length * fall):
            length, failed = length / 4, failed + 1
            if failed % _PATIENCE == 0 and moves:
                moves, way, fall = [], -gradient, -float((gradient * gradient).sum())
                length = _length(way, unit) / 4
            continue
        step, turn = tried - x, new_gradient - gradient
        bend = float((step * turn).sum())
        if bend > 0:
            moves = [*moves, (step, turn, bend)][-_MEMORY:]
        x, value, gradient, failed = tried, new_value, new_gradient, 0
        way = _direction(gradient, moves)
        length = _length(way, unit)
        fall = float((gradient * way).sum())
    return x


def _length(way: Floats, unit: Floats) -> float:
    """Give the share of a step that can be tried: no potential may change by more than two at once."""
    return min(1.0, _FARTHEST / max(float(np.abs(way * unit).max()), 1e-300))


def _direction(gradient: Floats, moves: Sequence[tuple[Floats, Floats, float]]) -> Floats:
    """Give the direction of L-BFGS: the slope, corrected by the curvature along earlier steps."""
    way, shares = -gradient, []
    for step, turn, bend in reversed(moves):
        shares.append(float((step * way).sum()) / bend)
        way = way - shares[-1] * turn
    if moves:
        _, turn, bend = moves[-1]
        way = way * (bend / float((turn * turn).sum()))
    for (step, turn, bend), share in zip(moves, reversed(shares), strict=True):
        way = way + step * (share - float((turn * way).sum()) / bend)
    return way
