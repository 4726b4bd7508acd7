"""Mean vector and covariance matrix of numeric columns, with noise calibrated to a norm of the row vectors.

Dwork, McSherry, Nissim and Smith (2006): rows are vectors of norm at most γ, neighbors replace one row, and the number
of rows n is public. Rows are clipped to the norm in the engine, put on a grid, and summed as integers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.schema import Column, Kind, Table
from hubbub.core.unit import Relation
from hubbub.errors import QueryError, RunError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource
from hubbub.sql import render
from hubbub.sql.aggregates.formula import Floats
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Col
from hubbub.sql.relations import Scan
from hubbub.sql.split import portions, zcdp_budget

Norm = Literal["l1", "l2"]

_FINEST = 1 << 17
_SCALE = 1 << 39  # the largest noise scale of the samplers
_MAX_COLUMNS = 64


def mean_sensitivity(*, size: int, gamma: Fraction) -> Fraction:
    """Bound how far the mean of n vectors of norm at most γ moves when one is replaced, in that norm.

    Theorem (Sensitivity of a mean vector). It is 2γ/n, attained by two opposite vectors of norm γ.
    Proof    The means differ by (w − v)/n, and ‖w − v‖ ≤ ‖w‖ + ‖v‖ ≤ 2γ.
    Tested   tests/sql/test_vectors.py::test_mean_vector_moves_by_two_gamma_over_n
    """
    return 2 * gamma / size


def covariance_sensitivity(*, size: int, gamma: Fraction, dimensions: int) -> Fraction:
    """Bound how far avg(v·vᵀ) − μ·μᵀ moves in L1 over its entries, when one of n vectors of L1 norm ≤ γ is replaced.

    Theorem (Sensitivity of a covariance matrix). It is 6γ²(n−1)/n² for two dimensions or more, and 4γ²(n−1)/n² for one;
    both are attained. So 6γ²/n always holds, and 8γ²/n, as first printed, is loose.
    Proof    n²·C = Σ_{i<j} (v_i − v_j)(v_i − v_j)ᵀ. Replacing v by w changes the n−1 terms with it, each by
             (w−u)(w−u)ᵀ − (v−u)(v−u)ᵀ = wwᵀ − vvᵀ − (w−v)uᵀ − u(w−v)ᵀ, whose L1 norm is at most 2γ² + 2γ·γ + 2γ·γ.
             In one dimension it is |(w−u)² − (v−u)²| ≤ (2γ)². Attained by u = −γe₁ for all others, w = γe₁ and
             v = γe₂, or v = −γ in one dimension.
    Tested   tests/sql/test_vectors.py::test_covariance_moves_by_six_gamma_squared_over_n
    """
    return (6 if dimensions > 1 else 4) * gamma * gamma * (size - 1) / Fraction(size * size)


@dataclass(frozen=True)
class VectorPlan:
    """A planned vector query; `gamma` and the integers from the engine are in steps."""

    columns: tuple[str, ...]
    size: int
    norm: Norm
    gamma: int
    step: Fraction
    sql: str
    mean: Laplace | Gaussian
    covariance: Laplace | None
    derivation: tuple[str, ...]

    @property
    def event(self) -> Event:
        """The event to charge."""
        parts: list[tuple[Event, int]] = [(self.mean.event, 1)]
        if self.covariance is not None:
            parts.append((self.covariance.event, 1))
        return Composed(tuple(parts))


@dataclass(frozen=True)
class VectorAnswer:
    """Noisy mean and covariance, with the ± of each entry at 95% confidence."""

    columns: tuple[str, ...]
    mean: Floats
    mean_error: float
    covariance: Floats | None
    covariance_error: float | None


def plan_vectors(
    table: Table,
    columns: Sequence[str],
    *,
    size: int,
    gamma: Fraction,
    norm: Norm,
    covariance: bool,
    epsilon: Fraction,
    delta: Fraction,
    dialect: Dialect = DUCKDB,
) -> VectorPlan:
    """Plan the mean vector and, optionally, the covariance matrix of columns of a table with `size` rows.

    Theorem (Noisy moments of vectors). Let rows be integer vectors of L1 norm at most Γ, n of them, one of them
    replaced. Their sum moves by at most 2Γ in L1, and ⌊n·C⌋, C their covariance, entry by entry, by at most
    6Γ²(n−1)/n + d². Laplace noise on the sum and on the upper triangle of ⌊n·C⌋ costs the sum of both losses.
    Proof    The theorems on means and covariances, times n and n. Rounding down moves each of d² entries apart by less
             than 1 more. The triangle is part of the matrix.
    Assumes  the relation is REPLACE and the unit is the row, so n is the same for neighbors and may be public; a row's
             integers are checked against Γ in the engine, and count as 0 where rounding took them past it.
    Charges  the composition of both. With norm l2 the mean's noise is Gaussian, for a squared L2 sensitivity of 4Γ².
    Tested   tests/sql/test_vectors.py::test_engine_sums_of_neighbors_are_within_the_stated_sensitivity
    """
    numbers.epsilon(epsilon)
    size = numbers.integer(size, "size", 2, 10**12)
    numbers.in_range(gamma, "gamma", Fraction(1, 10**9), Fraction(10**15))
    chosen = [_column(table, name) for name in columns]
    if not 1 <= len(chosen) <= _MAX_COLUMNS or len(set(columns)) < len(columns):
        raise QueryError("HB570", f"A vector needs 1 to {_MAX_COLUMNS} distinct columns.", "Choose other columns.")
    if table.unit is None or table.unit.column is not None or table.relation is not Relation.REPLACE:
        raise QueryError(
            "HB571",
            "Vector moments require a table with row-level privacy and `relation: replace`.",
            "Use AVG, COVAR_POP and CORR in SQL instead.",
        )
    if norm == "l2" and (covariance or not delta):
        raise QueryError("HB572", "With the L2 norm only the mean is supported, with a positive δ.", "Use the L1 norm.")
    d = len(chosen)
    parts = portions(epsilon, [0.5, 0.5] if covariance else [1.0])
    steps = min(_FINEST, isqrt(int(_SCALE * parts[-1] / 6)) - d if covariance else int(_SCALE * parts[-1] / 8))
    if not steps >= 16:
        raise QueryError("HB557", "At this ε the result would be almost entirely noise.", "Increase ε.")
    second = None
    if covariance:
        moved = int(covariance_sensitivity(size=size, gamma=Fraction(steps), dimensions=d) * size) + d * d
        second = Laplace(sensitivity=moved, scale=moved / parts[1])
    first: Laplace | Gaussian
    if norm == "l1":
        first = Laplace(sensitivity=2 * steps, scale=2 * steps / parts[0])
    else:
        first = Gaussian(sensitivity_squared=4 * steps**2, variance=4 * steps**2 / (2 * zcdp_budget(epsilon, delta)))
    lines = [
        f"scan {table.name}: {d} columns; each row is a unit; one row replaced by another; n = {size:,} is public",
        f"each row is clipped to a norm ({norm.upper()}) of {numbers.brief(gamma)}, in {steps:,} steps",
        f"mean vector: moves by 2γ/n = {numbers.brief(mean_sensitivity(size=size, gamma=gamma))}",
    ]
    if covariance:
        most = covariance_sensitivity(size=size, gamma=gamma, dimensions=d)
        lines.append(f"covariance matrix: moves by at most {numbers.brief(most)} in L1")
    sql = _sql(table, chosen, gamma, steps, norm, dialect, covariance=covariance)
    return VectorPlan(tuple(columns), size, norm, steps, gamma / steps, sql, first, second, tuple(lines))


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None or not column.kind.numeric or column.bounds is None:
        raise QueryError(
            "HB573", f"{name!r} is not a numeric column with bounds.", "Choose another column or declare its bounds."
        )
    return column


def _sql(
    table: Table,
    columns: Sequence[Column],
    gamma: Fraction,
    steps: int,
    norm: Norm,
    dialect: Dialect,
    *,
    covariance: bool,
) -> str:
    """Write the SQL for the number of rows, the sums of coordinates and of their products, all as integers."""
    scan = Scan(
        table,
        tuple(Col(f"x{j}", column.kind) for j, column in enumerate(columns)),
        tuple(column.name for column in columns),
    )
    places = range(len(columns))
    xs = ", ".join(f"coalesce(x{j}, {dialect.number(0)}) AS x{j}" for j in places)
    length = (
        " + ".join(f"abs(x{j})" for j in places)
        if norm == "l1"
        else f"sqrt({' + '.join(dialect.product([f'x{j}', f'x{j}']) for j in places)})"
    )
    most, bigint = dialect.number(gamma), dialect.integers[64]
    shrink = f"CASE WHEN length > {most} THEN {most} / length ELSE {dialect.number(1)} END"
    parts = [dialect.fraction(dialect.product([f"x{j}", "shrink"]), gamma / steps) for j in places]
    ks = ", ".join(f"CAST({dialect.cut(part)} AS {bigint}) AS k{j}" for j, part in enumerate(parts))
    inside = (
        f"{' + '.join(f'abs(k{j})' for j in places)} <= {steps}"
        if norm == "l1"
        else f"{' + '.join(f'k{j} * k{j}' for j in places)} <= {steps**2}"
    )
    safe = ", ".join(f"CASE WHEN {inside} THEN k{j} ELSE 0 END AS k{j}" for j in places)
    # return text, because the sums may exceed 64 bits and must stay exact
    sums = [(f"s{j}", f"k{j}") for j in places]
    if covariance:
        sums += [
            (f"p{i}_{j}", f"CAST(k{i} * k{j} AS {dialect.integers[128]})") for i in places for j in places if i <= j
        ]
    outputs = [
        "count(*) AS n",
        *(f"CAST(coalesce(sum({text}), 0) AS {dialect.types[Kind.TEXT]}) AS {name}" for name, text in sums),
    ]
    return (
        f"SELECT {', '.join(outputs)} FROM (SELECT {safe} FROM (SELECT {ks} FROM (SELECT *, {shrink} AS shrink FROM "
        f"(SELECT *, {length} AS length FROM (SELECT {xs} FROM ({render.relation(scan, dialect)}) AS r) AS a) AS b) "
        f"AS c) AS d){dialect.unnamed}"
    )


def integers(
    plan: VectorPlan, table: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.object_], NDArray[np.object_] | None]:
    """Return the exact sum of all vectors and ⌊n·covariance⌋ (upper triangle) from the engine's result."""
    if int(table["n"][0]) != plan.size:
        raise RunError
    d = len(plan.columns)
    total = np.array([int(table[f"s{j}"][0]) for j in range(d)], dtype=object)
    if plan.covariance is None:
        return total, None
    upper = [
        (plan.size * int(table[f"p{i}_{j}"][0]) - total[i] * total[j]) // plan.size
        for i in range(d)
        for j in range(i, d)
    ]
    return total, np.array(upper, dtype=object)


def finish_vectors(plan: VectorPlan, table: Mapping[str, NDArray[Any]], source: RandomSource) -> VectorAnswer:
    """Add the noise and divide by the public n."""
    total, upper = integers(plan, table)
    step = float(plan.step)
    mean = plan.mean.sample(total, source).astype(np.float64) * step / plan.size
    level = Fraction(95, 100)
    mean_error = float(plan.mean.error(level)) * step / plan.size
    if upper is None or plan.covariance is None:
        return VectorAnswer(plan.columns, mean, mean_error, None, None)
    d = len(plan.columns)
    matrix = np.zeros((d, d))
    rows, columns = np.triu_indices(d)
    matrix[rows, columns] = plan.covariance.sample(upper, source).astype(np.float64) * step * step / plan.size
    matrix = matrix + np.triu(matrix, 1).T
    error = float(plan.covariance.error(level)) * step * step / plan.size
    return VectorAnswer(plan.columns, mean, mean_error, matrix, error)
