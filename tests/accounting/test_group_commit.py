import threading
import time
from collections.abc import Sequence

import pytest

from hubbub.accounting.group_commit import MAX_BATCH, GroupCommit, PendingCall


class Work(PendingCall):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def all_at_once(turns: GroupCommit[Work], calls: Sequence[Work]) -> None:
    threads = [threading.Thread(target=turns.take, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_calls_that_come_during_a_turn_are_served_together_in_the_next() -> None:
    groups: list[list[int]] = []
    started, go_on = threading.Event(), threading.Event()

    def serve(calls: Sequence[Work]) -> None:
        groups.append([call.number for call in calls])
        if len(groups) == 1:
            started.set()
            go_on.wait(30)

    turns = GroupCommit(serve)
    first = threading.Thread(target=turns.take, args=(Work(0),))
    first.start()
    started.wait(30)
    later = []
    for number in range(1, 9):
        thread = threading.Thread(target=turns.take, args=(Work(number),))
        thread.start()
        later.append(thread)
        deadline = time.monotonic() + 30
        while len(turns._queue) < number and time.monotonic() < deadline:
            time.sleep(0.001)
    go_on.set()
    for thread in (first, *later):
        thread.join(30)
    assert groups == [[0], [1, 2, 3, 4, 5, 6, 7, 8]]


def test_every_call_is_served_once_and_by_one_thread_at_a_time() -> None:
    served: list[int] = []
    inside = threading.Lock()

    def serve(calls: Sequence[Work]) -> None:
        assert len(calls) <= MAX_BATCH
        assert inside.acquire(blocking=False)
        served.extend(call.number for call in calls)
        inside.release()

    turns = GroupCommit(serve)
    calls = [Work(number) for number in range(300)]
    all_at_once(turns, calls)
    assert sorted(served) == list(range(300))
    assert all(call.served for call in calls)


def test_nobody_returns_before_being_served() -> None:
    def serve(calls: Sequence[Work]) -> None:
        time.sleep(0.002)
        for call in calls:
            call.number = -1

    turns = GroupCommit(serve)
    seen: list[int] = []

    def work(number: int) -> None:
        call = Work(number)
        turns.take(call)
        seen.append(call.number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen == [-1] * 32


def test_an_interrupted_leader_hands_over() -> None:
    def serve(calls: Sequence[Work]) -> None:
        if calls[0].number == 0:
            raise KeyboardInterrupt

    turns = GroupCommit(serve)
    with pytest.raises(KeyboardInterrupt):
        turns.take(Work(0))
    all_at_once(turns, [Work(number) for number in range(1, 5)])
