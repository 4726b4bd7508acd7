"""Linear regression from noisy sums."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.moments import NoisyMoments
from hubbub.analyses.programs.regression import (
    LinearRegression,
    linear_regression,
    solve_normal_equations,
)
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import QueryError

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


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=1, rows=3)])
def test_what_is_drawn_is_what_is_charged(world: World, relation: Relation, unit: PrivacyUnit | None) -> None:
    people(world, 300, unit=unit, relation=relation)
    setting = world.setting(1, "1e-6")
    line = linear_regression(setting, table="people", columns=NAMES, target="y")
    world.run(line, "linear_regression")
    assert world.drawn == charged(line.event)
    assert affords(line)


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    people(world, 30)
    setting = world.setting()
    with pytest.raises(QueryError, match="HB547"):
        linear_regression(setting, table="people", columns=["a", "y"], target="y")
    with pytest.raises(QueryError, match="HB540"):
        linear_regression(setting, table="people", columns=[], target="y")
    with pytest.raises(QueryError, match="HB542"):
        linear_regression(setting, table="people", columns=["a"], target="kind")
