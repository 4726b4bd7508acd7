"""A random forest: what a row adds to its counts, what is drawn, what it learns, and what its importances say."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.attributes import TreeSplit
from hubbub.analyses.programs.forest import RandomForest, RandomForestAnalysis, random_forest
from hubbub.analyses.programs.forest_splits import Guide, grow, importances
from hubbub.analyses.programs.tree import Node
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.gaussian import Gaussian

SPLIT = TreeSplit("x", ((0,), (1,)), threshold=Fraction(0))
COLUMNS = ["x", "y", "noise", "town"]


def put(world: World, rows: int = 4000, **how: object) -> tuple[dict[str, NDArray[Any]], NDArray[np.object_]]:
    """Make a class that is the product of two signs, mostly, and depends on nothing else."""
    draw = np.random.default_rng(4)
    made: dict[str, NDArray[Any]] = {
        "who": np.arange(rows) // 2,
        "x": draw.uniform(-1, 1, rows),
        "y": draw.uniform(-1, 1, rows),
        "noise": draw.uniform(-1, 1, rows),
        "town": np.array(["a", "b", "c"])[draw.integers(0, 3, rows)],
    }
    sign = (made["x"] > 0) == (made["y"] > 0.2)
    made["kind"] = np.where(draw.random(rows) < 0.9, np.where(sign, "same", "other"), "other")
    bounds = {"x": (-1, 1), "y": (-1, 1), "noise": (-1, 1)}
    lists = {"town": ("a", "b", "c"), "kind": ("same", "other")}
    world.put("people", made, bounds=bounds, lists=lists, **how)  # type: ignore[arg-type]
    return made, made["kind"].astype(object)


def prepare(world: World, epsilon: object = 1, **more: object) -> RandomForestAnalysis:
    given = {"table": "people", "columns": COLUMNS, "target": "kind", "trees": 4, "leaves": 8} | more
    return random_forest(world.setting(epsilon, "1e-6"), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=2, rows=2)])
def test_what_is_drawn_is_what_is_charged(world: World, relation: Relation, unit: PrivacyUnit | None) -> None:
    put(world, 200, unit=unit, relation=relation)
    prepared = prepare(world, trees=3)
    world.run(prepared, "random_forest")
    assert world.drawn == charged(prepared.event)
    assert len(world.asked) == 4
    assert affords(prepared)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("unit", "l1"), [(None, 1), (PrivacyUnit("who", groups=2, rows=1), 2)])
def test_counts_of_neighbors_are_within_the_sensitivity(
    world: World, relation: Relation, unit: PrivacyUnit | None, l1: int
) -> None:
    """A row is in one leaf of a tree: it moves one count by 1. A person has rows in two cells at most.

    What a replacement takes away and brings lies in different cells at worst, so that L1 and squared L2 norms double.
    """
    put(world, 60, unit=unit, relation=relation)
    prepared = prepare(world)
    found: list[NDArray[np.int64]] = []

    class Bare:
        def sample(self, value: NDArray[np.int64], source: object) -> NDArray[np.int64]:
            assert source is world.source
            found.append(value)
            return value

    limit, noise = l1 * relation.units_changed, prepared.allocation.noises[1]
    assert (noise.sensitivity_squared if isinstance(noise, Gaussian) else noise.sensitivity) == limit
    object.__setattr__(prepared.allocation, "noises", (prepared.allocation.noises[0], Bare()))
    root = grow(_guide(prepared), 8, np.random.default_rng(1))
    prepared._counts(world, root)
    furthest = 0
    for who in range(0, 30, 5):
        world.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM people")
        change = "DELETE FROM people" if relation is Relation.ADD_REMOVE else "UPDATE people SET x = -x, town = 'b'"
        world.connection.execute(f"{change} WHERE {'who' if unit else 'rowid'} = {who}")
        prepared._counts(world, root)
        world.connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM kept")
        step = np.abs(found[-1] - found[0])
        assert step.sum() <= limit
        assert (step**2).sum() <= limit
        furthest = max(furthest, int(step.sum()))
    assert furthest >= limit / 2


def _guide(prepared: RandomForestAnalysis) -> Guide:
    counts = [np.full((len(each.tests), 2), 50.0) for each in prepared.attributes]
    return Guide.of(prepared.attributes, counts, 1.0)


def test_every_row_is_in_one_leaf_and_trees_keep_their_size(world: World) -> None:
    rows, _ = put(world, 300)
    prepared = prepare(world, 10**6)
    guide = _guide(prepared)
    for seed in range(20):
        root = grow(guide, 8, np.random.default_rng(seed))
        assert 2 <= len(root.leaves()) <= 8
        counts = prepared._counts(world, root)
        assert counts.sum() == pytest.approx(len(rows["x"]), abs=0.5)
    assert grow(guide, 8, np.random.default_rng(3)) == grow(guide, 8, np.random.default_rng(3))


def test_it_learns_what_no_single_column_tells(world: World) -> None:
    """No column separates the classes by itself; at most 95 of 100 rows can be told, and 55 without pairs."""
    rows, kind = put(world)
    release = world.run(prepare(world, 8, trees=10, leaves=32), "random_forest")[1]
    model = RandomForest.of(release)
    assert np.mean(model.predict(rows) == kind) > 0.75
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx(np.ones(len(kind)))
    importance = dict(zip(model.columns, model.feature_importances, strict=True))
    assert importance["x"] + importance["y"] > 0.8
    assert model.feature_importances.sum() == pytest.approx(1)
    assert len(model.plot().axes) == 1


def test_at_a_large_epsilon_leaves_have_the_exact_shares(world: World) -> None:
    """Follow each row through each tree, and count by hand."""
    rows, kind = put(world, 500)
    release = world.run(prepare(world, 10**6), "random_forest")[1]
    for tree in RandomForest.of(release).trees:
        paths = []
        for place in range(len(kind)):
            node, path = tree, ""
            while "column" in node:
                value = rows[node["column"]][place]
                child = int(value >= node["threshold"]) if "threshold" in node else node["values"].index(value)
                node, path = node["children"][child], f"{path}{child}"
            paths.append((path, node["chances"]))
        for path in {each for each, _ in paths}:
            members = [place for place, (each, _) in enumerate(paths) if each == path]
            share = np.mean([kind[place] == "same" for place in members])
            assert paths[members[0]][1][0] == pytest.approx(share, abs=1e-3)


def test_noise_alone_gives_no_importance_on_average() -> None:
    """A column that says nothing, in 3,000 trees of one split.

    The mean is within 6 standard errors of 0 (false alarm 2e-9), and without what is taken off it is above.
    """
    draw = np.random.default_rng(1)

    def found(noise: float, said: float) -> NDArray[np.float64]:
        out = []
        for _ in range(4000):
            root = Node(children=[Node(number=0), Node(number=1)], split=SPLIT)
            out.append(
                importances(root, np.array([[300.0, 200], [300, 200]]) + draw.normal(0, noise, (2, 2)), said, ["x"])[0]
            )
        return np.array(out)

    fair, planted = found(15, 15), found(15, 0)
    error = float(fair.std()) / np.sqrt(len(fair))
    assert abs(fair.mean()) < 6 * error
    assert planted.mean() > 6 * error, "the planted error: nothing is taken off"


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    put(world, 30)
    for code, more in (
        ("HB547", {"target": "x"}),
        ("HB543", {"target": "y", "columns": ["x"]}),
        ("HB540", {"columns": []}),
    ):
        with pytest.raises(QueryError, match=code):
            prepare(world, **more)
    for wrong in ({"trees": 0}, {"leaves": 1}, {"seed": -1}, {"trees": 1000}):
        with pytest.raises(ParameterError, match="HB103"):
            prepare(world, **wrong)
