"""Mean vectors and covariance matrices: exact sensitivities at the vertices, and what the engine gives."""

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from tests.fixtures.visits_table import arrays

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import QueryError, RunError
from hubbub.noise.source import system
from hubbub.sql.vectors import (
    VectorPlan,
    covariance_sensitivity,
    finish_vectors,
    integers,
    mean_sensitivity,
    plan_vectors,
)

Vector = tuple[Fraction, ...]
WIDE = Bounds(Fraction(-(10**9)), Fraction(10**9))


def points(relation: Relation = Relation.REPLACE, unit: PrivacyUnit | None = None) -> Table:
    columns = tuple(Column(name, Kind.REAL, bounds=WIDE) for name in "xyz")
    return Table("points", columns, unit or PrivacyUnit(None), relation)


def vertices(dimensions: int) -> list[Vector]:
    """The corners of the L1 ball of radius 1, where a convex function of one vector is largest."""
    found = []
    for place, sign in itertools.product(range(dimensions), (1, -1)):
        found.append(tuple(Fraction(sign if j == place else 0) for j in range(dimensions)))
    return found


def mean(rows: list[Vector]) -> Vector:
    return tuple(sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True))


def covariance(rows: list[Vector]) -> list[Fraction]:
    mu, d = mean(rows), len(rows[0])
    return [
        sum((row[i] * row[j] for row in rows), Fraction(0)) / len(rows) - mu[i] * mu[j]
        for i in range(d)
        for j in range(d)
    ]


def largest_move(dimensions: int, size: int) -> tuple[Fraction, Fraction]:
    """By brute force over vertices: how far mean and covariance move in L1 when one row is replaced."""
    corners = vertices(dimensions)
    means, covariances = Fraction(0), Fraction(0)
    for others in itertools.combinations_with_replacement(corners, size - 1):
        found = [(mean([*others, v]), covariance([*others, v])) for v in corners]
        for (m1, c1), (m2, c2) in itertools.combinations(found, 2):
            means = max(means, sum((abs(a - b) for a, b in zip(m1, m2, strict=True)), Fraction(0)))
            covariances = max(covariances, sum((abs(a - b) for a, b in zip(c1, c2, strict=True)), Fraction(0)))
    return means, covariances


@pytest.mark.row(48)
@pytest.mark.parametrize(("dimensions", "size"), [(1, 2), (1, 5), (2, 4), (3, 3)])
def test_mean_vector_moves_by_two_gamma_over_n(dimensions: int, size: int) -> None:
    means, _ = largest_move(dimensions, size)
    assert means == mean_sensitivity(size=size, gamma=Fraction(1)) == Fraction(2, size)


@pytest.mark.row(49)
@pytest.mark.parametrize(("dimensions", "size"), [(1, 2), (1, 6), (2, 3), (2, 5), (3, 4)])
def test_covariance_moves_by_six_gamma_squared_over_n(dimensions: int, size: int) -> None:
    """Attained: 4 in one dimension and 6 in more, times (n−1)/n²; the 8/n first printed is never reached."""
    _, covariances = largest_move(dimensions, size)
    factor = 4 if dimensions == 1 else 6
    assert covariances == Fraction(factor * (size - 1), size**2)
    assert covariances == covariance_sensitivity(size=size, gamma=Fraction(1), dimensions=dimensions)
    assert covariances < Fraction(8, size)


@pytest.mark.row(49)
def test_no_vector_inside_the_ball_moves_the_covariance_further() -> None:
    """The covariance is quadratic in each row, so vertices are not the whole story: try 20,000 pairs inside."""
    rng = np.random.default_rng(1)
    size, d = 4, 2
    bound = float(covariance_sensitivity(size=size, gamma=Fraction(1), dimensions=d))
    raw = rng.laplace(size=(20_000, size + 1, d))
    raw /= np.maximum(1.0, np.abs(raw).sum(axis=2, keepdims=True)) * rng.uniform(1, 1.2, size=(20_000, size + 1, 1))
    first, second = raw[:, :size], np.concatenate([raw[:, 1:size], raw[:, size:]], axis=1)

    def spread(rows: np.ndarray) -> np.ndarray:
        mu = rows.mean(axis=1)
        found: np.ndarray = np.einsum("abi,abj->aij", rows, rows) / size - np.einsum("ai,aj->aij", mu, mu)
        return found

    assert np.abs(spread(first) - spread(second)).sum(axis=(1, 2)).max() <= bound + 1e-12


def engine(rows: Sequence[tuple[object, ...]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("CREATE TABLE points (x DOUBLE, y DOUBLE, z DOUBLE)")
    connection.executemany("INSERT INTO points VALUES (?, ?, ?)", rows)
    return connection


def made(size: int, *, epsilon: Fraction = Fraction(1), covariance: bool = True, columns: str = "xyz") -> VectorPlan:
    return plan_vectors(
        points(),
        tuple(columns),
        size=size,
        gamma=Fraction(3),
        norm="l1",
        covariance=covariance,
        epsilon=epsilon,
        delta=Fraction(0),
    )


ODD = (None, float("nan"), float("inf"), -1e300, 3.0, -3.0, 1e-9, 0.1, 2.9999999999999996, 1.0)


@pytest.mark.row(48)
@pytest.mark.row(49)
def test_engine_sums_of_neighbors_are_within_the_stated_sensitivity() -> None:
    rng = random.Random(4)
    plan = made(5)
    assert plan.covariance is not None
    assert isinstance(plan.covariance.sensitivity, int)
    for _ in range(30):
        rows = [tuple(rng.choice(ODD) if rng.random() < 0.6 else rng.uniform(-4, 4) for _ in "xyz") for _ in range(5)]
        other = [*rows[1:], tuple(rng.choice(ODD) for _ in "xyz")]
        one, two = (integers(plan, arrays(engine(each), plan.sql)) for each in (rows, other))
        assert sum(abs(a - b) for a, b in zip(one[0], two[0], strict=True)) <= 2 * plan.gamma
        assert one[1] is not None
        assert two[1] is not None
        assert sum(abs(a - b) for a, b in zip(one[1], two[1], strict=True)) <= plan.covariance.sensitivity


def test_a_planted_missing_clip_is_caught() -> None:
    plan = made(2, covariance=False)
    spoiled = plan.sql.replace("THEN 3e0 / length", "THEN 1e0").replace(f"<= {plan.gamma}", f"<= {10**12}")
    assert spoiled != plan.sql
    one = integers(plan, arrays(engine([(9.0, 9.0, 9.0), (0, 0, 0)]), spoiled))[0]
    two = integers(plan, arrays(engine([(-9.0, -9.0, -9.0), (0, 0, 0)]), spoiled))[0]
    assert sum(abs(a - b) for a, b in zip(one, two, strict=True)) > 2 * plan.gamma


def test_answers_are_numpys_where_noise_is_negligible() -> None:
    rng = np.random.default_rng(7)
    data = rng.uniform(-1, 1, size=(500, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 0.2]])
    plan = made(500, epsilon=Fraction(10**6))
    found = finish_vectors(plan, arrays(engine([tuple(map(float, row)) for row in data]), plan.sql), system())
    assert found.mean == pytest.approx(data.mean(axis=0), abs=1e-4)
    assert found.covariance == pytest.approx(np.cov(data.T, bias=True), abs=1e-3)


def test_both_answers_together_cost_epsilon() -> None:
    for covariance in (True, False):
        plan = made(1000, epsilon=Fraction(1, 3), covariance=covariance)
        spent = privacy_cost(plan.event).pure
        assert spent is not None
        assert Fraction(333, 1000) < spent <= Fraction(1, 3)


def test_in_the_l2_norm_the_mean_has_gaussian_noise() -> None:
    budget = Budget(Fraction(1), Fraction(1, 10**6))
    plan = plan_vectors(
        points(),
        ("x", "y", "z"),
        size=3,
        gamma=Fraction(3),
        norm="l2",
        covariance=False,
        epsilon=budget.epsilon,
        delta=budget.delta,
    )
    assert admits(budget, ZERO, privacy_cost(plan.event))
    rng = random.Random(5)
    for _ in range(20):
        rows = [tuple(rng.choice(ODD) for _ in "xyz") for _ in range(3)]
        other = [*rows[1:], tuple(rng.uniform(-4, 4) for _ in "xyz")]
        one, two = (integers(plan, arrays(engine(each), plan.sql))[0] for each in (rows, other))
        assert sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) <= 4 * plan.gamma**2


def test_a_wrong_public_number_of_rows_is_one_constant_failure() -> None:
    plan = made(4)
    with pytest.raises(RunError, match="HB900"):
        finish_vectors(plan, arrays(engine([(1, 1, 1)] * 5), plan.sql), system())


@pytest.mark.parametrize(
    ("table", "columns", "code"),
    [
        (points(Relation.ADD_REMOVE), ("x",), "HB571"),
        (points(unit=PrivacyUnit("x")), ("x",), "HB571"),
        (points(), ("w",), "HB573"),
        (points(), ("x", "x"), "HB570"),
        (points(), (), "HB570"),
    ],
)
def test_what_has_no_public_number_of_rows_is_refused(table: Table, columns: tuple[str, ...], code: str) -> None:
    with pytest.raises(QueryError, match=code):
        plan_vectors(
            table,
            columns,
            size=10,
            gamma=Fraction(1),
            norm="l1",
            covariance=True,
            epsilon=Fraction(1),
            delta=Fraction(0),
        )
