"""Mean vectors and covariance matrices: exact sensitivities at the vertices, and what the engine gives."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from tests.contract.tables import ROW, people
from tests.fixtures.program_tables import World, affords

from hubbub.analyses.base import EngineRun, Setting
from hubbub.analyses.programs.mean_vector import (
    CovarianceAnalysis,
    MeanAnalysis,
    covariance,
    covariance_sensitivity,
    mean_sensitivity,
    mean_vector,
)
from hubbub.analyses.programs.vectors import STEPS
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.euclidean import EuclideanNoise
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system
from hubbub.sql.bounding import RenderOptions

Vector = tuple[Fraction, ...]
ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
NAMES = ["a", "b"]
SMALL = people()


def vertices(dimensions: int) -> list[Vector]:
    """The corners of the L1 ball of radius 1, where a convex function of one vector is largest."""
    places = itertools.product(range(dimensions), (1, -1))
    return [tuple(Fraction(sign if j == place else 0) for j in range(dimensions)) for place, sign in places]


def mean_of(rows: list[Vector]) -> Vector:
    return tuple(sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True))


def covariance_of(rows: list[Vector]) -> Vector:
    mu, d = mean_of(rows), len(rows[0])
    return tuple(
        sum((row[i] * row[j] for row in rows), Fraction(0)) / len(rows) - mu[i] * mu[j]
        for i in range(d)
        for j in range(d)
    )


def apart(one: Vector, two: Vector) -> Fraction:
    return sum((abs(a - b) for a, b in zip(one, two, strict=True)), Fraction(0))


def largest_move(dimensions: int, size: int) -> tuple[Fraction, Fraction]:
    """By brute force over vertices: how far mean and covariance move in L1 when one row is replaced."""
    corners = vertices(dimensions)
    means, covariances = Fraction(0), Fraction(0)
    for others in itertools.combinations_with_replacement(corners, size - 1):
        tables = [(mean_of([*others, v]), covariance_of([*others, v])) for v in corners]
        for (m1, c1), (m2, c2) in itertools.combinations(tables, 2):
            means, covariances = max(means, apart(m1, m2)), max(covariances, apart(c1, c2))
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
        matrices: np.ndarray = np.einsum("abi,abj->aij", rows, rows) / size - np.einsum("ai,aj->aij", mu, mu)
        return matrices

    assert np.abs(spread(first) - spread(second)).sum(axis=(1, 2)).max() <= bound + 1e-12


def setting(relation: Relation = REPLACE, unit: PrivacyUnit = ROW) -> Setting:
    return Setting({"t": SMALL.table(unit, relation)}, Fraction(1), Fraction(0), RenderOptions("salt"))


def exact(analysis: MeanAnalysis | CovarianceAnalysis, rows: list[tuple[object, object]]) -> list[int]:
    """Give what is noised: the sums, or n·C, in steps."""
    taped: list[list[int]] = []

    class Tape(Laplace):
        def sample(self, value: np.ndarray, source: object) -> np.ndarray:  # type: ignore[override]
            del source
            taped.append([int(each) for each in value])
            return value

    noise = analysis.noises[-1]
    assert isinstance(noise, Laplace)
    SMALL.show(tuple(((x, y, "a", True, True, 0, "p"),) for x, y in rows))
    object.__setattr__(analysis, "noises", (Tape(sensitivity=noise.sensitivity, scale=noise.scale),))
    analysis.run(EngineRun(SMALL.ask, system(), lambda _, __: None))
    object.__setattr__(analysis, "noises", (noise,))
    return taped[-1]


ODD = (None, float("nan"), float("inf"), -1e300, 1.0, -1.0, 1e-9, 0.1, 0.9999999999999999, 0.5)


@pytest.mark.row(48, 49)
def test_engine_integers_of_neighbors_are_within_the_sensitivity() -> None:
    """Random neighbors with odd numbers, and those of the proof, which come within a thousandth of it."""
    rng = random.Random(4)
    corners: list[tuple[object, object]] = [(-1.0, 0.0)] * 40
    pairs = [([(1.0, 0.0), *corners], [(0.0, 1.0), *corners]), ([(1.0, 0.0), *corners], [(-1.0, 0.0), *corners])]
    for _ in range(12):
        rows: list[tuple[object, object]] = [(rng.choice(ODD), rng.choice(ODD)) for _ in range(5)]
        pairs.append((rows, [(rng.choice(ODD), rng.uniform(-2, 2)), *rows[1:]]))
    for make, reached in ((mean_vector, 2), (covariance, 5)):
        analysis = make(setting(), table="t", columns=["x", "y"], gamma=Fraction(1))
        noise = analysis.noises[-1]
        assert isinstance(noise, Laplace)
        moves = [
            sum(abs(a - b) for a, b in zip(exact(analysis, one), exact(analysis, two), strict=True))
            for one, two in pairs
        ]
        assert max(moves) <= noise.sensitivity
        assert max(moves) / STEPS >= reached * 0.95  # the upper triangle of the worst matrix has 5 of its 6


@pytest.mark.row(48)
def test_the_printed_constant_is_what_is_charged() -> None:
    """2γ for the sum; 6γ² and 4γ² for n·C, up to what rounding to steps adds: less than a thousandth."""
    expected = ((mean_vector, ["x", "y"], 2), (covariance, ["x", "y"], 6), (covariance, ["x"], 4))
    for make, columns, constant in expected:
        noise = make(setting(), table="t", columns=columns, gamma=Fraction(1)).noises[-1]
        assert isinstance(noise, Laplace)
        assert constant <= noise.sensitivity / STEPS <= constant * 1.001
        assert noise.scale == noise.sensitivity


def points(world: World, rows: int = 4000, **how: object) -> np.ndarray:
    values = np.random.default_rng(3).multivariate_normal([20.0, -5.0], [[9.0, 3.0], [3.0, 4.0]], rows)
    made = {"who": np.arange(rows) // 2, "a": values[:, 0], "b": values[:, 1]}
    world.put("points", made, bounds={"a": (0, 40), "b": (-30, 20)}, **how)  # type: ignore[arg-type]
    return values


@pytest.mark.row(48, 49)
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=1, rows=2)], ids=["row", "unit"])
def test_answers_are_those_of_numpy_where_noise_is_negligible(
    world: World, relation: Relation, unit: PrivacyUnit | None
) -> None:
    values = points(world, unit=unit or PrivacyUnit(None), relation=relation)
    for noise, norm in (("laplace", "l1"), ("euclidean", "l2")):
        prepared = mean_vector(world.setting(1000), table="points", columns=NAMES, norm=norm, noise=noise)  # type: ignore[arg-type]
        published, _ = world.run(prepared, "mean_vector")
        assert published.outputs[1].values == pytest.approx(values.mean(axis=0), abs=1e-2)
        assert affords(prepared)
    prepared_covariance = covariance(world.setting(1000), table="points", columns=NAMES)
    published, _ = world.run(prepared_covariance, "covariance")
    matrix = np.array([each.values for each in published.outputs[1:]])
    assert matrix == pytest.approx(np.cov(values.T, bias=True), abs=0.1)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_intervals_hold_the_truth_about_as_often_as_they_say(world: World, relation: Relation) -> None:
    """At least 95% each of 3 means and entries in 15 runs; below 30 of 75 is a false alarm of less than 1e-9."""
    values = points(world, rows=500, relation=relation)
    truth = [*values.mean(axis=0), *np.cov(values.T, bias=True)[np.triu_indices(2)]]
    held = 0
    for _ in range(15):
        means, _ = world.run(mean_vector(world.setting(1), table="points", columns=NAMES), "mean_vector")
        entries, _ = world.run(covariance(world.setting(1), table="points", columns=NAMES), "covariance")
        mean, first, second = means.outputs[1], *entries.outputs[1:]
        for at, (place, output) in zip(truth, [(0, mean), (1, mean), (0, first), (1, first), (1, second)], strict=True):
            assert output.low is not None
            assert output.high is not None
            low, high = output.low[place], output.high[place]
            held += low is not None and high is not None and low <= at <= high
    assert held >= 60


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_intervals_contain_the_rounding_of_many_equal_rows(world: World, relation: Relation) -> None:
    """Equal rows are all rounded one way, by up to half a step; over many rows that is more than the noise."""
    rows = 20_000
    for at in (37.0, 12.3456, 81.2):
        values = {"a": np.full(rows, at), "b": np.full(rows, 81.2)}
        world.put("points", values, bounds={"a": (0, 100), "b": (0, 100)}, relation=relation)
        for options in ({}, {"norm": "l2", "noise": "euclidean"}):
            prepared = mean_vector(world.setting(1000), table="points", columns=NAMES, **options)  # type: ignore[arg-type]
            mean = world.run(prepared, "mean_vector")[0].outputs[1]
            assert all(low <= x <= high for low, x, high in zip(mean.low, (at, 81.2), mean.high, strict=True))  # type: ignore[arg-type, operator]
        entries = world.run(covariance(world.setting(1000), table="points", columns=NAMES), "covariance")[0]
        for each in entries.outputs[1:]:
            assert max(each.low) <= 0 <= min(each.high)  # type: ignore[arg-type, operator, type-var]


def test_default_gamma_clips_nothing_however_narrow_the_bounds(world: World) -> None:
    for width in (1e-10, 2.8e-9, 0.3):
        world.put("points", {"a": np.linspace(0, width, 9)}, bounds={"a": (0, width)}, relation=REPLACE)
        assert mean_vector(world.setting(1), table="points", columns=["a"]).gamma >= Fraction(width) / 2


@pytest.mark.row(97)
def test_euclidean_noise_is_smaller_than_laplace_noise_for_several_columns() -> None:
    """k/rate on average in the norm, for the L2 sensitivity; Laplace noise is for √k times that."""
    made = {
        name: mean_vector(setting(), table="t", columns=["x", "y"], norm="l2", noise=name)
        for name in ("laplace", "euclidean")
    }
    laplace, euclidean = (made[name].noises[-1] for name in ("laplace", "euclidean"))
    assert isinstance(laplace, Laplace)
    assert isinstance(euclidean, EuclideanNoise)
    assert 2 * STEPS <= euclidean.sensitivity <= 2 * STEPS * 1.001
    assert euclidean.rate * euclidean.sensitivity == 1
    assert euclidean.error(Fraction(95, 100)) < laplace.error(Fraction(95, 100))


def test_noise_that_does_not_fit_is_refused() -> None:
    for options in ({"norm": "l1"}, {"norm": "l2", "columns": ["x", "y", "i"] * 4}):
        with pytest.raises(QueryError):
            mean_vector(setting(), **{"table": "t", "columns": ["x"], "noise": "euclidean", **options})  # type: ignore[arg-type]
