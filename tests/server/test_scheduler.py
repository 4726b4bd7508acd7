"""The server runs scheduled queries: once for each block, one process at a time, however it is stopped."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.monthly_visits import MONTHS, SQL, entries, schedule, serving
from tests.server.conftest import Clock, World

from hubbub.accounting.ledger import Ledger
from hubbub.curator.question import Question
from hubbub.curator.schedule import answers, ledger_name
from hubbub.private_files import private_file
from hubbub.server import scheduler as module
from hubbub.server.accounts import Principal
from hubbub.server.attempts import MAX_TRIES, PAUSE, Attempt
from hubbub.server.query_service import QueryService
from hubbub.server.scheduler import Scheduler


class Killed(BaseException):
    """The end of a process at a chosen place."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serving(tmp_path) as opened:
        yield opened


def months(world: World, made: Any) -> list[str]:
    return [*answers(world.service.current.curator, made)]


def test_a_server_runs_each_block_once_also_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as world:
        made = schedule(world.service)
        assert (world.service.scheduler.turn(), world.service.scheduler.turn()) == (3, 0)
        assert months(world, made) == MONTHS
        assert world.service.state.attempts.find(made.key("2026-01")) is None
    with serving(tmp_path) as world:
        assert world.service.scheduler.turn() == 0
        assert (entries(world.service, "charge"), entries(world.service, "release")) == (3, 3)
        assert world.service.current.curator.ledger.verify().sound


def test_two_servers_at_once_run_each_block_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two does nothing while the other runs; even without the lock, no block is charged twice."""
    service = world.service
    accounts = service.accounts
    other = Scheduler(service.current, service.queries, service.state.attempts, accounts.clock, accounts.shut_out)
    schedule(service)
    seen: list[int] = []
    run = Scheduler._answer

    def both(self: Scheduler, *given: Any) -> None:
        if self is service.scheduler:
            seen.append(other.turn())
        run(self, *given)

    monkeypatch.setattr(Scheduler, "_answer", both)
    assert service.scheduler.turn() == 3
    assert seen == [0, 0, 0]

    @contextmanager
    def unlocked(_: Scheduler) -> Iterator[bool]:
        yield True

    schedule(service, "ben")
    monkeypatch.setattr(Scheduler, "_alone", unlocked)
    seen.clear()
    service.scheduler.turn()
    assert seen == [3, 0, 0]  # the other server was first, in each block
    assert (entries(service, "charge"), entries(service, "release")) == (6, 6)


def test_another_process_takes_over_when_the_lock_is_free(world: World) -> None:
    schedule(world.service)
    with private_file(world.service.scheduler._folder / "schedules.turn", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert world.service.scheduler.turn() == 0
    assert world.service.scheduler.turn() == 3


PLACES = {
    "before the query": (QueryService, "begin", False),
    "after the query": (Scheduler, "_answer", True),
}


@pytest.mark.parametrize("where", PLACES)
def test_a_server_that_is_killed_at_any_step_leaves_one_charge_for_each_block(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happens inside the query is in tests/curator/test_schedule.py; here it ends around it, three times."""
    owner, method, after = PLACES[where]
    step = getattr(owner, method)
    with serving(tmp_path) as world:
        made = schedule(world.service)
    for _ in range(3):
        with serving(tmp_path) as world, monkeypatch.context() as patched:

            def kill(*given: Any, **options: Any) -> None:
                if after:
                    step(*given, **options)
                raise Killed

            patched.setattr(owner, method, kill)
            with pytest.raises(Killed):
                world.service.scheduler.turn()
    with serving(tmp_path) as world:
        world.service.scheduler.turn()
        # three tries of January ended with the process: it waits, and the other blocks go on
        expected = MONTHS if after else MONTHS[1:]
        assert months(world, made) == expected
        assert entries(world.service, "charge") == len(expected)


def test_a_failure_after_the_charge_is_repeated_with_one_charge(
    world: World, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    service = world.service
    service.scheduler._seconds = clock
    made = schedule(service)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "record", lambda *_, **__: 1 / 0)
        assert service.scheduler.turn() == 0
    attempt = service.state.attempts.find(made.key("2026-01"))
    assert attempt is not None
    assert attempt.problem.startswith("HB900")
    assert service.scheduler.turn() == 0  # not before the pause
    assert entries(service, "charge") == 1  # failures are limited: one of them stops the other blocks for now
    clock.now += PAUSE
    assert service.scheduler.turn() == 3
    assert (entries(service, "charge"), entries(service, "release")) == (3, 3)


def test_what_is_refused_is_told_and_tried_again_later(world: World, clock: Clock) -> None:
    service = world.service
    service.scheduler._seconds = clock
    made = schedule(service, epsilon="2")  # ana has 1
    assert service.scheduler.turn() == 0
    attempt = service.state.attempts.find(made.key("2026-02"))
    assert attempt is not None
    assert attempt.problem.startswith("HB2")
    path = world.folder / "hubbub.yaml"
    path.write_text(path.read_text().replace("ana: {visits: {epsilon: 1}}", "ana: {visits: {epsilon: 2}}"))
    service.current.reload()
    assert service.scheduler.turn() == 0
    clock.now += PAUSE
    assert service.scheduler.turn() == 3


@pytest.mark.parametrize(
    ("attempt", "later", "again"),
    [
        (Attempt(1, 0, ""), 0, True),
        (Attempt(3, 0, ""), 0, False),
        (Attempt(3, 0, ""), PAUSE, False),
        (Attempt(1, 0, "HB201 no budget"), PAUSE - 1, False),
        (Attempt(9, 0, "HB201 no budget"), PAUSE, True),
        (Attempt(2, 0, "HB900 failed"), PAUSE, True),
        (Attempt(3, 0, "HB900 failed"), PAUSE, False),
    ],
)
def test_when_a_block_is_tried_again(attempt: Attempt, later: int, *, again: bool) -> None:
    assert attempt.again(later) is again
    assert bool(attempt.told) == (bool(attempt.problem) or attempt.tries >= MAX_TRIES)


def test_analysts_take_turns(world: World) -> None:
    for analyst, name in (("ana", "a"), ("ana", "b"), ("ben", "c")):
        schedule(world.service, analyst, name, epsilon="0.125" if name == "b" else "0.25")
    order = [each.analyst for each, _ in world.service.scheduler._due()]
    assert order == ["ana", "ben"] * 3 + ["ana"] * 3


def test_the_end_of_a_run_shows_on_the_time_quantum_only(tmp_path: Path) -> None:
    """The answer is recorded, and the list does not have it before its time."""
    with serving(tmp_path, quantum=60.0) as world:
        made, service = schedule(world.service), world.service
        key = made.key("2026-01")
        question = Question(SQL, epsilon="0.25", parameters=_days())
        principal = Principal("ana", "analyst", None, 0)
        service.queries.begin(principal, question, key=key, header=key).future.result()
        assert months(world, made) == ["2026-01"]
        assert ("ana", ledger_name(made, "2026-01").rpartition(" ")[0]) in service.pool.unseen_charges()
        shown = service.schedules.show(principal, "ana", "monthly")
        assert [each.state for each in shown.blocks] == ["waiting"] * 3
        assert shown.table() == ""


def _days() -> tuple[Any, ...]:
    from datetime import date

    return date(2026, 1, 1), date(2026, 2, 1)


def test_the_thread_runs_what_is_due_and_ends_with_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It also survives an error."""
    ran, turn, fails = threading.Event(), Scheduler.turn, [ZeroDivisionError]

    def told(self: Scheduler) -> int:
        if fails:
            raise fails.pop()
        count = turn(self)
        ran.set()
        return count

    monkeypatch.setattr(Scheduler, "turn", told)
    monkeypatch.setattr(module, "PERIOD", 0.01)
    with serving(tmp_path) as world:
        made = schedule(world.service)
        world.service.scheduler.start()
        assert ran.wait(60)
        thread = world.service.scheduler._thread
        assert months(world, made) == MONTHS
    assert thread is not None
    assert not thread.is_alive()


def test_queries_pause_while_their_analyst_has_no_valid_token(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are revoked after the first block was answered: the next blocks wait for a new token."""
    service = world.service
    made, others = schedule(service), schedule(service, "ben")
    run, accounts = Scheduler._run, service.accounts

    def revoked_then(self: Scheduler, *given: Any) -> bool:
        ran = run(self, *given)
        for token in accounts.state.tokens.list("ana"):
            accounts.revoke(token.id)
        return ran

    with monkeypatch.context() as patched:
        patched.setattr(Scheduler, "_run", revoked_then)
        service.scheduler.turn()
    assert (months(world, made), months(world, others)) == (MONTHS[:1], MONTHS)
    assert service.scheduler.turn() == 0
    (view,) = service.schedules.entries(Principal("ana", "analyst", None, 0))
    assert (view.paused, view.next_run) == (True, None)
    accounts.issue("ana", "analyst", 1)
    assert service.scheduler.turn() == 2
    assert months(world, made) == MONTHS
