"""Counts of groups that are shown because their noisy count reaches a threshold, by exact enumeration of the noise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.visits_table import connect, fill, run, visits

from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.noise.source import system
from hubbub.sql.bind import bind
from hubbub.sql.finish import finish
from hubbub.sql.noise import half_width
from hubbub.sql.plan import plan
from hubbub.sql.shown_counts import lower_end

LEVEL = Fraction(95, 100)


def rule(noise: Laplace | Gaussian) -> PartitionSelection:
    return PartitionSelection.least(
        keys=1, contribution=1, relation=Relation.ADD_REMOVE, noise=noise, delta=Fraction(1, 10**6)
    )


RULES = {
    "laplace 1": rule(Laplace(sensitivity=1, scale=Fraction(1))),
    "laplace 1/2": rule(Laplace(sensitivity=1, scale=Fraction(1, 2))),
    "laplace 20": rule(Laplace(sensitivity=1, scale=Fraction(20))),
    "gaussian 3": rule(Gaussian(sensitivity_squared=1, variance=Fraction(9))),
    "gaussian 30": rule(Gaussian(sensitivity_squared=1, variance=Fraction(900))),
}


def probabilities(noise: Laplace | Gaussian, values: range) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the probability of each noise, from the definitions of the discrete distributions."""
    if isinstance(noise, Laplace):
        weights = [math.exp(-abs(z) / float(noise.scale)) for z in values]
    else:
        weights = [math.exp(-z * z / (2 * float(noise.variance))) for z in values]
    return np.array(weights) / sum(weights)


def coverage(name: str, count: int, *, corrected: bool = True) -> tuple[float, float]:
    """Return the probability that a group of so many people is shown, and that its interval holds the truth then."""
    made = RULES[name]
    deviation = math.sqrt(made.noise.variance if isinstance(made.noise, Gaussian) else 2 * made.noise.scale**2)
    reach = int(40 * deviation) + 40
    noise = range(-reach, reach + 1)
    masses, noisy = probabilities(made.noise, noise), count + np.array(noise, dtype=np.float64)
    half = np.full(len(noisy), half_width(made.noise, LEVEL))
    low = lower_end(made, noisy, half) if corrected else noisy - half
    shown = noisy >= made.threshold
    covers = shown & (low <= count) & (count <= noisy + half)
    return float(masses[shown].sum()), float(masses[covers].sum() / masses[shown].sum())


@pytest.mark.parametrize("name", RULES)
def test_intervals_of_shown_counts_cover_given_that_they_are_shown(name: str) -> None:
    """Every number of people with at least a 1% chance of being shown, up to far above the threshold."""
    threshold = RULES[name].threshold
    counts = range(1, 2 * threshold, max(1, threshold // 60))
    checked = [found for count in counts if (found := coverage(name, count))[0] >= 0.0101]
    assert len(checked) >= 10
    assert min(held for _, held in checked) >= 0.95


@pytest.mark.parametrize("name", RULES)
def test_planted_intervals_without_correction_are_caught(name: str) -> None:
    """Below the threshold the plain interval misses far too often, given that the group is shown."""
    threshold = RULES[name].threshold
    worst = min(coverage(name, count, corrected=False)[1] for count in range(threshold // 2, threshold + 1))
    assert worst < 0.9


@pytest.mark.parametrize("name", RULES)
def test_far_above_the_threshold_nothing_changes(name: str) -> None:
    made = RULES[name]
    half = half_width(made.noise, LEVEL)
    far = np.array([made.threshold + 20.0 * half])
    assert lower_end(made, far, np.array([half]))[0] >= far[0] - half - 1


def test_an_answer_uses_the_lower_end_of_shown_counts() -> None:
    """A group at the threshold is told with an interval that reaches below the usual one."""
    query = bind(
        "SELECT cost, count(DISTINCT patient) AS n FROM visits GROUP BY cost",
        tables={"visits": visits(PrivacyUnit("patient", 1, 1))},
    )
    made = plan(query, epsilon=Fraction(1), delta=Fraction(1, 10**6), salt="s", noise="laplace")
    assert isinstance(made.threshold, PartitionSelection)
    connection = connect()
    fill(connection, [(unit, "North", 1.0, 5, True) for unit in range(made.threshold.threshold + 40)])
    answer = finish(made, run(connection, made), system())
    half = np.array([half_width(made.threshold.noise, LEVEL)])
    expected = lower_end(made.threshold, np.asarray(answer.values[1], dtype=np.float64), half)
    assert answer.low[1].tolist() == expected.tolist()
