"""Comparisons of means: never rejected too often, intervals that hold, and exact where there is no noise."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs.vectors import STEPS
from hubbub.analyses.statistics import null
from hubbub.analyses.statistics.mean_null import MeanNoise, compare_means, difference_interval, mean_intervals
from hubbub.analyses.statistics.means import Anova, DifferenceOfMeans, anova, detectable, difference_of_means
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Keystream

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
TRIALS = 150
#: At 5% more rejections, or misses of an interval, in that many trials are a false alarm of less than 1e-7 (binomial).
MOST = 26
SOURCE = Keystream()

SHAPES: dict[str, Draw] = {
    "one in twenty": lambda draw, n: np.where(draw.uniform(size=n) < 0.05, 1.0, -1.0),
    "even": lambda draw, n: draw.uniform(-1, 1, n),
    "close together": lambda draw, n: np.clip(draw.normal(0.3, 0.1, n), -1, 1),
    "rarely large": lambda draw, n: np.where(draw.uniform(size=n) < 0.03, draw.uniform(0, 1, n), -0.9),
}


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate less where a test is repeated."""
    monkeypatch.setattr(null, "DRAWS", 99)


def noise_of(epsilon: str, *, binary: bool) -> MeanNoise:
    share = Fraction(1) if binary else Fraction(4, 5)
    sums = Laplace.from_epsilon(sensitivity=STEPS + 1, epsilon=Fraction(epsilon) * share)
    squares = Laplace.from_epsilon(sensitivity=STEPS, epsilon=Fraction(epsilon) / 5)
    return MeanNoise(sums, None if binary else squares, STEPS)


def noisy_sums(groups: list[Floats], noise: MeanNoise) -> Floats:
    """Add up outcomes in steps, and add noise with the project's own sampler."""
    parts = [[(1 + y) / 2, (1 - y) / 2, y**2] for y in groups]
    exact = np.array([[round(STEPS * float(part.sum())) for part in each] for each in parts]).T
    both = noise.sums.sample(exact[:2], SOURCE)
    kept = [both] if noise.squares is None else [both, noise.squares.sample(exact[2:], SOURCE)]
    return np.concatenate(kept) / STEPS


def naive(groups: list[Floats], noisy: Floats) -> bool:
    """Compare noisy means as if they were exact, with the usual standard error: the planted error."""
    rows = np.maximum(noisy[0] + noisy[1], 1.0)
    means = np.clip((noisy[0] - noisy[1]) / rows, -1, 1)
    error = np.sqrt(((1 - means**2) / rows).sum())
    return bool(abs(means[0] - means[1]) > 1.96 * error)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("shape", "sizes", "epsilon"),
    [
        ("one in twenty", (20, 60), "0.1"),
        ("even", (3, 3), "20"),
        ("close together", (100, 200), "20"),
        ("rarely large", (200, 1000), "0.1"),
        ("rarely large", (50, 50, 80), "5"),
    ],
)
def test_equal_means_are_rejected_no_more_than_stated(shape: str, sizes: tuple[int, ...], epsilon: str) -> None:
    draw = np.random.default_rng(12)
    noise = noise_of(epsilon, binary=shape == "one in twenty")
    found = 0
    for _ in range(TRIALS):
        groups = [SHAPES[shape](draw, size) for size in sizes]
        found += compare_means(noisy_sums(groups, noise), noise, draw)[2] <= 0.05
    assert found <= MOST


@pytest.mark.usefixtures("few_draws")
def test_a_group_that_did_not_show_its_rare_outcomes_is_not_different() -> None:
    """All means are 0, but of one group 2% are 1 and others just below 0; of 300, 17 at 1% are a false alarm of 2e-8.

    A spread that is taken as it was seen rejects about 8% at that level.
    """
    draw, noise, found = np.random.default_rng(16), noise_of("20", binary=False), 0
    for _ in range(300):
        rare = np.where(draw.uniform(size=100) < 0.02, 1.0, -0.02 / 0.98)
        found += compare_means(noisy_sums([rare, np.zeros(100)], noise), noise, draw)[2] <= 0.01
    assert found <= 16


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("chance", "sizes", "epsilon"), [(0.5, (3, 3), "100"), (0.05, (30, 10), "20")])
def test_intervals_hold_for_few_rows_and_rare_outcomes(chance: float, sizes: tuple[int, int], epsilon: str) -> None:
    """Of 400 at 5%, 48 misses are a false alarm of 3e-8; a spread that is taken as it was seen misses 17% and more."""
    draw, noise = np.random.default_rng(17), noise_of(epsilon, binary=True)
    missed = np.zeros(3, dtype=int)
    for _ in range(400):
        groups = [np.where(draw.uniform(size=n) < chance, 1.0, -1.0) for n in sizes]
        found, _, _, critical = compare_means(noisy_sums(groups, noise), noise, draw)
        low, high = mean_intervals(found, critical, binary=True)
        least, most = difference_interval(found, critical, binary=True)
        missed += [*((low > 2 * chance - 1) | (high < 2 * chance - 1)), not least <= 0 <= most]
    assert missed.max() <= 47


def test_a_comparison_that_ignores_the_noise_is_caught() -> None:
    draw, noise = np.random.default_rng(13), noise_of("0.1", binary=True)
    found = 0
    for _ in range(TRIALS):
        groups = [SHAPES["one in twenty"](draw, size) for size in (100, 300)]
        found += naive(groups, noisy_sums(groups, noise))
    assert found > 2 * MOST


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("binary", "sizes", "epsilon"), [(True, (300, 200), "0.2"), (False, (500, 300), "1")])
def test_intervals_hold_the_true_difference(binary: bool, sizes: tuple[int, int], epsilon: str) -> None:  # noqa: FBT001
    """The true difference of the population is 0.4; an interval without the noise's share misses it far more often."""
    draw, noise = np.random.default_rng(14), noise_of(epsilon, binary=binary)
    missed = short = 0
    for _ in range(TRIALS):
        if binary:
            groups = [np.where(draw.uniform(size=n) < p, 1.0, -1.0) for n, p in zip(sizes, (0.5, 0.3), strict=True)]
        else:
            groups = [draw.uniform(-0.6 + at, 0.6 + at, n) for n, at in zip(sizes, (0.4, 0.0), strict=True)]
        found, _, _, critical = compare_means(noisy_sums(groups, noise), noise, draw)
        low, high = difference_interval(found, critical, binary=binary)
        missed += not low <= 0.4 <= high
        low, high = difference_interval(found, critical / 16, binary=binary)
        short += not low <= 0.4 <= high
    assert missed <= MOST < short


@pytest.mark.usefixtures("few_draws")
def test_a_difference_of_the_estimated_size_is_found_as_often_as_the_estimate_says() -> None:
    """Of 150, at 0.8: fewer than 95 are a false alarm of less than 1e-6."""
    draw, noise = np.random.default_rng(15), noise_of("0.25", binary=True)
    size, found = detectable(2, 1.0, noise), 0
    for _ in range(150):
        groups = [np.where(draw.uniform(size=500) < (1 + at) / 2, 1.0, -1.0) for at in (-size / 2, size / 2)]
        found += compare_means(noisy_sums(groups, noise), noise, draw)[2] <= 0.05
    assert 95 <= found <= 145


def people(world: World, rows: int = 900, **how: object) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    draw = np.random.default_rng(6)
    arm = draw.choice(3, rows)
    cost = np.clip(draw.normal(np.array([50.0, 53.0, 50.0])[arm], np.array([20.0, 15.0, 20.0])[arm]), 0, 100)
    cured = draw.uniform(size=rows) < np.array([0.5, 0.57, 0.5])[arm]
    made = {
        "who": np.arange(rows),
        "arm": np.array(["A", "B", "C"])[arm],
        "cost": cost,
        "cured": cured,
        "end": np.where(cured, "well", "ill"),
    }
    world.put("people", made, bounds={"cost": (0, 100)}, lists={"arm": ("A", "B", "C"), "end": ("ill", "well")}, **how)  # type: ignore[arg-type]
    return arm, cost, cured


def test_the_p_value_is_that_of_scipy_where_noise_is_negligible(world: World) -> None:
    """Welch's test, the chi-square test of two proportions, and Welch's analysis of variance; within 0.05."""
    arm, cost, cured = people(world)
    asked = {"table": "people", "group": "arm", "between": ["A", "B"]}
    prepared = difference_of_means(world.setting(100_000), outcome="cost", **asked)  # type: ignore[arg-type]
    model = DifferenceOfMeans.of(world.run(prepared, "difference_of_means")[1])
    a, b = cost[arm == 0], cost[arm == 1]
    known = stats.ttest_ind(a, b, equal_var=False)
    assert model.pvalue == pytest.approx(known.pvalue, abs=0.05)
    assert model.difference == pytest.approx(a.mean() - b.mean(), abs=0.01)
    ends = known.confidence_interval(0.95)
    assert model.interval is not None
    assert model.interval == pytest.approx((ends.low, ends.high), abs=0.2 * (ends.high - ends.low))
    assert model.low[0] < a.mean() < model.high[0]

    for outcome, positive in (("cured", None), ("end", "well")):
        prepared = difference_of_means(world.setting(100_000), outcome=outcome, positive=positive, **asked)  # type: ignore[arg-type]
        model = DifferenceOfMeans.of(world.run(prepared, "difference_of_means")[1])
        table = [[np.sum(cured & (arm == i)), np.sum(~cured & (arm == i))] for i in (0, 1)]
        assert model.pvalue == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue, abs=0.05)
        assert model.means == pytest.approx([cured[arm == i].mean() for i in (0, 1)], abs=1e-3)

    prepared = anova(world.setting(100_000), table="people", outcome="cost", group="arm")
    model = Anova.of(world.run(prepared, "anova")[1])
    assert model.pvalue == pytest.approx(welch([cost[arm == i] for i in range(3)]), abs=0.05)
    assert (model.difference, len(model.means)) == (None, 3)
    assert "mean of cost" in model.plot().get_xlabel()


def welch(groups: list[Floats]) -> float:
    """Welch's analysis of variance (1951), written from its definition."""
    sizes, means, variances = (np.array([f(g) for g in groups]) for f in (len, np.mean, lambda g: np.var(g, ddof=1)))
    weights = sizes / variances
    mean = (weights * means).sum() / weights.sum()
    k = len(groups)
    lack = ((1 - weights / weights.sum()) ** 2 / (sizes - 1)).sum()
    f = (weights * (means - mean) ** 2).sum() / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * lack)
    return float(stats.f.sf(f, k - 1, (k**2 - 1) / (3 * lack)))


def test_rows_move_the_sums_by_no_more_than_stated(world: World) -> None:
    """One row comes, at the ends and between: in steps both sums move by at most S + 1 in all, the squares by S."""
    for value in (0.0, 100.0, 33.3, 50.0 + 50.0 / STEPS, 250.0):
        world.put("people", {"arm": ["A"], "cost": [value]}, bounds={"cost": (0, 100)}, lists={"arm": ("A", "B", "C")})
        prepared = difference_of_means(
            world.setting(10**6), table="people", outcome="cost", group="arm", between=["A", "B"]
        )
        sums = prepared._sums(world)
        assert np.abs(sums[:2]).sum() * STEPS <= STEPS + 1 + 4
        assert abs(sums[2]).sum() * STEPS <= STEPS + 4
        assert sums[0].sum() == pytest.approx(min(value, 100.0) / 100, abs=1e-3)
    # a group that is not compared is not counted
    world.put("people", {"arm": ["C"], "cost": [9.0]}, bounds={"cost": (0, 100)}, lists={"arm": ("A", "B", "C")})
    assert np.abs(prepared._sums(world)).max() < 0.01


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_what_is_drawn_is_what_is_charged(world: World, delta: str) -> None:
    people(world, unit=PrivacyUnit("who", groups=2, rows=5), relation=Relation.REPLACE)
    for prepared in (
        difference_of_means(world.setting(1, delta), table="people", outcome="cured", group="arm", between=["A", "C"]),
        anova(world.setting(1, delta), table="people", outcome="cost", group="arm"),
    ):
        published, _ = world.run(prepared, "anova")
        assert world.drawn == charged(prepared.event)
        assert affords(prepared)
        assert "sampling" in published.model["intervals"]
        assert "found with probability 0.8" in prepared.expected[0].name


def test_calls_that_cannot_be_answered_are_rejected_before_the_charge(world: World) -> None:
    people(world, rows=10)
    for arguments in (
        {"outcome": "cost", "group": "arm"},
        {"outcome": "cost", "group": "arm", "between": ["A", "A"]},
        {"outcome": "cost", "group": "arm", "between": ["A", "D"]},
        {"outcome": "arm", "group": "end"},
        {"outcome": "cost", "group": "cost"},
        {"outcome": "who", "group": "arm", "between": ["A", "B"]},
        {"outcome": "end", "group": "cured", "positive": "dead"},
    ):
        with pytest.raises(QueryError):
            difference_of_means(world.setting(), table="people", **arguments)
