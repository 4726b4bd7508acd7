"""A declared sensitivity, checked on every dataset of a finite universe; and the loss that follows, enumerated.

Failures are part of it: a function that raises, or gives NaN or something of the wrong type, is compared by the default
that stands for it, and one that was said to be total is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Any

import numpy as np

from hubbub.analyses.functions.function import FailedError, OwnFunction
from hubbub.analyses.functions.noise import Bits, Grid, Noise, Points
from hubbub.analyses.rows import column
from hubbub.core import numbers
from hubbub.core.schema import Column, Kind, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.enumeration import SLACK, Bounds, worst_ratio
from hubbub.mechanisms.laplace import Laplace

MOST_DATA_SETS = 100_000
Row = tuple[Any, ...]
Data = tuple[Row, ...]


@dataclass(frozen=True)
class Universe:
    """All datasets of at most so many rows, each column from a list of values."""

    columns: Mapping[str, Sequence[Any]]
    rows: int

    def __post_init__(self) -> None:
        numbers.integer(self.rows, "rows", 1, 64)
        kinds = prod(len(values) for values in self.columns.values())
        if not kinds or comb(kinds + self.rows, self.rows) > MOST_DATA_SETS:
            raise ParameterError(
                "HB195", f"this universe has more than {MOST_DATA_SETS} datasets, or none.", "Name a smaller one."
            )

    def data_sets(self) -> Iterator[Data]:
        """Give every dataset, its rows in order."""
        kinds = sorted(product(*self.columns.values()))
        for size in range(self.rows + 1):
            yield from combinations_with_replacement(kinds, size)

    def neighbors(self, data: Data, relation: Relation) -> Iterator[Data]:
        """Give the neighbors of a dataset with a row less, or with another row in the place of one."""
        kinds = sorted(product(*self.columns.values()))
        for place in range(len(data)):
            rest = data[:place] + data[place + 1 :]
            if relation is Relation.ADD_REMOVE:
                yield rest
            else:
                yield from (tuple(sorted((*rest, row))) for row in kinds if row != data[place])

    def arrays(self, data: Data) -> dict[str, Any]:
        """Give a dataset as a function sees it."""
        columns = list(zip(*data, strict=True)) or [()] * len(self.columns)
        return {
            name: np.array(values, dtype=object if any(isinstance(v, str) for v in values) else np.float64)
            for name, values in zip(self.columns, columns, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Promise:
    """What was found: pairs of neighbors, the farthest as a share of what is declared, the loss between them."""

    pairs: int
    farthest: Fraction
    loss: Bounds
    at: tuple[Data, Data] | None

    @property
    def kept(self) -> bool:
        """Whether no pair was farther apart than declared."""
        return self.farthest <= 1


def try_failures(order: OwnFunction, noise: Noise, table: Table) -> None:
    """Run a function that was said to be total on a few made-up tables of the declared columns; refuse where it fails.

    No rows, one row and two, each value at its lowest, at its highest or missing: neighbors on which means, maxima and
    logarithms fail.
    """
    if not order.total:
        return
    columns = {name: _samples(column(table, name, "columns")) for name in order.columns}
    for size, place in ((0, 0), *product((1, 2), range(3))):
        rows = {name: values[[place] * size] for name, values in columns.items()}
        what = f"{size} made-up rows, all {('lowest', 'highest', 'NULL')[place]}" if size else "an empty table"
        _try(order, noise, rows, what)


def _try(order: OwnFunction, noise: Noise, rows: Mapping[str, Any], what: str) -> Any:
    try:
        return order.value(noise, rows)
    except FailedError as error:
        why = type(error.__cause__).__name__
    raise QueryError(
        "HB598",
        f"the function was said to be total, and gives no value on {what} ({why}).",
        "Make it return a value for every table, or leave out total=True and pass bounds.",
    )


def _samples(declared: Column) -> Any:
    """Give the lowest value that a column can have, the highest, and NULL, as a function sees them."""
    bounds = declared.bounds
    low, high = (0, 1) if bounds is None else (float(bounds.low), float(bounds.high))
    if declared.kind is Kind.TEXT:
        texts = [str(each) for each in declared.values or ("a", "z")]
        return np.array([texts[0], texts[-1], None], dtype=object)
    if declared.kind in (Kind.DATE, Kind.TIMESTAMP):
        unit = "D" if declared.kind is Kind.DATE else "us"
        ends = np.array([int(low), int(high)]).astype(f"datetime64[{unit}]").astype("datetime64[us]")
        return np.append(ends, np.datetime64("NaT", "us"))
    values = [float(each) for each in declared.values or () if isinstance(each, (int, Fraction))]
    return np.array([min(values, default=low), max(values, default=high), np.nan], dtype=np.float64)


def examine(order: OwnFunction, noise: Noise, universe: Universe, relation: Relation) -> Promise:
    """Apply a function, with its default, to every dataset of a universe and compare all neighbors.

    Theorem (The promise of a finite universe). If neighbors of a finite universe are never farther apart than S, the
    release is private on it: the loss between two neighbors is that of the mechanism between their values.
    Proof    By enumeration of all pairs; for a finite output space, of all outcomes too.
    Assumes  the function's values here are its values on such rows in the data.
    Tested   tests/analyses/functions/test_declared_sensitivity.py::test_a_wrong_sensitivity_is_found_with_its_pair
             tests/analyses/functions/test_declared_sensitivity.py::test_a_promise_that_is_kept_is_enumerated_to_the_charged_loss
             tests/analyses/functions/test_failures.py::test_a_function_that_fails_on_one_neighbor_keeps_the_charge
    """
    values = {data: _try(order, noise, universe.arrays(data), f"the rows {data}") for data in universe.data_sets()}
    farthest, at, pairs = Fraction(0), None, 0
    losses: dict[tuple[Any, Any], Bounds] = {}
    for data, value in values.items():
        for other in universe.neighbors(data, relation):
            pairs += 1
            apart = noise.apart(value, values[other])
            if apart > farthest:
                farthest, at = apart, (data, other)
            pair = (_key(value), _key(values[other]))
            if pair not in losses:
                losses[pair] = _loss(noise, value, values[other])
    low = max((low for low, _ in losses.values()), default=Fraction(0))
    return Promise(pairs, farthest, (low, max((high for _, high in losses.values()), default=Fraction(0))), at)


def refuse_broken(promise: Promise, epsilon: Fraction) -> None:
    """Refuse a sensitivity that some pair of neighbors exceeds."""
    if not promise.kept:
        raise QueryError(
            "HB598",
            f"the sensitivity is {numbers.brief(promise.farthest)} times what is declared, between {promise.at}.",
            "Declare what the function does, or change it.",
        )
    if not promise.loss[1] <= epsilon + SLACK:
        raise QueryError("HB598", "the enumerated loss is larger than ε.", "This is an error of hubbub: report it.")


def _key(value: Any) -> Any:
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value


def _loss(noise: Noise, one: Any, other: Any) -> Bounds:
    """Enclose the loss between two values: outcome by outcome where there are finitely many, else by a formula."""
    if isinstance(noise, Points):
        return worst_ratio(noise.mechanism.law(one), noise.mechanism.law(other))
    if isinstance(noise, Bits):
        return worst_ratio(noise.mechanism.law(_key(one)), noise.mechanism.law(_key(other)))
    if isinstance(noise, Grid) and isinstance(noise.mechanism, Laplace):
        # on the integers the largest log-ratio of two such laws is their distance over the scale, and it is attained
        exact = noise.apart(one, other) * noise.mechanism.sensitivity / noise.mechanism.scale
        return exact, exact
    return Fraction(0), Fraction(0)
