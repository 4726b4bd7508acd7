"""Shared parts of the Laplace and Gaussian mechanisms: adding noise to integers and listing distributions.

Tested in tests/mechanisms/test_contract.py.
"""

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hubbub.core.distributions import NoiseDistribution, least
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import Interval
from hubbub.errors import MechanismError
from hubbub.mechanisms.base import Integers, Outcome

#: Maximum number of outcomes of a listed distribution.
MAX_OUTCOMES = 1_000_000
#: Probability that listed distributions of unbounded noise leave out, unless they are clamped into a window.
UNLISTED = Fraction(1, 10**30)

Sampler = Callable[[int], NDArray[np.int64]]
Window = tuple[int, int]

_INT64 = np.iinfo(np.int64)
_AS_INTEGERS = np.frompyfunc(operator.index, 1, 1)


@overload
def add(value: int, sampler: Sampler) -> int: ...
@overload
def add(value: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]: ...
@overload
def add(value: NDArray[np.object_], sampler: Sampler) -> NDArray[np.object_]: ...
@overload
def add(value: int | Integers, sampler: Sampler) -> int | Integers: ...
def add(value: int | Integers, sampler: Sampler) -> int | Integers:
    """Add independent noise to an integer or to each coordinate of an array of any shape.

    Python ints and arrays of them (dtype object) are added exactly. int64 stays int64 and saturates: the answer is then
    min(max(value + noise, −2⁶³), 2⁶³−1), a function of the exact noisy value, so the privacy guarantee holds and
    nothing wraps around.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value + int(sampler(1)[0])
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return _saturating(value.astype(np.int64), sampler(value.size).reshape(value.shape))
    if isinstance(value, np.ndarray) and value.dtype == object:
        integers: NDArray[np.object_] = np.asarray(_AS_INTEGERS(value), dtype=object)
        integers += sampler(value.size).reshape(value.shape).astype(object)
        return integers
    raise MechanismError(
        "HB612",
        "Noise can be added only to an int, an int64 array or an object array of ints.",
        "Round real numbers to a grid first (hubbub.mechanisms.grid).",
    )


def _saturating(value: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    with np.errstate(over="ignore"):
        wrapped = value + noise
    # a sum overflows if and only if both terms have one sign and the sum has the other
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
    """List the distribution of value + Z; with a window, clamped into it, so that its end points hold the tails."""
    if isinstance(value, tuple):
        return independent([distribution(noise, coordinate, window) for coordinate in value])
    if window is None:
        reach = least(lambda w: noise.tail(w + 1).high <= UNLISTED / 2, noise.guess(float(UNLISTED / 2)))
        check_size(2 * reach + 1)
        return FiniteDistribution({value + z: noise.mass(z).enclosure for z in range(-reach, reach + 1)}, UNLISTED)
    low, high = window
    if not low < high:
        raise MechanismError("HB613", "The window has fewer than two outcomes.", "Pass (low, high) with low < high.")
    check_size(high - low + 1)
    mass = {y: noise.mass(y - value).enclosure for y in range(low + 1, high)}
    # the noise is symmetric, so the mass at or below `low` is a tail as well
    return FiniteDistribution(
        {low: noise.tail(value - low).enclosure, **mass, high: noise.tail(high - value).enclosure}
    )


def independent(distributions: Sequence[FiniteDistribution[Outcome]]) -> FiniteDistribution[tuple[Outcome, ...]]:
    """Return the joint distribution of independent coordinates; the unlisted masses add up."""
    size = 1
    for coordinate in distributions:
        size *= len(coordinate.mass)
    check_size(size)
    chances: list[tuple[tuple[Outcome, ...], Interval]] = [((), Interval.of(1))]
    for marginal in distributions:
        listed = [(value, Interval.of(chance)) for value, chance in marginal.mass.items()]
        chances = [((*values, value), chance * more) for values, chance in chances for value, more in listed]
    mass = {outcome: chance.enclosure for outcome, chance in chances}
    return FiniteDistribution(mass, sum((marginal.tail for marginal in distributions), Fraction(0)))


def check_size(size: int) -> None:
    """Raise if a distribution has too many outcomes to list."""
    if size > MAX_OUTCOMES:
        raise MechanismError(
            "HB610",
            f"The distribution has more than {MAX_OUTCOMES} outcomes.",
            "Use a smaller scale or window.",
        )
