"""The ends of intervals where the estimate is cut at the end of its range, by exact enumeration of the noise."""

from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.visits_table import visits
from tests.sql.test_intervals import AGGREGATES, EXPRESSIONS

from hubbub.core.schema import PrivacyUnit
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.bind import bind
from hubbub.sql.estimates import CellKeys, ends
from hubbub.sql.noise import Noise
from hubbub.sql.plan import Plan, plan
from hubbub.sql.presentation import Answer, present

LEVEL = Fraction(95, 100)


def planned(text: str, *, epsilon: Fraction = Fraction(1, 10), noise: Noise = "laplace") -> Plan:
    query = bind(f"SELECT {text} FROM visits", tables={"visits": visits(PrivacyUnit("patient", 1, 1))})
    return plan(query, epsilon=epsilon, delta=Fraction(1, 10**6), salt="s", noise=noise)


def answered(made: Plan, sums: list[list[int]]) -> Answer:
    """Answer with these noisy sums of each measure, one cell for each."""
    noisy = [np.array(each, dtype=np.int64) for each in sums]
    return present(made, CellKeys(len(sums[0]), {}, {}), noisy, [], raw=False)


def masses(scale: Fraction, reach: int) -> list[float]:
    """Return Pr[Z = −reach], …, Pr[Z = reach] of discrete Laplace noise, from its definition."""
    ratio = float(np.exp(-1 / float(scale)))
    return [(1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-reach, reach + 1)]


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10)])
@pytest.mark.parametrize("truth", [0, 1, 2, 5, 10, 25, 29, 30, 31, 50, 200])
def test_intervals_of_counts_cover_by_exact_enumeration(truth: int, epsilon: Fraction) -> None:
    """For each true count, the probabilities of the noises whose interval holds it add up to 95%."""
    made = planned("count(*)", epsilon=epsilon)
    (noised,) = made.measures
    assert isinstance(noised.mechanism, Laplace)
    reach = int(40 / epsilon)
    answer = answered(made, [[truth + z for z in range(-reach, reach + 1)]])
    low, high = answer.low[0], answer.high[0]
    covers = (low <= truth) & (truth <= high)
    assert sum(np.array(masses(noised.mechanism.scale, reach))[covers]) >= 0.95
    assert (low >= 0).all()
    assert (high - low >= float(noised.mechanism.error(LEVEL))).all()


def test_a_count_far_below_zero_keeps_the_width_of_its_noise() -> None:
    answer = answered(planned("count(*)"), [[-1000, -35, -1, 0, 1, 100]])
    assert answer.values[0].tolist() == [0, 0, 0, 0, 1, 100]
    assert list(zip(answer.low[0].tolist(), answer.high[0].tolist(), strict=True)) == [
        (0, 30),
        (0, 30),
        (0, 30),
        (0, 30),
        (0, 31),
        (70, 130),
    ]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", [*AGGREGATES, *EXPRESSIONS])
def test_no_interval_of_an_aggregate_is_a_point(name: str, noise: Noise) -> None:
    """Noisy sums of every sign and size, in every combination: no interval has zero width or runs backward."""
    made = planned({**AGGREGATES, **EXPRESSIONS}[name], noise=noise)
    sizes = [-(10**9), -(10**6), -1000, -1, 0, 1, 1000, 10**6, 10**9]
    grid = np.array(np.meshgrid(*[sizes] * min(len(made.measures), 4))).reshape(min(len(made.measures), 4), -1)
    sums = [grid[i % 4].tolist() for i in range(len(made.measures))]
    answer = answered(made, sums)
    for low, high, value in zip(answer.low, answer.high, answer.values, strict=True):
        assert (high > low).all()
        shown = np.asarray(value, dtype=np.float64)
        assert (np.isnan(shown) | ((low - 0.5 <= shown) & (shown <= high + 0.5))).all()


def test_an_expression_over_a_count_below_zero_reaches_up_by_its_noise() -> None:
    answer = answered(planned("count(*) / 2"), [[-1000]])
    assert answer.values[0].tolist() == [0]
    assert answer.low[0].tolist() == [0]
    assert answer.high[0][0] >= 15


def test_planted_ends_that_are_clipped_alone_are_a_point() -> None:
    """Clip the ends instead of the middle: the interval is [0, 0], which holds nothing but 0."""
    middle, half = np.array([-100.0]), np.array([30.0])
    assert (np.clip(middle - half, 0, None) == np.clip(middle + half, 0, None)).all()
    low, high = ends(middle, half, 0.0, np.inf)
    assert (low.tolist(), high.tolist()) == ([0.0], [30.0])
