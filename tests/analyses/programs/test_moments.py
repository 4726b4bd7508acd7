"""Mean, covariance and principal components from noisy sums."""

import numpy as np
import pytest
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.moments import PCA, Covariance, moments, pca
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError

NAMES = ["a", "b", "c"]
MATRIX = np.array([[4.0, 3.0, 0.0], [3.0, 4.0, 0.5], [0.0, 0.5, 1.0]])


def people(world: World, rows: int = 20_000, **how: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    draw = np.random.default_rng(3)
    values = draw.multivariate_normal([20.0, -5.0, 3.0], MATRIX, rows)
    made = {"who": np.arange(rows) // 4, **{name: values[:, j] for j, name in enumerate(NAMES)}}
    world.put("people", made, bounds={"a": (0, 100), "b": (-50, 50), "c": (-10, 40)}, **how)  # type: ignore[arg-type]
    return values


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_mean_and_covariance_are_near_the_truth(world: World, delta: str) -> None:
    """Errors are a tenth of what is allowed here, which is some 10 deviations of the noise."""
    values = people(world)
    _, release = world.run(moments(world.setting(1, delta), table="people", columns=NAMES), "moments")
    found = Covariance.of(release)
    assert found.columns == tuple(NAMES)
    assert np.abs(found.mean - values.mean(axis=0)).max() < 0.2
    assert np.abs(found.covariance - np.cov(values.T)).max() < 0.8
    low, high = release.outputs[1].low, release.outputs[1].high
    assert low is not None
    assert high is not None
    assert all(one < mean < other for one, mean, other in zip(low, found.mean, high, strict=True))


def test_intervals_hold_the_truth_about_as_often_as_they_say(world: World) -> None:
    """95% each of 60 means; below 40 is a false alarm of less than 1e-9."""
    truth = people(world).mean(axis=0)
    held = 0
    for _ in range(20):
        _, release = world.run(moments(world.setting(1), table="people", columns=NAMES), "moments")
        mean = release.outputs[1]
        assert mean.low is not None
        assert mean.high is not None
        ends = zip(mean.low, truth, mean.high, strict=True)
        held += sum(low is not None and high is not None and low <= at <= high for low, at, high in ends)
    assert held >= 40


def test_intervals_contain_the_rounding_of_many_equal_rows(world: World) -> None:
    """At this ε noise is far smaller than a step; equal rows are all rounded one way."""
    for value in (37.1234567, 61.7654321, 88.0000123):
        values = np.where(np.arange(20_000) % 2, value, 0.0)
        world.put("halves", {"who": np.arange(20_000), "a": values}, bounds={"a": (0, 100)})
        _, release = world.run(moments(world.setting(10**6), table="halves", columns=["a"]), "moments")
        for output, truth in zip(release.outputs[1:], (values.mean(), values.var()), strict=True):
            (low,), (high,) = output.low or (), output.high or ()
            assert low is not None
            assert high is not None
            assert low <= truth <= high


@pytest.mark.row(55)
def test_principal_components_come_from_two_queries_of_noisy_sums(world: World) -> None:
    values = people(world)
    prepared = pca(world.setting(1, "1e-6"), table="people", columns=NAMES, components=2)
    _, release = world.run(prepared, "pca")
    assert len(world.asked) == 2
    assert world.drawn == charged(prepared.event)
    found = PCA.of(release)
    true = np.linalg.eigh(np.cov(values.T))
    assert found.components.shape == (2, 3)
    assert abs(found.components[0] @ true.eigenvectors[:, -1]) > 0.99
    assert found.explained_variance[0] == pytest.approx(true.eigenvalues[-1], rel=0.1)
    scores = found.transform(values)
    assert scores.shape == (len(values), 2)
    back = found.inverse_transform(scores)
    assert np.mean((back - values) ** 2) < np.mean((values.mean(axis=0) - values) ** 2) / 2


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=1, rows=4)])
def test_what_is_drawn_is_what_is_charged(
    world: World, delta: str, relation: Relation, unit: PrivacyUnit | None
) -> None:
    people(world, 400, unit=unit, relation=relation)
    prepared = moments(world.setting(1, delta), table="people", columns=NAMES)
    world.run(prepared, "moments")
    assert world.drawn == charged(prepared.event)
    assert affords(prepared)


def test_units_and_replacement_cost_more_noise(world: World) -> None:
    people(world, 400)
    plain = moments(world.setting(1), table="people", columns=NAMES).allocation.noises[1]
    people(world, 400, unit=PrivacyUnit("who", groups=1, rows=4), relation=Relation.REPLACE)
    owned = moments(world.setting(1), table="people", columns=NAMES).allocation.noises[1]
    tighter = moments(world.setting(1, rows=2), table="people", columns=NAMES).allocation.noises[1]
    assert owned.sensitivity == 8 * plain.sensitivity  # type: ignore[union-attr]
    assert tighter.sensitivity == 4 * plain.sensitivity  # type: ignore[union-attr]


def test_what_cannot_be_is_refused_with_a_remedy(world: World) -> None:
    people(world, 40, unit=PrivacyUnit("who", groups=1, rows=4))
    for columns, code in (([], "HB540"), (["a", "a"], "HB540"), (["who"], "HB541"), (["z"], "HB541")):
        with pytest.raises(QueryError, match=code) as refused:
            moments(world.setting(), table="people", columns=columns)
        assert refused.value.remedy
    with pytest.raises(ParameterError, match="HB120"):
        moments(world.setting(), table="nobody", columns=["a"])
    with pytest.raises(ParameterError, match="HB556"):
        moments(world.setting(rows=5), table="people", columns=["a"])
    with pytest.raises(ParameterError, match="HB103"):
        pca(world.setting(), table="people", columns=["a"], components=2)
    with pytest.raises(ParameterError, match="HB196"):
        PCA.of(world.run(moments(world.setting(), table="people", columns=["a"]), "moments")[1])
