"""Points of the cube [-1, 1]^d from numeric columns, and back.

Each column is put on [-1, 1] by its bounds: x ↦ 2·(x − low)/(high − low) − 1, so that every column weighs the same in a
distance. What lies outside of declared bounds is put on the nearer bound. Bounds that are taken from the data are the
least and the greatest value: two people's values, published exactly. A row with a missing value is left out.

The theory assumes that no two points are equal. A column with a `step` (1 for whole numbers) is spread: each value gets
its own random place within half a step around it, and is put back on its step when it is published.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.neighbors import Floats, Indices
from hubbub.errors import CrowdError


@dataclass(frozen=True, slots=True)
class Axis:
    """A column and its scale: bounds, the step of its values where it has one, and who said so."""

    name: str
    low: float
    high: float
    step: float | None = None
    declared: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise CrowdError(
                "HB621",
                f"the bounds of {self.name} are not two numbers, the smaller first.",
                f"Give them, as in {self.name}=0:100.",
            )
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise CrowdError("HB621", f"the step of {self.name} does not fit its bounds.", "Whole numbers have step 1.")

    @property
    def half(self) -> float:
        """Half a step, by which the cube is wider than the bounds on both sides."""
        return (self.step or 0.0) / 2


@dataclass(frozen=True, eq=False)
class Points:
    """n points of the cube [-1, 1]^d, with what their coordinates stand for, and the rows they were made of."""

    axes: tuple[Axis, ...]
    values: Floats
    kept: Indices = field(repr=False)
    left_out: int = 0

    def columns(self, values: Floats) -> dict[str, Floats]:
        """Give points of the cube (these, or sanitized ones) in the units of their columns; steps are rounded to."""
        given = {}
        for place, axis in enumerate(self.axes):
            found = self.unscaled(values[:, place], place)
            whole = found if axis.step is None else np.rint((found - axis.low) / axis.step) * axis.step + axis.low
            given[axis.name] = whole
        return given

    def unscaled(self, values: Floats, place: int) -> Floats:
        """Give coordinates, such as the edges of cells, in the units of their column."""
        axis = self.axes[place]
        low, high = axis.low - axis.half, axis.high + axis.half
        return low + (values + 1) / 2 * (high - low)


def points(
    columns: Mapping[str, NDArray[Any]],
    names: Sequence[str],
    *,
    rng: np.random.Generator,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    steps: Mapping[str, float] | None = None,
) -> Points:
    """Make points of some columns; bounds that are not given are taken from the data, which publishes two values."""
    if not names or len(set(names)) < len(names):
        raise CrowdError("HB620", "no columns are named, or one twice.", "Name each numeric column once.")
    for name in (*names, *(bounds or ()), *(steps or ())):
        if name not in columns or name not in names:
            raise CrowdError("HB620", f"{name[:60]!r} is not among the columns.", f"They are: {', '.join(columns)}.")
        if columns[name].dtype.kind not in "iufb":
            raise CrowdError(
                "HB620", f"the column {name} does not hold numbers.", "Leave it out, or code it as numbers."
            )
    table = np.column_stack([columns[name].astype(np.float64) for name in names])
    whole = np.asarray(np.isfinite(table).all(axis=1))
    table, kept = table[whole], np.flatnonzero(whole)
    if not len(table):
        raise CrowdError("HB622", "no row has a number in every column.", "Leave out columns that are mostly missing.")
    axes = tuple(
        _axis(name, table[:, place], (bounds or {}).get(name), (steps or {}).get(name))
        for place, name in enumerate(names)
    )
    scaled = np.column_stack([_scaled(axis, table[:, place], rng) for place, axis in enumerate(axes)])
    return Points(axes, scaled, kept, int(len(whole) - len(kept)))


def _axis(name: str, values: Floats, bounds: tuple[float, float] | None, step: float | None) -> Axis:
    if bounds is not None:
        return Axis(name, *bounds, step)
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise CrowdError("HB621", f"all values of {name} are equal.", "Leave the column out, or give its bounds.")
    return Axis(name, low, high, step, declared=False)


def _scaled(axis: Axis, values: Floats, rng: np.random.Generator) -> Floats:
    found = np.clip(values, axis.low, axis.high)
    if axis.step is not None:
        found = found + rng.uniform(-axis.half, axis.half, len(found))
    low, high = axis.low - axis.half, axis.high + axis.half
    scaled: Floats = np.clip(2 * (found - low) / (high - low) - 1, -1, 1)
    return scaled
