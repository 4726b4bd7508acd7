"""The Laplace mechanism on histograms and contingency tables."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Pure
from hubbub.core.unit import Relation
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms import sensitivity
from hubbub.mechanisms.additive import Window
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource

_MAX_CELLS = 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyHistogram:
    """Laplace noise on every cell of a table of counts, empty cells included.

    Theorem (Noisy histogram). With noise of scale b on every cell, a table of counts over disjoint cells is
    D/b-private, D = rows under add/remove and 2·rows under replace, whatever the number of cells (Dwork et al. 2006,
    example 3; Dwork 2011).
    Assumes  each unit owns at most `rows` rows, each in one cell; the cells are fixed without looking at the data.
    Charges  Pure(D/b).   Error  each cell as `LaplaceEvent`; `error` holds for all cells at once.
    Tested   tests/mechanisms/test_histogram.py::test_eleven_income_bins_cost_one_epsilon_in_all
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    shape: tuple[int, ...]
    rows: int
    relation: Relation
    scale: Fraction

    def __post_init__(self) -> None:
        shape: object = self.shape
        if not isinstance(shape, tuple) or not shape:
            raise ParameterError(
                "HB101", "shape is not a tuple of sizes.", "Pass one size for each column, as in (2, 2)."
            )
        for size in self.shape:
            numbers.integer(size, "shape", 1, _MAX_CELLS)
        numbers.integer(math.prod(self.shape), "cells", 1, _MAX_CELLS)
        object.__setattr__(self, "scale", self.noise.scale)

    @classmethod
    def from_epsilon(
        cls, *, shape: tuple[int, ...], rows: int, relation: Relation, epsilon: numbers.Number
    ) -> "NoisyHistogram":
        """Calibrate the scale to D/ε."""
        l1 = sensitivity.of_histogram(rows=rows, relation=relation)
        return cls(shape=shape, rows=rows, relation=relation, scale=l1 / numbers.epsilon(epsilon))

    @property
    def noise(self) -> Laplace:
        """The mechanism on the counts as one vector."""
        l1 = sensitivity.of_histogram(rows=self.rows, relation=self.relation)
        return Laplace(sensitivity=l1, scale=self.scale)

    @property
    def event(self) -> events.LaplaceEvent:
        """The event that the ledger records: one for the whole table."""
        return self.noise.event

    @property
    def loss(self) -> Pure:
        """The privacy loss of the whole table."""
        return self.noise.loss

    def count(self, *columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count rows by their codes, one array per column; rows with a code outside the table are ignored."""
        if len(columns) != len(self.shape):
            raise MechanismError(
                "HB612", f"The table has {len(self.shape)} columns.", "Pass one array of codes for each column."
            )
        inside = np.ones(columns[0].shape, dtype=np.bool_)
        for codes, size in zip(columns, self.shape, strict=True):
            inside &= (codes >= 0) & (codes < size)
        cells = np.ravel_multi_index([codes[inside] for codes in columns], self.shape)
        counts = np.bincount(cells, minlength=math.prod(self.shape)).astype(np.int64)
        return counts.reshape(self.shape)

    def sample(self, value: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """Add noise to every cell of a table of this shape."""
        if value.shape != self.shape:
            raise MechanismError(
                "HB612", f"The table does not have the shape {self.shape}.", "Create the table with `count`."
            )
        return self.noise.sample(value, source)

    def distribution(
        self, value: NDArray[np.int64], window: Window | None = None
    ) -> FiniteDistribution[tuple[int, ...]]:
        """List the distribution for a small table, with cells in row-major order."""
        return self.noise.distribution(tuple(int(cell) for cell in value.flat), window)

    def error(self, level: Fraction) -> Fraction:
        """Return the least w with Pr[every cell is within ±w] ≥ level."""
        return self.noise.error(level, math.prod(self.shape))
