"""Running counts by a tree of blocks: sums, sensitivity, a look into the state, error."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from hubbub.analyses.streams.tree import TreeCounter, variance
from hubbub.core.distributions import DiscreteLaplace
from hubbub.core.interval import Interval
from hubbub.core.reals import log
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource, ReplaySource


class Silent(Laplace):
    """No noise at all, to see the sums."""

    def sample(self, value, source):  # type: ignore[no-untyped-def]
        del source
        return value


def silent(horizon: int, bins: int, *, private_state: bool = False) -> TreeCounter:
    noise = Silent(sensitivity=1, scale=Fraction(1))
    return TreeCounter(horizon=horizon, bins=bins, noise=noise, private_state=private_state)


NOTHING = ReplaySource([])


@given(some.integers(1, 70), some.integers(1, 3), some.integers(0, 2**32))
def test_answers_are_sums_of_the_blocks_of_the_binary_digits(horizon: int, bins: int, seed: int) -> None:
    """Without noise, every answer is the running count, however the arrivals are cut into batches."""
    random = np.random.default_rng(seed)
    private_state = bool(seed & 1)
    tree, values = silent(horizon, bins, private_state=private_state), random.integers(0, 4, (horizon, bins))
    state, done = tree.start(NOTHING), 0
    while done < horizon:
        batch = int(random.integers(1, 9))
        state = tree.take(state, values[done : done + batch], NOTHING)
        done += batch
    assert (tree.estimates(state) == np.cumsum(values, axis=0)).all()
    assert (tree.latest(state) == values.sum(axis=0)).all()
    assert (tree.latest(tree.start(NOTHING)) == 0).all()


class Spy(Laplace):
    """Notes what noise would be added to."""

    def sample(self, value, source):  # type: ignore[no-untyped-def]
        del source
        SEEN.extend(value.ravel().tolist())
        return value


SEEN: list[int] = []


def blocks(stream: tuple[int, ...], horizon: int) -> list[int]:
    SEEN.clear()
    tree = TreeCounter(horizon=horizon, bins=1, noise=Spy(sensitivity=1, scale=Fraction(1)), private_state=False)
    tree.take(tree.start(NOTHING), np.array(stream, dtype=np.int64)[:, None], NOTHING)
    return list(SEEN)


def test_every_pair_of_neighbors_moves_the_blocks_by_at_most_the_sensitivity() -> None:
    """All streams of up to 8 bits, each arrival gone: the sums that get noise move by at most the number of levels."""
    worst = 0
    for length in (1, 3, 4, 7, 8):
        levels = TreeCounter.levels(length)
        for stream in product((0, 1), repeat=length):
            for gone in (i for i, bit in enumerate(stream) if bit):
                other = (*stream[:gone], 0, *stream[gone + 1 :])
                moved = sum(abs(a - b) for a, b in zip(blocks(stream, length), blocks(other, length), strict=True))
                assert moved <= levels
                worst = max(worst, moved - levels)
    assert worst == 0  # and it is attained


#: Three arrivals, two levels: the blocks {1} and {3}, and {1, 2}.
BLOCKS = ((0, 1), (2, 3), (0, 2))
#: Beyond the possible counts the ratio of two noises stays what it is, so these values hold every ratio.
NEAR = range(-1, 5)
NOISE = DiscreteLaplace(Fraction(2))  # two levels at ε = 1


def shown(stream: tuple[int, ...], block: tuple[int, int], look: int, *, own: bool) -> Iterator[Interval]:
    """The probability of what a block shows at the look and at its end (beyond that), for all such values."""
    start, end = block
    cut = min(max(look, start), end)
    before, after = sum(stream[start:cut]), sum(stream[cut:end])
    for opening, ending in product(NEAR, NEAR):
        if own:
            yield NOISE.mass(opening - before) * NOISE.mass(ending - after)
        else:
            yield Interval.of(0) if opening != before else NOISE.mass(ending - after)


def block_loss(one: tuple[int, ...], two: tuple[int, ...], block: tuple[int, int], look: int, *, own: bool) -> float:
    """The largest log-ratio of what one block shows."""
    worst = 0.0
    for p, q in zip(shown(one, block, look, own=own), shown(two, block, look, own=own), strict=True):
        if p.high > 0:
            worst = max(worst, float(log(Fraction((p / q).high))[1]) if q.low > 0 else math.inf)
    return worst


def worst_loss(*, own: bool) -> float:
    """Blocks are independent, so the largest log-ratio of all that is shown is the sum of theirs."""
    worst = 0.0
    for stream, look, gone in product(product((0, 1), repeat=3), range(4), range(3)):
        other = (*stream[:gone], 0, *stream[gone + 1 :])
        for one, two in ((stream, other), (other, stream)):
            worst = max(worst, sum(block_loss(one, two, block, look, own=own) for block in BLOCKS))
    return worst


@pytest.fixture(scope="module")
def losses() -> dict[bool, float]:
    return {own: worst_loss(own=own) for own in (True, False)}


def test_a_look_and_all_answers_keep_the_loss_exactly(losses: dict[bool, float]) -> None:
    """Three arrivals, two levels, scale 2: ε = 1, attained, over every look."""
    assert losses[True] == pytest.approx(1.0, abs=1e-12)


def test_a_look_at_a_state_without_noise_of_its_own_is_caught(losses: dict[bool, float]) -> None:
    assert losses[False] == math.inf


def test_an_open_block_of_a_private_state_has_noise_of_its_own(seeded: Callable[[int], RandomSource]) -> None:
    """The stored sums of open blocks are spread like the noise (1,000 bins, fixed words; 5 standard errors)."""
    noise = Laplace.from_epsilon(sensitivity=4, epsilon=1)
    for private_state in (True, False):
        tree = TreeCounter(horizon=15, bins=1000, noise=noise, private_state=private_state)
        state = tree.take(tree.start(seeded(1)), np.ones((5, 1000), dtype=np.int64), seeded(2))
        # after five arrivals the first blocks of eight and of sixteen are open, and the third of two: 5, 5 and 1
        for level, count in ((3, 5), (1, 1)):
            spread = state["open"].astype(np.int64)[level] - count
            wanted = math.sqrt(float(variance(noise))) if private_state else 0.0
            assert np.std(spread) == pytest.approx(wanted, rel=5 * math.sqrt(5 / 4 / 1000))
        assert (state["open"].astype(np.int64)[2] == 0).all()  # the second block of four ends no prefix


@pytest.mark.parametrize(
    "noise",
    [Laplace.from_epsilon(sensitivity=11, epsilon=1), Gaussian.from_rho(sensitivity_squared=11, rho="0.1")],
    ids=["laplace", "gaussian"],
)
@pytest.mark.parametrize("private_state", [False, True])
def test_errors_are_what_theory_says(
    noise: Laplace | Gaussian, *, private_state: bool, seeded: Callable[[int], RandomSource]
) -> None:
    """1,000 counters side by side over 64 arrivals: deviations within 16 % (5 standard errors), fixed words."""
    tree = TreeCounter(horizon=64, bins=1000, noise=noise, private_state=private_state)
    state = tree.take(tree.start(seeded(3)), np.zeros((64, 1000), dtype=np.int64), seeded(4))
    errors = tree.estimates(state)
    for time in (1, 2, 33, 63, 64):
        assert errors[time - 1].std() == pytest.approx(tree.deviation(0, time), rel=0.16)
    for start, end in ((32, 63), (3, 7), (50, 64)):
        assert (errors[end - 1] - errors[start - 1]).std() == pytest.approx(tree.deviation(start, end), rel=0.16)


@pytest.mark.row(62)
def test_the_factor_of_a_tree_over_1024_prefix_sums_is_10_5() -> None:
    """Eleven levels that one arrival moves, ten blocks in the worst prefix: √11·√10 = 10.5."""
    assert TreeCounter.levels(1024) == 11
    most = max(time.bit_count() for time in range(1, 1025))
    assert math.sqrt(11 * most) == pytest.approx(10.5, abs=0.02)
