"""Linear and logistic regression from noisy sums."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.moments import NoisyMoments
from hubbub.analyses.programs.regression import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionAnalysis,
    linear_regression,
    logistic_regression,
    solve_normal_equations,
)
from hubbub.analyses.programs.vectors import of_sums
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError

Floats = NDArray[np.float64]
SLOPES = np.array([2.0, -1.0, 0.5])
NAMES = ["a", "b", "c"]


def people(world: World, rows: int = 20_000, **how: object) -> tuple[Floats, Floats, Floats]:
    draw = np.random.default_rng(8)
    values = draw.normal([30.0, 0.0, 5.0], [4.0, 2.0, 1.0], (rows, 3))
    target = values @ SLOPES + 10 + draw.normal(0, 1, rows)
    chance = 1 / (1 + np.exp(-(values - values.mean(axis=0)) @ np.array([0.5, -1.0, 0.0])))
    label = draw.uniform(size=rows) < chance
    made = {
        "who": np.arange(rows) // 3,
        **{name: values[:, j] for j, name in enumerate(NAMES)},
        "y": target,
        "sick": label,
        "kind": np.where(label, "ill", "well"),
    }
    bounds = {"a": (0, 100), "b": (-20, 20), "c": (0, 20), "y": (0, 200)}
    world.put("people", made, bounds=bounds, lists={"kind": ("well", "ill")}, **how)  # type: ignore[arg-type]
    return values, target, label.astype(float)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_the_line_is_found(world: World, delta: str) -> None:
    """The coefficients' noise has deviations of at most 0.03; what is allowed is ten times as much."""
    values, target, _ = people(world)
    prepared = linear_regression(world.setting(1, delta), table="people", columns=NAMES, target="y")
    model = LinearRegression.of(world.run(prepared, "linear_regression")[1])
    assert np.abs(model.coef - SLOPES).max() < 0.3
    assert model.score(values, target) > 0.95
    assert model.predict(values[:3]).shape == (3,)


def test_intervals_hold_the_truth_about_as_often_as_they_say(world: World) -> None:
    """95% each of 36 coefficients; below 22 is a false alarm of less than 1e-8."""
    values, target, _ = people(world)
    exact = np.linalg.lstsq(np.column_stack([np.ones(len(values)), values]), target, rcond=None)[0][1:]
    held = 0
    for _ in range(12):
        prepared = linear_regression(world.setting(1), table="people", columns=NAMES, target="y")
        found = world.run(prepared, "linear_regression")[0].outputs[1]
        ends = zip((found.low or ())[1:], exact, (found.high or ())[1:], strict=True)
        held += sum(low is not None and high is not None and low <= at <= high for low, at, high in ends)
    assert held >= 22


def test_the_ridge_lifts_what_noise_would_drown() -> None:
    still = NoisyMoments(
        10.0, np.zeros(2), np.ones(2), np.array([0.0, 1.0]), np.array([[-50.0, 3.0], [3.0, 5.0]]), (5, 5, 5)
    )
    weights, errors, ridge = solve_normal_equations(still)
    assert ridge >= 50
    assert np.abs(weights).max() < 1
    assert np.isfinite(errors).all()
    sure = NoisyMoments(1e6, np.zeros(2), np.ones(2), np.zeros(2), np.array([[1e5, 5e4], [5e4, 1e5]]), (5, 5, 5))
    assert solve_normal_equations(sure)[2] == 0
    assert solve_normal_equations(sure)[0][1] == pytest.approx(0.5)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_classes_are_told_apart(world: World, delta: str) -> None:
    """The best accuracy that can be had is about 0.83; the noise takes off a hundredth."""
    values, _, label = people(world)
    prepared = logistic_regression(world.setting(1, delta), table="people", columns=NAMES, target="sick")
    published, release = world.run(prepared, "logistic_regression")
    model = LogisticRegression.of(release)
    assert published.outputs[1].low is None, "its weights are shrunk, so an interval for the noise would not hold them"
    assert model.classes == (False, True)
    assert np.mean(model.predict(values).astype(float) == label) > 0.78
    assert model.predict_proba(values[:5]).sum(axis=1) == pytest.approx(np.ones(5))
    assert model.coef[0] == pytest.approx(0.5, abs=0.25)
    assert model.coef[1] == pytest.approx(-1.0, abs=0.5)
    assert len(world.asked) == 2 + prepared.rounds


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=1, rows=3)])
def test_what_is_drawn_is_what_is_charged(world: World, relation: Relation, unit: PrivacyUnit | None) -> None:
    people(world, 300, unit=unit, relation=relation)
    setting = world.setting(1, "1e-6")
    line = linear_regression(setting, table="people", columns=NAMES, target="y")
    world.run(line, "linear_regression")
    assert world.drawn == charged(line.event)
    curve = logistic_regression(setting, table="people", columns=["a"], target="kind", positive="ill", rounds=3)
    world.run(curve, "logistic_regression")
    assert world.drawn == charged(curve.event)
    assert affords(line)
    assert affords(curve)


def test_gradients_of_neighbors_are_within_the_sensitivity(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of some rows is taken away, at weights small and large; what the noise would be added to is looked at."""
    people(world, 60)
    found: list[NDArray[np.int64]] = []

    class Bare:
        def sample(self, value: NDArray[np.int64], source: object) -> NDArray[np.int64]:
            assert source is world.source
            found.append(value)
            return value

    made = logistic_regression(world.setting(), table="people", columns=NAMES, target="sick")
    noises = (*made.allocation.noises[:6], Bare())
    object.__setattr__(made.allocation, "noises", noises)
    limit = of_sums(4, made.inputs.contribution_bounds(1), Relation.ADD_REMOVE)
    near = NoisyMoments(60.0, np.array([-0.4, 0.0, -0.5]), np.full(3, 0.05), np.zeros(3), np.eye(3), (1, 1, 1))
    furthest = 0
    for weights in (np.zeros(4), np.array([40.0, -30.0, 20.0, 10.0])):
        assert isinstance(made, LogisticRegressionAnalysis)
        made._gradient(world, near, weights)
        for row in range(12):
            world.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM people")
            world.connection.execute(f"DELETE FROM people WHERE rowid = {row}")
            made._gradient(world, near, weights)
            world.connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM kept")
            moved = found[-1] - found[-2 - row]
            assert np.abs(moved).sum() <= limit.l1
            assert (moved**2).sum() <= limit.l2_squared
            furthest = max(furthest, int((moved**2).sum()))
    assert furthest > 0.9 * limit.l2_squared


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    people(world, 30)
    setting = world.setting()
    with pytest.raises(QueryError, match="HB547"):
        linear_regression(setting, table="people", columns=["a", "y"], target="y")
    with pytest.raises(QueryError, match="HB540"):
        linear_regression(setting, table="people", columns=[], target="y")
    with pytest.raises(QueryError, match="HB542"):
        linear_regression(setting, table="people", columns=["a"], target="kind")
    with pytest.raises(QueryError, match="HB543"):
        logistic_regression(setting, table="people", columns=["a"], target="y")
    with pytest.raises(QueryError, match="HB548"):
        logistic_regression(setting, table="people", columns=["a"], target="kind", positive="dead")
    with pytest.raises(ParameterError, match="HB103"):
        logistic_regression(setting, table="people", columns=["a"], target="kind", rounds=0)
