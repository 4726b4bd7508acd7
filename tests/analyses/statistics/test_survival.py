"""Survival curves: bands that hold, a log-rank test that is valid, and exact curves where there is no noise."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.statistics import null
from hubbub.analyses.statistics.kaplan_meier import Curve, TimeNoise, band, never_rising, shares_by_time
from hubbub.analyses.statistics.log_rank import log_rank_p, log_rank_sums
from hubbub.analyses.statistics.survival import SurvivalCurves, survival
from hubbub.analyses.tables.product_strategies import ProductStrategy
from hubbub.analyses.tables.strategies import best, identity
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Keystream

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
TIMES = 8
TRIALS = 150
#: At 5% more misses or rejections in that many trials are a false alarm of less than 1e-8 (binomial).
MOST = 26
SOURCE = Keystream()


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate less where a test is repeated."""
    monkeypatch.setattr(null, "DRAWS", 99)


def noise_of(groups: int, epsilon: str) -> TimeNoise:
    strategy = ProductStrategy((identity(2 * groups), best(TIMES, "prefixes", "laplace")))
    moved = strategy.sensitivity(contribution=1, relation=Relation.ADD_REMOVE)
    return TimeNoise(strategy, Laplace.from_epsilon(sensitivity=moved.l1, epsilon=Fraction(epsilon)))


def people(draw: np.random.Generator, rows: int, hazard: float, censoring: float) -> Integers:
    """Count people by kind and time: those who are left at the end are censored then."""
    at = draw.geometric(hazard, rows) - 1
    end = np.minimum(draw.geometric(censoring, rows) - 1, TIMES - 1)
    counts = np.zeros((2, TIMES), dtype=np.int64)
    np.add.at(counts, ((at <= end).astype(int), np.minimum(at, end)), 1)
    return counts


def noisy(exact: Integers, noise: TimeNoise) -> Floats:
    """Measure counts with the project's own sampler."""
    sums = noise.mechanism.sample(noise.strategy.measured(exact.reshape(-1)), SOURCE)
    return noise.strategy.estimated(sums).reshape(exact.shape)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("rows", "hazard", "epsilon"), [(60, 0.05, "1"), (800, 0.2, "0.1"), (300, 0.05, "20")])
def test_bands_hold_the_whole_curve(rows: int, hazard: float, epsilon: str) -> None:
    draw, noise = np.random.default_rng(21), noise_of(1, epsilon)
    true, missed = (1 - hazard) ** np.arange(1, TIMES + 1), 0
    for _ in range(TRIALS):
        _, low, high = band(noisy(people(draw, rows, hazard, 0.05), noise), noise, draw)
        missed += not ((low <= true) & (true <= high)).all()
    assert missed <= MOST


def test_a_band_without_the_noise_is_caught() -> None:
    """Greenwood's variance of noisy counts, 2.7 deviations wide: the planted error."""
    draw, noise = np.random.default_rng(22), noise_of(1, "0.1")
    true, missed = 0.8 ** np.arange(1, TIMES + 1), 0
    for _ in range(TRIALS):
        curve = Curve.of(noisy(people(draw, 800, 0.2, 0.05), noise), noise.at_risk)
        away = np.abs(curve.log - np.log(true)) / np.sqrt(curve.sampling)
        missed += bool((away * curve.reached > 2.7).any())
    assert missed > 2 * MOST


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("rows", "hazard", "epsilon"), [(400, 0.2, "0.1"), (60, 0.1, "2")])
def test_equal_hazards_are_rejected_no_more_than_stated(rows: int, hazard: float, epsilon: str) -> None:
    """The groups differ in size and in censoring."""
    draw, noise, found = np.random.default_rng(23), noise_of(2, epsilon), 0
    for _ in range(TRIALS):
        exact = np.stack([people(draw, rows, hazard, 0.03), people(draw, rows // 2, hazard, 0.15)])
        found += log_rank_p(noisy(exact, noise), noise, draw)[1] <= 0.05
    assert found <= MOST


def test_a_log_rank_test_that_ignores_the_noise_is_caught() -> None:
    draw, noise, found = np.random.default_rng(24), noise_of(2, "0.1"), 0
    for _ in range(TRIALS):
        exact = np.stack([people(draw, 800, 0.1, 0.03), people(draw, 400, 0.1, 0.15)])
        excess, covariance = log_rank_sums(noisy(exact, noise), noise)
        found += stats.chi2.sf(excess[0] ** 2 / covariance[0, 0], 1) <= 0.05
    assert found > 2 * MOST


def trial(
    world: World, rows: int = 900, **how: object
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    draw = np.random.default_rng(25)
    arm = draw.choice(2, rows)
    at = draw.geometric(np.array([0.06, 0.075])[arm]) - 1
    end = draw.integers(2, TIMES + 4, rows)
    died = at <= np.minimum(end, TIMES - 1)
    day = np.minimum(np.minimum(at, end), TIMES - 1)
    made = {
        "who": np.arange(rows),
        "day": day,
        "hour": day * 24.0,
        "died": died,
        "fate": np.where(died, "dead", "alive"),
        "arm": np.array(["new", "old"])[arm],
    }
    lists = {"day": tuple(range(TIMES)), "arm": ("new", "old"), "fate": ("dead", "alive")}
    world.put("trial", made, lists=lists, bounds={"hour": (0, 24 * TIMES)}, **how)  # type: ignore[arg-type]
    return day, died, arm


def test_curves_and_log_rank_are_exact_where_noise_is_negligible(world: World) -> None:
    """The references are scipy's product-limit estimate and log-rank test, from the rows themselves."""
    day, died, arm = trial(world)
    prepared = survival(world.setting(50_000), table="trial", time="day", event="died", group="arm")
    published, release = world.run(prepared, "survival")
    model = SurvivalCurves.of(release)
    samples = [stats.CensoredData(uncensored=day[(arm == g) & died], right=day[(arm == g) & ~died]) for g in (0, 1)]
    for place, sample in enumerate(samples):
        known = stats.ecdf(sample).sf.evaluate(np.arange(TIMES))
        assert np.allclose(model.survival[place], known, atol=0.002)
        assert np.allclose(
            model.predict(np.array([-1.0, 3.5, 7.0]), model.groups[place]), [1, known[3], known[7]], atol=0.002
        )
        assert (model.low[place] <= known).all()
        assert (known <= model.high[place]).all()
    test = stats.logrank(samples[0], samples[1])
    assert release.model["log_rank"]["statistic"] == pytest.approx(test.statistic**2, rel=0.01)
    assert model.pvalue == pytest.approx(test.pvalue, abs=0.04)
    # the same by bins of hours, and with the event named
    hours = {"column": "hour", "bins": TIMES}
    again = survival(world.setting(50_000), table="trial", time=hours, event="fate", positive="dead", group="arm")
    binned = SurvivalCurves.of(world.run(again, "survival")[1])
    assert np.allclose(binned.survival, model.survival, atol=0.004)
    assert binned.times.tolist() == [24.0 * (place + 1) for place in range(TIMES)]
    assert [each.name for each in published.outputs] == ["arm", "day", "log_rank_p", "survival"]
    assert "whole curve" in published.model["intervals"]


def test_medians_are_where_curves_and_bands_cross_one_half() -> None:
    curves = np.array([[0.9, 0.6, 0.5, 0.3]]), np.array([[0.8, 0.5, 0.4, 0.2]]), np.array([[1.0, 0.7, 0.6, 0.55]])
    model = SurvivalCurves(("all",), np.array([1.0, 2.0, 3.0, 4.0]), *curves, curves[0] * 100, "day", None)
    assert model.median() == (3.0, 2.0, None)
    assert model.predict(np.array([0.5, 1.0, 9.0])).tolist() == [1.0, 0.9, 0.3]
    assert model.plot().get_xlabel() == "day"


def test_people_leave_a_group_as_the_estimates_say() -> None:
    curve = np.array([0.8, 0.4, 0.4])
    parts = shares_by_time(curve, np.array([100.0, 70.0, 30.0]))
    assert parts[1] == pytest.approx([0.2, 0.35, 0.0])
    assert parts[0] == pytest.approx([0.1, 0.05, 0.3])
    assert parts.sum() == pytest.approx(1)
    assert never_rising(np.array([1.0, 3.0, 2.0])).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.usefixtures("few_draws")
def test_people_who_all_leave_at_once_have_a_band() -> None:
    """With much noise its upper end is beyond every float before it is cut off at 1."""
    draw, noise = np.random.default_rng(26), noise_of(1, "0.05")
    exact = np.zeros((2, TIMES), dtype=np.int64)
    exact[1, 3] = 600
    for _ in range(20):
        _, low, high = band(noisy(exact, noise), noise, draw)
        assert ((low >= 0) & (low <= high) & (high <= 1)).all()


def test_where_few_are_at_risk_nothing_is_claimed(world: World) -> None:
    trial(world, rows=10)
    prepared = survival(world.setting("0.1"), table="trial", time="day", event="died")
    model = SurvivalCurves.of(world.run(prepared, "survival")[1])
    assert (model.low == 0).all()
    assert (model.high == 1).all()
    assert model.median()[2] is None
    assert model.pvalue is None


def test_an_estimate_at_a_tiny_price_is_an_estimate(world: World) -> None:
    trial(world, rows=10)
    prepared = survival(world.setting("0.000001"), table="trial", time="day", event="died", group="arm")
    assert all(np.isfinite(each.plus_minus) for each in prepared.expected)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_what_is_drawn_is_what_is_charged(world: World, delta: str) -> None:
    trial(world, unit=PrivacyUnit("who", groups=3, rows=4), relation=Relation.REPLACE)
    prepared = survival(world.setting(1, delta), table="trial", time="day", event="died", group="arm")
    world.run(prepared, "survival")
    assert world.drawn == charged(prepared.event)
    assert affords(prepared)
    assert [each.name.split(":")[0] for each in prepared.expected] == [
        "noise of a survival probability",
        "hazard ratio that is found with probability 0.8 at p ≤ 0.05",
    ]


def test_calls_that_cannot_be_answered_are_rejected_before_the_charge(world: World) -> None:
    trial(world, rows=10)
    for arguments in (
        {"time": "arm", "event": "died"},
        {"time": "day", "event": "fate"},
        {"time": "day", "event": "fate", "positive": "well"},
        {"time": "day", "event": "day"},
        {"time": "hour", "event": "died"},
        {"time": {"column": "hour", "bins": 1}, "event": "died"},
        {"time": {"column": "hour", "bins": 500}, "event": "died"},
        {"time": {"column": "hour", "bins": 5, "missing": True}, "event": "died"},
        {"time": "day", "event": "died", "group": "died"},
    ):
        with pytest.raises(QueryError):
            survival(world.setting(), table="trial", **arguments)
