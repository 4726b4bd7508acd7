"""Record the draws of a run (mechanism, exact value, outcome), dictate their outcomes, and sample them again.

A run uses the product's own code. While it is taped, `sample` of each mechanism is the product's and its input and
outcome are recorded. On a second run the outcomes can be dictated, so that two neighbors get the same noisy answer;
then everything else must be equal on both, and an adaptive analysis runs the same queries on both. `sample_many` calls
`sample` of the recorded mechanism again on the recorded value.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.campaigns.rig.seeded_source import SeededSource

from hubbub.core.events import Composed, Event, GaussianEvent, LaplaceEvent, SelectionEvent, ThresholdEvent
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.mechanisms.partition_selection import PartitionSelection as Thresholded
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.mechanisms.top_k import TopK
from hubbub.noise.source import RandomSource
from hubbub.sql import partition_selection as discover

TAPED = (Laplace, Gaussian, Exponential, NoisyMax, PermuteAndFlip, TopK, Thresholded)
SELECTIONS = (Exponential, NoisyMax, PermuteAndFlip)

#: Maximum number of sampled coordinates: those in which neighbors differ, and a few others.
WIDTH = 24
_OTHERS = 2
_CHUNK = 1 << 20


@dataclass(frozen=True)
class KeyedCounts:
    """The exact input of partition selection: keys, and the number of units of each."""

    keys: tuple[tuple[Any, ...], ...]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class TapedDraw:
    """One draw: its mechanism, exact value, own outcome, dictated outcome, and random words."""

    mechanism: Any
    value: Any
    own: Any
    given: Any
    at: int
    words: int


@contextmanager
def tape_draws(source: SeededSource, given: Sequence[TapedDraw] | None = None) -> Iterator[list[TapedDraw]]:
    """Record every draw; with `given`, return those outcomes (each mechanism still samples)."""
    tape: list[TapedDraw] = []
    inside = False

    def noted(mechanism: Any, value: Any, draw: Callable[[], Any]) -> Any:
        nonlocal inside
        if inside:  # a mechanism that contains another one: the outer one is the draw
            return draw()
        inside, before = True, source.used
        try:
            own = draw()
        finally:
            inside = False
        dictated = given is not None and len(tape) < len(given)
        found = _dictated(given[len(tape)], value, own) if given is not None and dictated else own
        tape.append(TapedDraw(mechanism, value, own, found, before, source.used - before))
        return found

    def watched(sample: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:
            return noted(self, value, lambda: sample(self, value, source))

        return draw

    def discovered(found: Any, rule: Any, table: Any, units: str, source: Any) -> Any:
        columns = [discover._canonical(table[f"k{j}"], key.expr.kind).tolist() for j, key in enumerate(found.keys)]
        value = KeyedCounts(tuple(zip(*columns, strict=True)), np.asarray(table[units], dtype=np.int64))
        return noted(rule, value, lambda: finding(found, rule, table, units, source))

    finding = discover.sample
    before = [(kind, kind.sample) for kind in TAPED]
    try:
        for kind, sample in before:
            kind.sample = watched(sample)  # type: ignore[method-assign]
        discover.sample = discovered  # type: ignore[assignment]
        yield tape
    finally:
        discover.sample = finding
        for kind, sample in before:
            kind.sample = sample  # type: ignore[method-assign]


def _dictated(past: TapedDraw, value: Any, own: Any) -> Any:
    """Return the earlier outcome; for discovered groups, those with the same keys that exist here."""
    if not isinstance(past.given, discover.ReleasedGroups):
        return past.given.copy() if isinstance(past.given, np.ndarray) else past.given
    if not isinstance(own, discover.ReleasedGroups) or not isinstance(past.value, KeyedCounts):
        return own
    here = {key: place for place, key in enumerate(value.keys)}
    shown = [past.value.keys[place] for place in past.given.positions.tolist()]
    if not all(key in here for key in shown):
        return own
    places = np.array([here[key] for key in shown], dtype=np.int64)
    return discover.ReleasedGroups(past.given.columns, places, past.given.units)


def vector(value: Any) -> NDArray[np.int64]:
    """Return the value of a noise mechanism as a flat vector."""
    return np.asarray(value if isinstance(value, np.ndarray) else [value]).astype(np.int64).ravel()


def aligned(one: KeyedCounts, other: KeyedCounts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of all keys of either side; 0 for missing ones."""
    keys = list(dict.fromkeys((*one.keys, *other.keys)))
    sides = [dict(zip(side.keys, side.counts.tolist(), strict=True)) for side in (one, other)]
    first, second = (np.array([side.get(key, 0) for key in keys], dtype=np.int64) for side in sides)
    return first, second


def difference(one: TapedDraw, other: TapedDraw) -> NDArray[np.int64]:
    """Return the difference of the exact values of two draws, coordinate by coordinate."""
    if isinstance(one.value, KeyedCounts):
        first, second = aligned(one.value, other.value)
        return second - first
    return vector(other.value) - vector(one.value)


# --- what a pair of draws loses, exactly --------------------------------------------------------------------------


@dataclass(frozen=True)
class PairLoss:
    """Bounds on the loss of a pair of values: pure (None if unbounded) and ρ; `within`: as stated."""

    pure: Fraction | None
    rho: Fraction
    within: bool

    def __add__(self, other: "PairLoss") -> "PairLoss":
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        return PairLoss(pure, self.rho + other.rho, self.within and other.within)


NO_LOSS = PairLoss(Fraction(0), Fraction(0), within=True)


def pair_loss(one: TapedDraw, other: TapedDraw) -> PairLoss:
    """Compute the loss of a draw for the values of two neighbors, and compare with the sensitivity."""
    mechanism, moved = one.mechanism, difference(one, other)
    if isinstance(mechanism, Thresholded):
        # δ covers keys that one side lacks; noise covers the others
        both = np.array([a > 0 and b > 0 for a, b in zip(*aligned(one.value, other.value), strict=True)], dtype=bool)
        own = np.count_nonzero(~both & (moved != 0)) <= mechanism.keys * mechanism.relation.units_changed
        inner = _noise_lost(mechanism.noise, moved[both])
        return PairLoss(
            inner.pure, inner.rho, inner.within and bool(own) and int(np.abs(moved).max(initial=0)) <= most(mechanism)
        )
    if isinstance(mechanism, Laplace | Gaussian):
        return _noise_lost(mechanism, moved)
    rule = mechanism.one if isinstance(mechanism, TopK) else mechanism
    turns = mechanism.k if isinstance(mechanism, TopK) else 1
    spread = int(moved.max(initial=0)) - int(moved.min(initial=0)) if len(moved) else 0
    one_way = bool((moved >= 0).all() or (moved <= 0).all())
    within = int(np.abs(moved).max(initial=0)) <= rule.sensitivity and (one_way or not rule.monotone)
    each = rule.rate * spread
    return PairLoss(
        turns * each, turns * each * each / 8 if rule.rule == "exponential" else turns * each * each / 2, within
    )


def most(rule: Thresholded) -> int:
    """Return the maximum change of one count."""
    return rule.contribution * rule.relation.units_changed


def _noise_lost(mechanism: Laplace | Gaussian, moved: NDArray[np.int64]) -> PairLoss:
    apart = [abs(int(each)) for each in moved[moved != 0]]
    if isinstance(mechanism, Laplace):
        pure = sum(apart) / mechanism.scale
        return PairLoss(pure, pure * pure / 2, sum(apart) <= mechanism.sensitivity)
    squared = sum(each * each for each in apart)
    return PairLoss(
        None if squared else Fraction(0), squared / (2 * mechanism.variance), squared <= mechanism.sensitivity_squared
    )


def charged_loss(event: Event) -> PairLoss:
    """Return the cost of an event, as pure loss and as ρ."""
    match event:
        case LaplaceEvent(sensitivity, scale):
            return PairLoss(sensitivity / scale, (sensitivity / scale) ** 2 / 2, within=True)
        case GaussianEvent(squared, variance):
            return PairLoss(None, squared / (2 * variance), within=True)
        case SelectionEvent(rule, sensitivity, monotone, rate):
            each = rate * sensitivity * (1 if monotone else 2)
            return PairLoss(each, each * each / (8 if rule == "exponential" else 2), within=True)
        case ThresholdEvent(noise, _, _):
            return charged_loss(noise)
        case Composed(parts):
            total = NO_LOSS
            for part, count in parts:
                each_part = charged_loss(part)
                pure = None if each_part.pure is None else each_part.pure * count
                total += PairLoss(pure, each_part.rho * count, within=True)
            return total
        case _:
            raise TypeError(type(event).__name__)


def is_reproducible(draw: TapedDraw, seed: int) -> bool:
    """Return whether `sample` with the same random words reproduces the outcome of the run."""
    words = SeededSource(seed)
    words.words(draw.at)
    if isinstance(draw.value, KeyedCounts):
        # noise is sampled in the order of the keys, whatever order the engine returns
        order = np.array(sorted(range(len(draw.value.keys)), key=draw.value.keys.__getitem__), dtype=np.int64)
        places, counts = draw.mechanism.sample(draw.value.counts[order], words)
        positions = order[places]
        return sorted(zip(positions.tolist(), counts.tolist(), strict=True)) == sorted(
            zip(draw.own.positions.tolist(), draw.own.units.tolist(), strict=True)
        )
    return bool(np.array_equal(draw.mechanism.sample(draw.value, words), draw.own))


# --- many draws of the same ---------------------------------------------------------------------------------------


def is_scalar(mechanism: Any) -> bool:
    """Return whether a mechanism returns one outcome per call."""
    return isinstance(mechanism, (TopK, *SELECTIONS))


def sample_many(
    pairs: Sequence[tuple[TapedDraw, TapedDraw]], side: int, count: int, source: RandomSource
) -> NDArray[np.float64]:
    """Sample all mechanisms `count` times on the values of one side: one row per sample, one column per coordinate."""
    columns = [_many(one, other, side, count, source) for one, other in pairs if difference(one, other).any()]
    return np.hstack(columns) if columns else np.zeros((count, 1))


def _many(one: TapedDraw, other: TapedDraw, side: int, count: int, source: RandomSource) -> NDArray[np.float64]:
    mechanism = one.mechanism
    if isinstance(mechanism, Thresholded):
        counts = aligned(one.value, other.value)[side]
        keys = _chosen(difference(one, other))
        return _in_parts(count, len(keys), lambda n: _shown(mechanism, counts[keys], n, source))
    if isinstance(mechanism, Laplace | Gaussian):
        value = vector((one, other)[side].value)[_chosen(difference(one, other))]
        return _in_parts(count, len(value), lambda n: mechanism.sample(np.tile(value, (n, 1)), source))
    scores = (one, other)[side].value
    return np.array([np.atleast_1d(mechanism.sample(scores, source)) for _ in range(count)], dtype=np.float64)


def _in_parts(count: int, width: int, draw: Callable[[int], NDArray[Any]]) -> NDArray[np.float64]:
    found = np.empty((count, width))
    step = max(1, _CHUNK // max(1, width))
    for start in range(0, count, step):
        found[start : start + step] = draw(min(step, count - start))
    return found


def _shown(rule: Thresholded, counts: NDArray[np.int64], count: int, source: RandomSource) -> NDArray[np.float64]:
    found = np.full(count * len(counts), -1.0)
    positions, noisy = rule.sample(np.tile(counts, count), source)
    found[positions] = noisy
    return found.reshape(count, len(counts))


def _chosen(moved: NDArray[np.int64]) -> NDArray[np.int64]:
    changed, same = np.flatnonzero(moved), np.flatnonzero(moved == 0)
    return np.sort(np.concatenate([changed[:WIDTH], same[:_OTHERS]]))
