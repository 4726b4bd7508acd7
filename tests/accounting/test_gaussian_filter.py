"""The Gaussian filter against exact pairs: every bound in its docstring, at many thresholds, and against an oracle.

Pairs are compared by the largest P(S) − e^t·Q(S) at thresholds t on both sides of 0, in doubles, with an error far
below the gaps that are asserted.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.accounting import gaussian_filter
from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits, remaining_epsilon, spent_epsilon
from hubbub.accounting.gaussian_filter import FAILURE_STEPS, STEPS, bounded_range, limit, noise, pure, variance
from hubbub.core.events import Event, GaussianEvent, LaplaceEvent, ResponseEvent, SelectionEvent
from hubbub.sql.split import gaussian_variance

ROOT = math.sqrt(2)
THRESHOLDS = [step / 20 for step in range(-120, 121)]


def tail(x: float) -> float:
    return math.erfc(x / ROOT) / 2


def gap(t: float, value: float) -> float:
    """The largest P(S) − e^t·Q(S) of N(value)."""
    if value == 0:
        return max(0.0, 1 - math.exp(t))
    root = math.sqrt(value)
    return tail(t / root - root / 2) - math.exp(t) * tail(t / root + root / 2)


def smoothed(t: float, epsilon: float, value: float) -> float:
    """The same for randomized response followed by N(value)."""
    yes = 1 / (1 + math.exp(-epsilon))
    return yes * gap(t - epsilon, value) + (1 - yes) * gap(t + epsilon, value)


@cache
def exact(epsilon: float, value: float) -> float:
    """The least v such that response followed by N(value) is below N(v), by total variation."""
    target, low, high = smoothed(0.0, epsilon, value), value, value + 3 * epsilon * epsilon + 0.01
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(0.0, middle) < target else (low, middle)
    return high


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("relative", [0.0, 0.1, 0.5, 1.0, 3.0, 30.0])
def test_response_smoothed_by_gaussian_noise_is_below_at_every_threshold(epsilon: float, relative: float) -> None:
    value = relative * epsilon * epsilon
    enough = exact(epsilon, value)
    assert all(smoothed(t, epsilon, value) <= gap(t, enough) + 1e-12 for t in THRESHOLDS)
    # a thousandth less of what the query adds is too little
    assert smoothed(0.0, epsilon, value) > gap(0.0, value + (enough - value) * 0.999)


@given(st.floats(0.001, 1.0), st.floats(0.001, 100))
@settings(max_examples=200, deadline=None)
def test_price_of_a_pure_loss_is_above_its_exact_variance(epsilon: float, relative: float) -> None:
    square = epsilon * epsilon
    value = relative * square
    needed = exact(epsilon, value) - value
    assert needed <= square + square / (6 * relative) + 1e-12
    assert needed <= square * math.pi / 2 + 1e-12
    assert exact(epsilon, 0.0) <= square * math.pi / 2 + 1e-12


def test_prices_are_squares_in_classes() -> None:
    tenth = pure(Fraction(1, 10))
    assert tenth[10] == STEPS // 100
    assert sum(tenth) == STEPS // 100
    assert pure(Fraction(11, 100))[11] == STEPS * 121 // 10**4
    assert pure(Fraction(2))[0] == -(-STEPS * 44 // 7)
    assert sum(pure(Fraction(1, 10**15))) == 1  # rounded up


LISTS = [
    [0.1] * 100,
    [0.1, 0.01, 0.01, 0.1] * 20,
    [0.01] * 50 + [0.1],
    [0.1] + [0.01] * 50,
    [0.5, 0.3, 0.2, 0.1] * 3,
    [1.0],
    [0.02] * 3 + [2.0] + [0.02] * 3,
]


@pytest.mark.parametrize("losses", LISTS, ids=range(len(LISTS)))
@pytest.mark.parametrize("gaussian", [0.0, 0.05])
def test_lists_of_small_losses_are_above_the_exact_recursion(losses: list[float], gaussian: float) -> None:
    """In the order given and backwards; with Gaussian noise in the middle."""
    total = list(pure(Fraction(0)))
    for loss in losses:
        total = [a + b for a, b in zip(total, pure(Fraction(str(loss))), strict=True)]
    total[0] += int(gaussian * STEPS)
    bound = variance(tuple(total)) / STEPS
    for order in (losses, losses[::-1]):
        value = 0.0
        for place, loss in enumerate(order):
            value = exact(loss, value) + (gaussian if place == len(order) // 2 else 0.0)
        assert value <= bound
        assert bound <= 1.7 * value  # and not far above


def test_excess_of_a_hundred_equal_losses_is_two_percent() -> None:
    total = tuple(100 * part for part in pure(Fraction(1, 10)))
    value = 0.0
    for _ in range(100):
        value = exact(0.1, value)
    assert 1.012 < value < variance(total) / STEPS < 1.0175


@given(st.integers(1, 10**6), st.integers(1, 10**6))
@settings(max_examples=200, deadline=None)
def test_excess_is_above_the_logarithm(small: int, square: int) -> None:
    bound = gaussian_filter._excess(small * 10**12, square * 10**12)
    least = square * 1e12 * (0.82726 + math.log(0.5 + small / square) / 6)
    assert least * (1 - 1e-9) <= bound <= least + square * 1e12 * 0.0101


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 3.0, 8.0])
def test_price_of_a_bounded_range_is_above_its_exact_variance(epsilon: float) -> None:
    """All pairs of two answers whose logits differ by ε: those at the ends of the range."""
    price = bounded_range(Fraction(str(epsilon)))[0] / STEPS
    worst = 0.0
    for step in range(-80, 81):
        a, b = 1 / (1 + math.exp(-epsilon / 2 - step / 10)), 1 / (1 + math.exp(epsilon / 2 - step / 10))
        pair = [(a, b), (1 - a, 1 - b)]
        worst = max(worst, max(sum(max(0.0, p - math.exp(t) * q) for p, q in pair) - gap(t, price) for t in THRESHOLDS))
    assert worst <= 1e-12


@pytest.mark.parametrize(("variance_parameter", "shift"), [(10, 1), (10, 3), (25, 1), (40, 2), (100, 5), (150, 1)])
def test_discrete_gaussian_noise_is_below_its_price(variance_parameter: int, shift: int) -> None:
    price = noise(Fraction(shift * shift), Fraction(variance_parameter))
    value, slip = price[0] / STEPS, gaussian_filter.failure(price) / FAILURE_STEPS
    reach = 12 * math.isqrt(variance_parameter) + shift
    weights = {z: math.exp(-z * z / (2 * variance_parameter)) for z in range(-2 * reach, 2 * reach + 1)}
    whole = math.fsum(weights.values())
    for t in THRESHOLDS:
        masses = [
            weights[z] / whole - math.exp(t) * weights.get(z + shift, 0.0) / whole for z in range(-reach, reach + 1)
        ]
        assert math.fsum(max(0.0, mass) for mass in masses) <= gap(t, value) + slip + 1e-12
    assert slip < 1e-13
    assert value < shift * shift / variance_parameter * 1.12


def test_two_moved_coordinates_are_below_their_common_price() -> None:
    """A shift of 1 in each of two coordinates: squared sensitivity 2."""
    value = noise(Fraction(2), Fraction(12))[0] / STEPS
    weights = {z: math.exp(-z * z / 24) for z in range(-45, 46)}
    whole = math.fsum(weights.values()) ** 2
    sums: dict[int, float] = {}
    for a, first in weights.items():
        for b, second in weights.items():
            sums[a + b] = sums.get(a + b, 0.0) + first * second / whole
    for t in THRESHOLDS:
        # the log-ratio depends on the sum alone: ((a+1)² + (b+1)² − a² − b²)/24
        masses = [mass * (1 - math.exp(t - (2 * z + 2) / 24)) for z, mass in sums.items()]
        assert math.fsum(max(0.0, mass) for mass in masses) <= gap(t, value) + 1e-9


def test_narrow_gaussian_noise_is_not_admitted_by_this_filter() -> None:
    assert gaussian_filter.failure(noise(Fraction(1), Fraction(9))) == FAILURE_STEPS


# ── adaptive analysts ─────────────────────────────────────────────────────────────────────────────────────────────────


def _worst(losses: tuple[float, ...], most: float, t: float, step: Callable[[float, float], float | None]) -> float:
    """The best strategy with responses of these losses, each a multiple of 0.1; `step` gives what is left after one."""

    @cache
    def value(steps: int, left: float, rounds: int) -> float:
        now = max(0.0, 1 - math.exp(t - steps / 10))
        if not rounds:
            return now
        options = [now]
        for loss in losses:
            after = step(loss, left)
            if after is not None:
                yes, move = 1 / (1 + math.exp(-loss)), round(10 * loss)
                up, down = value(steps + move, after, rounds - 1), value(steps - move, after, rounds - 1)
                options.append(yes * up + (1 - yes) * down)
        return max(options)

    return value(0, most, 7)


def _exact_step(loss: float, left: float) -> float | None:
    """What is left after a query, by the exact recursion: the largest s with f(s) ≤ left."""
    if exact(loss, 0.0) > left:
        return None
    low, high = 0.0, left
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if exact(loss, middle) <= left else (low, middle)
    return low


@pytest.mark.parametrize("t", [0.0, 0.5, 1.2])
def test_worst_adaptive_analyst_stays_below_the_gaussian_pair(t: float) -> None:
    """The filter by the exact recursion, which is the largest that the proof covers; and one that forgets smoothing."""
    most = 0.75
    worst = _worst((0.2, 0.5), most, t, _exact_step)
    assert worst <= gap(t, most)
    assert worst > 0.6 * gap(t, most)

    def wrong(loss: float, left: float) -> float | None:
        return left - loss * loss if loss * loss <= left else None

    assert t != 0.5 or _worst((0.2, 0.5, 0.8), most, t, wrong) > gap(t, most)


# ── against an oracle: privacy loss distributions of dp-accounting, for fixed lists ───────────────────────────────────


def least_epsilon(event: Event, count: int, delta: Fraction) -> Fraction:
    """The ε, to three digits, of the smallest cap that admits a list of equal events."""
    cost = privacy_cost(event).times(count)
    low, high = Fraction(0), Fraction(20)
    while high - low > Fraction(1, 1000):
        middle = (low + high) / 2
        low, high = (low, middle) if admits(Budget(middle, delta), ZERO, cost) else (middle, high)
    return high


#: Event, count, δ as a power of ten, what the first rule needed, and by how much the cap may exceed the optimum.
ORACLE = [
    (LaplaceEvent(1, Fraction(10)), 100, 6, 5.24, 0.045),
    (LaplaceEvent(1, Fraction(10)), 100, 9, 6.42, 0.055),
    (LaplaceEvent(1, Fraction(100)), 1000, 6, 1.52, 0.04),
    (LaplaceEvent(1, Fraction(100)), 1000, 9, 1.94, 0.04),
    (GaussianEvent(1, Fraction(25)), 1, 6, 0.937, 0.04),
    (GaussianEvent(1, Fraction(25)), 1, 9, 1.20, 0.04),
    (GaussianEvent(1, Fraction(2500)), 100, 6, 0.937, 0.04),
]


@pytest.mark.parametrize(("event", "count", "places", "before", "most"), ORACLE, ids=str)
def test_caps_are_close_to_the_privacy_loss_distribution(
    event: Event, count: int, places: int, before: float, most: float
) -> None:
    if isinstance(event, GaussianEvent):
        one = pld.from_discrete_gaussian_mechanism(
            math.sqrt(event.variance), sensitivity=1, value_discretization_interval=1e-5
        )
    else:
        assert isinstance(event, LaplaceEvent)
        chance = 2 / (math.exp(float(1 / event.scale)) + 1)
        one = pld.from_randomized_response(chance, 2, value_discretization_interval=1e-5)
    optimum = one.self_compose(count).get_epsilon_for_delta(10.0**-places)
    epsilon = float(least_epsilon(event, count, Fraction(1, 10**places)))
    assert optimum * 0.998 <= epsilon <= optimum * (1 + most)
    assert epsilon < before


@pytest.mark.parametrize("places", [6, 9])
def test_shown_epsilon_is_that_of_the_cap(places: int) -> None:
    """What is shown as spent reaches the cap's ε when nothing is left, and never before."""
    cap, step = Budget(Fraction(2), Fraction(1, 10**places)), privacy_cost(LaplaceEvent(1, Fraction(100)))
    count = 0
    while admits(cap, step.times(count), step):
        count += 100
    assert spent_epsilon(cap, step.times(count - 100)) <= 2
    assert spent_epsilon(cap, step.times(count + 100)) > 2
    assert Fraction(19, 10) < spent_epsilon(cap, step.times(count - 100))
    assert 0 < remaining_epsilon(cap, step.times(count - 200)) < 1


def test_limits_are_those_of_the_gaussian_profile() -> None:
    """At (1, 10⁻⁶): σ = 4.2247 (Balle and Wang, 2018)."""
    assert abs(math.sqrt(STEPS / limit(Fraction(1), Fraction(1, 10**6))) - 4.2247) < 1e-3


@pytest.mark.parametrize(
    ("event", "place"),
    [
        (ResponseEvent(3, Fraction(1, 20)), 9),
        (SelectionEvent("exponential", 1, monotone=False, rate=Fraction(1, 100)), 0),
        (GaussianEvent(1, Fraction(400)), 0),
    ],
    ids=str,
)
def test_each_kind_of_event_has_a_price(event: Event, place: int) -> None:
    price = privacy_cost(event).gaussian
    assert price is not None
    assert [part > 0 for part in price[:-1]] == [place == i for i in range(len(price) - 1)]


@pytest.mark.parametrize("squared", [1, 7, 100, 10**4, 10**12, 10**24])
@pytest.mark.parametrize("rho", [Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 3), Fraction(4)], ids=str)
def test_planned_gaussian_noise_costs_its_share(squared: int, rho: Fraction) -> None:
    """The variance that `gaussian_variance` adds is what the price subtracts, at every size."""
    price = noise(Fraction(squared), gaussian_variance(squared, rho))
    assert price[0] <= 2 * rho * STEPS + 1
    assert gaussian_filter.failure(price) <= squared * 10**22
    assert squared < 10**8 * rho or gaussian_filter.failure(price) <= 10**6


_SPENT = st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10), st.integers(1, 500)), max_size=4)


@given(_SPENT, st.integers(1, 40), st.integers(2, 12))
def test_the_largest_pure_loss_fits_and_the_next_one_does_not(
    spent: list[tuple[int, int, int]], tenths: int, digits: int
) -> None:
    """The search guesses with doubles; whatever it guesses, both sides of the end are decided by exact prices."""
    prices = [[count * part for part in pure(Fraction(loss, 10**places))] for loss, places, count in spent]
    total = tuple(map(sum, zip(*prices, gaussian_filter.NOTHING, strict=True)))
    most = limit(Fraction(tenths, 10), Fraction(1, 10**digits))
    largest = gaussian_filter.largest_pure(total, most, places=9)

    def after(loss: int) -> int:
        return variance(tuple(map(sum, zip(total, pure(Fraction(loss, 10**9)), strict=True))))

    assert after(largest + 1) > most
    assert after(largest) <= most or (largest == 0 and variance(total) > most)
