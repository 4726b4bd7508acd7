"""Points of the cube [-1, 1]^d from numeric and text columns, and back.

Each column is scaled to [-1, 1] by its bounds: x ↦ 2·(x − low)/(high − low) − 1, so that every column has the same
weight in a distance. Values outside declared bounds are clamped. Bounds taken from the data are its minimum and
maximum, which publishes two people's exact values. Rows with a missing value are dropped.

The theory assumes that no two points are equal. Values of a column with a `step` (1 for integers) are spread at random
over half a step in both directions, and rounded to the step when they are published.

A text column with m categories takes m coordinates (`CategoryColumn`): any two categories are as far apart as the two
bounds of a number. Sanitized points get the nearest category.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.neighbors import Floats, Indices
from hubbub.errors import CrowdError

MAX_CATEGORIES = 50
_CORNER = 0.5**0.5


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

    width = 1

    def plain(self, coordinates: Floats) -> Floats:
        """Convert coordinates, such as the edges of cells, to the units of the column."""
        low, high = self.low - self.half, self.high + self.half
        return low + (coordinates[:, 0] + 1) / 2 * (high - low)

    def published(self, coordinates: Floats) -> Floats:
        """Convert coordinates to values of the column, rounded to its step."""
        column = self.plain(coordinates)
        return column if self.step is None else np.rint((column - self.low) / self.step) * self.step + self.low


@dataclass(frozen=True, slots=True)
class CategoryColumn:
    """A text column: its categories, each a corner of a regular simplex, and whether they were declared.

    Theorem (Discrete metric). Category a has coordinate +1/√2 at a and −1/√2 elsewhere. Two categories differ in two
    coordinates by √2 each, so any two are at distance 2, the width of a numeric column; and the largest coordinate of a
    point names its nearest category.
    Proof    ‖x − v_a‖² = ‖x‖² + ‖v_a‖² − 2⟨x, v_a⟩, where all ‖v_a‖ are equal and ⟨x, v_a⟩ grows with x_a.
    Tested   tests/crowd/test_points.py::test_categories_are_as_far_apart_as_the_bounds_of_a_number
    """

    name: str
    values: tuple[str, ...]
    declared: bool = True

    def __post_init__(self) -> None:
        if not 2 <= len(self.values) <= MAX_CATEGORIES or len(set(self.values)) < len(self.values):
            raise CrowdError(
                "HB686",
                f"The text column {self.name} does not have 2 to {MAX_CATEGORIES} distinct categories.",
                "Group rare values first, or remove the column.",
            )

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return len(self.values)

    def coordinates(self, texts: NDArray[Any]) -> Floats:
        """Return the corner of each text."""
        corner: Floats = np.where(texts[:, None] == np.array(self.values, dtype=object), _CORNER, -_CORNER)
        return corner

    def published(self, coordinates: Floats) -> NDArray[Any]:
        """Return the nearest category of each point."""
        return np.asarray(np.array(self.values, dtype=object)[coordinates.argmax(axis=1)])


Column = ScaledColumn | CategoryColumn


@dataclass(frozen=True, eq=False)
class Points:
    """n points of the cube [-1, 1]^d, with their columns and the indexes of their rows."""

    axes: tuple[Column, ...]
    values: Floats
    kept: Indices = field(repr=False)
    left_out: int = 0

    @property
    def spans(self) -> list[tuple[Column, slice]]:
        """Each column with its coordinates."""
        ends = np.cumsum([axis.width for axis in self.axes]).tolist()
        return [(axis, slice(end - axis.width, end)) for axis, end in zip(self.axes, ends, strict=True)]

    def columns(self, values: Floats) -> dict[str, NDArray[Any]]:
        """Convert points of the cube (these, or sanitized ones) to values of their columns."""
        return {axis.name: axis.published(values[:, at]) for axis, at in self.spans}


def make_points(
    columns: Mapping[str, NDArray[Any]],
    names: Sequence[str],
    *,
    rng: np.random.Generator,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    steps: Mapping[str, float] | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> Points:
    """Make points from some columns; bounds and categories that are not given are taken from the data, and published.

    Rows with a missing number, an empty text or a category that was not declared are dropped.
    """
    if not names or len(set(names)) < len(names):
        raise CrowdError("HB620", "No columns were given, or one is repeated.", "Name each column once.")
    for name in (*names, *(bounds or ()), *(steps or ()), *(categories or ())):
        if name not in columns or name not in names:
            raise CrowdError("HB620", f"Unknown column {name[:60]!r}.", f"Use columns from: {', '.join(columns)}.")
    # a column of numbers with declared categories holds codes
    text = {name for name in names if columns[name].dtype.kind not in "iufb" or name in (categories or ())}
    wrong = sorted(text & {*(bounds or ()), *(steps or ())})
    if wrong:
        raise CrowdError(
            "HB620", f"{wrong[0]} has categories, so it takes no bounds and no step.", "Remove --bounds and --step."
        )
    complete = np.ones(len(columns[names[0]]), dtype=np.bool_)
    for name in names:
        complete &= _present(columns[name], (categories or {}).get(name), is_text=name in text)
    if not complete.any():
        raise CrowdError("HB622", "Every row has a missing value.", "Remove columns with many missing values.")
    axes: list[Column] = []
    scaled: list[Floats] = []
    for name in names:
        values = columns[name][complete]
        if name in text:
            axis = _categories(name, values, (categories or {}).get(name))
            axes.append(axis)
            scaled.append(axis.coordinates(values.astype(str).astype(object)))
        else:
            reals = values.astype(np.float64)
            number = _axis(name, reals, (bounds or {}).get(name), (steps or {}).get(name))
            axes.append(number)
            scaled.append(_scaled(number, reals, rng)[:, None])
    kept = np.flatnonzero(complete)
    return Points(tuple(axes), np.hstack(scaled), kept, int(len(complete) - len(kept)))


def _present(values: NDArray[Any], listed: Sequence[str] | None, *, is_text: bool) -> NDArray[np.bool_]:
    if not is_text:
        return np.asarray(np.isfinite(values.astype(np.float64)))
    texts = values.astype(str)
    return np.asarray(texts != "" if listed is None else np.isin(texts, list(listed)))


def _categories(name: str, values: NDArray[Any], listed: Sequence[str] | None) -> CategoryColumn:
    if listed is not None:
        return CategoryColumn(name, tuple(listed))
    return CategoryColumn(name, tuple(sorted(set(values.astype(str).tolist()))), declared=False)


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
