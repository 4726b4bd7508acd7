"""Exact sampling of several choices at once, weighted by the worst of them."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.noise.choice import descend
from hubbub.noise.comparison import Fixed, exp_minus
from hubbub.noise.source import RandomSource
from hubbub.noise.uniform import uniform_below_each
from hubbub.noise.weights import Gaps, powers

Integers = NDArray[np.int64]

#: The largest number of choices, so that products of their sizes stay far below the largest double.
MAX_PARTS = 16


def choose_jointly(
    *, scores: Integers, sizes: Sequence[int], rate: Fraction, source: RandomSource
) -> NDArray[np.int64]:
    """Choose one candidate of each part in each row, with probability ∝ e^(rate·the lowest score of those chosen).

    The columns of `scores` are the candidates of all parts, one part after the other, with so many of each as `sizes`
    says. The result has one column for each part.

    Theorem (Choice by the worst part). Put all candidates into one order, the best first, and let r_i(e) be the number
    of candidates of part i up to e. Choose e with a weight of e^(rate·score of e) times the product of r_i(e) over all
    parts but its own, and then, for each other part, one of its r_i(e) candidates, uniformly. Then every combination
    has a probability ∝ e^(rate·its lowest score).
    Proof    A combination arises from one e alone: from the last of its candidates in the order, which has its lowest
             score. It then arises with the weight of e divided by that product.
    Assumes  equal scores are in a fixed order. Scores above the lowest of the parts' best scores may be cut to it: no
             combination has a higher one. The leaves are a product of at most 15 integers and a power, each rounded
             once: within 16u + 32u of their true values (`choice.descend`).
    Tested   tests/noise/test_joint_choice.py::test_combinations_have_exactly_the_stated_probabilities
             tests/noise/test_joint_choice.py::test_doubles_choose_as_enclosures_do
    """
    if not (scores.ndim == 2 and scores.dtype == np.int64 and 1 <= len(sizes) <= MAX_PARTS and min(sizes) >= 1):
        raise ParameterError("HB103", "The scores are not int64 rows of several parts.", "Pass one part or more.")
    starts = [0, *accumulate(sizes)]
    if starts[-1] != scores.shape[1]:
        raise ParameterError("HB103", "The scores do not have the stated sizes.", "Pass one score per candidate.")
    part = np.repeat(np.arange(len(sizes)), sizes)
    bests = [scores[:, start:end].max(axis=1) for start, end in pairwise(starts)]
    best = np.min(bests, axis=0)[:, np.newaxis]
    cut = np.minimum(scores, best)
    order = np.argsort(-cut, axis=1, kind="stable")
    gaps = (best - np.take_along_axis(cut, order, axis=1)).astype(np.uint64)
    parts = part[order]
    ranks = [np.cumsum(parts == i, axis=1) for i in range(len(sizes))]
    leaves = powers(rate).of(gaps.ravel()).reshape(gaps.shape)
    for i, rank in enumerate(ranks):
        leaves = leaves * np.where(parts == i, 1, rank)
    share = _shares(gaps, parts, ranks, rate)
    last = descend(leaves, share, source)
    rows = np.arange(len(scores))
    chosen = np.empty((len(scores), len(sizes)), dtype=np.int64)
    for i, rank in enumerate(ranks):
        # the last candidate of its own part, and any of those up to it of another
        total = rank[rows, last]
        own = parts[rows, last] == i
        drawn = uniform_below_each(bounds=np.maximum(total, 1), source=source)
        place = np.argmax(rank > np.where(own, total - 1, drawn)[:, np.newaxis], axis=1)
        chosen[:, i] = order[rows, place] - starts[i]
    return chosen


def _shares(
    gaps: Gaps, parts: Integers, ranks: Sequence[Integers], rate: Fraction
) -> Callable[[int, slice, slice], Callable[[int], Fixed]]:
    def total(row: int, leaves: slice, bits: int) -> Fixed:
        weights: dict[int, int] = {}
        counts = zip(*(rank[row, leaves].tolist() for rank in ranks), strict=True)
        for gap, own, each in zip(gaps[row, leaves].tolist(), parts[row, leaves].tolist(), counts, strict=True):
            weights[gap] = weights.get(gap, 0) + prod(each[:own]) * prod(each[own + 1 :])
        powers_at = [(exp_minus(rate * gap)(bits), weight) for gap, weight in weights.items()]
        return sum(low * weight for (low, _), weight in powers_at), sum(high * w for (_, high), w in powers_at)

    def share(row: int, left: slice, right: slice) -> Callable[[int], Fixed]:
        def at(bits: int) -> Fixed:
            # light subtrees are reached with negligible probability; more digits enclose them as well
            for more in (32, 256, 4096):
                (low, high), (other_low, other_high) = total(row, left, bits + more), total(row, right, bits + more)
                if low + other_low > 0:
                    break
            return (low << bits) // max(1, low + other_high), -(-(high << bits) // max(1, high + other_low))

        return at

    return share
