"""Exact sampling from a weighted list, in time that does not depend on the weights."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reals import Enclosure
from hubbub.errors import ParameterError
from hubbub.noise.comparison import Fixed, Real, below, exp_minus, fixed, locate
from hubbub.noise.source import RandomSource, Words
from hubbub.noise.weights import Doubles, Gaps, powers

#: Error bound of the doubles in `_right`, in units of 2⁻⁵³; its docstring proves 60.
BAND = 256.0
#: Encloses the probability of a left turn, from a row and the leaves on both sides.
Share = Callable[[int, slice, slice], Real]

_LIGHT = 2.0**-256  # subtrees lighter than this are decided by enclosures, not by doubles


def choose(*, scores: NDArray[np.int64], rate: Fraction, source: RandomSource) -> int:
    """Choose i with Pr[i] = e^(rate·scoreᵢ) / Σⱼ e^(rate·scoreⱼ), exactly.

    Theorem (Choice by a tree of coins). Let the candidates be the leaves of a binary tree and let each inner node lead
    to its left child with probability (weight of the left leaves)/(weight of both). Then leaf i is reached with
    probability wᵢ/Σw.
    Proof    The probabilities along the path to i telescope.
    Assumes  each coin is decided exactly: by doubles where they cannot be wrong, else by enclosures of the two sums.
    Error    none; one word per level, and the same arithmetic whatever the scores are, except where the doubles do not
             decide (probability below 2⁻³⁸ for a million candidates).
    Tested   tests/noise/test_choice.py::test_probabilities_are_the_softmax_at_50_digits
             tests/noise/test_choice.py::test_an_error_of_the_doubles_within_the_band_changes_no_choice
    """
    return int(choose_each(scores=scores[np.newaxis], rate=rate, source=source)[0])


def choose_each(*, scores: NDArray[np.int64], rate: Fraction, source: RandomSource) -> NDArray[np.int64]:
    """Choose one candidate in each row of a matrix of scores, as `choose` does for one row."""
    powers_of = powers(rate).of
    if not (scores.ndim == 2 and scores.size and scores.dtype == np.int64):
        raise ParameterError(
            "HB103", "The scores are empty or not int64.", "Pass an int64 array with at least one score."
        )
    # modulo 2^64, where the difference of two int64 always fits
    gaps = scores.max(axis=1, keepdims=True).astype(np.uint64) - scores.astype(np.uint64)
    leaves = powers_of(gaps.ravel()).reshape(gaps.shape)
    return descend(leaves, lambda row, left, right: _share(gaps[row, left], gaps[row, right], rate), source)


def descend(leaves: Doubles, share: Share, source: RandomSource) -> NDArray[np.int64]:
    """Follow the coins of the tree over each row of leaves; `share` encloses the probability of a left turn."""
    levels = [leaves]
    while levels[-1].shape[1] > 1:
        children = levels[-1]
        pairs = children[:, : children.shape[1] & ~1]
        level = pairs[:, ::2] + pairs[:, 1::2]
        levels.append(np.hstack([level, children[:, -1:]]) if children.shape[1] & 1 else level)
    words = source.words(len(leaves) * (len(levels) - 1)).reshape(len(leaves), len(levels) - 1)
    rows, node = np.arange(len(leaves)), np.zeros(len(leaves), dtype=np.int64)
    for depth in range(len(levels) - 2, -1, -1):
        node *= 2
        node += _right(levels[depth], depth, rows, node, share, words[:, depth], source)
    return node


def _right(
    level: Doubles,
    depth: int,
    rows: NDArray[np.int64],
    node: NDArray[np.int64],
    share: Share,
    words: Words,
    source: RandomSource,
) -> NDArray[np.bool_]:
    """Toss the coin of one node in each row; true means right.

    Proof of the error, with u = 2⁻⁵². A leaf is within 2⁻⁴⁸ = 16u, and each of at most 32 levels of sums adds u, so L
    and R are within 48u, and p = L/(L + R) within p(1 − p)·96u ≤ 24u; the sum and the quotient add 2u·p. Clipped leaves
    weigh less than 2³²·2⁻³⁶⁹ together, nothing beside 2⁻²⁵⁶. In units of 2⁻⁵³ this is below 53; the word's leading 53
    bits and the subtraction add 2. A leaf that is within 64u instead adds at most 48 to these.
    """
    paired = node + 1 < level.shape[1]
    left, right = level[rows, node], level[rows, np.minimum(node + 1, level.shape[1] - 1)]
    with np.errstate(invalid="ignore"):
        difference = left / (left + right) * 2.0**53 - (words >> np.uint64(11)).astype(np.float64)
    turned: NDArray[np.bool_] = paired & (difference <= 0)
    undecided = paired & ~((left + right > _LIGHT) & (np.abs(difference) > BAND))
    for row in np.flatnonzero(undecided):
        start, middle, end = (int(node[row] + step) << depth for step in (0, 1, 2))
        turned[row] = not below(share(int(row), slice(start, middle), slice(middle, end)), int(words[row]), source)
    return turned


def _share(left: Gaps, right: Gaps, rate: Fraction) -> Callable[[int], Fixed]:
    least = min(int(left.min()), int(right.min()))

    def at(bits: int) -> Fixed:
        low, high = _total(left, least, rate, bits + 32)
        other_low, other_high = _total(right, least, rate, bits + 32)
        return (low << bits) // (low + other_high), -(-(high << bits) // (high + other_low))

    return at


def _total(gaps: Gaps, least: int, rate: Fraction, bits: int) -> Fixed:
    low = high = 0
    for gap, count in zip(*np.unique(gaps, return_counts=True), strict=True):
        power_low, power_high = exp_minus(rate * (int(gap) - least))(bits)
        low, high = low + power_low * int(count), high + power_high * int(count)
    return low, high


def choose_weighted(*, weights: Callable[[int], Sequence[Enclosure]], source: RandomSource) -> int:
    """Choose i with Pr[i] = wᵢ/Σw exactly, where `weights(digits)` encloses each wᵢ ≥ 0 to about `digits` digits.

    For small finite distributions: it reads every weight, and one word decides except with probability about n·2⁻⁶⁴.
    """

    def row(bits: int) -> tuple[list[int], list[int]]:
        lows, highs = _sums(weights, bits)
        # C/(C + R) for the weight C up to here and R of the rest: increasing in C, decreasing in R
        return (
            [(low << bits) // (low + highs[-1] - high) for low, high in zip(lows, highs, strict=True)],
            [-(-(high << bits) // (high + lows[-1] - low)) for low, high in zip(lows, highs, strict=True)],
        )

    return locate(row, int(source.words(1)[0]), source)


def _sums(weights: Callable[[int], Sequence[Enclosure]], bits: int) -> tuple[list[int], list[int]]:
    digits = bits * 302 // 1000 + 12
    while digits < 1 << 16:
        enclosures = weights(digits)
        largest = max((high for _, high in enclosures), default=Fraction(0))
        if not largest > 0:
            raise ParameterError("HB103", "No weight is positive.", "Pass at least one positive weight.")
        # scaled so that the largest weight is about 1, however small or large it is
        scale = Fraction(2) ** (largest.denominator.bit_length() - largest.numerator.bit_length())
        parts = [fixed(low * scale, high * scale, bits + 32) for low, high in enclosures]
        lows, highs = list(accumulate(low for low, _ in parts)), list(accumulate(high for _, high in parts))
        if lows[-1] > 0:
            return lows, highs
        digits *= 2
    raise ParameterError(
        "HB103", "The weights cannot be distinguished from zero.", "Pass weights with narrower enclosures."
    )
