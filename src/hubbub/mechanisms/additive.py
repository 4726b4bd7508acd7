"""What Laplace and Gaussian noise have in common: noise is added to integers, one by one, and the distributions multiply."""

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hubbub.core.distributions import NoiseDistribution, least
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import Interval
from hubbub.errors import MechanismError
from hubbub.mechanisms.base import Integers, Outcome

#: The largest distribution that is written out.
MAX_OUTCOMES = 1_000_000
#: What the distributions of unbounded noise leave out, unless they are clamped into a window.
UNLISTED = Fraction(1, 10**30)

Draw = Callable[[int], NDArray[np.int64]]
Window = tuple[int, int]

_INT64 = np.iinfo(np.int64)
_AS_INTEGERS = np.frompyfunc(operator.index, 1, 1)


@overload
def add(value: int, draw: Draw) -> int: ...
@overload
def add(value: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]: ...
@overload
def add(value: NDArray[np.object_], draw: Draw) -> NDArray[np.object_]: ...
@overload
def add(value: int | Integers, draw: Draw) -> int | Integers: ...
def add(value: int | Integers, draw: Draw) -> int | Integers:
    """Add independent noise to an integer or to each coordinate of an array of any shape.

    Python ints and arrays of them (dtype object) are added exactly. int64 stays int64 and saturates at its ends: the
    answer is then min(max(value + noise, −2⁶³), 2⁶³−1), a function of the exact noisy value, so nothing is lost of the
    promise and nothing wraps around.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value + int(draw(1)[0])
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return _saturating(value.astype(np.int64), draw(value.size).reshape(value.shape))
    if isinstance(value, np.ndarray) and value.dtype == object:
        integers: NDArray[np.object_] = np.asarray(_AS_INTEGERS(value), dtype=object)
        integers += draw(value.size).reshape(value.shape).astype(object)
        return integers
    raise MechanismError(
        "HB612",
        "noise is added to an int, an int64 array or an object array of ints.",
        "Put real numbers on a grid first (hubbub.mechanisms.grid).",
    )


def _saturating(value: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    with np.errstate(over="ignore"):
        wrapped = value + noise
    # a sum wraps if and only if both terms have one sign and the sum has the other
    over = ((value ^ wrapped) & (noise ^ wrapped)) < 0
    return np.where(over, np.where(value < 0, _INT64.min, _INT64.max), wrapped)


@overload
def distribution(noise: NoiseDistribution, value: int, window: Window | None) -> FiniteDistribution[int]: ...
@overload
def distribution(
    noise: NoiseDistribution, value: tuple[int, ...], window: Window | None
) -> FiniteDistribution[tuple[int, ...]]: ...
@overload
def distribution(
    noise: NoiseDistribution, value: int | tuple[int, ...], window: Window | None
) -> FiniteDistribution[int] | FiniteDistribution[tuple[int, ...]]: ...
def distribution(
    noise: NoiseDistribution, value: int | tuple[int, ...], window: Window | None
) -> FiniteDistribution[int] | FiniteDistribution[tuple[int, ...]]:
    """Write out value + Z; with a window, of that clamped into it, so that the end points hold the tails."""
    if isinstance(value, tuple):
        return independent([distribution(noise, each, window) for each in value])
    if window is None:
        reach = least(lambda w: noise.tail(w + 1).high <= UNLISTED / 2, noise.guess(float(UNLISTED / 2)))
        check_size(2 * reach + 1)
        return FiniteDistribution({value + z: noise.mass(z).enclosure for z in range(-reach, reach + 1)}, UNLISTED)
    low, high = window
    if not low < high:
        raise MechanismError("HB613", "a window holds at least two outcomes.", "Give (low, high) with low < high.")
    check_size(high - low + 1)
    mass = {y: noise.mass(y - value).enclosure for y in range(low + 1, high)}
    # Z and −Z have one distribution, so what lies at or below `low` is a tail as well
    return FiniteDistribution(
        {low: noise.tail(value - low).enclosure, **mass, high: noise.tail(high - value).enclosure}
    )


def independent(distributions: Sequence[FiniteDistribution[Outcome]]) -> FiniteDistribution[tuple[Outcome, ...]]:
    """Multiply distributions of independent coordinates; what is not listed of any of them is not listed of the whole."""
    size = 1
    for each in distributions:
        size *= len(each.mass)
    check_size(size)
    mass = {}
    for outcome in product(*(each.mass for each in distributions)):
        chance = Interval.of(1)
        for each, coordinate in zip(distributions, outcome, strict=True):
            chance *= Interval.of(each.mass[coordinate])
        mass[outcome] = chance.enclosure
    return FiniteDistribution(mass, sum((each.tail for each in distributions), Fraction(0)))


def check_size(size: int) -> None:
    """Refuse to write out a distribution of more outcomes than anyone can read."""
    if size > MAX_OUTCOMES:
        raise MechanismError(
            "HB610",
            f"this distribution has more than {MAX_OUTCOMES} outcomes.",
            "Write it out for a smaller scale or window.",
        )
