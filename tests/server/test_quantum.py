"""The time quantum from all sides: nothing else tells when a query ended, not even to who asks for it in other ways."""

import re
import time
from typing import Any

import httpx2
import pytest

from hubbub.errors import RunError
from hubbub.server import middleware as border
from hubbub.server import query_pool as work
from hubbub.server import query_service as service

QUANTUM = 1000.0  # seconds, which pass when a test says so
GROUPED = "SELECT year, COUNT(*) AS n FROM health GROUP BY year"


class Clock:
    """A clock that can be moved on."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (border, service, work):
        monkeypatch.setattr(module, "clock", made)
    return made


@pytest.fixture
def world(start_app: Any, clock: Clock) -> Any:
    return start_app(quantum=QUANTUM)


def begin(world: Any, header: str, **more: Any) -> tuple[str, Any]:
    """Put a query in line, and wait for its true end, which nobody outside can see."""
    body = {"sql": GROUPED, "epsilon": "0.1", **more}
    headers = {"Idempotency-Key": header, "Prefer": "respond-async"}
    number = world.client("ana").post("/api/v1/query", json=body, headers=headers).json()["id"]
    job = world.service.pool.find(number)
    while job.ended is None:
        time.sleep(0.01)
    return number, job


def past(world: Any, who: str) -> dict[str, Any]:
    found: dict[str, Any] = world.client(who).get("/api/v1/releases").json()["releases"][0]
    return found


def gauge(world: Any) -> float:
    text = world.client("owner").get("/metrics").text
    return sum(float(each) for each in re.findall(r"^hubbub_queries_\w+ (\S+)$", text, re.MULTILINE))


def test_a_release_shows_nowhere_before_its_time_and_everywhere_after(world: Any, clock: Clock) -> None:
    begin(world, "first")
    for who in ("ana", "owner"):
        found = past(world, who)
        assert found["released"] is False
        assert world.client(who).get(f"/api/v1/releases/{found['id']}").status_code == 404
    assert gauge(world) == 1
    clock.ahead += QUANTUM
    found = past(world, "ana")
    assert found["released"] is True
    assert world.client("ana").get(f"/api/v1/releases/{found['id']}").status_code == 200
    assert gauge(world) == 0
    # a replay of what shows already hides nothing
    begin(world, "second")
    assert world.client("ana").get(f"/api/v1/releases/{found['id']}").status_code == 200


def test_a_second_try_does_not_tell_whether_the_first_has_ended(world: Any, clock: Clock) -> None:
    begin(world, "same")
    clock.ahead += QUANTUM / 2
    number, second = begin(world, "same")
    assert second.future.result().replayed is True
    # the first is done, and shows: the second does not hide it
    clock.ahead += QUANTUM / 2
    found = past(world, "ana")
    assert found["released"] is True
    clock.ahead += QUANTUM / 2
    shown = world.client("ana").get(f"/api/v1/jobs/{number}").json()
    assert (shown["state"], shown["release"]["replayed"]) == ("done", True)


def test_a_cancelled_query_is_stopped_on_the_quantum(world: Any, clock: Clock) -> None:
    """Else the next try, which finds its release or not, would tell whether it had ended by then."""
    release: list[bool] = []
    stopped: list[float] = []
    engine = world.service.current.curator.engine
    run = engine.run

    def slowly(sql: str) -> Any:
        while not release:
            time.sleep(0.01)
        return run(sql)

    engine.run = slowly
    engine.interrupt = lambda _=None: stopped.append(clock())
    client: httpx2.Client = world.client("ana")
    headers = {"Idempotency-Key": "c", "Prefer": "respond-async"}
    number = client.post("/api/v1/query", json={"sql": GROUPED, "epsilon": "0.1"}, headers=headers).json()["id"]
    job = world.service.pool.find(number)
    while job.ledger_key is None:
        time.sleep(0.01)
    assert client.delete(f"/api/v1/jobs/{number}").json()["state"] == "cancelled"
    time.sleep(0.1)
    assert not stopped
    clock.ahead += QUANTUM
    while not stopped:
        time.sleep(0.01)
    release.append(True)
    assert stopped[0] >= job.arrived + QUANTUM


def test_a_run_that_fails_by_itself_after_a_cancel_is_a_failure(world: Any, clock: Clock) -> None:
    """Between a cancel and the quantum nothing is stopped: who cancels each query at once must not fail unseen."""
    failing: list[bool] = []
    curator = world.service.current.curator

    def broken(_: str) -> Any:
        while not failing:
            time.sleep(0.01)
        raise RunError

    curator.engine.run = broken
    client: httpx2.Client = world.client("ana")
    headers = {"Idempotency-Key": "c", "Prefer": "respond-async"}
    number = client.post("/api/v1/query", json={"sql": GROUPED, "epsilon": "0.1"}, headers=headers).json()["id"]
    job = world.service.pool.find(number)
    while job.ledger_key is None:
        time.sleep(0.01)
    assert client.delete(f"/api/v1/jobs/{number}").json()["state"] == "cancelled"
    failing.append(True)
    assert isinstance(job.future.exception(timeout=20), RunError)
    assert job.ended < job.arrived + QUANTUM
    assert [len(charges) for charges in curator._failures.every().values()] == [1]
