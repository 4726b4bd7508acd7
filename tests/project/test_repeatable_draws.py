"""Draws of tests: the same for the same test and number, others for another test, number or process."""

import threading
from collections.abc import Iterator

import pytest
from tests.fixtures.repeatable_draws import RepeatableDraws, chosen_seed

from hubbub.accounting import chain
from hubbub.noise import source
from hubbub.noise.source import Keystream, system


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = source.fresh_key, chain.new_identity, system()._local
    yield
    source.fresh_key, chain.new_identity, system()._local = before


def drawn(draws: RepeatableDraws, scope: str) -> list[object]:
    draws.install()
    draws.begin(scope)
    return [chain.new_identity(), *system().words(3).tolist(), *Keystream().words(3).tolist(), chain.new_identity()]


def test_the_same_test_draws_the_same() -> None:
    draws = RepeatableDraws(1)
    first = drawn(draws, "test_a")
    assert len(set(first)) == 8
    assert drawn(draws, "test_b") != first
    assert drawn(draws, "test_a") == first
    assert drawn(RepeatableDraws(2), "test_a") != first


def test_a_shared_fixture_draws_the_same_before_and_after_others() -> None:
    draws = RepeatableDraws(1)
    whole = drawn(draws, "test_a")
    draws.begin("test_a")
    taken: list[object] = [chain.new_identity(), *system().words(3).tolist()]
    with draws.apart("fixture"):
        early = [chain.new_identity(), *system().words(3).tolist()]
    taken += [*Keystream().words(3).tolist(), chain.new_identity()]
    assert taken == whole
    draws.begin("test_b")
    with draws.apart("fixture"):
        assert early == [chain.new_identity(), *system().words(3).tolist()]


def test_a_thread_draws_otherwise() -> None:
    draws = RepeatableDraws(1)
    drawn(draws, "test_a")
    own, others = system().words(3).tolist(), list[int]()
    thread = threading.Thread(target=lambda: others.extend(system().words(3).tolist()))
    thread.start()
    thread.join()
    assert not set(own) & set(others)


def test_random_draws_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_SEED", "random")
    assert chosen_seed() is None
    draws = RepeatableDraws(chosen_seed())
    assert drawn(draws, "test_a") != drawn(draws, "test_a")
    monkeypatch.setenv("HUBBUB_SEED", "7")
    assert chosen_seed() == 7
