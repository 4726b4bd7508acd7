"""The metric-space mechanism on finite spaces."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import exp, total
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.enumeration import worst_over, worst_ratio
from hubbub.mechanisms.metric import Metric, Space
from hubbub.noise.source import system

LINE = Space.of([[abs(i - j) for j in range(9)] for i in range(9)])
CYCLE = Space.of([[min(abs(i - j), 8 - abs(i - j)) for j in range(8)] for i in range(8)])


def pairs_within(space: Space, moved: int) -> list[tuple[int, int]]:
    points = range(len(space.distances))
    return [(x, y) for x, y in product(points, points) if 0 < space.distances[x][y] * space.unit <= moved]


@pytest.mark.row(46)
@pytest.mark.parametrize("space", [LINE, CYCLE], ids=["line", "cycle"])
@pytest.mark.parametrize("moved", [1, 3])
def test_enumerated_loss_over_all_neighbors_is_within_epsilon(space: Space, moved: int) -> None:
    for epsilon in (Fraction(1, 2), Fraction(2)):
        mechanism = Metric.from_epsilon(space=space, sensitivity=moved, epsilon=epsilon)
        worst = worst_over(pairs_within(space, moved), mechanism.distribution)
        assert worst.bounds[1] <= epsilon + Fraction(1, 10**30)


@pytest.mark.row(46)
def test_factor_two_drops_only_where_the_normaliser_is_constant() -> None:
    """On the cycle ε/S costs exactly ε; on the line it costs more, so the line keeps ε/2S."""
    assert CYCLE.uniform
    assert not LINE.uniform
    for epsilon in (Fraction(1, 2), Fraction(2)):
        constant = Metric.from_epsilon(space=CYCLE, sensitivity=1, epsilon=epsilon)
        varying = Metric.from_epsilon(space=LINE, sensitivity=1, epsilon=epsilon)
        assert (constant.rate, varying.rate) == (epsilon, epsilon / 2)
        assert float(worst_over(pairs_within(CYCLE, 1), constant.distribution).bounds[0]) == pytest.approx(
            float(epsilon)
        )
        too_fast = Metric(space=LINE, sensitivity=Fraction(1), rate=epsilon)
        assert worst_over(pairs_within(LINE, 1), too_fast.distribution).bounds[0] > epsilon * Fraction(101, 100)


@pytest.mark.row(46)
def test_printed_exponent_moves_away_from_the_truth() -> None:
    """Without the minus sign the likeliest answer is the furthest; dividing by S twice misses ε by a factor S."""

    def printed(z: int) -> FiniteDistribution[int]:
        weights = [exp(Fraction(1, 2) * d) for d in LINE.distances[z]]
        return FiniteDistribution({y: (weight / total(weights)).enclosure for y, weight in enumerate(weights)})

    ours = Metric.from_epsilon(space=LINE, sensitivity=1, epsilon=1)
    for z in range(9):
        furthest = max(range(9), key=lambda y, z=z: LINE.distances[z][y])  # type: ignore[misc]
        assert max(printed(z).mass, key=lambda y, z=z: printed(z).mass[y]) == furthest  # type: ignore[misc]
        assert max(ours.distribution(z).mass, key=lambda y, z=z: ours.distribution(z).mass[y]) == z  # type: ignore[misc]
    halves = Space.of([[Fraction(abs(i - j), 4) for j in range(9)] for i in range(9)])
    moved = Fraction(1, 4)
    twice = Metric(space=halves, sensitivity=moved, rate=Fraction(1) / (2 * moved * moved))
    assert (
        worst_over(pairs_within(halves, 1)[:0] or [(0, 1), (4, 5)], twice.distribution).bounds[0] > 1
    )  # ε = 1 was asked for
    once = Metric.from_epsilon(space=halves, sensitivity=moved, epsilon=1)
    assert worst_over([(i, i + 1) for i in range(8)], once.distribution).bounds[1] <= 1


def test_hamming_cube_as_a_metric_space_is_independent_flips() -> None:
    cube = list(product((False, True), repeat=3))
    space = Space.of([[sum(a != b for a, b in zip(x, y, strict=True)) for y in cube] for x in cube])
    assert space.uniform
    mechanism = Metric.from_epsilon(space=space, sensitivity=2, epsilon=1)
    flips = BitFlips.from_epsilon(bits=3, distance=2, epsilon=1)
    for i, x in enumerate(cube):
        by_metric, by_flips = mechanism.distribution(i), flips.distribution(x)
        for j, y in enumerate(cube):
            assert float(by_metric.mass[j][0]) == pytest.approx(float(by_flips.mass[y][0]))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=5, unique=True), st.fractions(1, 3, max_denominator=5))
def test_constant_normaliser_is_decided_by_distances_and_seen_in_sums(places: list[int], unit: Fraction) -> None:
    """Where the multisets of distances agree the sums agree, and where they differ the sums differ."""
    space = Space.of([[abs(a - b) * unit for b in places] for a in places])
    sums = [total(exp(-Fraction(1, 7) * d * space.unit) for d in row) for row in space.distances]
    differ = any(x.high < y.low for x in sums for y in sums)
    assert space.uniform is not differ


@pytest.mark.parametrize(
    "table",
    [
        [],
        [[0, 1]],
        [[0, 1], [2, 0]],
        [[1, 1], [1, 0]],
        [[0, 0], [0, 0]],
        [[0, 1, 5], [1, 0, 1], [5, 1, 0]],
        [[0, -1], [-1, 0]],
        [[0, "nan"], ["nan", 0]],
        [[0, True], [True, 0]],
        [[0, 10**40], [10**40, 0]],
    ],
)
def test_what_is_no_metric_is_refused(table: list[list[int]]) -> None:
    with pytest.raises(ParameterError):
        Space.of(table)


def test_raw_spaces_are_checked_as_well() -> None:
    for distances in (((0, 1.5), (1.5, 0)), ((0, 1), (1,))):
        with pytest.raises(ParameterError):
            Space(Fraction(1), distances)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        Space(Fraction(0), ((0, 1), (1, 0)))
    with pytest.raises(ParameterError):
        Metric(space="line", sensitivity=Fraction(1), rate=Fraction(1))  # type: ignore[arg-type]
    mechanism = Metric.from_epsilon(space=LINE, sensitivity=1, epsilon=1)
    for point in (-1, 9):
        with pytest.raises(MechanismError):
            mechanism.sample(point, system())


@pytest.mark.parametrize("space", [LINE, CYCLE], ids=["line", "cycle"])
def test_error_is_the_least_that_holds_from_every_point(space: Space) -> None:
    mechanism = Metric.from_epsilon(space=space, sensitivity=1, epsilon=2)
    for level in (Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000)):
        width = mechanism.error(level)

        def share(point: int, reach: Fraction) -> Fraction:
            distribution = mechanism.distribution(point)
            return sum(
                (p for y, (p, _) in distribution.mass.items() if space.distances[point][y] <= reach), Fraction(0)
            )

        points = range(len(space.distances))
        assert min(share(point, width) for point in points) >= level
        assert width == 0 or min(share(point, width - 1) for point in points) < level


def test_distances_are_rational_and_error_is_in_their_units() -> None:
    tenths = Space.of([[Fraction(abs(i - j), 10) for j in range(9)] for i in range(9)])
    small = Metric.from_epsilon(space=tenths, sensitivity="0.1", epsilon=1)
    large = Metric.from_epsilon(space=LINE, sensitivity=1, epsilon=1)
    assert small.error(Fraction(9, 10)) * 10 == large.error(Fraction(9, 10))
    assert worst_ratio(small.distribution(0), small.distribution(1)) == worst_ratio(
        large.distribution(0), large.distribution(1)
    )
    assert math.isclose(float(small.distribution(3).mass[3][0]), float(large.distribution(3).mass[3][0]))
