"""Naive Bayes: what a row adds to the counts, what is drawn, and the exact classifier at a large ε."""

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.attributes import bucket_numbers
from hubbub.analyses.programs.inputs import value_cells
from hubbub.analyses.programs.naive_bayes import NaiveBayes, class_count_request, classifier_input, naive_bayes
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.measures import RowCount

KINDS = ("low", "middle", "high")


def put(world: World, rows: int = 3_000, **how: object) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.object_]]]:
    """Make three classes that differ in a number and in a text."""
    draw = np.random.default_rng(4)
    label = draw.integers(0, 3, rows)
    town = np.where(draw.random(rows) < 0.7, label, draw.integers(0, 3, rows))
    made = {
        "who": np.arange(rows) // 2,
        "x": draw.normal(label - 1.0, 0.8, rows).clip(-3, 3),
        "town": np.array(["a", "b", "c"])[town],
        "kind": np.array(KINDS)[label],
    }
    world.put("people", made, bounds={"x": (-3, 3)}, lists={"town": ("a", "b", "c"), "kind": KINDS}, **how)  # type: ignore[arg-type]
    return {name: np.asarray(each, dtype=object) for name, each in made.items()}


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=2, rows=2)])
def test_what_is_drawn_is_what_is_charged(world: World, relation: Relation, unit: PrivacyUnit | None) -> None:
    put(world, 200, unit=unit, relation=relation)
    prepared = naive_bayes(world.setting(1, "1e-6"), table="people", columns=["x", "town"], target="kind", bins=4)
    world.run(prepared, "naive_bayes")
    assert world.drawn == charged(prepared.event)
    assert len(world.asked) == 1
    assert affords(prepared)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("unit", "l1"), [(None, 2), (PrivacyUnit("who", groups=2, rows=1), 4)])
def test_counts_of_neighbors_are_within_the_sensitivity(
    world: World, relation: Relation, unit: PrivacyUnit | None, l1: int
) -> None:
    """Two columns: a row is in two counts. A person has rows of two classes at most; a replacement doubles it."""
    put(world, 60, unit=unit, relation=relation)
    inputs, attributes = classifier_input(world.setting(), "people", ["x", "town"], "kind", 4)
    moved = class_count_request(inputs, 2, 3, 1.0).sensitivity
    assert moved.l1 == l1 * relation.units_changed

    def counts() -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        tests = [RowCount(where=test) for each in attributes for test in each.tests]
        cells = value_cells((inputs.column("kind"), KINDS))
        return inputs.integers(world, inputs.rows, cells, tests).through(lambda found: found)

    before, furthest = counts(), 0
    for who in range(0, 30, 3):
        world.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM people")
        change = "DELETE FROM people" if relation is Relation.ADD_REMOVE else "UPDATE people SET x = 3 - x, town = 'b'"
        world.connection.execute(f"{change} WHERE {'who' if unit else 'rowid'} = {who}")
        step = np.abs(counts() - before)
        world.connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM kept")
        assert step.sum() <= moved.l1
        assert int((step**2).sum()) <= moved.l2_squared
        furthest = max(furthest, int(step.sum()))
    assert furthest >= moved.l1 / 2


def test_at_a_large_epsilon_it_is_the_exact_classifier(world: World) -> None:
    """Compare with scikit-learn's naive Bayes on the same buckets."""
    people = put(world)
    prepared = naive_bayes(world.setting(10_000), table="people", columns=["x", "town"], target="kind", bins=6)
    model = NaiveBayes.of(world.run(prepared, "naive_bayes")[1])
    number = np.floor(people["x"].astype(float) + 3).clip(0, 5).astype(int)
    town = np.searchsorted(["a", "b", "c"], people["town"].astype(str))
    buckets = np.stack([number, town], axis=1)
    exact = CategoricalNB().fit(buckets, [KINDS.index(kind) for kind in people["kind"]])
    assert np.abs(model.predict_proba(people) - exact.predict_proba(buckets)).max() < 1e-6
    assert np.mean(model.predict(people) == people["kind"]) > 0.75
    assert model.classes == KINDS


def test_at_epsilon_one_few_rows_are_classified_otherwise(world: World) -> None:
    """Each class has 1,000 rows, and noise of scale 2 in nine counts exceeds 100 with a chance below 1e-9."""
    people = put(world)
    exact, model = (
        NaiveBayes.of(world.run(prepared, "naive_bayes")[1])
        for epsilon in (10_000, 1)
        for prepared in [
            naive_bayes(world.setting(epsilon), table="people", columns=["x", "town"], target="kind", bins=6)
        ]
    )
    assert np.mean(model.predict(people) == exact.predict(people)) > 0.9
    assert np.abs(model.class_prior - exact.class_prior).max() < 0.05


def test_intervals_hold_the_exact_counts_as_often_as_they_say(world: World) -> None:
    """27 counts in each of 40 runs at level 0.95: fewer than 0.90 of 1,080 has a chance below 1e-9."""
    people = put(world, 300)
    held = []
    for _ in range(40):
        prepared = naive_bayes(world.setting(1), table="people", columns=["x", "town"], target="kind", bins=6)
        outputs = world.run(prepared, "naive_bayes")[0].outputs
        for place, kind in enumerate(KINDS):
            own = people["kind"] == kind
            number = np.floor(people["x"].astype(float) + 3).clip(0, 5).astype(int)
            exact = [int((own & (number == b)).sum()) for b in range(6)]
            exact += [int((own & (people["town"] == town)).sum()) for town in "abc"]
            ends = zip(outputs[2 + place].low or (), exact, outputs[2 + place].high or (), strict=True)
            held += [low <= value <= high for low, value, high in ends if low is not None and high is not None]
    assert len(held) == 1_080
    assert np.mean(held) > 0.90


def test_rows_may_be_columns_or_an_array_and_unknown_values_are_ignored(world: World) -> None:
    put(world, 300)
    prepared = naive_bayes(world.setting(1), table="people", columns=["x", "town"], target="kind")
    model = NaiveBayes.of(world.run(prepared, "naive_bayes")[1])
    table = np.array([[0.5, "a"], [0.5, "z"]], dtype=object)
    named: dict[str, list[object]] = {"x": [0.5, 0.5], "town": ["a", "z"]}
    assert (model.predict_proba(table) == model.predict_proba(named)).all()
    assert np.allclose(model.predict_proba(table).sum(axis=1), 1)
    assert bucket_numbers({"values": ["a", "b"]}, np.array(["b", "z"])).tolist() == [1, -1]
    assert bucket_numbers({"thresholds": [0.0, 1.0]}, np.array([-1.0, 0.0, 1.0])).tolist() == [0, 1, 2]
    with pytest.raises(ParameterError, match="2 columns"):
        model.predict(np.zeros((3, 5)))
    assert len(model.plot().axes) == 2


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    put(world, 30)
    with pytest.raises(QueryError, match="HB547"):
        naive_bayes(world.setting(), table="people", columns=["kind"], target="kind")
    with pytest.raises(QueryError, match="HB543"):
        naive_bayes(world.setting(), table="people", columns=["town"], target="x")
    with pytest.raises(QueryError, match="HB540"):
        naive_bayes(world.setting(), table="people", columns=[], target="kind")
