"""Logistic regression from noisy sums: classes, intervals, and what neighbors move."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.logistic import LogisticRegressionAnalysis, _of_residuals, logistic_regression
from hubbub.analyses.programs.logistic_model import LogisticRegression
from hubbub.analyses.programs.moments import NoisyMoments
from hubbub.analyses.programs.vectors import of_products, of_sums
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError

Floats = NDArray[np.float64]
NAMES = ["a", "b"]
SLOPES = np.array([[0.0, 0.0], [0.4, -0.5], [-0.3, 0.8]])


def people(world: World, rows: int = 4000, **how: object) -> tuple[Floats, NDArray[np.object_]]:
    """Put rows of three classes, the log-odds of which are linear; `sick` is whether someone is of the second."""
    draw = np.random.default_rng(8)
    values = draw.normal([30.0, 0.0], [4.0, 2.0], (rows, 2))
    margins = (values - [30, 0]) @ SLOPES.T + [0.0, -0.2, 0.3]
    kind = np.array(["low", "mid", "top"])[(margins + draw.gumbel(size=margins.shape)).argmax(axis=1)]
    made = {"who": np.arange(rows) // 3, "a": values[:, 0], "b": values[:, 1], "sick": kind == "mid", "kind": kind}
    bounds = {"a": (0, 60), "b": (-10, 10)}
    world.put("people", made, bounds=bounds, lists={"kind": ("low", "mid", "top")}, **how)  # type: ignore[arg-type]
    return values, kind.astype(object)


def exact(rows: Floats, labels: NDArray[np.object_], classes: list[object]) -> Floats:
    """Fit without noise by Newton's method, written independently: the first class has no weights."""
    design = np.column_stack([np.ones(len(rows)), rows])
    weights = np.zeros((len(classes), design.shape[1]))
    said = np.stack([labels == each for each in classes], axis=1).astype(float)
    for _ in range(25):
        powers = np.exp(design @ weights.T)
        chance = powers / powers.sum(axis=1, keepdims=True)
        size = design.shape[1]
        hessian = np.zeros(((len(classes) - 1) * size,) * 2)
        for a in range(1, len(classes)):
            for b in range(1, len(classes)):
                both = chance[:, a] * ((a == b) - chance[:, b])
                hessian[(a - 1) * size : a * size, (b - 1) * size : b * size] = design.T @ (design * both[:, None])
        gradient = (said - chance)[:, 1:].T @ design
        weights[1:] += np.linalg.solve(hessian, gradient.ravel()).reshape(gradient.shape)
    return weights


def clip(values: Floats, model: dict[str, object]) -> Floats:
    """Pull rows in as the release says."""
    centre, reach = np.array(model["centre"]), np.array(model["reach"])
    moved = (values - centre) / reach
    return np.asarray(centre + reach * moved / np.maximum(1, np.linalg.norm(moved, axis=1, keepdims=True)))


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_intervals_hold_the_exact_fit(world: World, delta: str) -> None:
    """95% of 9 numbers; fewer than 3 are a false alarm of less than 1e-7. `test_logistic_fit` counts more runs."""
    values, kind = people(world)
    held = 0
    for _ in range(3):
        setting = world.setting(20, delta)
        prepared = logistic_regression(setting, table="people", columns=NAMES, target="sick", rounds=8)
        published, release = world.run(prepared, "logistic_regression")
        column = published.outputs[1]
        if column.low is None or column.high is None or column.sampling is None:
            held += len(column.values)  # nothing is claimed after a long last step
            continue
        known = exact(clip(values, dict(release.model)), kind == "mid", [False, True])[1]
        held += sum(low <= at <= high for low, at, high in zip(column.low, known, column.high, strict=True))
        assert "rows beyond `reach`" in release.intervals_note
        assert column.sampling.values[1] == pytest.approx(_between(values, known)[1], rel=0.3)
    assert held >= 3


def _between(values: Floats, weights: Floats) -> Floats:
    """Give the ± at 95% between samples by the exact curvature."""
    design = np.column_stack([np.ones(len(values)), values])
    chance = 1 / (1 + np.exp(-design @ weights))
    return np.asarray(1.96 * np.sqrt(np.diag(np.linalg.inv(design.T @ (design * (chance * (1 - chance))[:, None])))))


def test_there_are_no_intervals_where_noise_hides_the_curvature(world: World) -> None:
    values, _ = people(world, 400)
    prepared = logistic_regression(world.setting("0.3"), table="people", columns=NAMES, target="sick")
    published, release = world.run(prepared, "logistic_regression")
    assert published.outputs[1].low is None
    model = LogisticRegression.of(release)
    assert model.half is None
    assert np.isfinite(model.predict_proba(values)).all()


@pytest.mark.parametrize("target", ["sick", "kind"])
def test_at_a_large_epsilon_it_is_the_exact_fit(world: World, target: str) -> None:
    values, kind = people(world)
    labels, classes = (kind == "mid", [False, True]) if target == "sick" else (kind, ["low", "mid", "top"])
    prepared = logistic_regression(world.setting(10**6), table="people", columns=NAMES, target=target, rounds=6)
    published, release = world.run(prepared, "logistic_regression")
    known = exact(clip(values, dict(release.model)), labels, classes)  # type: ignore[arg-type]
    model = LogisticRegression.of(release)
    assert list(model.classes) == classes
    whole = np.column_stack([np.reshape(model.intercept, (-1, 1)), np.atleast_2d(model.coef)])
    if target == "kind":
        known = known - known.mean(axis=0)
        assert [each.name for each in published.outputs] == ["term", "low", "mid", "top"]
    else:
        known = known[1:]
    assert whole == pytest.approx(known, abs=0.003 * np.abs(known).max())
    powers = np.exp(np.column_stack([np.ones(5), values[:5]]) @ known.T)
    chances = powers / (powers.sum(axis=1, keepdims=True) + (target == "sick"))
    assert model.predict_proba(values[:5])[:, -chances.shape[1] :] == pytest.approx(chances, abs=0.01)
    data = {"a": values[:, 0], "b": values[:, 1]}
    assert model.predict(data).tolist() == model.predict(values).tolist()
    assert model.score(values, list(labels)) > 0.6
    assert len(model.plot().axes) == 1


def test_several_classes_are_told_apart_with_noise(world: World) -> None:
    """The best share is about 0.71; noise takes off a hundredth."""
    values, kind = people(world)
    prepared = logistic_regression(world.setting(3, "1e-6"), table="people", columns=NAMES, target="kind")
    published, release = world.run(prepared, "logistic_regression")
    assert LogisticRegression.of(release).score(values, list(kind)) > 0.64
    assert all(each.low is None for each in published.outputs), "intervals are for two classes"
    one = logistic_regression(world.setting(), table="people", columns=NAMES, target="kind", positive="mid")
    assert one.classes == ("other", "mid")


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=1, rows=3)])
def test_what_is_drawn_is_what_is_charged(world: World, relation: Relation, unit: PrivacyUnit | None) -> None:
    people(world, 300, unit=unit, relation=relation)
    for target in ("sick", "kind"):
        prepared = logistic_regression(world.setting(1, "1e-6"), table="people", columns=["a"], target=target, rounds=2)
        world.run(prepared, "logistic_regression")
        assert world.drawn == charged(prepared.event)
        assert affords(prepared)


@pytest.mark.parametrize("what", ["sick", "kind", "curvature"])
def test_sums_of_neighbors_are_within_the_sensitivity(world: World, what: str) -> None:
    """Each of some rows is taken away, at weights small and large; what the noise would be added to is looked at."""
    people(world, 40)
    world.connection.execute("UPDATE people SET a = 60, b = 10 WHERE rowid < 2")
    found: list[NDArray[np.int64]] = []

    class Bare:
        variance = 1

        def sample(self, value: NDArray[np.int64], source: object) -> NDArray[np.int64]:
            assert source is world.source
            found.append(value)
            return value

    made = logistic_regression(
        world.setting(), table="people", columns=NAMES, target="kind" if what == "kind" else "sick"
    )
    assert isinstance(made, LogisticRegressionAnalysis)
    bounds, relation = made.inputs.contribution_bounds(1), Relation.ADD_REMOVE
    if what == "kind":
        limit = _of_residuals(3, 2, made.inputs)
    else:
        limit = of_sums(3, bounds, relation) if what == "sick" else of_products(3, bounds, relation)
    near = NoisyMoments(40.0, np.array([0.0, 0.0]), np.full(2, 0.05), np.zeros(2), np.eye(2), (1, 1, 1))
    size = 3 if what == "kind" else 2
    sure = np.zeros((size, 3))
    sure[1] = [40.0, 30.0, -30.0]
    sure[0] -= sure[1] * (what == "kind")
    furthest = 0.0
    for weights in (np.zeros((size, 3)), sure):

        def measure(weights: Floats = weights) -> None:
            if what == "curvature":
                made._curvature(world, near, weights, Bare())  # type: ignore[arg-type]
            else:
                made._gradient(world, near, weights, Bare())  # type: ignore[arg-type]

        measure()
        whole = found[-1]
        world.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM people")
        for row in range(4):
            world.connection.execute(f"DELETE FROM people WHERE rowid = {row}")
            measure()
            world.connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM kept")
            moved = whole - found[-1]
            assert np.abs(moved).sum() <= limit.l1
            assert (moved**2).sum() <= limit.l2_squared
            furthest = max(furthest, float((moved**2).sum()) / limit.l2_squared)
    assert furthest > 0.7


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    people(world, 30)
    setting = world.setting()
    cases: list[tuple[str, dict[str, object]]] = [
        ("HB547", {"target": "a"}),
        ("HB543", {"target": "b", "columns": ["a"]}),
        ("HB548", {"target": "kind", "positive": "dead"}),
    ]
    for code, more in cases:
        with pytest.raises(QueryError, match=code):
            logistic_regression(setting, **({"table": "people", "columns": NAMES} | more))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="HB103"):
        logistic_regression(setting, table="people", columns=["a"], target="kind", rounds=0)
    many = tuple(f"k{number}" for number in range(21))
    world.put("wide", {"a": np.zeros(3), "k": np.array(many[:3])}, bounds={"a": (0, 1)}, lists={"k": many})
    with pytest.raises(QueryError, match="HB850"):
        logistic_regression(world.setting(), table="wide", columns=["a"], target="k")
