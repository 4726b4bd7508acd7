"""What every mechanism is: a frozen object that can be priced, sampled, written out and bounded.

A new mechanism is one file in this folder; the contract tests pick it up by its class and ask it for cases.
"""

from collections.abc import Hashable
from fractions import Fraction
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.core.events import Event
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Loss
from hubbub.noise.source import RandomSource

#: A vector of integers: int64, or Python ints (dtype object) where 64 bits may be too few.
Integers = NDArray[np.int64] | NDArray[np.object_]

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
Outcome = TypeVar("Outcome", bound=Hashable)


@runtime_checkable
class Mechanism(Protocol[In, Out, Outcome]):
    """A randomized map from a true value to an answer, with its promise."""

    @property
    def event(self) -> Event:
        """The facts that the ledger keeps."""
        ...

    @property
    def loss(self) -> Loss:
        """The exact loss over all pairs of values that neighbors can have."""
        ...

    def sample(self, value: In, source: RandomSource) -> Out:
        """Draw one answer, exactly from `distribution(value)`."""
        ...

    def distribution(self, value: In) -> FiniteDistribution[Outcome]:
        """Write out the answer's distribution, for audit and tests; outcomes are ints, tuples and the like."""
        ...

    def error(self, level: Fraction) -> Fraction:
        """Bound the error: with probability at least `level` it is at most this (exact where the distribution allows)."""
        ...
