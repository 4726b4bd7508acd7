"""Choosing one of many: figures, printed constants that fail, and a million candidates."""

import math
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core.finite import FiniteDistribution
from hubbub.core.unit import Relation
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.mechanisms.selection import SCORE_LIMIT
from hubbub.mechanisms.top_k import TopK
from hubbub.noise.source import RandomSource, system

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
KINDS: list[Any] = [Exponential, PermuteAndFlip, NoisyMax]


def build(kind: Any, candidates: int, *, monotone: bool = False, relation: Relation = REPLACE, epsilon: Any = 1) -> Any:
    return kind.from_epsilon(
        candidates=candidates, sensitivity=1, monotone=monotone, relation=relation, epsilon=epsilon
    )


def expected_regret(distribution: FiniteDistribution[int], scores: tuple[int, ...]) -> float:
    return sum(float(low) * (max(scores) - scores[i]) for i, (low, _) in distribution.mass.items())


@pytest.mark.row(44)
def test_expected_regret_on_scores_ten_to_one() -> None:
    """ε = 1, Pr ∝ exp(εu/2Δ): the exponential mechanism regrets 1.474, permute-and-flip 1.230."""
    scores = tuple(range(10, 0, -1))
    assert expected_regret(build(Exponential, 10).distribution(scores), scores) == pytest.approx(1.474, abs=5e-4)
    assert expected_regret(build(PermuteAndFlip, 10).distribution(scores), scores) == pytest.approx(1.230, abs=5e-4)


@pytest.mark.row(44)
def test_regret_is_within_two_over_epsilon_times_ln_of_candidates_and_t() -> None:
    """regret ≤ (2Δ/ε)(ln|R| + t) with probability 1 − e^−t, on the worst scores; and `error` is sharper."""
    epsilon, m = 1, 20
    mechanism = build(Exponential, m, epsilon=epsilon)
    for t in (1.0, 3.0, 7.0):
        bound = 2 / epsilon * (math.log(m) + t)
        scores = (math.floor(bound) + 1, *[0] * (m - 1))
        distribution = mechanism.distribution(scores)
        beyond = sum(float(high) for i, (_, high) in distribution.mass.items() if scores[0] - scores[i] > bound)
        assert beyond <= math.exp(-t)
        level = Fraction(1 - math.exp(-t)).limit_denominator(10**9)
        assert mechanism.error(level) <= math.ceil(bound)
        assert build(PermuteAndFlip, m, epsilon=epsilon).error(level) <= mechanism.error(level)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize("m", [2, 7, 40])
def test_error_of_a_selection_is_the_exact_worst_case(kind: Any, m: int) -> None:
    """One best and all others just beyond: at the stated regret the level is kept, a step below it is not."""
    mechanism = build(kind, m)
    for level in (Fraction(6, 10), Fraction(95, 100), Fraction(999_999, 10**6)):
        regret = int(mechanism.error(level))
        assert mechanism.distribution((regret + 1, *[0] * (m - 1))).mass[0][0] >= level
        if regret:
            assert mechanism.distribution((regret, *[0] * (m - 1))).mass[0][1] < level


@pytest.mark.row(44)
def test_printed_rate_of_the_exponential_mechanism_costs_twice() -> None:
    """exp(uε/Δ), 100 candidates, ε = 1: it loses 1.977. exp(uε/2Δ) stays below 1, as does ε/Δ for monotone scores."""
    m = 100
    worst = (0, *[1] * (m - 1)), (1, *[0] * (m - 1))
    printed = Exponential(candidates=m, sensitivity=1, monotone=False, rate=Fraction(1))
    low, _ = worst_ratio(printed.distribution(worst[0]), printed.distribution(worst[1]))
    assert float(low) == pytest.approx(1.977, abs=5e-4)
    assert printed.loss.epsilon == 2
    ours = build(Exponential, m)
    assert ours.rate == Fraction(1, 2)
    assert worst_ratio(ours.distribution(worst[0]), ours.distribution(worst[1]))[1] <= 1
    monotone = build(Exponential, m, monotone=True, relation=ADD_REMOVE)
    assert monotone.rate == 1
    for one_way in ((0, *[1] * (m - 1)), (1, *[1] * (m - 1))), ((0, *[0] * (m - 1)), (0, *[1] * (m - 1))):
        assert worst_ratio(monotone.distribution(one_way[0]), monotone.distribution(one_way[1]))[1] <= 1


@pytest.mark.row(42)
def test_printed_noise_of_report_noisy_max_costs_twice_under_replace() -> None:
    """Lap(1/ε) on 100 counts, ε = 1: within ε for one person more or less, above 1.98·ε for one in another's place."""
    m = 100
    equal = (5,) * m
    printed = build(NoisyMax, m, monotone=True, relation=ADD_REMOVE)
    assert printed.rate == 1
    distribution = printed.distribution(equal)
    for added in ((6, *[5] * (m - 1)), (5, *[6] * (m - 1)), (6,) * m):
        assert worst_ratio(distribution, printed.distribution(added))[1] <= 1 + Fraction(1, 10**30)
    replaced = (6, *[4] * (m - 1))
    assert worst_ratio(distribution, printed.distribution(replaced))[0] >= Fraction(198, 100)
    ours = build(NoisyMax, m, monotone=True, relation=REPLACE)
    assert ours.rate == Fraction(1, 2)
    assert worst_ratio(ours.distribution(equal), ours.distribution(replaced))[1] <= 1


@pytest.mark.row(42)
def test_gap_of_noisy_max_is_within_two_ln_of_m_over_beta() -> None:
    """gap ≤ 2·ln(m/β)/ε with probability 1 − β, at scale 1/ε (m = 10); `error` is no wider than that and a step."""
    m, epsilon = 10, Fraction(1, 2)
    mechanism = build(NoisyMax, m, monotone=True, relation=ADD_REMOVE, epsilon=epsilon)
    for beta in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)):
        bound = 2 * math.log(m / beta) / epsilon
        scores = (*[0] * (m - 1), math.floor(bound) + 1)  # the best comes last, and loses every tie
        distribution = mechanism.distribution(scores)
        assert sum(low for i, (low, _) in distribution.mass.items() if scores[-1] - scores[i] <= bound) >= 1 - beta
        assert mechanism.error(1 - beta) <= bound + 2


@pytest.mark.row(42)
def test_index_of_the_largest_noised_count_is_given(seeded: Callable[[int], RandomSource]) -> None:
    """On clearly different counts the answer is the largest; among equals, with hardly any noise, the first."""
    sharp = build(NoisyMax, 4, epsilon=200)
    assert {sharp.sample(np.array([1, 9, 3, 2]), seeded(n)) for n in range(50)} == {1}
    drawn = Counter(sharp.sample(np.array([7, 9, 9, 9]), seeded(n)) for n in range(50))
    assert drawn == {1: 50}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=6))
def test_permute_and_flip_never_regrets_more_than_the_exponential_mechanism(scores: list[int]) -> None:
    known = tuple(scores)
    flip = expected_regret(build(PermuteAndFlip, len(known)).distribution(known), known)
    assert flip <= expected_regret(build(Exponential, len(known)).distribution(known), known) + 1e-12


def test_permute_and_flip_distribution_is_the_one_of_its_definition() -> None:
    """By all orders and all coins of three candidates."""
    scores = (2, 0, 1)
    mechanism = build(PermuteAndFlip, 3)
    coins = [math.exp(0.5 * (score - 2)) for score in scores]
    chances = [0.0] * 3
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    for order in orders:
        left = 1 / len(orders)
        for i in order:
            chances[i] += left * coins[i]
            left *= 1 - coins[i]
    assert [float(mechanism.distribution(scores).mass[i][0]) for i in range(3)] == pytest.approx(chances)


def test_peeling_has_the_distribution_of_the_largest_gumbel_scores() -> None:
    """Two largest of rate·u + Gumbel, by 400,000 float draws from a fixed seed: each pair within 5 standard errors."""
    scores = np.array([3, 2, 0, 1], dtype=np.int64)
    mechanism = TopK.from_epsilon(k=2, candidates=4, sensitivity=1, monotone=False, relation=REPLACE, epsilon=4)
    draws = 400_000
    noisy = float(mechanism.one.rate) * scores + np.random.Generator(np.random.PCG64(5)).gumbel(size=(draws, 4))
    first_two = np.argsort(-noisy, axis=1)[:, :2]
    for chosen, (low, _) in mechanism.distribution(tuple(scores.tolist())).mass.items():
        seen = (first_two == np.array(chosen)).all(axis=1).mean()
        assert seen == pytest.approx(float(low), abs=5 * math.sqrt(float(low) / draws))


def test_top_k_never_repeats_and_can_take_all(seeded: Callable[[int], RandomSource]) -> None:
    mechanism = TopK.from_epsilon(k=5, candidates=5, sensitivity=1, monotone=True, relation=ADD_REMOVE, epsilon=1)
    chosen = mechanism.sample(np.array([1, 2, 3, 4, 5]), seeded(1))
    assert sorted(chosen.tolist()) == [0, 1, 2, 3, 4]
    for k in (0, 6, True, 1.5):
        with pytest.raises(ParameterError):
            TopK(k=k, one=mechanism.one)  # type: ignore[arg-type]


def test_top_k_splits_any_epsilon() -> None:
    """ε/k need not be a short decimal: it is rounded down to one, so that k of them never exceed ε."""
    mechanism = TopK.from_epsilon(k=7, candidates=9, sensitivity=1, monotone=True, relation=ADD_REMOVE, epsilon="0.001")
    assert Fraction(1, 1000) - Fraction(1, 10**28) < mechanism.loss.epsilon <= Fraction(1, 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_any_size_are_taken(kind: Any, seeded: Callable[[int], RandomSource]) -> None:
    """Differences beyond 64 bits neither wrap nor raise: the largest wins."""
    ends = np.array([-(2**63), 0, 2**63 - 1], dtype=np.int64)
    mechanism = build(kind, 3)
    assert {mechanism.sample(ends, seeded(n)) for n in range(20)} == {2}
    assert mechanism.scores(ends).tolist() == [-SCORE_LIMIT, 0, SCORE_LIMIT]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_another_shape_or_type_are_refused(kind: Any) -> None:
    mechanism = build(kind, 3)
    for wrong in (np.zeros(4, dtype=np.int64), np.zeros(3), np.zeros((3, 1), dtype=np.int64)):
        with pytest.raises(MechanismError):
            mechanism.sample(wrong, system())
    with pytest.raises(MechanismError):
        mechanism.distribution((1, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_relation_and_monotone_are_taken_as_what_they_are(kind: Any) -> None:
    facts = {"candidates": 3, "sensitivity": 1, "epsilon": 1}
    for wrong in ("replace", None):
        with pytest.raises(ParameterError):
            kind.from_epsilon(**facts, monotone=True, relation=wrong)
    with pytest.raises(ParameterError):
        kind.from_epsilon(**facts, monotone=1, relation=REPLACE)


@pytest.mark.parametrize("kind", KINDS)
def test_one_candidate_is_chosen_without_regret(kind: Any) -> None:
    mechanism = build(kind, 1)
    assert mechanism.sample(np.array([5]), system()) == 0
    if kind is not NoisyMax:
        assert mechanism.error(Fraction(999, 1000)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_candidates_take_well_under_a_second(kind: Any) -> None:
    """CPU time of one choice among 1,000,000 scores, the best of three; about a tenth of the bound where measured."""
    scores = np.random.Generator(np.random.PCG64(2)).integers(0, 10**6, size=10**6)
    mechanism = build(kind, 10**6, epsilon="0.01")
    spent = []
    for _ in range(3):
        start = time.thread_time()
        mechanism.sample(scores, system())
        spent.append(time.thread_time() - start)
    assert min(spent) < 1
