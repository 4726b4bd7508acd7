"""Simulated null hypotheses: the law of the noise, p-values that are valid, rows that are independent."""

from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.program_tables import World

from hubbub.analyses.statistics.chi_square import chi_square
from hubbub.analyses.statistics.null import largest_p, noncentrality, one_row_each, simulated_noise
from hubbub.core.schema import PrivacyUnit
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace.from_epsilon(sensitivity=1, epsilon=Fraction(1)),
        Laplace.from_epsilon(sensitivity=3, epsilon=Fraction(8)),
        Gaussian.from_rho(sensitivity_squared=1, rho=Fraction(2)),
        Gaussian.from_rho(sensitivity_squared=4, rho=Fraction(1, 8)),
    ],
    ids=str,
)
def test_simulated_noise_has_the_law_of_the_mechanism(mechanism: Laplace | Gaussian) -> None:
    """Each frequency of 40,000 draws is within 6 standard deviations of the exact chance: 25 values, below 1e-7."""
    draws = simulated_noise(mechanism, (40_000,), np.random.default_rng(3))
    law = {value: float(low) for value, (low, _) in mechanism.distribution(0).mass.items()}
    for value in range(-12, 13):
        chance = law.get(value, 0.0)
        allowed = 6 * np.sqrt(max(chance, 1e-5) / 40_000)
        assert np.mean(draws == value) == pytest.approx(chance, abs=allowed), value


def test_a_simulated_p_value_is_at_least_uniform() -> None:
    """Exactly: the statistic takes each rank among the simulated ones equally often."""
    simulated = np.arange(1.0, 20.0)
    values = [largest_p(rank - 0.5, [lambda: simulated])[0] for rank in range(1, 21)]
    assert sorted(values) == [place / 20 for place in range(1, 21)]
    # of several null hypotheses the one that explains the statistic best counts, and ties count against an effect
    assert largest_p(5.0, [lambda: np.zeros(19), lambda: np.full(19, 5.0)])[0] == 1.0


def test_the_noncentrality_is_that_of_the_tables_of_cohen() -> None:
    """For 80% power at 5%: 7.85, 9.63 and 10.90 for one, two and three degrees of freedom."""
    for degrees, known in ((1, 7.85), (2, 9.63), (3, 10.90)):
        assert noncentrality(degrees) == pytest.approx(known, rel=0.03)


def test_a_unit_counts_with_one_row(world: World) -> None:
    rows = 900
    world.put(
        "visits",
        {"who": np.arange(rows) % 30, "k": np.array(["a", "b", "c"])[np.arange(rows) % 3]},
        unit=PrivacyUnit("who", groups=3, rows=30),
        lists={"k": ("a", "b", "c")},
    )
    setting = one_row_each(world.setting(10_000))
    assert (setting.groups, setting.rows) == (1, 1)
    prepared = chi_square(world.setting(10_000), table="visits", columns=["k"])
    assert prepared.limits is not None
    assert (prepared.limits.groups, prepared.limits.rows) == (1, 1)
    assert sum(world.run(prepared, "chi_square")[0].model["table"]) == 30
