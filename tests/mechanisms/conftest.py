"""The cases of every mechanism, for the contract tests: how to build it, its worst neighbors, what its error bounds.

A mechanism class in hubbub.mechanisms that has no case here fails the suite.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.mechanisms.case import (
    ADD_REMOVE,
    REPLACE,
    Case,
    Pairs,
    always,
    apart,
    array,
    behind,
    clamped,
    crossing,
    cycle,
    far_above,
    furthest,
    half,
    hopeless,
    listed,
    local_apart,
    lumped,
    moving_both_ways,
    moving_one_way,
    score_regret,
    shown,
    shown_apart,
    slips,
    star,
    top_regret,
    wrongness,
)

from hubbub.core import numbers
from hubbub.core.unit import Relation
from hubbub.mechanisms.binomial import Binomial
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.euclidean import EuclideanNoise
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.grid import FixedPointNoise
from hubbub.mechanisms.histogram import NoisyHistogram
from hubbub.mechanisms.joint_exponential import JointExponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.mean import NoisyMean
from hubbub.mechanisms.metric import Metric, Space
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.mechanisms.propose_test_release import ProposeTestRelease
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.mechanisms.smooth import LocalValue, SmoothNoise
from hubbub.mechanisms.sparse_vector import SparseVector
from hubbub.mechanisms.top_k import TopK
from hubbub.mechanisms.weighted_selection import WeightedSelection


def thresholded_gaussian(rho: Fraction) -> PartitionSelection:
    noise = Gaussian.from_rho(sensitivity_squared=4, rho=rho)
    return PartitionSelection.least(keys=1, contribution=2, relation=ADD_REMOVE, noise=noise, delta="0.001")


def weighted(relation: Relation, keys: int) -> Case:
    def pairs(mechanism: Any) -> Iterable[tuple[Any, Any]]:
        far, one, two = far_above(mechanism)[0], mechanism.weight, math.isqrt(mechanism.weight**2 // 2)
        if relation is ADD_REMOVE:
            yield (far, 0), (far + one, 0)
        else:
            yield (far, far + one), (far + one, far)
        yield (0, 0), (one, 0)
        if keys > 1:
            yield (0, 0), (two, two)

    return Case(
        f"weights, {relation.value}",
        WeightedSelection,
        lambda rho: WeightedSelection.from_rho(keys=keys, weight=keys, relation=relation, rho=rho, delta="0.001"),
        pairs,
        (30,),
        shown_apart,
        lambda m, value: m.distribution(value, far_above(m)[1]),
        parameters=(Fraction(1, 2), Fraction(1)),
        to_sample=array,
        to_outcome=shown,
        counts=("keys", "weight", "threshold"),
    )


def selection(kind: Any, candidates: int, *, monotone: bool, relation: Relation) -> Callable[[Fraction], Any]:
    return lambda epsilon: kind.from_epsilon(
        candidates=candidates, sensitivity=1, monotone=monotone, relation=relation, epsilon=epsilon
    )


def grid(name: str, noise: Callable[[Fraction], Any], pair: tuple[int, int], window: tuple[int, int]) -> Case:
    return Case(
        name,
        FixedPointNoise,
        lambda x: FixedPointNoise(noise=noise(x), step=Fraction(1, 100)),
        always(pair),
        250,
        lambda value, outcome: abs(outcome - Fraction(value, 100)),
        clamped(*window),
        parameters=(Fraction(1, 2), Fraction(1)),
        rationals=("step",),
    )


def choice(name: str, kind: Any, candidates: int, pairs: Pairs, *, monotone: bool, relation: Relation) -> Case:
    return Case(
        name,
        kind,
        selection(kind, candidates, monotone=monotone, relation=relation),
        pairs,
        (3, 2, 1, *[0] * (candidates - 4), 3)[:candidates],
        score_regret,
        to_sample=array,
        counts=("candidates", "sensitivity"),
        rationals=("rate",),
    )


def joint() -> Case:
    """Choose one of two and one of three candidates together."""

    def pairs(mechanism: Any) -> Iterable[tuple[Any, Any]]:
        gap = hopeless(mechanism)
        yield (0, gap, gap, gap, gap), (1, gap - 1, gap - 1, gap - 1, gap - 1)
        yield (0, gap, 0, gap, gap), (1, gap - 1, 1, gap - 1, gap - 1)
        yield (3, 2, 1, 5, 5), (2, 3, 2, 4, 6)

    def regret(scores: Any, chosen: Any) -> Fraction:
        parts = scores[:2], scores[2:]
        worst = min(part[i] for part, i in zip(parts, chosen, strict=True))
        return Fraction(min(max(part) for part in parts) - worst)

    return Case(
        "joint exponential",
        JointExponential,
        lambda epsilon: JointExponential(
            candidates=5, sizes=(2, 3), sensitivity=1, monotone=False, rate=numbers.epsilon(epsilon) / 2
        ),
        pairs,
        (3, 2, 1, 0, 3),
        regret,
        to_sample=array,
        counts=("sensitivity",),
        rationals=("rate",),
    )


def histogram(relation: Relation, worst: tuple[int, int]) -> Case:
    return Case(
        f"histogram, {relation.value}",
        NoisyHistogram,
        lambda e: NoisyHistogram.from_epsilon(shape=(2,), rows=1, relation=relation, epsilon=e),
        always((array((5, 5)), array(worst)), (array((0, 0)), array((0, 1)))),
        array((5, 5)),
        lambda value, outcome: furthest(value.tolist(), outcome),
        clamped(-8, 18),
        to_outcome=listed,
        parameters=(Fraction(1), Fraction(3)),
        counts=("rows",),
        rationals=("scale",),
    )


def threshold(relation: Relation, keys: int) -> Case:
    return Case(
        f"threshold, {relation.value}",
        PartitionSelection,
        lambda e: PartitionSelection.from_epsilon(
            keys=keys, contribution=2, relation=relation, epsilon=e, delta="0.001"
        ),
        slips,
        (16,),
        shown_apart,
        lumped,
        to_sample=array,
        to_outcome=shown,
        parameters=(Fraction(1), Fraction(2)),
        counts=("keys", "contribution", "threshold"),
    )


def response(answers: int) -> Case:
    return Case(
        f"response of {answers}",
        RandomizedResponse,
        lambda e: RandomizedResponse(answers=answers, epsilon=e),
        always((0, 1), (1, answers - 1)),
        1,
        lambda value, outcome: Fraction(value != outcome),
        counts=("answers",),
        rationals=("epsilon",),
    )


def metric(name: str, space: Space, moved: int, pairs: Pairs) -> Case:
    return Case(
        name,
        Metric,
        lambda e: Metric.from_epsilon(space=space, sensitivity=moved, epsilon=e),
        pairs,
        0,
        lambda value, outcome: Fraction(space.distances[value][outcome]),
        parameters=(Fraction(1, 2), Fraction(1), Fraction(2)),
        rationals=("sensitivity", "rate"),
    )


def sparse(hits: int, *, monotone: bool) -> Case:
    return Case(
        f"sparse vector, {hits} hits" + (", monotone" if monotone else ""),
        SparseVector,
        lambda e: SparseVector.from_epsilon(
            sensitivity=1, monotone=monotone, relation=ADD_REMOVE, hits=hits, queries=10, epsilon=e
        ),
        crossing,
        (-1, 0, 1, 2),
        wrongness,
        parameters=(Fraction(1), Fraction(3)),
        counts=("sensitivity", "hits", "queries"),
        rationals=("threshold_scale", "query_scale"),
    )


#: Noise that widens as much as it may, and a value that moves as far as it may.
SMOOTH = always(
    (LocalValue(0, (1,) * 9), LocalValue(0, (0, *[1] * 8))), (LocalValue(0, (1,) * 9), LocalValue(1, (1,) * 9))
)
#: Values far apart where the test should fail; and a test and an answer that move as far as they may.
PROPOSED = always(
    (LocalValue(-50, (2,) * 9), LocalValue(50, (2,) * 9)),
    (LocalValue(0, (0, *[2] * 8)), LocalValue(1, (0, 0, *[2] * 7))),
)

CASES = [
    Case(
        "laplace",
        Laplace,
        lambda e: Laplace.from_epsilon(sensitivity=3, epsilon=e),
        always((0, 3), (5, 4)),
        0,
        apart,
        clamped(-60, 60),
        counts=("sensitivity",),
        rationals=("scale",),
    ),
    Case(
        "laplace vector",
        Laplace,
        lambda e: Laplace.from_epsilon(sensitivity=2, epsilon=e),
        always(((0, 0), (1, -1)), ((0, 5), (0, 7))),
        (0, 0),
        furthest,
        clamped(-12, 12),
        error=lambda m, level: m.error(level, 2),
        to_sample=array,
        to_outcome=listed,
        parameters=(Fraction(2), Fraction(3)),
    ),
    Case(
        "binomial",
        Binomial,
        lambda e: Binomial.from_epsilon(sensitivity=2, epsilon=e, delta=Fraction(1, 1000)),
        always((0, 2), (5, 3)),
        0,
        apart,
        counts=("sensitivity", "coins"),
        rationals=("epsilon",),
    ),
    Case(
        "euclidean noise",
        EuclideanNoise,
        lambda e: EuclideanNoise.from_epsilon(dimensions=2, sensitivity=1, epsilon=e),
        always(((0, 0), (1, 0)), ((0, 1), (0, 0))),
        (0, 0),
        lambda value, outcome: apart(value[0], outcome[0]),
        clamped(-12, 12),
        to_sample=array,
        to_outcome=listed,
        parameters=(Fraction(5), Fraction(6)),
        counts=("dimensions", "sensitivity"),
        rationals=("rate",),
    ),
    Case(
        "gaussian",
        Gaussian,
        lambda r: Gaussian.from_rho(sensitivity_squared=4, rho=r),
        always((0, 2), (1, 0)),
        0,
        apart,
        clamped(-50, 50),
        parameters=(Fraction(1, 5), Fraction(1, 2), Fraction(2)),
        counts=("sensitivity_squared",),
        rationals=("variance",),
    ),
    grid("cents, laplace", lambda e: Laplace.from_epsilon(sensitivity=5, epsilon=e), (0, 5), (200, 300)),
    grid("cents, gaussian", lambda r: Gaussian.from_rho(sensitivity_squared=4, rho=r), (250, 252), (190, 310)),
    joint(),
    histogram(ADD_REMOVE, (6, 5)),
    histogram(REPLACE, (4, 6)),
    Case(
        "mean",
        NoisyMean,
        lambda e: NoisyMean.from_epsilon(lower=0, upper=4, rows=1, relation=ADD_REMOVE, epsilon=e),
        always(((0, 10), (2, 11)), ((3, 5), (1, 4))),
        (0, 5),
        lambda value, outcome: apart(value[0], outcome[0]),
        clamped(-12, 14),
        parameters=(Fraction(2), Fraction(4)),
    ),
    Case(
        "mean, gaussian",
        NoisyMean,
        lambda r: NoisyMean(
            lower=0,
            upper=4,
            total=Gaussian.from_rho(sensitivity_squared=4, rho=half(r)),
            count=Gaussian.from_rho(sensitivity_squared=1, rho=half(r)),
        ),
        always(((0, 0), (2, 1))),
        (0, 0),
        lambda value, outcome: apart(value[0], outcome[0]),
        clamped(-14, 15),
        parameters=(Fraction(2), Fraction(4)),
    ),
    threshold(ADD_REMOVE, 2),
    threshold(REPLACE, 1),
    Case(
        "threshold, gaussian",
        PartitionSelection,
        thresholded_gaussian,
        lambda m: [((far_above(m)[0],), (far_above(m)[0] + 2,)), ((0,), (2,))],
        (30,),
        shown_apart,
        lambda m, value: m.distribution(value, far_above(m)[1]),
        parameters=(Fraction(1, 2), Fraction(1)),
        to_sample=array,
        to_outcome=shown,
    ),
    weighted(ADD_REMOVE, 2),
    weighted(REPLACE, 1),
    choice("exponential", Exponential, 3, moving_both_ways, monotone=False, relation=ADD_REMOVE),
    choice("exponential, monotone", Exponential, 3, moving_one_way, monotone=True, relation=ADD_REMOVE),
    choice("exponential, replaced", Exponential, 3, moving_both_ways, monotone=True, relation=REPLACE),
    choice("permute and flip", PermuteAndFlip, 3, moving_both_ways, monotone=False, relation=REPLACE),
    choice("permute and flip, monotone", PermuteAndFlip, 3, moving_one_way, monotone=True, relation=ADD_REMOVE),
    choice("noisy max", NoisyMax, 10, behind, monotone=False, relation=ADD_REMOVE),
    choice("noisy max, monotone", NoisyMax, 10, behind, monotone=True, relation=ADD_REMOVE),
    Case(
        "top k",
        TopK,
        lambda e: TopK.from_epsilon(k=2, candidates=4, sensitivity=1, monotone=False, relation=ADD_REMOVE, epsilon=e),
        lambda m: [((0, 0, hopeless(m.one), hopeless(m.one)), (1, 1, hopeless(m.one) - 1, hopeless(m.one) - 1))],
        (3, 2, 1, 0),
        top_regret,
        to_sample=array,
        to_outcome=listed,
        counts=("k",),
    ),
    response(2),
    response(5),
    Case(
        "flips",
        BitFlips,
        lambda e: BitFlips.from_epsilon(bits=4, distance=2, epsilon=e),
        always(((False,) * 4, (True, True, False, False)), ((True,) * 4, (True, True, True, False))),
        (True, False, True, False),
        lambda x, y: Fraction(sum(a != b for a, b in zip(x, y, strict=True))),
        to_sample=lambda value: np.array(value, dtype=np.bool_),
        to_outcome=listed,
        counts=("bits", "distance"),
        rationals=("rate",),
    ),
    metric("metric, cycle", cycle(7), 2, always((0, 2), (3, 4))),
    metric("metric, star", star(400), 1, always((0, 1), (1, 5))),
    Case(
        "smooth",
        SmoothNoise,
        lambda e: SmoothNoise.from_epsilon(low=-5, high=300, sensitivity=1, epsilon=e),
        SMOOTH,
        LocalValue(3, (0, 1, 1)),
        local_apart,
        parameters=(Fraction(2), Fraction(3)),
        counts=("sensitivity", "power"),
        rationals=("slide", "dilation"),
    ),
    Case(
        "propose, test, release",
        ProposeTestRelease,
        lambda e: ProposeTestRelease.from_epsilon(bound=1, epsilon=e, delta="0.001"),
        PROPOSED,
        LocalValue(3, (0,) * 9),
        local_apart,
        clamped(-80, 80),
        parameters=(Fraction(1), Fraction(2)),
        counts=("bound", "margin"),
        rationals=("test_scale", "answer_scale"),
    ),
    sparse(1, monotone=False),
    sparse(2, monotone=False),
    sparse(1, monotone=True),
    sparse(2, monotone=True),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture
def cases() -> list[Case]:
    return CASES
