"""What is kept of an analyst's questions: bounded, exact, and out of sight of everybody else."""

import threading
from collections.abc import Callable

import pytest

from hubbub.core.asked import Asked, AskedByAnalyst, asking, for_analyst, once


class Work:
    """Counts how often it is done."""

    def __init__(self, weight: int = 1) -> None:
        self.done: list[str] = []
        self.weight = weight

    def of(self, key: str) -> str:
        def make() -> str:
            self.done.append(key)
            return f"result of {key}"

        return once(key, make, weigh=lambda _: self.weight)


def test_a_result_is_worked_out_once_for_who_asks() -> None:
    work = Work()
    with asking(Asked()):
        assert {work.of("a") for _ in range(3)} == {"result of a"}
    assert work.done == ["a"]


def test_where_nobody_asks_nothing_is_kept() -> None:
    work = Work()
    assert work.of("a") == work.of("a")
    assert work.done == ["a", "a"]


def test_the_oldest_results_make_room() -> None:
    work, asked = Work(), Asked(most=2)
    with asking(asked):
        for key in "abacab":  # b is the oldest when c comes, and c when b comes again
            work.of(key)
    assert work.done == ["a", "b", "c", "b"]


@pytest.mark.parametrize(("weight", "done"), [(50, "abcd"), (100, "abcda"), (101, "abcdac")])
def test_results_weigh_no_more_than_the_room_together(weight: int, done: str) -> None:
    """Room for 300: six results of 50, three of 100, two of 101."""
    work, asked = Work(weight), Asked(room=300)
    with asking(asked):
        for key in "abcdac":
            work.of(key)
    assert "".join(work.done) == done


def test_a_result_that_is_too_heavy_is_not_kept_and_drops_nothing() -> None:
    light, heavy, asked = Work(), Work(301), Asked(room=300)
    with asking(asked):
        light.of("a")
        heavy.of("b")
        heavy.of("b")
        light.of("a")
    assert (light.done, heavy.done) == (["a"], ["b", "b"])


def test_an_error_is_raised_each_time() -> None:
    done = []

    def fail() -> str:
        done.append(1)
        raise ValueError("no")

    with asking(Asked()):
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                once("a", fail, weigh=len)
    assert len(done) == 2


class Desk:
    """Answers analysts."""

    def __init__(self) -> None:
        self.asked = AskedByAnalyst(["ana", "ben"])
        self.work = Work()

    @for_analyst
    def answer(self, analyst: str, key: str) -> str:
        """Answer, with work that is kept."""
        return f"{analyst}: {self.work.of(key)}"


def test_each_analyst_has_results_of_their_own_and_a_stranger_none() -> None:
    desk = Desk()
    for analyst in ("ana", "ben", "ana", "ben", "eve", "eve"):
        assert desk.answer(analyst, "a") == f"{analyst}: result of a"
    assert desk.work.done == ["a"] * 4


def test_nobody_can_push_out_the_results_of_others() -> None:
    desk = Desk()
    desk.answer("ana", "a")
    for number in range(1000):
        desk.answer("ben", str(number))
    before = len(desk.work.done)
    desk.answer("ana", "a")
    assert len(desk.work.done) == before


def test_threads_of_two_analysts_do_not_mix() -> None:
    """A thread starts without an analyst, and a nested question belongs to the analyst it is asked for."""
    desk, seen = Desk(), list[int]()

    def elsewhere(act: Callable[[], object]) -> None:
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()

    with asking(desk.asked.of("ana")):
        desk.work.of("a")
        elsewhere(lambda: desk.answer("ben", "a"))
        seen.append(len(desk.work.done))
        desk.answer("ben", "a")
        desk.work.of("a")
        elsewhere(lambda: desk.work.of("a"))
        seen.append(len(desk.work.done))
    assert seen == [2, 3]
