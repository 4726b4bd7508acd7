"""Poisson regression from noisy gradients."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import poisson
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.moments import NoisyMoments
from hubbub.analyses.programs.vectors import of_sums
from hubbub.analyses.statistics.poisson import PoissonRegression, poisson_regression
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError

Floats = NDArray[np.float64]
NAMES = ["age", "smoker"]


def people(world: World, rows: int = 8000, **how: object) -> tuple[Floats, Floats, Floats]:
    """Put a table of falls: by a factor of 1.35 more often for each 20 years, and a third less for some people."""
    draw = np.random.default_rng(31)
    values = np.column_stack([draw.uniform(0, 100, rows), (draw.uniform(size=rows) < 0.3).astype(float)])
    years = draw.uniform(0.5, 3, rows)
    falls = np.minimum(draw.poisson(years * np.exp(values @ [0.015, -0.4] - 0.5)), 20).astype(float)
    made = {"who": np.arange(rows) // 3, "age": values[:, 0], "smoker": values[:, 1], "years": years, "falls": falls}
    bounds = {"age": (0, 100), "smoker": (0, 1), "years": (0.25, 4), "falls": (0, 20)}
    world.put("people", made, bounds=bounds, **how)  # type: ignore[arg-type]
    return values, years, falls


def exact(values: Floats, years: Floats, falls: Floats) -> Floats:
    """Fit without noise by Newton's method on the rows, written independently: the intercept first."""
    design = np.column_stack([np.ones(len(values)), values])
    weights = np.zeros(design.shape[1])
    for _ in range(60):
        rate = years * np.exp(design @ weights)
        weights += np.linalg.solve(design.T @ (design * rate[:, None]), design.T @ (falls - rate))
    return np.asarray(weights)


def explained(truth: Floats, rate: Floats, level: Floats) -> float:
    """Give the explained share of the deviance, from likelihoods."""
    best, own, none = (np.sum(poisson.logpmf(truth, each)) for each in (np.maximum(truth, 1e-12), rate, level))
    return float(1 - (best - own) / (best - none))


def test_the_fit_is_exact_where_noise_is_negligible(world: World) -> None:
    values, years, falls = people(world)
    prepared = poisson_regression(world.setting(10**6), table="people", columns=NAMES, target="falls", exposure="years")
    model = PoissonRegression.of(world.run(prepared, "poisson_regression")[1])
    known = exact(values, years, falls)
    assert model.coef == pytest.approx(known[1:], rel=0.005)
    assert model.intercept == pytest.approx(known[0], abs=0.002)
    rate = years * np.exp(np.column_stack([np.ones(len(values)), values]) @ known)
    assert model.predict(values[:4], years[:4]) == pytest.approx(rate[:4], rel=0.01)
    level = years * falls.sum() / years.sum()
    assert model.score(values, falls, years) == pytest.approx(explained(falls, rate, level), abs=0.005)
    prepared = poisson_regression(world.setting(10**6), table="people", columns=["age"], target="falls")
    model = PoissonRegression.of(world.run(prepared, "poisson_regression")[1])
    alone = exact(values[:, :1], np.ones(len(years)), falls)
    assert model.coef == pytest.approx(alone[1:], rel=0.005)
    assert len(world.asked) == 2 + prepared.rounds


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_intervals_hold_the_exact_fit(world: World, delta: str) -> None:
    """95% each of 24 coefficients.

    Fewer than 14 are a false alarm of less than 1e-8. A tenth of the width is too little.
    """
    known = exact(*people(world))[1:]
    held = short = 0
    for _ in range(12):
        prepared = poisson_regression(
            world.setting(4, delta), table="people", columns=NAMES, target="falls", exposure="years"
        )
        found = world.run(prepared, "poisson_regression")[0].outputs[1]
        for value, low, high, at in zip(
            found.values[1:], (found.low or ())[1:], (found.high or ())[1:], known, strict=True
        ):
            assert isinstance(value, float)
            assert low is not None
            assert high is not None
            held += low <= at <= high
            short += abs(value - at) <= (high - low) / 20
    assert held >= 14 > short


def test_no_interval_is_stated_where_noise_hides_the_slopes(world: World) -> None:
    people(world, 300)
    prepared = poisson_regression(world.setting("0.1"), table="people", columns=NAMES, target="falls")
    found = world.run(prepared, "poisson_regression")[0].outputs[1]
    assert found.low == found.high == [None, None, None]
    assert np.isfinite(np.array(found.values, dtype=float)).all()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=1, rows=3)])
def test_what_is_drawn_is_what_is_charged(world: World, relation: Relation, unit: PrivacyUnit | None) -> None:
    people(world, 300, unit=unit, relation=relation)
    prepared = poisson_regression(
        world.setting(1, "1e-6"), table="people", columns=["age"], target="falls", exposure="years", rounds=3
    )
    world.run(prepared, "poisson_regression")
    assert world.drawn == charged(prepared.event)
    assert affords(prepared)


def test_gradients_of_neighbors_are_within_the_sensitivity(world: World) -> None:
    """Each of some rows is taken away, at weights small and large; what the noise would be added to is looked at."""
    people(world, 30)
    world.connection.execute(
        "UPDATE people SET falls = 20 WHERE rowid < 4; UPDATE people SET falls = 99 WHERE rowid = 4"
    )
    found: list[NDArray[np.int64]] = []

    class Bare:
        variance = 1

        def sample(self, value: NDArray[np.int64], source: object) -> NDArray[np.int64]:
            assert source is world.source
            found.append(value)
            return value

    made = poisson_regression(world.setting(), table="people", columns=NAMES, target="falls", exposure="years")
    object.__setattr__(made.allocation, "noises", (*made.allocation.noises[:6], Bare()))
    limit = of_sums(3, made.inputs.contribution_bounds(1), Relation.ADD_REMOVE)
    near = NoisyMoments(30.0, np.array([-0.4, 0.0]), np.full(2, 0.05), np.zeros(2), np.eye(2), (1, 1, 1))
    furthest = 0
    world.connection.execute("CREATE TABLE kept AS SELECT *, rowid AS place FROM people")
    for weights in (np.array([-30.0, 0.0, 0.0]), np.array([30.0, 30.0, 30.0]), np.array([0.5, 1.0, -1.0])):
        seen = []
        for row in (-1, *range(8)):
            world.connection.execute(
                f"CREATE OR REPLACE TABLE people AS SELECT * EXCLUDE place FROM kept WHERE place <> {row}"
            )
            made._gradient(world, near, weights)
            seen.append(found[-1])
        for without in seen[1:]:
            moved = seen[0] - without
            assert np.abs(moved).sum() <= limit.l1
            assert (moved**2).sum() <= limit.l2_squared
            furthest = max(furthest, int((moved**2).sum()))
    assert furthest > 0.9 * limit.l2_squared


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    people(world, 30)
    setting = world.setting()
    for code, arguments in (
        ("HB547", {"columns": ["age", "falls"], "target": "falls"}),
        ("HB547", {"columns": ["age"], "target": "falls", "exposure": "age"}),
        ("HB540", {"columns": [], "target": "falls"}),
        ("HB542", {"columns": ["who"], "target": "falls"}),
        ("HB542", {"columns": ["age"], "target": "falls", "exposure": "smoker"}),
    ):
        with pytest.raises(QueryError, match=code):
            poisson_regression(setting, table="people", **arguments)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="HB103"):
        poisson_regression(setting, table="people", columns=["age"], target="falls", rounds=0)
