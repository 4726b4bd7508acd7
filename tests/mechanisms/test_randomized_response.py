"""Randomized response and flipped bits: figures, and printed probabilities that fail."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.reals import floor_to, log
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.enumeration import image, worst_ratio
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.noise.source import RandomSource, system

COIN = RandomizedResponse.from_truth(answers=2, probability="0.75")
LN_3 = floor_to(log(Fraction(3))[0])


@pytest.mark.row(40)
def test_coin_flips_of_three_quarters_lose_ln_3() -> None:
    assert float(COIN.loss.epsilon) == pytest.approx(math.log(3))
    yes, no = COIN.distribution(1), COIN.distribution(0)
    assert float(yes.mass[1][0]) == pytest.approx(0.75)
    assert float(no.mass[1][0]) == pytest.approx(0.25)
    assert float(worst_ratio(yes, no)[0]) == pytest.approx(1.0986, abs=5e-5)


@pytest.mark.row(40)
def test_error_of_responses_grows_with_the_root_of_n_and_of_laplace_not() -> None:
    """n = 10⁴ at ε = ln 3: standard deviation 86.6, ten times less for n = 100; Laplace √2/ln 3 = 1.287 for any n."""
    assert float(COIN.deviation(10_000)[1]) == pytest.approx(86.6, abs=0.01)
    assert float(COIN.deviation(100)[1]) == pytest.approx(8.66, abs=0.001)
    central = Laplace.from_epsilon(sensitivity=1, epsilon=LN_3)
    assert math.sqrt(2) * float(central.scale) == pytest.approx(1.287, abs=5e-4)
    assert math.sqrt(central.variance[1]) == pytest.approx(math.sqrt(1.5))  # 1.2247 on the integers, less still


@pytest.mark.row(40)
def test_estimate_from_responses_is_unbiased_with_the_stated_deviation(seeded: Callable[[int], RandomSource]) -> None:
    """2,000 surveys of 10⁴ people, fixed words: mean within 5 standard errors, deviation within 10 %."""
    truth = np.repeat(np.array([1, 0], dtype=np.int64), [3000, 7000])
    source = seeded(4)
    surveys = [float(COIN.estimate(COIN.sample(truth, source))[1]) for _ in range(2000)]
    assert np.mean(surveys) == pytest.approx(3000, abs=5 * 86.6 / math.sqrt(2000))
    assert np.std(surveys) == pytest.approx(86.6, rel=0.1)


@pytest.mark.row(41)
def test_and_of_two_randomized_bits_loses_ln_9() -> None:
    """Two coins of ¾: Pr[AND = 1] is 9/16 from (1,1) and 1/16 from (0,0), so ln 9 = 2.197, and not ln 3."""
    row = BitFlips(bits=2, distance=2, rate=LN_3)
    ones, zeros = row.distribution((True, True)), row.distribution((False, False))
    both: tuple[FiniteDistribution[bool], FiniteDistribution[bool]] = (image(ones, all), image(zeros, all))
    assert float(both[0].mass[True][0]) == pytest.approx(9 / 16)
    assert float(both[1].mass[True][0]) == pytest.approx(1 / 16)
    assert float(worst_ratio(*both)[0]) == pytest.approx(2.197, abs=5e-4)
    assert float(worst_ratio(ones, zeros)[1]) == pytest.approx(math.log(9))
    assert float(row.loss.epsilon) == pytest.approx(math.log(9))
    one_bit = row.distribution((True, False))
    assert float(worst_ratio(ones, one_bit)[1]) == pytest.approx(math.log(3))


@pytest.mark.row(47)
@pytest.mark.parametrize(("bits", "distance"), [(4, 1), (4, 3), (6, 6)])
def test_loss_at_distance_s_is_epsilon(bits: int, distance: int) -> None:
    for epsilon in (Fraction(1, 10), Fraction(2)):
        mechanism = BitFlips.from_epsilon(bits=bits, distance=distance, epsilon=epsilon)
        start, end = (False,) * bits, (True,) * distance + (False,) * (bits - distance)
        low, high = worst_ratio(mechanism.distribution(start), mechanism.distribution(end))
        assert epsilon - Fraction(1, 10**30) <= low <= high <= epsilon + Fraction(1, 10**30)


@pytest.mark.row(47)
def test_printed_flip_probability_costs_twice() -> None:
    """p = ½ − ε/(2S) at S = 1, ε = .1 loses ln(.55/.45) = .2007; p = 1/(1 + e^(ε/S)) loses .1."""
    printed = (
        exact_distribution({True: Fraction(55, 100), False: Fraction(45, 100)}),
        exact_distribution({True: Fraction(45, 100), False: Fraction(55, 100)}),
    )
    assert float(worst_ratio(*printed)[0]) == pytest.approx(0.2007, abs=5e-5)
    ours = BitFlips.from_epsilon(bits=1, distance=1, epsilon="0.1")
    assert worst_ratio(ours.distribution((True,)), ours.distribution((False,)))[1] <= Fraction(1, 10) + Fraction(
        1, 10**30
    )
    assert float(ours.distribution((True,)).mass[(False,)][0]) == pytest.approx(1 / (1 + math.exp(0.1)))


def test_a_table_of_bit_vectors_is_flipped_at_once(seeded: Callable[[int], RandomSource]) -> None:
    """100,000 rows of 8 bits at rate 1: each bit flips with probability .2689 (5 standard errors of .0014)."""
    rows = np.zeros((100_000, 8), dtype=np.bool_)
    flipped = BitFlips.from_epsilon(bits=8, distance=1, epsilon=1).sample(rows, seeded(9))
    assert flipped.shape == rows.shape
    assert flipped.mean(axis=0) == pytest.approx(np.full(8, 1 / (1 + math.e)), abs=0.007)
    with pytest.raises(MechanismError):
        BitFlips.from_epsilon(bits=7, distance=1, epsilon=1).sample(rows, system())
    with pytest.raises(MechanismError):
        BitFlips.from_epsilon(bits=8, distance=1, epsilon=1).sample(rows.astype(np.int64), system())


def test_number_of_flips_is_the_binomial_quantile_and_a_bound_for_very_many() -> None:
    level = Fraction(99, 100)
    for bits in (1, 10, 1000, 100_000):
        mechanism = BitFlips.from_epsilon(bits=bits, distance=1, epsilon=2)
        assert mechanism.error(level) == stats.binom.ppf(0.99, bits, 1 / (1 + math.exp(2)))
    many = BitFlips.from_epsilon(bits=10**7, distance=1, epsilon=2)
    assert stats.binom.cdf(int(many.error(level)), 10**7, 1 / (1 + math.exp(2))) >= 0.99
    assert many.error(level) < 10**7 / (1 + math.exp(2)) * 1.01


def test_a_distribution_of_very_many_answers_is_not_written_out() -> None:
    with pytest.raises(MechanismError, match="HB610"):
        RandomizedResponse(answers=2**32, epsilon=Fraction(1)).distribution(0)


@pytest.mark.parametrize("answers", [3, 1000, 2**20])
def test_many_answers_keep_the_truth_with_the_right_odds(answers: int, seeded: Callable[[int], RandomSource]) -> None:
    """ε = 8: truth with e^8/(e^8 + k − 1), lies uniform over the others (5 standard errors, fixed words)."""
    mechanism = RandomizedResponse(answers=answers, epsilon=Fraction(8))
    given = mechanism.sample(np.full(200_000, 2, dtype=np.int64), seeded(12))
    keep = math.exp(8) / (math.exp(8) + answers - 1)
    assert (given == 2).mean() == pytest.approx(keep, abs=5 * math.sqrt(keep * (1 - keep) / 200_000))
    lies = given[given != 2]
    assert ((lies >= 0) & (lies < answers)).all()
    if answers > 3:
        spread = (lies < answers // 2).mean()
        assert spread == pytest.approx(0.5, abs=5 * math.sqrt(0.25 / len(lies)) + 2 / answers)


def test_answers_outside_are_taken_modulo() -> None:
    mechanism = RandomizedResponse(answers=3, epsilon=Fraction(60))
    assert mechanism.sample(np.array([-1, 3, 4], dtype=np.int64), system()).tolist() == [2, 0, 1]
    assert mechanism.sample(5, system()) == 2
    with pytest.raises(MechanismError):
        mechanism.sample("yes", system())  # type: ignore[call-overload]


@pytest.mark.parametrize("probability", ["0.5", "0.4", 0, 1, "1.1", "nan", True, None])
def test_a_coin_that_says_nothing_or_all_is_refused(probability: str) -> None:
    with pytest.raises(ParameterError):
        RandomizedResponse.from_truth(answers=2, probability=probability)
