"""Rate limits: what they let through, and that they cannot be filled up."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hubbub.server import limits
from hubbub.server.limits import RateLimit, address


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_goes_through_and_then_one_at_a_time() -> None:
    clock = Clock()
    limit = RateLimit(60, burst=3, clock=clock)
    assert [limit.take("ana") for _ in range(5)] == [0, 0, 0, 1, 1]
    clock.now += 1
    assert [limit.take("ana") for _ in range(2)] == [0, 1]
    clock.now += 1000
    assert [limit.take("ana") for _ in range(4)] == [0, 0, 0, 1]


def test_the_wait_that_is_named_is_enough_and_not_much_more() -> None:
    clock = Clock()
    limit = RateLimit(7, burst=1, clock=clock)
    assert limit.take("ana") == 0
    wait = limit.take("ana")
    assert wait == 9
    clock.now += wait - 1
    assert limit.take("ana") == 1
    clock.now += 1
    assert limit.take("ana") == 0


def test_no_minute_lets_more_through_than_the_limit_and_the_burst() -> None:
    clock = Clock()
    limit = RateLimit(30, burst=5, clock=clock)
    went = 0
    for _ in range(600):
        went += limit.take("ana") == 0
        clock.now += 0.1
    assert 30 <= went <= 35


def test_names_do_not_share_and_looking_takes_nothing() -> None:
    clock = Clock()
    limit = RateLimit(60, burst=1, clock=clock)
    assert [limit.wait("ana") for _ in range(3)] == [0, 0, 0]
    assert limit.take("ana") == 0
    assert limit.wait("ana") == 1
    assert limit.take("ben") == 0


def test_being_refused_does_not_put_it_off_further() -> None:
    clock = Clock()
    limit = RateLimit(60, burst=1, clock=clock)
    limit.take("ana")
    for _ in range(10):
        clock.now += 0.09
        assert limit.take("ana") == 1
    clock.now += 0.11
    assert limit.take("ana") == 0


def test_a_clock_that_stands_or_turns_back_gives_nothing_away() -> None:
    clock = Clock()
    limit = RateLimit(60, burst=1, clock=clock)
    limit.take("ana")
    clock.now -= 30
    assert limit.take("ana") > 0


def test_a_thousand_names_are_all_that_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_NAMES", 1000)
    limit = RateLimit(60, burst=1, clock=Clock())
    for number in range(5000):
        limit.take(f"address {number}")
    assert len(limit._buckets) == 1000
    assert limit.take("address 4999") == 1


def test_threads_together_get_no_more_than_one_would() -> None:
    limit = RateLimit(60, burst=50, clock=Clock())
    start = threading.Barrier(8)

    def hammer(_: int) -> int:
        start.wait(30)
        return sum(limit.take("ana") == 0 for _ in range(100))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(hammer, range(8))) == 50


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "unknown"),
        ("", "unknown"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_one_network_is_one_client(client: str, name: str) -> None:
    assert address(client) == name


def test_what_is_taken_at_once_counts_as_any_other_call() -> None:
    limit = RateLimit(60, burst=2, clock=lambda: 0.0)
    assert limit.has_at_once("ana")
    assert (limit.take_at_once("ana"), limit.take("ana"), limit.take_at_once("ana")) == (True, 0, False)
    assert not limit.has_at_once("ana")
    assert limit.has_at_once("ben")
