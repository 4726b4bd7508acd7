"""Points of the cube [-1, 1]^d from numeric columns, and back.

Each column is scaled to [-1, 1] by its bounds: x ↦ 2·(x − low)/(high − low) − 1, so that every column has the same
weight in a distance. Values outside declared bounds are clamped. Bounds taken from the data are its minimum and
maximum, which publishes two people's exact values. Rows with a missing value are dropped.

The theory assumes that no two points are equal. Values of a column with a `step` (1 for integers) are spread at random
over half a step in both directions, and rounded to the step when they are published.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.neighbors import Floats, Indices
from hubbub.errors import CrowdError


@dataclass(frozen=True, slots=True)
class ScaledColumn:
    """A column and its scale: bounds, optional step, and whether the bounds were declared."""

    name: str
    low: float
    high: float
    step: float | None = None
    declared: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise CrowdError(
                "HB621",
                f"The bounds of {self.name} are not two numbers in increasing order.",
                f"Pass them as in {self.name}=0:100.",
            )
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise CrowdError(
                "HB621",
                f"The step of {self.name} must be positive and at most the width of its bounds.",
                "Use step 1 for integers.",
            )

    @property
    def half(self) -> float:
        """Half a step: the margin of the cube beyond the bounds on both sides."""
        return (self.step or 0.0) / 2


@dataclass(frozen=True, eq=False)
class Points:
    """n points of the cube [-1, 1]^d, with their columns and the indexes of their rows."""

    axes: tuple[ScaledColumn, ...]
    values: Floats
    kept: Indices = field(repr=False)
    left_out: int = 0

    def columns(self, values: Floats) -> dict[str, Floats]:
        """Convert points of the cube (these, or sanitized ones) to the units of their columns, rounded to steps."""
        columns = {}
        for i, axis in enumerate(self.axes):
            column = self.unscaled(values[:, i], i)
            if axis.step is not None:
                column = np.rint((column - axis.low) / axis.step) * axis.step + axis.low
            columns[axis.name] = column
        return columns

    def unscaled(self, values: Floats, i: int) -> Floats:
        """Convert coordinates of the i-th column, such as the edges of cells, to its units."""
        axis = self.axes[i]
        low, high = axis.low - axis.half, axis.high + axis.half
        return low + (values + 1) / 2 * (high - low)


def make_points(
    columns: Mapping[str, NDArray[Any]],
    names: Sequence[str],
    *,
    rng: np.random.Generator,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    steps: Mapping[str, float] | None = None,
) -> Points:
    """Make points from some columns; missing bounds are taken from the data, which publishes two exact values."""
    if not names or len(set(names)) < len(names):
        raise CrowdError("HB620", "No columns were given, or one is repeated.", "Name each numeric column once.")
    for name in (*names, *(bounds or ()), *(steps or ())):
        if name not in columns or name not in names:
            raise CrowdError("HB620", f"Unknown column {name[:60]!r}.", f"Use columns from: {', '.join(columns)}.")
        if columns[name].dtype.kind not in "iufb":
            raise CrowdError("HB620", f"The column {name} is not numeric.", "Remove it, or encode it as numbers.")
    table = np.column_stack([columns[name].astype(np.float64) for name in names])
    complete = np.asarray(np.isfinite(table).all(axis=1))
    table, kept = table[complete], np.flatnonzero(complete)
    if not len(table):
        raise CrowdError("HB622", "Every row has a missing value.", "Remove columns with many missing values.")
    axes = tuple(
        _axis(name, table[:, i], (bounds or {}).get(name), (steps or {}).get(name)) for i, name in enumerate(names)
    )
    scaled = np.column_stack([_scaled(axis, table[:, i], rng) for i, axis in enumerate(axes)])
    return Points(axes, scaled, kept, int(len(complete) - len(kept)))


def _axis(name: str, values: Floats, bounds: tuple[float, float] | None, step: float | None) -> ScaledColumn:
    if bounds is not None:
        return ScaledColumn(name, *bounds, step)
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise CrowdError("HB621", f"All values of {name} are equal.", "Remove the column, or pass its bounds.")
    return ScaledColumn(name, low, high, step, declared=False)


def _scaled(axis: ScaledColumn, values: Floats, rng: np.random.Generator) -> Floats:
    clamped = np.clip(values, axis.low, axis.high)
    if axis.step is not None:
        clamped = clamped + rng.uniform(-axis.half, axis.half, len(clamped))
    low, high = axis.low - axis.half, axis.high + axis.half
    scaled: Floats = np.clip(2 * (clamped - low) / (high - low) - 1, -1, 1)
    return scaled
