"""What a price buys: all draws together cost no more than was named, exactly."""

from fractions import Fraction

import pytest
from tests.fixtures.program_tables import World

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.analyses.programs.allocation import NoiseRequest, allocate_budget
from hubbub.errors import QueryError
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import standard_deviation

NEEDS = [
    NoiseRequest(Sensitivity(1, 1), 0.1),
    NoiseRequest(Sensitivity(70_001, 65_540**2), 0.6, 7),
    NoiseRequest(Sensitivity(9, 3), 0.3, 3),
]
WIDE = [NoiseRequest(Sensitivity(10_000, 100), 1.0, 50)]


@pytest.mark.parametrize("epsilon", ["1", "0.1", "1/3", "0.123456789123"])
def test_price_of_all_draws_is_within_the_price_named(world: World, epsilon: str) -> None:
    bought = allocate_budget(world.setting(epsilon), NEEDS)
    spent = privacy_cost(bought.event).pure
    assert bought.kind == "laplace"
    assert bought.delta == 0
    assert spent is not None
    assert Fraction(999, 1000) * Fraction(epsilon) < spent <= Fraction(epsilon)


@pytest.mark.parametrize("epsilon", ["1", "0.1", "1/3"])
def test_gaussian_draws_pass_the_filter_of_their_own_budget_and_hardly_more_would(world: World, epsilon: str) -> None:
    delta = Fraction(1, 10**6)
    budget = Budget(Fraction(epsilon), delta)
    bought = allocate_budget(world.setting(epsilon, delta), WIDE)
    assert (bought.kind, bought.delta) == ("gaussian", delta)
    assert admits(budget, ZERO, privacy_cost(bought.event))
    more = allocate_budget(world.setting(Fraction(epsilon) * Fraction(105, 100), delta), WIDE)
    assert not admits(budget, ZERO, privacy_cost(more.event))


def test_the_smaller_noise_is_taken(world: World) -> None:
    few = allocate_budget(world.setting(1, "1e-6"), [NoiseRequest(Sensitivity(1, 1), 1.0)])
    many = allocate_budget(world.setting(1, "1e-6"), WIDE)
    forced = allocate_budget(world.setting(1, "1e-6"), WIDE, kind="laplace")
    assert (few.kind, many.kind) == ("laplace", "gaussian")
    assert standard_deviation(many.noises[0]) < standard_deviation(forced.noises[0])


def test_a_price_that_buys_nothing_is_refused(world: World) -> None:
    with pytest.raises(QueryError, match="HB544"):
        allocate_budget(world.setting("1e-9"), [NoiseRequest(Sensitivity(10**6, 10**12), 1.0, 50)])
