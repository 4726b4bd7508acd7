"""A table of edges as a weighted graph with declared nodes.

The nodes are public: they are the declared values of the two columns of ends. A pair of nodes has the largest weight of
its rows; direction and loops are ignored. So adding or removing one row changes the weight of one pair within [0, W],
and replacing a row changes two pairs.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, Protection, Setting
from hubbub.analyses.rows import RowData, Rows, column, first_of_each, rows_per_unit, salted_order
from hubbub.core import numbers
from hubbub.core.schema import Column, Kind, Table
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.bounding import ContributionBounds

MAX_NODES = 100_000
_MAX_STEPS = 1 << 28
#: Whole numbers up to this are exact as doubles, in which rows are read.
_EXACT = 1 << 53

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Graph:
    """A simple graph: pairs a < b of the nodes 0, …, nodes − 1, each pair once, with a weight in whole steps."""

    nodes: int
    a: Numbers
    b: Numbers
    weight: Numbers

    @property
    def size(self) -> int:
        """The number of edges."""
        return len(self.a)

    @property
    def codes(self) -> Numbers:
        """A number for each edge's pair, which depends on no other edge."""
        return self.a * self.nodes + self.b

    def degrees(self) -> Numbers:
        """Count the edges of each node."""
        return np.bincount(np.concatenate([self.a, self.b]), minlength=self.nodes).astype(np.int64)

    def only(self, kept: NDArray[np.bool_]) -> "Graph":
        """Keep some edges."""
        return Graph(self.nodes, self.a[kept], self.b[kept], self.weight[kept])


def graph(nodes: int, first: Numbers, second: Numbers, weight: Numbers) -> Graph:
    """Make a graph of rows: undirected, without loops, a pair once with its largest weight.

    >>> graph(3, np.array([0, 1, 2]), np.array([1, 0, 2]), np.array([3, 5, 1]))
    Graph(nodes=3, a=array([0]), b=array([1]), weight=array([5]))
    """
    apart = first != second
    low, high = np.minimum(first, second)[apart], np.maximum(first, second)[apart]
    codes = low * nodes + high
    order = np.lexsort((-weight[apart], codes))
    pairs, places = np.unique(codes[order], return_index=True)
    return Graph(nodes, pairs // nodes, pairs % nodes, weight[apart][order][places])


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """How a table is read as a graph.

    names   the nodes' names in order; None if they are the integers from `first`
    step    the unit of weights; `most` is the largest weight in steps
    rows    how many rows of one unit count; 1 if the row is the unit
    """

    table: Table
    ends: tuple[Column, Column]
    weight: Column | None
    nodes: int
    first: int
    names: tuple[str, ...] | None
    step: Fraction
    most: int
    rows: int
    read: Rows

    @property
    def by_row(self) -> bool:
        """Whether every row is its own unit."""
        return self.table.unit is None or self.table.unit.column is None

    @property
    def protection(self) -> Protection:
        """The table, the relation, and how many edges of one unit count."""
        limits = None if self.by_row else ContributionBounds(1, self.rows)
        return Protection((self.table,), self.table.relation, limits)

    def sensitivity(self, per_edge: int, *, one_way: bool) -> int:
        """Give the L1 sensitivity to one unit of a function that one row changes by at most `per_edge`.

        Theorem (Edge sensitivity). Let one row more or less move f by at most s, and a unit own at most k rows. Then a
        unit more or less moves f by at most k·s, and another unit in its place by at most 2·k·s; where more rows never
        lower f (or never raise it), by k·s too.
        Proof    Rows go and come one by one. Where f is monotone, taking rows away moves it by 0 to k·s one way, and
                 putting others there by 0 to k·s the other way, so the two do not add up.
        Tested   tests/analyses/graphs/test_sensitivity.py::test_brute_force_stays_within_what_is_declared
        """
        alike = one_way or self.table.relation is Relation.ADD_REMOVE
        return numbers.sensitivity(per_edge * self.rows * (1 if alike else 2))

    def graph(self, found: Arrays) -> Graph:
        """Make the graph of the engine's rows; of each unit at most `rows` count, chosen by its own rows only."""
        rows = self.read.take(found)
        first, second = (self._codes(rows, end) for end in self.ends)
        weight = self._weights(rows)
        there = (first >= 0) & (second >= 0) & (weight >= 0) & (first != second)
        if rows.owners is not None:
            # equal rows of a unit are one edge, so ties are between identical rows
            code = (np.minimum(first, second) * self.nodes + np.maximum(first, second)) * (self.most + 1) + weight
            place = salted_order(np.where(there, code, -1), self.read.render_options.salt)
            there[there] = first_of_each(rows.owners[there], place[there], self.rows)
        return graph(self.nodes, first[there], second[there], weight[there])

    def _codes(self, rows: RowData, end: Column) -> Numbers:
        """Number the ends; −1 for a value that is not declared."""
        values = rows.columns[end.name]
        if self.names is None:
            # in doubles, which are exact up to 2⁵³: a larger value need not fit into an integer
            declared = (values == np.floor(values)) & (values >= self.first) & (values < self.first + self.nodes)
            return np.where(declared, values - self.first, -1.0).astype(np.int64)
        place = {name: i for i, name in enumerate(self.names)}
        return np.fromiter((place.get(value, -1) for value in values.tolist()), dtype=np.int64, count=len(values))

    def _weights(self, rows: RowData) -> Numbers:
        if self.weight is None:
            return np.ones(len(rows.columns[self.ends[0].name]), dtype=np.int64)
        values = rows.columns[self.weight.name]
        # row by row, so that rounding and clamping do not depend on other rows
        steps = np.clip(np.rint(np.nan_to_num(values) / float(self.step)), 0, self.most).astype(np.int64)
        return np.where(np.isnan(values), -1, steps)


def edge_table(setting: Setting, *, table: object, ends: Any, weight: object = None, step: Any = None) -> EdgeTable:
    """Read the declarations of a table of edges, or reject it."""
    found = setting.table(table)
    if not isinstance(ends, list | tuple) or len(ends) != 2 or ends[0] == ends[1]:
        raise QueryError("HB595", "ends must list two columns.", "Use ends => ['from', 'to'].")
    first, second = (column(found, name, "ends") for name in ends)
    nodes, start, names = _nodes(first)
    if (nodes, start, names) != _nodes(second):
        raise QueryError(
            "HB595",
            f"{first.name} and {second.name} do not declare the same nodes.",
            "Declare the same bounds or values for both columns.",
        )
    weighed = None if weight is None else column(found, weight, "weight")
    unit, most = _steps(weighed, step)
    # an end outside of the declared nodes is no node, so it must not be clamped to the first or last of them
    first, second = (replace(end, bounds=None) for end in (first, second))
    loose = replace(
        found, columns=tuple({first.name: first, second.name: second}.get(c.name, c) for c in found.columns)
    )
    read = (first, second) if weighed is None else (first, second, weighed)
    return EdgeTable(
        found,
        (first, second),
        weighed,
        nodes,
        start,
        names,
        unit,
        most,
        rows_per_unit(setting, found),
        Rows(loose, read, setting.render_options),
    )


def _nodes(end: Column) -> tuple[int, int, tuple[str, ...] | None]:
    """Give the number of declared nodes, the first of them, and their names if they are text."""
    if end.kind is Kind.TEXT and end.values is not None:
        names = tuple(str(value) for value in end.values)
        size, first = len(names), 0
    elif end.kind is Kind.INTEGER and end.bounds is not None:
        names, first = None, int(-(-end.bounds.low // 1))
        size = int(end.bounds.high // 1) - first + 1
        if max(abs(end.bounds.low), abs(end.bounds.high)) > _EXACT:
            raise QueryError(
                "HB595",
                f"{end.name} declares nodes beyond ±2⁵³, which doubles cannot tell apart.",
                "Number the nodes from 0 in a view.",
            )
    else:
        raise QueryError(
            "HB595",
            f"{end.name} does not declare the nodes of the graph.",
            "Declare bounds for integers or values for text. The set of nodes is public.",
        )
    if not 2 <= size <= MAX_NODES:
        raise QueryError("HB595", f"{end.name} declares {size} nodes.", f"Declare 2 to {MAX_NODES} nodes.")
    return size, first, names


def _steps(weight: Column | None, step: Any) -> tuple[Fraction, int]:
    if weight is None:
        return Fraction(1), 1
    bounds = weight.bounds
    if not weight.kind.numeric or bounds is None or bounds.low < 0 or not bounds.high > 0:
        raise QueryError(
            "HB595",
            f"{weight.name} needs declared bounds that start at 0.",
            "Declare bounds such as [0, 1]; one edge changes the answer by at most the upper bound.",
        )
    chosen = weight.step if step is None else numbers.exact(step, "step")
    unit = bounds.high / 1024 if chosen is None else chosen
    if not 0 < unit <= bounds.high or not -(-bounds.high // unit) <= _MAX_STEPS:
        raise QueryError("HB596", "The step is too large for the weights.", "Use a smaller step or omit it.")
    return unit, int(-(-bounds.high // unit))
