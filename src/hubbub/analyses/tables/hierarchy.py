"""A public hierarchy over the values of a column, and consistent estimates from noisy counts at all its levels.

A hierarchy is given as nested maps of lists ({'North': ['a', 'b'], 'South': ['c']}), or by the lengths of code prefixes
([2, 5] for an eleven-digit code). All leaves have the same depth.

Tested in tests/analyses/tables/test_geography.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.tables.consistency import Floats, Whole, project_to_totals, round_to_totals
from hubbub.answers.cell_text import Cell
from hubbub.errors import QueryError

Places = NDArray[np.int64]

#: Maximum number of levels below the root.
MAX_LEVELS = 8


@dataclass(frozen=True, eq=False)
class HierarchyLevel:
    """The places of one level, each with the number of its parent."""

    names: tuple[str, ...]
    parents: Places

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Tree:
    """Levels from the root (one place) to the leaves, which are in the order of the column's values."""

    levels: tuple[HierarchyLevel, ...]

    def up(self, values: NDArray[np.int64] | Floats, level: int) -> NDArray[np.int64] | Floats:
        """Sum the values of one level (places × anything) over the level above."""
        total = np.zeros((self.levels[level - 1].size, *values.shape[1:]), dtype=values.dtype)
        np.add.at(total, self.levels[level].parents, values)
        return total

    def sums(self, leaves: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Give exact sums at every level, the root first."""
        found = [leaves]
        for level in range(len(self.levels) - 1, 0, -1):
            found.insert(0, self.up(found[0], level).astype(np.int64))
        return found


def prefixed(labels: Sequence[Cell], lengths: object) -> Tree:
    """Make a tree from codes: codes with the same prefix are in the same place."""
    texts = [str(label) for label in labels]
    good = isinstance(lengths, Sequence) and not isinstance(lengths, str) and 1 <= len(lengths) < MAX_LEVELS
    if not good or not isinstance(lengths, Sequence):
        raise _unreadable("prefix lengths must be a list of integers")
    whole = [length for length in lengths if isinstance(length, int) and not isinstance(length, bool)]
    shortest = min(len(text) for text in texts)
    if len(whole) < len(lengths) or any(not a < b for a, b in zip([0, *whole], [*whole, shortest + 1], strict=True)):
        raise _unreadable(f"prefix lengths must increase and lie between 1 and {shortest}")
    return _tree([[text[:length] for length in whole] + [text] for text in texts])


def nested(labels: Sequence[Cell], tree: object) -> Tree:
    """Make a tree from nested maps of lists; its leaves are the column's values, each once."""
    paths = dict[str, list[str]]()
    for path in _paths(tree, ()):
        if path[-1] in paths:
            raise _unreadable(f"{path[-1]!r} occurs twice")
        paths[path[-1]] = list(path)
    texts = [str(label) for label in labels]
    if set(texts) != set(paths):
        odd = min(set(texts) ^ set(paths))
        raise _unreadable(f"the leaves must be the column's values, but {odd!r} is not in both")
    if len({len(path) for path in paths.values()}) > 1 or not 2 <= len(paths[texts[0]]) <= MAX_LEVELS:
        raise _unreadable(f"all leaves must have the same depth, 2 to {MAX_LEVELS} levels")
    return _tree([paths[text] for text in texts])


def _paths(tree: object, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(tree, Mapping) and tree:
        for name, inner in tree.items():
            yield from _paths(inner, (*above, str(name)))
    elif isinstance(tree, Sequence) and not isinstance(tree, str) and tree and above:
        for leaf in tree:
            if isinstance(leaf, Mapping | list):
                raise _unreadable("a list must contain values of the column")
            yield (*above, str(leaf))
    else:
        raise _unreadable("expected nested maps of lists, none of them empty")


def _tree(paths: Sequence[Sequence[str]]) -> Tree:
    """Number the places of each level in the order of their first leaves."""
    levels = [HierarchyLevel(("",), np.zeros(1, dtype=np.int64))]
    above = [0] * len(paths)
    for depth in range(len(paths[0])):
        numbers: dict[tuple[str, ...], int] = {}
        own = [numbers.setdefault(tuple(path[: depth + 1]), len(numbers)) for path in paths]
        parents = np.zeros(len(numbers), dtype=np.int64)
        parents[own] = above
        levels.append(HierarchyLevel(tuple(key[-1] for key in numbers), parents))
        above = own
    return Tree(tuple(levels))


def _unreadable(why: str) -> QueryError:
    return QueryError("HB590", f"Invalid places: {why}.", "Use {'North': ['a', 'b'], 'South': ['c']}, or [2, 5].")


def least_squares_counts(
    tree: Tree, noisy: Sequence[Floats], variances: Sequence[float]
) -> tuple[list[Floats], list[Floats]]:
    """Estimate all counts from noisy counts at all levels by least squares, with the variance of each place's count.

    Up the tree, the measurement of each place is averaged with the sum of its children; down again, the difference is
    distributed over the children in proportion to their variances (Hay, Rastogi, Miklau and Suciu 2010, for different
    variances).
    """
    last = len(tree.levels) - 1
    values = [np.asarray(each, dtype=np.float64) for each in noisy]
    spreads = [np.full(level.size, variance) for level, variance in zip(tree.levels, variances, strict=True)]
    inside: list[Floats] = [np.zeros(0)] * (last + 1)
    for level in range(last, 0, -1):
        total = np.asarray(tree.up(spreads[level], level), dtype=np.float64)
        summed = np.asarray(tree.up(values[level], level), dtype=np.float64)
        own = 1 / (1 + spreads[level - 1] / total)  # the weight of the place's measurement
        values[level - 1] = own[:, None] * values[level - 1] + (1 - own)[:, None] * summed
        inside[level - 1] = total
        with np.errstate(invalid="ignore"):
            both = 1 / (1 / spreads[level - 1] + 1 / total)
        spreads[level - 1] = both
    for level in range(1, last + 1):
        parents = tree.levels[level].parents
        share = spreads[level] / inside[level - 1][parents]
        missing = values[level - 1] - np.asarray(tree.up(values[level], level))
        values[level] = values[level] + share[:, None] * missing[parents]
        spreads[level] = spreads[level] * (1 - share) + share**2 * spreads[level - 1][parents]
    return values, spreads


def whole(tree: Tree, values: Sequence[Floats]) -> list[Whole]:
    """Make non-negative integer counts that add up at every place, from the root down, near the estimates."""
    total = np.array([max(0, round(float(values[0].sum())))], dtype=np.int64)
    found = [round_to_totals(project_to_totals(values[0], total.astype(np.float64)), total)]
    for level in range(1, len(tree.levels)):
        found.append(_shared(tree.levels[level], values[level], found[-1]))
    return found


def _shared(level: HierarchyLevel, values: Floats, above: Whole) -> Whole:
    """Distribute the counts of each place over its children, cell by cell."""
    out = np.zeros(values.shape, dtype=np.int64)
    order = np.argsort(level.parents, kind="stable")
    parents, starts, counts = np.unique(level.parents[order], return_index=True, return_counts=True)
    for width in np.unique(counts):  # all places with the same number of children at once
        own = counts == width
        children = order[starts[own][:, None] + np.arange(width)]  # place × child
        rows = values[children].transpose(0, 2, 1).reshape(-1, width)  # (place, cell) × child
        totals = above[parents[own]].reshape(-1)
        shared = round_to_totals(project_to_totals(rows, totals.astype(np.float64)), totals)
        out[children] = shared.reshape(len(children), -1, width).transpose(0, 2, 1)
    return out
