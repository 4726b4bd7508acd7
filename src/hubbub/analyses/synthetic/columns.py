"""The columns of synthetic data: counted categories, levels of the model, and values of rows.

Many categories (256 thin bins of an income, every day of ten years) are merged into a few levels of about equal counts,
using the *noisy* counts of the categories, so the levels are private quantiles at no additional cost.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.synthetic.junction_tree import Floats
from hubbub.analyses.synthetic.model import Whole, spread
from hubbub.analyses.tables.axes import Axis, axis, listed
from hubbub.analyses.tables.consistency import project_to_totals
from hubbub.answers.cell_text import Cell
from hubbub.core import numbers
from hubbub.core.schema import Column, Kind, Table
from hubbub.errors import QueryError

#: Maximum number of columns, and of levels of a column.
MAX_COLUMNS = 32
MAX_LEVELS = 128
#: The number of levels of a column with too many values to list, and of the thin bins that they are made of.
QUANTILES = 16
THIN = 256
#: The coarser groupings of a column that a selected pair can use.
COARSE = (16, 8, 4, 2)


@dataclass(frozen=True)
class SyntheticColumn:
    """One requested column: what is counted, and the maximum number of its levels."""

    axis: Axis
    column: Column
    most: int

    @property
    def name(self) -> str:
        """The column's name."""
        return self.axis.name


@dataclass(frozen=True)
class Levels:
    """One column of the model.

    merged    the level of each category
    counts    the non-negative noisy count of each category
    """

    asked: SyntheticColumn
    merged: Whole
    counts: Floats

    @property
    def size(self) -> int:
        """The number of levels."""
        return int(self.merged.max()) + 1

    @property
    def sums(self) -> Floats:
        """The noisy count of each level."""
        found: Floats = np.zeros(self.size)
        np.add.at(found, self.merged, self.counts)
        return found

    def labels(self) -> list[str]:
        """Label each level by its categories."""
        names = [str(label) if label is not None else "missing" for label in self.asked.axis.labels]
        found = []
        for level in range(self.size):
            own = np.flatnonzero(self.merged == level)
            first, last = names[int(own[0])], names[int(own[-1])]
            found.append(first if len(own) == 1 else f"{first} … {last}" if self.asked.axis.ordered else f"{first}, …")
        return found

    def groupings(self) -> tuple[Whole, ...]:
        """Give coarser groupings of the levels, the finest first: merge adjacent levels, or the rare ones."""
        found = [np.arange(self.size)]
        for most in COARSE:
            if most < self.size:
                groups = _merge(self.sums, most, ordered=self.asked.axis.ordered)
                if int(groups.max()) < int(found[-1].max()):
                    found.append(groups)
        return tuple(found)

    def values(self, drawn: Whole, some: np.random.Generator) -> list[Cell]:
        """Give each sampled level a value: a category by the noisy counts, and a number within a bin."""
        shares = np.zeros((self.size, len(self.merged)))
        # without counts, all categories of a level are equally likely
        shares[self.merged, np.arange(len(self.merged))] = self.counts + 1e-9
        places = spread(shares, drawn, some)
        on = self.asked.axis
        if on.edges is None:
            return list(np.array([*on.labels, None], dtype=object)[places])
        low, high = np.array([*on.edges[:-1], 0], dtype=np.float64), np.array([*on.edges[1:], 0], dtype=np.float64)
        bins = len(on.edges) - 1
        at = low[places] + some.random(len(places)) * (high[places] - low[places])
        if self.asked.column.kind is Kind.INTEGER:
            first = np.ceil(low)
            # every bin but the last excludes its upper end
            last = np.where(np.arange(len(high)) == bins - 1, np.floor(high), np.ceil(high) - 1)
            at = first[places] + np.floor(some.random(len(places)) * (last[places] - first[places] + 1))
            found = at.astype(np.int64).astype(object)
        else:
            step = self.asked.column.step
            found = (np.rint(at / float(step)) * float(step) if step else at).astype(object)
        found[places >= bins] = None
        return list(found)


def asked(table: Table, wanted: object) -> tuple[SyntheticColumn, ...]:
    """Read the list of columns: names, axes as in a contingency table, or {'column': 'pay', 'quantiles': 16}."""
    if not isinstance(wanted, Sequence) or isinstance(wanted, str) or not wanted:
        raise QueryError("HB592", "columns is empty or not a list.", "Use columns => ['region', 'age'].")
    if len(wanted) > MAX_COLUMNS:
        raise QueryError("HB592", f"Synthetic data can have at most {MAX_COLUMNS} columns.", "Use fewer columns.")
    found = tuple(_one(table, each) for each in wanted)
    if len({each.name for each in found}) < len(found):
        raise QueryError("HB592", "A column is listed twice.", "List each column once.")
    return found


def _one(table: Table, wanted: object) -> SyntheticColumn:
    given = dict(wanted) if isinstance(wanted, Mapping) else {"column": wanted}
    name = given.get("column")
    column = table.column(name) if isinstance(name, str) else None
    many = column is not None and column.kind.numeric and column.bounds is not None and listed(column) is None
    most = MAX_LEVELS
    if "quantiles" in given or (many and "bins" not in given and "edges" not in given):
        most = numbers.integer(given.pop("quantiles", QUANTILES), f"the quantiles of {name}", 2, MAX_LEVELS)
        if column is not None and column.kind in (Kind.TEXT, Kind.BOOLEAN):
            raise QueryError(
                "HB592", f"{name} has no quantiles, because its values have no order.", "Remove 'quantiles'."
            )
        if column is not None and column.kind.numeric and "bins" not in given and "edges" not in given:
            given["bins"] = _thin(column)
    on = axis(table, given)
    if column is None:
        raise AssertionError("an axis is made of a column")
    return SyntheticColumn(on, column, most)


def _thin(column: Column) -> int:
    """Choose the number of thin bins for a column's quantiles: at most the number of its integers."""
    if column.bounds is None or column.kind is Kind.REAL:
        return THIN
    return min(THIN, math.floor(column.bounds.high - column.bounds.low) + 1)


def levels(each: SyntheticColumn, noisy: Whole, total: float) -> Levels:
    """Make the levels of a column from the noisy counts of its categories."""
    counts = project_to_totals(noisy.astype(np.float64)[None, :], np.array([max(total, 1.0)]))[0]
    if each.axis.size <= each.most:
        return Levels(each, np.arange(each.axis.size), counts)
    merged = _merge(counts, each.most, ordered=each.axis.ordered)
    if None in each.axis.labels:  # NULL is adjacent to no value
        merged[each.axis.labels.index(None)] = int(merged.max()) + 1
        merged = np.unique(merged, return_inverse=True)[1]
    return Levels(each, merged, counts)


def _merge(counts: Floats, most: int, *, ordered: bool) -> Whole:
    """Merge categories: adjacent ones by equal shares of the counts, or all rare ones.

    >>> _merge(np.array([5.0, 1, 1, 1, 4]), 2, ordered=True).tolist()
    [0, 0, 1, 1, 1]
    >>> _merge(np.array([1.0, 9, 1, 5]), 3, ordered=False).tolist()
    [2, 0, 2, 1]
    """
    if ordered:
        shares = np.maximum(counts, 0.0) + 1e-9
        middle = (np.cumsum(shares) - shares / 2) / shares.sum()
        groups = np.minimum((middle * most).astype(np.int64), most - 1)
    else:
        groups = np.full(len(counts), most - 1, dtype=np.int64)
        frequent = np.argsort(-counts, kind="stable")[: most - 1]
        groups[frequent] = np.arange(most - 1)
    return np.unique(groups, return_inverse=True)[1]
