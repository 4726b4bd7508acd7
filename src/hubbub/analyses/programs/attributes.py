"""Columns divided into buckets: by their declared values, or evenly between their bounds.

Tested in tests/analyses/programs/test_tree.py and test_naive_bayes.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.programs.inputs import ProgramInput, call, column_bounds, column_values, equals, real, whole
from hubbub.analyses.programs.regression import json_value
from hubbub.core import numbers
from hubbub.core.schema import Value
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.expressions import Expr, FunctionCall, facts

MAX_VALUES = 64  #: of a column that is divided by its values

#: Rows by columns: a dict of lists or arrays, a DataFrame, or an array with the columns in the order of the model.
Rows = Mapping[str, Sequence[Any] | NDArray[Any]] | NDArray[Any] | Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class TreeSplit:
    """A split by all values of a column or by one threshold; `children` lists the buckets of each child."""

    column: str
    children: tuple[tuple[int, ...], ...]
    values: tuple[Value, ...] = ()
    threshold: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column divided into buckets, with its possible splits."""

    column: str
    tests: tuple[FunctionCall, ...]  #: one test per bucket
    splits: tuple[TreeSplit, ...]

    @property
    def values(self) -> tuple[Value, ...]:
        """The values, one per bucket; none for a column that is divided between its bounds."""
        return self.splits[0].values

    @property
    def thresholds(self) -> tuple[Fraction, ...]:
        """The limits between buckets of a numeric column."""
        return tuple(split.threshold for split in self.splits if split.threshold is not None)

    @property
    def labels(self) -> list[str]:
        """The names of the buckets, for people."""
        if self.values:
            return [str(json_value(value)) for value in self.values]
        cuts = [numbers.brief(cut) for cut in self.thresholds]
        return [f"< {cuts[0]}", *(f"{low} to {high}" for low, high in pairwise(cuts)), f"≥ {cuts[-1]}"]

    def number(self) -> Expr:
        """Write the number of the bucket of a row."""
        return self.choose([whole(b) for b in range(len(self.tests))])

    def choose(self, outputs: Sequence[Expr]) -> Expr:
        """Write the output of the bucket of a row; that of the last bucket for a row in none."""
        pairs: list[Expr] = []
        for test, output in zip(self.tests[:-1], outputs[:-1], strict=True):
            pairs += [test, output]
        return call("case", *pairs, outputs[-1]) if pairs else outputs[-1]

    def to_json(self) -> dict[str, Any]:
        """Give what a model needs to put rows into buckets."""
        if self.values:
            return {"column": self.column, "values": [json_value(value) for value in self.values]}
        return {"column": self.column, "thresholds": [float(cut) for cut in self.thresholds]}


def bucket_numbers(attribute: Mapping[str, Any], values: NDArray[Any]) -> NDArray[np.int64]:
    """Put values into the buckets of an attribute in JSON form; −1 for a value that is not declared."""
    if "thresholds" in attribute:
        return np.searchsorted(np.array(attribute["thresholds"]), values.astype(float), side="right").astype(np.int64)
    numbered = {value: number for number, value in enumerate(attribute["values"])}
    return np.array([numbered.get(value, -1) for value in values.tolist()], dtype=np.int64)


def by_columns(rows: Rows, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Give rows by columns, whichever form they have."""
    if isinstance(rows, Mapping) or hasattr(rows, "columns"):
        return {name: np.asarray(rows[name]) for name in names}  # type: ignore[call-overload]
    table = np.asarray(rows)
    if table.ndim != 2 or table.shape[1] != len(names):
        raise ParameterError(
            "HB101", f"rows must have {len(names)} columns: {', '.join(names)}.", "Pass a table with these columns."
        )
    return {name: table[:, j] for j, name in enumerate(names)}


def attribute(inputs: ProgramInput, name: str, bins: int) -> Attribute:
    """Divide a column into buckets: by its declared values, or evenly between its bounds."""
    col = inputs.column(name)
    if col.kind.numeric and facts(col).values is None:
        bounds = column_bounds(inputs, name)
        cuts = [bounds.low + (bounds.high - bounds.low) * b / bins for b in range(1, bins)]
        edges: list[Fraction | None] = [None, *cuts, None]
        tests = []
        for low, high in pairwise(edges):
            ends = [call("ge", col, real(low))] if low is not None else []
            ends += [call("lt", col, real(high))] if high is not None else []
            tests.append(ends[0] if len(ends) == 1 else call("and", *ends))
        return Attribute(
            name,
            tuple(tests),
            tuple(
                TreeSplit(name, (tuple(range(b)), tuple(range(b, bins))), threshold=cut)
                for b, cut in enumerate(cuts, 1)
            ),
        )
    values = column_values(inputs, name)
    if len(values) > MAX_VALUES:
        raise QueryError(
            "HB545", f"{name!r} has {len(values)} values, more than {MAX_VALUES}.", "Remove it or use a coarser column."
        )
    every = TreeSplit(name, tuple((b,) for b in range(len(values))), values=values)
    return Attribute(name, tuple(equals(col, value) for value in values), (every,))
