"""Chi-square tests: never rejected too often, exact where there is no noise, and as powerful as the estimate says."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.statistics import null
from hubbub.analyses.statistics.chi_square import ChiSquare, chi_square, effect_size
from hubbub.analyses.statistics.chi_square_null import chi_square_p, chi_square_statistic
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Keystream
from hubbub.sql.noise import standard_deviation

Floats = NDArray[np.float64]
Test = Callable[[Floats, Laplace, np.random.Generator], float]
TRIALS = 250
#: Rejections at 5% in that many trials: more are a false alarm of less than 1e-7 (binomial).
MOST = 36
SOURCE = Keystream()
LISTS = {"k": ("a", "b", "c"), "f": ("no", "yes")}


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate less where a test is repeated."""
    monkeypatch.setattr(null, "DRAWS", 199)


def rejected(test: Test, chances: Floats, rows: int, epsilon: str) -> int:
    """Count the rejections at 5% in tables that this project's own sampler made noisy."""
    draw = np.random.default_rng(11)
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=Fraction(epsilon))
    found = 0
    for _ in range(TRIALS):
        exact = draw.multinomial(rows, chances.ravel())
        noisy = mechanism.sample(exact, SOURCE).astype(np.float64).reshape(chances.shape)
        found += test(noisy, mechanism, draw) <= 0.05
    return found


def valid(noisy: Floats, mechanism: Laplace, draw: np.random.Generator) -> float:
    return chi_square_p(noisy, mechanism, draw)[1]


def naive(noisy: Floats, mechanism: Laplace, draw: np.random.Generator) -> float:
    """Read the noisy counts as if they were exact: the planted error."""
    result = stats.chi2_contingency(np.maximum(noisy, 0.5), correction=False)
    return float(result.pvalue)


EVEN = np.outer([0.5, 0.5], [0.3, 0.3, 0.4])
RARE = np.outer([0.95, 0.05], [0.9, 0.05, 0.05])


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("chances", "rows", "epsilon"),
    [(EVEN, 5, "1"), (EVEN, 300, "0.1"), (EVEN, 300, "20"), (RARE, 60, "1"), (RARE, 2000, "0.1")],
)
def test_a_true_null_hypothesis_is_rejected_no_more_than_stated(chances: Floats, rows: int, epsilon: str) -> None:
    assert rejected(valid, chances, rows, epsilon) <= MOST


def test_a_p_value_that_ignores_the_noise_is_caught() -> None:
    assert rejected(naive, EVEN, 300, "0.1") > 2 * MOST


@pytest.mark.usefixtures("few_draws")
def test_shares_that_are_true_are_rejected_no_more_than_stated() -> None:
    shares = np.array([[0.7], [0.2], [0.1]])
    test = partial(chi_square_p, shares=shares)
    for rows, epsilon in ((20, "1"), (1000, "0.1")):
        assert rejected(lambda *given: test(*given)[1], shares, rows, epsilon) <= MOST


@pytest.mark.usefixtures("few_draws")
def test_an_effect_of_the_estimated_size_is_found_as_often_as_the_estimate_says() -> None:
    """At least 0.7 of 150 where 0.8 is stated (below 95 is a false alarm of less than 1e-6 at 0.8), at most 0.95."""
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=Fraction(1, 4))
    size = effect_size(4, 1, standard_deviation(mechanism))
    chances = np.array([[1 + size, 1 - size], [1 - size, 1 + size]]) / 4
    draw, found = np.random.default_rng(2), 0
    for _ in range(150):
        noisy = mechanism.sample(draw.multinomial(1000, chances.ravel()), SOURCE).astype(np.float64).reshape(2, 2)
        found += chi_square_p(noisy, mechanism, draw)[1] <= 0.05
    assert 95 <= found <= 145


def people(world: World, rows: int = 3000, relation: Relation = Relation.ADD_REMOVE) -> NDArray[np.int64]:
    """Put a table in which f depends a little on k, and give its exact counts."""
    draw = np.random.default_rng(4)
    k = draw.choice(3, rows, p=[0.5, 0.3, 0.2])
    f = (draw.uniform(size=rows) < np.array([0.30, 0.34, 0.33])[k]).astype(int)
    made = {"k": np.array(LISTS["k"])[k], "f": np.array(LISTS["f"])[f]}
    world.put("people", made, lists=LISTS, relation=relation)
    table = np.zeros((3, 2), dtype=np.int64)
    np.add.at(table, (k, f), 1)
    return table


def test_the_p_value_is_that_of_scipy_where_noise_is_negligible(world: World) -> None:
    """Within 0.04: simulations have deviations of up to 0.007, and the largest of seven is taken."""
    exact = people(world)
    prepared = chi_square(world.setting(10_000), table="people", columns=["k", "f"])
    model = ChiSquare.of(world.run(prepared, "chi_square")[1])
    known = stats.chi2_contingency(exact, correction=False)
    assert model.table.tolist() == exact.tolist()
    assert model.statistic == pytest.approx(known.statistic, rel=1e-5)
    assert model.pvalue == pytest.approx(known.pvalue, abs=0.04)
    assert model.dof == known.dof
    assert np.allclose(model.expected_freq, known.expected_freq)
    shares = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    prepared = chi_square(world.setting(10_000), table="people", columns=["k"], shares=shares)
    model = ChiSquare.of(world.run(prepared, "chi_square")[1])
    fit = stats.chisquare(exact.sum(axis=1), [1500, 900, 600])
    assert model.statistic == pytest.approx(fit.statistic)
    assert model.pvalue == pytest.approx(fit.pvalue, abs=0.04)


def test_what_is_drawn_is_what_is_charged_and_what_is_shown_is_what_was_drawn(world: World) -> None:
    people(world, relation=Relation.REPLACE)
    prepared = chi_square(world.setting(1, "1e-6"), table="people", columns=["k", "f"])
    published, release = world.run(prepared, "chi_square")
    assert world.drawn == charged(prepared.event)
    assert affords(prepared)
    model = ChiSquare.of(release)
    assert model.statistic == float(chi_square_statistic(model.table, model.deviation**2))
    assert [each.name for each in published.outputs] == ["p_value", "statistic", "degrees of freedom", "rows"]
    assert model.residuals.shape == (3, 2)
    assert model.plot().get_xlabel() == "f"


def test_calls_that_cannot_be_answered_are_rejected_before_the_charge(world: World) -> None:
    people(world, rows=10)
    for arguments in (
        {"columns": ["k", "f", "k"]},
        {"columns": ["k"], "shares": [Fraction(1), Fraction(1)]},
        {"columns": ["k"], "shares": [Fraction(1), Fraction(0), Fraction(1)]},
        {"columns": ["k", "f"], "shares": [Fraction(1)] * 6},
        {"columns": [{"column": "k", "missing": 3}]},
    ):
        with pytest.raises(QueryError):
            chi_square(world.setting(), table="people", **arguments)


@pytest.mark.usefixtures("few_draws")
def test_a_total_that_is_all_noise_lies_in_its_interval(world: World) -> None:
    """With a deviation of 77 rows and one row, the noisy total is far below zero every few times."""
    people(world, rows=1)
    for _ in range(30):
        prepared = chi_square(world.setting(Fraction(1, 20)), table="people", columns=["k", "f"])
        (rows,) = (each for each in world.run(prepared, "chi_square")[0].outputs if each.name == "rows")
        assert rows.low is not None
        assert rows.high is not None
        assert rows.low[0] <= rows.values[0] <= rows.high[0]  # type: ignore[operator]
