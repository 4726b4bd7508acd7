"""Running counts by the square root of the counting matrix: sensitivity, exact sums, error."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hubbub.analyses.streams import root as roots
from hubbub.analyses.streams.root import UNIT, SquareRootCounter, inverse, kernel, squared_norm
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.noise.source import RandomSource, ReplaySource

NOTHING = ReplaySource([])


class Silent(Gaussian):
    """No noise at all, to see the sums."""

    def sample(self, value, source):  # type: ignore[no-untyped-def]
        del source
        return value


def silent(horizon: int, bins: int = 1) -> SquareRootCounter:
    return SquareRootCounter(horizon=horizon, bins=bins, noise=Silent(sensitivity_squared=1, variance=Fraction(1)))


def measured(stream: tuple[int, ...], horizon: int) -> list[int]:
    root = silent(horizon)
    state = root.take(root.start(NOTHING), np.array(stream, dtype=np.int64)[:, None], NOTHING)
    return [int(each) for each in state["measured"][:, 0]]


def test_the_moved_column_is_the_stated_sensitivity_exactly() -> None:
    """All streams of up to 6 bits, each arrival gone: what gets noise moves by Σ kernel² in squares at most."""
    for length in (1, 2, 5, 6):
        worst = 0
        for stream in product((0, 1), repeat=length):
            for gone in (i for i, bit in enumerate(stream) if bit):
                other = (*stream[:gone], 0, *stream[gone + 1 :])
                pairs = zip(measured(stream, length), measured(other, length), strict=True)
                worst = max(worst, sum((a - b) ** 2 for a, b in pairs))
        assert worst == squared_norm(length)


def test_the_squared_norm_is_that_of_the_very_integers() -> None:
    for horizon in (1, 2, 100, 5000):
        assert squared_norm(horizon) == sum(each * each for each in kernel(horizon).tolist())


def test_a_kernel_that_was_rounded_otherwise_would_be_caught() -> None:
    """A planted error: one more unit in one place changes the norm that is charged."""
    changed = kernel(100).copy()
    changed[50] += 1
    assert sum(each * each for each in changed.tolist()) != squared_norm(100)


@pytest.mark.parametrize("batches", [(1,) * 50, (50,), (7, 30, 13)])
def test_measurements_are_exact_sums_and_noise(batches: tuple[int, ...]) -> None:
    random = np.random.default_rng(8)
    values = random.integers(0, 3, (50, 2))
    root, done = silent(64, 2), 0
    state = root.start(NOTHING)
    for size in batches:
        state = root.take(state, values[done : done + size], NOTHING)
        done += size
    column = [int(each) for each in kernel(64)]
    for bin_ in (0, 1):
        wanted = [sum(column[k] * int(values[i - k, bin_]) for k in range(i + 1)) for i in range(50)]
        assert [int(each) for each in state["measured"][:, bin_]] == wanted
    assert root.estimates(state) == pytest.approx(np.cumsum(values, axis=0), abs=1e-9)
    assert root.latest(state) == pytest.approx(values.sum(axis=0), abs=1e-9)
    assert root.latest(root.start(NOTHING)).tolist() == [0, 0]


@pytest.mark.row(62)
def test_factors_of_1024_prefix_sums() -> None:
    """‖R‖·‖L‖ for n = 1,024: 3.27, where a tree has 10.5; (ln n + γ + ln 16)/π."""
    right = math.sqrt(squared_norm(1024))
    left = math.sqrt((inverse(1024) ** 2).sum())
    assert left * right == pytest.approx(3.27, abs=0.005)
    assert left * right == pytest.approx((math.log(1024) + 0.5772 + math.log(16)) / math.pi, abs=0.002)
    assert right / UNIT == pytest.approx(math.sqrt(3.2726), abs=1e-4)


def test_the_inverse_column_turns_measurements_into_counts() -> None:
    for horizon in (1, 2, 3, 100, 4096):
        ones = np.convolve(inverse(horizon), kernel(horizon).astype(np.float64))[:horizon]
        assert ones == pytest.approx(np.ones(horizon), abs=1e-9)


def test_errors_are_what_theory_says(seeded: Callable[[int], RandomSource]) -> None:
    """1,000 counters side by side over 64 arrivals: deviations within 12 % (5 standard errors), fixed words."""
    noise = Gaussian.from_rho(sensitivity_squared=squared_norm(64), rho="0.1")
    root = SquareRootCounter(horizon=64, bins=1000, noise=noise)
    state = root.take(root.start(seeded(1)), np.zeros((64, 1000), dtype=np.int64), seeded(2))
    errors = root.estimates(state)
    for time in (1, 2, 40, 64):
        assert errors[time - 1].std() == pytest.approx(root.deviation(0, time), rel=0.12)
    for start, end in ((40, 64), (3, 7)):
        assert (errors[end - 1] - errors[start - 1]).std() == pytest.approx(root.deviation(start, end), rel=0.12)
    assert root.deviation(0, 64) == pytest.approx(math.sqrt(5) * squared_norm(64) / UNIT**2, rel=1e-3)


def test_who_asks_about_many_horizons_has_the_column_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates and readings are free: each new horizon took 3 s of a processor and some hundred megabytes."""
    inverse(40_000)
    multiplied = []
    monkeypatch.setattr(roots, "_product", lambda *given: multiplied.append(given))
    for horizon in range(40_000, 40_050):
        assert SquareRootCounter(horizon=horizon, bins=1, noise=silent(1).noise).deviation(0, horizon) > 0
    assert not multiplied


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 9, 100, 1000])
def test_a_column_is_that_of_its_own_horizon(horizon: int) -> None:
    k = np.arange(1, horizon, dtype=np.float64)
    assert kernel(horizon).tolist() == np.rint(UNIT * np.cumprod([1.0, *((2 * k - 1) / (2 * k))])).tolist()
    assert np.convolve(inverse(horizon), kernel(horizon))[:horizon] == pytest.approx(np.ones(horizon))
