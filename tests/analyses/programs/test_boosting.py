"""Explainable boosting: what a turn adds up, what is drawn, shapes that are found, and turns that come to rest."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.boosting import BoostingAnalysis, ExplainableBoosting, explainable_boosting, turn
from hubbub.analyses.programs.vectors import STEPS
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import QueryError

Floats = NDArray[np.float64]
TOWNS = ("a", "b", "c")
#: The log-odds of each town, and those of a step in x at 0.
EFFECTS = np.array([-1.0, 0.0, 1.5])


def put(world: World, rows: int = 8_000, **how: object) -> dict[str, NDArray[np.object_]]:
    """Make rows whose log-odds are those of the town, two above a step of x, and nothing of z, which follows x."""
    draw = np.random.default_rng(8)
    town, x = draw.integers(0, 3, rows), draw.uniform(-1, 1, rows)
    margin = EFFECTS[town] + 2.0 * (x > 0) - 1.0
    z = np.clip(x + draw.normal(0, 0.3, rows), -1, 1)
    flag = draw.random(rows) < 1 / (1 + np.exp(-margin))
    made = {"who": np.arange(rows) // 2, "x": x, "z": z, "town": np.array(TOWNS)[town], "flag": flag}
    world.put("people", made, bounds={"x": (-1, 1), "z": (-1, 1)}, lists={"town": TOWNS}, **how)  # type: ignore[arg-type]
    return {name: np.asarray(each, dtype=object) for name, each in made.items()}


def prepared(world: World, epsilon: object = 1, delta: object = 0, **how: object) -> BoostingAnalysis:
    setting = world.setting(epsilon, delta)
    columns = ["x", "z", "town"]
    return explainable_boosting(setting, table="people", columns=columns, target="flag", bins=4, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(("relation", "delta"), [(Relation.ADD_REMOVE, 0), (Relation.REPLACE, "1e-6")])
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=2, rows=2)])
def test_what_is_drawn_is_what_is_charged(
    world: World, relation: Relation, delta: object, unit: PrivacyUnit | None
) -> None:
    put(world, 200, unit=unit, relation=relation)
    analysis = prepared(world, delta=delta, rounds=2)
    world.run(analysis, "explainable_boosting")
    assert world.drawn == charged(analysis.event)
    assert len(world.asked) == 1 + 2 * 3
    assert affords(analysis)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("unit", "l1"), [(None, 1), (PrivacyUnit("who", groups=2, rows=1), 2)])
def test_residuals_of_neighbors_are_within_the_sensitivity(
    world: World, relation: Relation, unit: PrivacyUnit | None, l1: int
) -> None:
    """Shapes that are sure of a row and wrong: its residual is 1. Noise is left out by an ε of 10⁵."""
    put(world, 60, unit=unit, relation=relation)
    analysis = prepared(world, 100_000)
    bound = analysis.allocation.noises[1].sensitivity  # type: ignore[union-attr]
    assert bound == l1 * STEPS * relation.units_changed
    shapes = [np.full(4, -30.0), np.zeros(4), np.zeros(3)]

    def sums() -> Floats:
        return analysis._residuals(world, analysis.attributes[0], 0.0, shapes)

    before, furthest = sums(), 0.0
    for who in range(0, 30, 3):
        world.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM people")
        change = "DELETE FROM people" if relation is Relation.ADD_REMOVE else "UPDATE people SET x = -x, flag = true"
        world.connection.execute(f"{change} WHERE {'who' if unit else 'rowid'} = {who}")
        step = float(np.abs(sums() - before).sum())
        world.connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM kept")
        assert step <= bound / STEPS + 0.01
        furthest = max(furthest, step)
    assert furthest >= 0.4 * bound / STEPS


def test_at_a_large_epsilon_it_finds_the_effects_and_gives_none_to_a_follower(world: World) -> None:
    """The counts of each class by z alone rise with z; the effect of z beside x must not, and x keeps its step of 2.

    With 8,000 rows an effect has a deviation of 0.06 by sampling: 0.4 is more than six of them.
    """
    people = put(world)
    model = ExplainableBoosting.of(world.run(prepared(world, 10_000, rounds=8), "explainable_boosting")[1])
    x, z, town = model.shapes
    assert abs(x[2:].mean() - x[:2].mean() - 2.0) < 0.4
    assert np.abs(z[1:3]).max() < 0.4
    assert np.abs(town - town[1] - EFFECTS).max() < 0.4
    margin = EFFECTS[np.searchsorted(TOWNS, people["town"].astype(str))] + 2.0 * (people["x"].astype(float) > 0) - 1.0
    assert float(np.corrcoef(model.decision_function(people), margin)[0, 1]) > 0.97


def test_at_epsilon_four_it_predicts_nearly_as_well(world: World) -> None:
    """Accuracy of the true log-odds is 0.76; noise of about 10 rows in buckets of 2,000 cannot take 0.05 of it."""
    people = put(world)
    model = ExplainableBoosting.of(world.run(prepared(world, 4), "explainable_boosting")[1])
    assert np.mean(model.predict(people) == people["flag"]) > 0.70
    assert np.allclose(model.predict_proba(people).sum(axis=1), 1)
    assert len(model.plot().axes) == 3


def test_a_turn_moves_a_bucket_to_its_share() -> None:
    """All rows at probability ½ and a share of 0.8: the log-odds move by ln 4; half trusted, by half of it."""
    move = turn(np.array([0.8, 0.5, 0.8]), np.array([0.3, 0.0, 0.3]), np.array([1.0, 1.0, 0.5]))
    assert np.allclose(move, [np.log(4), 0, np.log(4) / 2])


def test_one_value_against_all_others_may_be_learned(world: World) -> None:
    put(world, 600)
    setting = world.setting(10_000)
    analysis = explainable_boosting(setting, table="people", columns=["x", "z"], target="town", positive="c", rounds=1)
    model = ExplainableBoosting.of(world.run(analysis, "explainable_boosting")[1])
    assert model.classes == ("other", "c")
    assert abs(1 / (1 + np.exp(-model.intercept)) - 1 / 3) < 0.1


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    put(world, 30)
    with pytest.raises(QueryError, match="HB548"):
        explainable_boosting(world.setting(), table="people", columns=["x"], target="town")
    wide: dict[str, NDArray[np.object_]] = {f"c{j}": np.zeros(2, dtype=object) for j in range(12)}
    world.put("wide", {**wide, "f": np.array([True, False])}, bounds=dict.fromkeys(wide, (0, 1)))
    with pytest.raises(QueryError, match="HB545"):
        explainable_boosting(world.setting(), table="wide", columns=list(wide), target="f", rounds=20)
