"""The perceptron from noisy sums: the exact one without noise, its sensitivity, and what it costs."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.perceptron import Perceptron, perceptron
from hubbub.analyses.programs.vectors import of_sums
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError

Floats = NDArray[np.float64]
NAMES = ["a", "b"]


def people(world: World, rows: int = 4000, **how: object) -> tuple[Floats, NDArray[np.bool_]]:
    """Points of a square that a line separates with a margin of a tenth."""
    draw = np.random.default_rng(12)
    values = draw.uniform([0, -1], [10, 1], (3 * rows, 2))
    margin = (values[:, 0] - 5) / 5 - values[:, 1] / 2 + 0.2
    values, margin = values[np.abs(margin) > 0.2][:rows], margin[np.abs(margin) > 0.2][:rows]
    table = {"who": np.arange(rows) // 2, "a": values[:, 0], "b": values[:, 1], "sick": margin > 0}
    world.put("people", table, bounds={"a": (0, 10), "b": (-1, 1)}, **how)  # type: ignore[arg-type]
    return values, margin > 0


def exact_perceptron(values: Floats, label: NDArray[np.bool_], rounds: int) -> tuple[Floats, int]:
    """Add the mean of the misclassified rows in each round, in plain numpy; the best weights and their mistakes."""
    z = (values - [5, 0]) / [5, 1] / np.sqrt(2)
    points, sign = np.column_stack([np.ones(len(z)), z]), np.where(label, 1, -1)
    weights, best = np.zeros(3), (np.zeros(3), len(z))
    for place in range(rounds):
        wrong = sign * (points @ weights) <= 0
        if place and wrong.sum() < best[1]:
            best = weights, int(wrong.sum())
        if wrong.any():
            weights = weights + (sign[wrong, None] * points[wrong]).mean(axis=0)
    return best


@pytest.mark.row(55)
def test_without_noise_it_is_the_exact_perceptron(world: World) -> None:
    """At ε = 10⁶ the noise is below a hundredth of a row (17 scales, e⁻¹⁷ a draw); the weights are equal up to that.

    The fourth round finds no mistake. A round more could take noise for a misclassified row, and go on from there.
    """
    values, label = people(world, 600)
    prepared = perceptron(world.setting(10**6), table="people", columns=NAMES, target="sick", rounds=4)
    release = world.run(prepared, "perceptron")[1]
    expected, mistakes = exact_perceptron(values, label, 4)
    assert mistakes == 0
    model = Perceptron.of(release)
    assert model.coef * [5, 1] * np.sqrt(2) == pytest.approx(expected[1:], abs=0.01)
    assert round(release.model["wrong"]) == mistakes
    assert round(release.model["rows"]) == 600
    assert int((model.predict(values) != label).sum()) == mistakes


@pytest.mark.row(55)
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_classes_are_told_apart(world: World, delta: str) -> None:
    """Separable classes at ε = 2: nearly all right, and the stated number of mistakes is within its margin."""
    values, label = people(world)
    prepared = perceptron(world.setting(2, delta), table="people", columns=NAMES, target="sick", rounds=15)
    release = world.run(prepared, "perceptron")[1]
    wrong = int((Perceptron.of(release).predict(values) != label).sum())
    assert wrong < 0.05 * len(values)
    # 95% for all rounds at once; four times the margin has a false alarm below 1e-6
    assert abs(release.model["wrong"] - wrong) <= 4 * release.model["plus_minus"]
    assert len(world.asked) == 15


@pytest.mark.row(55)
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=1, rows=2)])
def test_what_is_drawn_is_what_is_charged(world: World, relation: Relation, unit: PrivacyUnit | None) -> None:
    people(world, 200, unit=unit, relation=relation)
    prepared = perceptron(world.setting(1, "1e-6"), table="people", columns=NAMES, target="sick", rounds=3)
    world.run(prepared, "perceptron")
    assert world.drawn == charged(prepared.event)
    assert affords(prepared)


def test_sums_of_neighbors_are_within_the_sensitivity(world: World) -> None:
    """Each of some rows is taken away, at several weights; what the noise would be added to is looked at."""
    people(world, 40)
    sums: list[NDArray[np.int64]] = []

    class Bare:
        def sample(self, value: NDArray[np.int64], _: object) -> NDArray[np.int64]:
            sums.append(value)
            return value

    prepared = perceptron(world.setting(), table="people", columns=NAMES, target="sick")
    object.__setattr__(prepared.allocation, "noises", (Bare(),))
    limit = of_sums(4, prepared.inputs.contribution_bounds(1), Relation.ADD_REMOVE)
    furthest = 0
    for weights in (np.zeros(3), np.array([4.0, -30.0, 20.0])):
        prepared._misclassified(world, weights)
        for row in range(12):
            world.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM people")
            world.connection.execute(f"DELETE FROM people WHERE rowid = {row}")
            prepared._misclassified(world, weights)
            world.connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM kept")
            moved = sums[-1] - sums[-2 - row]
            assert np.abs(moved).sum() <= limit.l1
            assert (moved**2).sum() <= limit.l2_squared
            furthest = max(furthest, int((moved**2).sum()))
    assert furthest > 0.7 * limit.l2_squared


def test_what_cannot_be_is_refused(world: World) -> None:
    people(world, 30)
    with pytest.raises(QueryError, match="HB547"):
        perceptron(world.setting(), table="people", columns=["a", "sick"], target="sick")
    with pytest.raises(QueryError, match="HB543"):
        perceptron(world.setting(), table="people", columns=["a"], target="b")
    with pytest.raises(ParameterError, match="HB103"):
        perceptron(world.setting(), table="people", columns=["a"], target="sick", rounds=1)
