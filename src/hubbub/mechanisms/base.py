"""The interface of a mechanism: its event, its loss, a sampler, its distribution and its error.

A new mechanism is one file in this folder; the contract tests find its class and require test cases for it.
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
    """A randomized map from an exact value to an answer, with its privacy guarantee."""

    @property
    def event(self) -> Event:
        """The event that the ledger records."""
        ...

    @property
    def loss(self) -> Loss:
        """The exact privacy loss over all pairs of values of neighboring datasets."""
        ...

    def sample(self, value: In, source: RandomSource) -> Out:
        """Sample one answer, exactly from `distribution(value)`."""
        ...

    def distribution(self, value: In) -> FiniteDistribution[Outcome]:
        """List the distribution of the answer, for audits and tests; outcomes are hashable values."""
        ...

    def error(self, level: Fraction) -> Fraction:
        """Bound the error that holds with probability at least `level` (exactly, where possible)."""
        ...
