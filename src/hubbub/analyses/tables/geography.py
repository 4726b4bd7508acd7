"""Hierarchical counts: non-negative integers that add up at every level.

CALL geography(table => 'people', column => 'county', places => {'North': ['a', 'b'], 'South': ['c']},
               columns => ['sex'])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, Self

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.tables.axes import Axis, axes, axis
from hubbub.analyses.tables.consistency import Floats, Whole, ends
from hubbub.analyses.tables.hierarchy import Tree, least_squares_counts, nested, prefixed, whole
from hubbub.analyses.tables.marginals import CountKind, Counts, Marginal, counts, marginal
from hubbub.analyses.tables.strategy_search import descend
from hubbub.analyses.tables.table_release import (
    TableRelease,
    expected,
    free,
    noise_line,
    opening_lines,
    table_budgets,
    table_release,
)
from hubbub.answers.cell_text import Cell
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.core.numbers import Number
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget
from hubbub.sql.release_size import NUMBER, labels_width

#: The columns of the answer besides those of the table.
LEVEL, COUNT = "level", "count"
TOTAL = "total"
#: Minimum share of the budget of a level.
_LEAST = 0.02


def geography(
    setting: Setting,
    *,
    table: str,
    column: str,
    places: object,
    columns: list[object] | None = None,
    levels: list[str] | None = None,
    weights: list[Number] | None = None,
    noise: str | None = None,
    count: CountKind = "rows",
    where: str | None = None,
) -> TableRelease:
    """Prepare counts at all levels of a hierarchy of places.

    column    the column with the smallest places
    places    the tree over its values: {'North': ['a', 'b'], 'South': ['c']}, or the prefix lengths of codes, [2, 5]
    columns   axes to cross the places with, as in a contingency table
    levels    the names of the levels, the widest first, the smallest places last
    weights   the importance of each level, the total first: the weighted mean variance over all levels is minimized
    """
    on = axis(setting.table(table), column)
    others = axes(setting.table(table), columns) if columns else ()
    if any(each.name == on.name for each in others):
        raise QueryError("HB590", f"{on.name} is also listed in columns.", "Remove it from columns.")
    tree = prefixed(on.labels, places) if isinstance(places, list) else nested(on.labels, places)
    asked = marginal(setting, table, [on, *others], count=count, where=where)
    names = _names(tree, on, levels)
    texts = labels_width(name for level in tree.levels for name in level.names)
    widths = [labels_width(names), texts, *(labels_width(each.labels) for each in others), NUMBER]
    setting.fits(sum(level.size for level in tree.levels) * (asked.size // on.size), widths)
    matters = _weights(tree, weights)
    options = [_measured(asked, tree, names, matters, each) for each in table_budgets(setting, noise)]
    chosen = min(options, key=lambda each: _error(tree, each.variances, matters))
    cells = asked.size // on.size
    lines = [
        noise_line(f"{share:.1%} for {name} ({level.size * cells:,} counts)", moved, mechanism)
        for name, level, share, moved, mechanism in zip(
            names, tree.levels, chosen.shares, chosen.moved, chosen.mechanisms, strict=True
        )
    ]
    return table_release(
        setting,
        asked,
        chosen.budget,
        chosen.mechanisms,
        derivation=(
            *opening_lines(asked, count),
            *lines,
            "counts are made to add up, whole and not negative, from the total down",
        ),
        expected=chosen.expected,
        publish=partial(_publish, chosen),
    )


@dataclass(frozen=True)
class _LevelNoise:
    """The levels with their noise."""

    asked: Marginal
    tree: Tree
    names: tuple[str, ...]
    budget: NoiseBudget
    shares: tuple[float, ...]
    moved: tuple[Sensitivity, ...]
    mechanisms: tuple[AdditiveNoise, ...]
    variances: tuple[float, ...]

    @property
    def expected(self) -> tuple[Expected, ...]:
        spreads = least_squares_counts(
            self.tree, [np.zeros((level.size, 1)) for level in self.tree.levels], self.variances
        )[1]
        return tuple(
            expected(name, self.budget.half_width(sqrt(float(each.mean()))))
            for name, each in zip(self.names, spreads, strict=True)
        )


def _measured(
    asked: Marginal, tree: Tree, names: tuple[str, ...], matters: Sequence[float], budget: NoiseBudget
) -> _LevelNoise:
    cells = asked.size // tree.levels[-1].size
    moved = tuple(asked.part(level.size * cells) for level in tree.levels)
    spreads = [budget.deviation(each) for each in moved]
    power = 2 if budget.noise == "laplace" else 1

    def variances(shares: Floats) -> tuple[float, ...]:
        return tuple(float(spread**2 / share**power) for spread, share in zip(spreads, shares, strict=True))

    def error(root: Floats) -> float:
        return _error(tree, variances(root**2 / float(root @ root)), matters)

    def slope(root: Floats) -> tuple[float, Floats]:
        small = 1e-5
        turned = [(error(root + small * way) - error(root - small * way)) / (2 * small) for way in np.eye(len(root))]
        return error(root), np.array(turned)

    found = descend(slope, np.full(len(moved), 1 / sqrt(len(moved)))) ** 2
    shares = np.maximum(found / found.sum(), _LEAST)
    shares /= shares.sum()
    chosen: list[float] = shares.tolist()
    drawn = tuple(budget.deviation(each, share) ** 2 for each, share in zip(moved, chosen, strict=True))
    return _LevelNoise(asked, tree, names, budget, tuple(chosen), moved, budget.mechanisms(moved, chosen), drawn)


def _error(tree: Tree, variances: Sequence[float], matters: Sequence[float]) -> float:
    """Give the weighted mean variance over levels."""
    spreads = least_squares_counts(tree, [np.zeros((level.size, 1)) for level in tree.levels], variances)[1]
    return sum(weight * float(each.mean()) for weight, each in zip(matters, spreads, strict=True))


def _names(tree: Tree, on: Axis, levels: object) -> tuple[str, ...]:
    below = len(tree.levels) - 1
    if levels is None:
        return (TOTAL, *(f"level {place}" for place in range(1, below)), on.name)
    if not isinstance(levels, list) or len(levels) != below or len({*map(str, levels), TOTAL}) != below + 1:
        raise QueryError("HB590", f"There are {below} levels below the total.", "List one distinct name for each.")
    return (TOTAL, *map(str, levels))


def _weights(tree: Tree, weights: object) -> tuple[float, ...]:
    if weights is None:
        return (1.0,) * len(tree.levels)
    if not isinstance(weights, list) or len(weights) != len(tree.levels):
        raise QueryError(
            "HB590",
            f"weights must list {len(tree.levels)} numbers, one for each level, the total first.",
            "Correct the list.",
        )
    exact = [
        numbers.in_range(each, "a weight", numbers.exact("1/1000", ""), numbers.exact(1000, "")) for each in weights
    ]
    return tuple(map(float, exact))


def _publish(measured: _LevelNoise, run: Run) -> Published:
    tree = measured.tree
    run.progress(0.1, "counting")

    def drawn(found: tuple[Counts, ...]) -> list[Floats]:
        sums = tree.sums(found[0].reshape(tree.levels[-1].size, -1))
        noisy = [m.sample(each, run.source) for m, each in zip(measured.mechanisms, sums, strict=True)]
        return [each.astype(np.float64) for each in noisy]

    noisy = counts(run, [measured.asked]).through(drawn)
    run.progress(0.5, "adding up")
    middle, spreads = least_squares_counts(tree, noisy, measured.variances)
    found = whole(tree, middle)
    run.progress(0.9, "writing")
    return Published(_outputs(measured, found, middle, spreads), _model(measured, found, spreads))


def _outputs(
    measured: _LevelNoise, found: Sequence[Whole], middle: Sequence[Floats], spreads: Sequence[Floats]
) -> tuple[Output, ...]:
    on, *others = measured.asked.axes
    shape = measured.asked.shape[1:]
    inner = np.indices(shape).reshape(len(shape), int(np.prod(shape)))
    keys = [np.array([*other.labels, None], dtype=object)[own] for other, own in zip(others, inner, strict=True)]
    levels: list[Cell] = []
    names: list[Cell] = []
    values: list[Cell] = []
    low: list[float | None] = []
    high: list[float | None] = []
    labels: list[list[Cell]] = [[] for _ in others]
    for name, level, own, centre, spread in zip(
        measured.names, measured.tree.levels, found, middle, spreads, strict=True
    ):
        size = own.shape[1]
        half = np.repeat(measured.budget.half_width(1.0) * np.sqrt(spread), size)
        lower, upper = ends(own.ravel(), centre.ravel(), half)
        levels += [name] * own.size
        names += np.repeat(np.array(level.names, dtype=object), size).tolist()
        for column, key in zip(labels, keys, strict=True):
            column += np.tile(key, level.size).tolist()
        values += own.ravel().tolist()
        low += lower
        high += upper
    taken = {each.name for each in measured.asked.axes}
    return (
        Output(free(LEVEL, taken), "text", levels),
        Output(on.name, "text", names),
        *(Output(other.name, other.kind.value, own) for other, own in zip(others, labels, strict=True)),
        Output(free(COUNT, taken), "integer", values, low, high),
    )


def _model(measured: _LevelNoise, found: Sequence[Whole], spreads: Sequence[Floats]) -> dict[str, Any]:
    return {
        "columns": [each.name for each in measured.asked.axes[1:]],
        "shape": list(measured.asked.shape[1:]),
        "noise": measured.budget.noise,
        "levels": [
            {
                "name": name,
                "places": list(level.names),
                "parents": level.parents.tolist(),
                "counts": own.tolist(),
                "share": share,
                "error": measured.budget.half_width(sqrt(float(spread.mean()))),
            }
            for name, level, own, share, spread in zip(
                measured.names, measured.tree.levels, found, measured.shares, spreads, strict=True
            )
        ],
    }


class Geography:
    """The model of hierarchical counts: at each level, the count or the table of each place."""

    def __init__(self, levels: Sequence[dict[str, Any]], shape: Sequence[int]) -> None:
        self._levels = {each["name"]: each for each in levels}
        self._shape = tuple(shape)

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read a release of `geography`."""
        return cls(release.model["levels"], release.model["shape"])

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, the widest first."""
        return tuple(self._levels)

    def level(self, name: str) -> dict[str, Any]:
        """Give every place of a level with its count or its table of counts; of places with one name, the last."""
        if name not in self._levels:
            raise ParameterError("HB171", f"There is no level {name!r}.", f"Available: {', '.join(self._levels)}.")
        found = self._levels[name]
        tables = np.array(found["counts"], dtype=np.int64).reshape(-1, *self._shape)
        return dict(zip(found["places"], tables if self._shape else tables.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Geography({', '.join(self._levels)})"
