"""What a case of a mechanism is, and neighbors, distances and outcomes that cases share."""

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.finite import FiniteDistribution
from hubbub.core.unit import Relation
from hubbub.mechanisms.metric import Space

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE


def array(value: Any) -> NDArray[np.int64]:
    return np.array(value, dtype=np.int64)


def same(value: Any) -> Any:
    return value


def listed(value: Any) -> Hashable:
    return tuple(value.tolist())


def half(number: Any) -> Any:
    """Half of a number; of what is none, itself."""
    return number / 2 if isinstance(number, Fraction) else number


Pairs = Callable[[Any], Iterable[tuple[Any, Any]]]


@dataclass(frozen=True)
class Case:
    """One mechanism at several privacy parameters."""

    name: str
    kind: type
    build: Callable[[Fraction], Any]
    pairs: Pairs  # of neighbors, the worst among them
    value: Any  # where samples are compared with the distribution
    distance: Callable[[Any, Any], Fraction]  # what error() bounds, from a true value and an outcome
    distribution: Callable[[Any, Any], FiniteDistribution[Hashable]] = field(
        default=lambda mechanism, value: mechanism.distribution(value)
    )
    error: Callable[[Any, Fraction], Fraction] = field(default=lambda mechanism, level: mechanism.error(level))
    to_sample: Callable[[Any], Any] = same
    to_outcome: Callable[[Any], Hashable] = same
    parameters: tuple[Fraction, ...] = (Fraction(1, 2), Fraction(1), Fraction(3))
    counts: tuple[str, ...] = ()  # fields that take a positive int
    rationals: tuple[str, ...] = ()  # fields that take a positive rational


def always(*pairs: tuple[Any, Any]) -> Pairs:
    return lambda _: pairs


def clamped(low: int, high: int) -> Callable[[Any, Any], FiniteDistribution[Hashable]]:
    return lambda mechanism, value: mechanism.distribution(value, (low, high))


def apart(value: Any, outcome: Any) -> Fraction:
    return Fraction(abs(outcome - value))


def furthest(value: Any, outcome: Any) -> Fraction:
    return Fraction(max(abs(b - a) for a, b in zip(value, outcome, strict=True)))


def score_regret(scores: Any, chosen: Any) -> Fraction:
    return Fraction(max(scores) - scores[chosen])


def top_regret(scores: Any, chosen: Any) -> Fraction:
    best = sorted(scores, reverse=True)
    return Fraction(max(0, *(best[turn] - scores[each] for turn, each in enumerate(chosen))))


def hopeless(mechanism: Any) -> int:
    """A gap at which a candidate has no weight to speak of."""
    rate: Fraction = mechanism.rate
    return math.ceil(40 / rate)


def moving_both_ways(mechanism: Any) -> Iterable[tuple[Any, Any]]:
    gap = hopeless(mechanism)
    yield (0, gap, gap), (1, gap - 1, gap - 1)
    yield (3, 2, 1), (2, 3, 2)
    yield (5, 5, 5), (5, 5, 5)


def moving_one_way(mechanism: Any) -> Iterable[tuple[Any, Any]]:
    gap = hopeless(mechanism)
    yield (0, gap, gap), (1, gap, gap)
    yield (0, gap, gap), (0, gap + 1, gap + 1)
    yield (3, 2, 1), (3, 3, 2)


def behind(mechanism: Any) -> Iterable[tuple[Any, Any]]:
    """One candidate so far behind nine others that only the tails of its noise matter."""
    gap = math.ceil(4 / mechanism.rate) + 3
    if mechanism.monotone:
        yield (0, *[gap] * 9), (1, *[gap] * 9)
        yield (*[gap] * 9, 0), (*[gap] * 9, 1)
    else:
        yield (0, *[gap] * 9), (1, *[gap - 1] * 9)
        yield (*[gap] * 9, 0), (*[gap - 1] * 9, 1)
    yield tuple(range(10)), tuple(range(1, 11))


def crossing(mechanism: Any) -> Iterable[tuple[Any, Any]]:
    """Queries that push the threshold up, then the hits; neighbors move them apart as far as they may."""
    high = math.ceil(4 * mechanism.query_scale)
    push, hits = [high] * (10 - mechanism.hits), [0] * mechanism.hits
    moved = hits if mechanism.monotone else [-1] * mechanism.hits
    yield (*push, *hits), (*(q + 1 for q in push), *moved)
    yield (
        (*push, *hits),
        (*(q - 1 for q in push), *([-1] * mechanism.hits if mechanism.monotone else [1] * mechanism.hits)),
    )
    yield (0, 1, 2, 1), (1, 2, 3, 2)


def wrongness(queries: Any, answers: Any) -> Fraction:
    return Fraction(max((-q if above else q) for q, above in zip(queries, answers, strict=False)))


def star(leaves: int) -> Space:
    """Point 0 and many leaves around point 1: far more points are near to 1 than to 0."""
    table = 2 - 2 * np.eye(leaves + 2, dtype=np.int64)
    table[1, :] = table[:, 1] = 1
    table[1, 1] = 0
    return Space(Fraction(1), tuple(tuple(map(int, row)) for row in table))


def cycle(points: int) -> Space:
    step = np.arange(points)
    around = np.abs(step[:, None] - step[None, :])
    return Space.of(np.minimum(around, points - around).tolist())


def shown(given: Any) -> Hashable:
    """What `PartitionSelection.sample` gives for one key, in the form of its distribution."""
    return (int(given[1][0]) if len(given[0]) else None,)


def shown_apart(value: Any, outcome: Any) -> Fraction:
    return Fraction(max((abs(b - a) for a, b in zip(value, outcome, strict=True) if b is not None), default=0))


def slips(mechanism: Any) -> Iterable[tuple[Any, Any]]:
    c, much = mechanism.contribution, mechanism.threshold + 4
    if mechanism.relation is ADD_REMOVE:
        yield (much, much, 0), (much + c, much + c, 0)  # the noise's own loss
        yield (5, 0, 0), (5, c, c)  # two keys of one unit
        yield (5, 0, 0), (5 + c, c, 0)
    else:
        yield (much, much + c, 0), (much + c, much, 0)
        yield (5, c, 0), (5, 0, c)
        yield (5 + c, 0, 0), (5, 0, c)


def lumped(mechanism: Any, value: Any) -> FiniteDistribution[Hashable]:
    distribution: FiniteDistribution[Hashable] = mechanism.distribution(
        value, mechanism.threshold + 4 + mechanism.contribution + 1
    )
    return distribution


def far_above(mechanism: Any) -> tuple[int, int]:
    spread = 10 * math.isqrt(math.ceil(mechanism.noise.variance))
    return mechanism.threshold + spread, mechanism.threshold + 2 * spread


def local_apart(value: Any, outcome: Any) -> Fraction:
    return Fraction(0 if outcome is None else abs(outcome - value.value))
