"""Check a declared sensitivity on every dataset of a finite universe, and enumerate the privacy loss.

A function that raises, or returns NaN or the wrong type, counts with its default value; a function declared total is
rejected instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Any

import numpy as np

from hubbub.analyses.functions.function import FailedError, FunctionRequest
from hubbub.analyses.functions.noise import BitNoise, FunctionNoise, GridNoise, PointNoise
from hubbub.analyses.rows import column
from hubbub.core import numbers
from hubbub.core.schema import Column, Kind, Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.enumeration import SLACK, LossBounds, worst_ratio
from hubbub.mechanisms.laplace import Laplace

MAX_DATASETS = 100_000
Row = tuple[Any, ...]
Data = tuple[Row, ...]


@dataclass(frozen=True)
class Universe:
    """All datasets of at most `rows` rows, with the listed values for each column."""

    columns: Mapping[str, Sequence[Any]]
    rows: int

    def __post_init__(self) -> None:
        numbers.integer(self.rows, "rows", 1, 64)
        kinds = prod(len(values) for values in self.columns.values())
        if not kinds or comb(kinds + self.rows, self.rows) > MAX_DATASETS:
            raise ParameterError(
                "HB195",
                f"The universe is empty or has more than {MAX_DATASETS} datasets.",
                "Use fewer rows or fewer values per column.",
            )

    def datasets(self) -> Iterator[Data]:
        """Yield every dataset, with its rows in order."""
        kinds = sorted(product(*self.columns.values()))
        for size in range(self.rows + 1):
            yield from combinations_with_replacement(kinds, size)

    def neighbors(self, data: Data, relation: Relation) -> Iterator[Data]:
        """Yield the neighbors of a dataset: one row removed, or one row replaced."""
        kinds = sorted(product(*self.columns.values()))
        for i in range(len(data)):
            rest = data[:i] + data[i + 1 :]
            if relation is Relation.ADD_REMOVE:
                yield rest
            else:
                yield from (tuple(sorted((*rest, row))) for row in kinds if row != data[i])

    def arrays(self, data: Data) -> dict[str, Any]:
        """Return a dataset as arrays, in the form that a function receives."""
        columns = list(zip(*data, strict=True)) or [()] * len(self.columns)
        return {
            name: np.array(values, dtype=object if any(isinstance(v, str) for v in values) else np.float64)
            for name, values in zip(self.columns, columns, strict=True)
        }


@dataclass(frozen=True, slots=True)
class SensitivityCheck:
    """The result of a check: pairs of neighbors, the largest distance relative to the declared one, and the loss."""

    pairs: int
    farthest: Fraction
    loss: LossBounds
    at: tuple[Data, Data] | None

    @property
    def kept(self) -> bool:
        """Whether the declared sensitivity holds for every pair."""
        return self.farthest <= 1


def check_total(request: FunctionRequest, noise: FunctionNoise, table: Table) -> None:
    """Run a function declared total on a few simulated tables of the declared columns; reject it if it fails.

    The tables have zero, one or two rows with every value at its lowest, at its highest or missing: neighbors on which
    means, maxima and logarithms fail.
    """
    if not request.total:
        return
    columns = {name: _samples(column(table, name, "columns")) for name in request.columns}
    for size, extreme in ((0, 0), *product((1, 2), range(3))):
        rows = {name: values[[extreme] * size] for name, values in columns.items()}
        case = f"{size} simulated rows, all {('lowest', 'highest', 'NULL')[extreme]}" if size else "an empty table"
        _try(request, noise, rows, case)


def _try(request: FunctionRequest, noise: FunctionNoise, rows: Mapping[str, Any], case: str) -> Any:
    try:
        return request.value(noise, rows)
    except FailedError as error:
        reason = type(error.__cause__).__name__
    raise QueryError(
        "HB598",
        f"The function was declared total but returns no valid value on {case} ({reason}).",
        "Make it return a value for every table, or remove total=True and pass bounds.",
    )


def _samples(declared: Column) -> Any:
    """Return the lowest and the highest value of a column and NULL, in the form that a function receives."""
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


def check_sensitivity(
    request: FunctionRequest, noise: FunctionNoise, universe: Universe, relation: Relation
) -> SensitivityCheck:
    """Apply a function, with its default, to every dataset of a universe and compare all neighbors.

    Theorem (The promise of a finite universe). If neighbors of a finite universe are never farther apart than S, the
    release is private on it: the loss between two neighbors is that of the mechanism between their values.
    Proof    By enumeration of all pairs; for a finite output space, of all outcomes too.
    Assumes  the function's values here are its values on such rows in the data.
    Tested   tests/analyses/functions/test_declared_sensitivity.py::test_a_wrong_sensitivity_is_found_with_its_pair
             tests/analyses/functions/test_declared_sensitivity.py::test_a_promise_that_is_kept_is_enumerated_to_the_charged_loss
             tests/analyses/functions/test_failures.py::test_a_function_that_fails_on_one_neighbor_keeps_the_charge
    """
    values = {data: _try(request, noise, universe.arrays(data), f"the rows {data}") for data in universe.datasets()}
    farthest, at, pairs = Fraction(0), None, 0
    losses: dict[tuple[Any, Any], LossBounds] = {}
    for data, value in values.items():
        for other in universe.neighbors(data, relation):
            pairs += 1
            distance = noise.distance(value, values[other])
            if distance > farthest:
                farthest, at = distance, (data, other)
            pair = (_key(value), _key(values[other]))
            if pair not in losses:
                losses[pair] = _loss(noise, value, values[other])
    low = max((low for low, _ in losses.values()), default=Fraction(0))
    return SensitivityCheck(pairs, farthest, (low, max((high for _, high in losses.values()), default=Fraction(0))), at)


def refuse_exceeded(check: SensitivityCheck, epsilon: Fraction) -> None:
    """Reject a sensitivity that some pair of neighbors exceeds."""
    if not check.kept:
        raise QueryError(
            "HB598",
            f"The sensitivity is {numbers.brief(check.farthest)} times the declared one, between {check.at}.",
            "Declare a larger sensitivity, or change the function.",
        )
    if not check.loss[1] <= epsilon + SLACK:
        raise QueryError(
            "HB598", "The enumerated privacy loss exceeds ε.", "This is a bug in hubbub; please report it."
        )


def _key(value: Any) -> Any:
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value


def _loss(noise: FunctionNoise, one: Any, other: Any) -> LossBounds:
    """Bound the loss between two values: by enumeration for a finite output space, otherwise by a formula."""
    if isinstance(noise, PointNoise):
        return worst_ratio(noise.mechanism.distribution(one), noise.mechanism.distribution(other))
    if isinstance(noise, BitNoise):
        return worst_ratio(noise.mechanism.distribution(_key(one)), noise.mechanism.distribution(_key(other)))
    if isinstance(noise, GridNoise) and isinstance(noise.mechanism, Laplace):
        # on the integers the largest log-ratio of two such distributions equals their distance divided by the scale
        exact = noise.distance(one, other) * noise.mechanism.sensitivity / noise.mechanism.scale
        return exact, exact
    return Fraction(0), Fraction(0)
