"""`hubbub serve --workers 2`: two real processes on one address, which answer as one server.

Connections are divided by the kernel, so a test opens connections until it has one to each worker: 40 attempts miss a
worker with probability 2⁻³⁹. The id of a job begins with the number of its worker.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.fixtures.server_config import ServerFolder, kept
from tests.fixtures.server_process import Caller, SpawnedServer, await_ready, free_port

from hubbub.accounting.ledger import examine
from hubbub.accounting.store import EntryFilter
from hubbub.config import load
from hubbub.curator.opening import anchor_of, open_curator, store_of
from hubbub.errors import ConfigError, LedgerError
from hubbub.server.service import read_settings
from hubbub.server.supervisor import Supervisor

QUANTUM = 0.5
_FORM = {"Content_Type": "application/x-www-form-urlencoded"}


class Town:
    """A server of two workers, and connections to each."""

    def __init__(self, folder: Path, dsn: str | None = None) -> None:
        self.place = ServerFolder(folder, dsn=dsn, epsilon="1", quantum=str(QUANTUM))
        self.port = free_port()
        self.server = SpawnedServer(self.place.config, self.port, workers=2)
        self._callers: list[Caller] = []
        await_ready(self.port, self.server)

    def caller(self, token: str) -> Caller:
        """Open a connection to one of them."""
        self._callers.append(Caller(self.port, token))
        return self._callers[-1]

    def end(self, how: signal.Signals) -> int:
        """Close all connections, and end the server."""
        for caller in self._callers:
            caller.close()
        return self.server.end(how)

    def both(self, analyst: str = "ana") -> tuple[Caller, Caller]:
        """Open a connection to each worker; asking which one it is costs nothing, for the question is refused."""
        found: dict[str, Caller] = {}
        for _ in range(40):
            caller = self.caller(self.place.tokens["ana"])
            key = f"w{len(self._callers)}"
            body = {"sql": "SELECT nothing FROM visits", "epsilon": "0.01"}
            reply = caller.ask("POST", "/api/v1/query", body, Idempotency_Key=key, Prefer="respond-async")
            assert reply.status == 202, reply.body
            found.setdefault(reply.json()["id"][:2], caller)
            caller.become(self.place.tokens[analyst])
            if len(found) == 2:
                return found["00"], found["01"]
        raise AssertionError("no connection reached the second worker")

    def charges(self) -> list[Any]:
        """Read the charges, and see that the ledger is sound."""
        config = load(self.place.config)
        store = store_of(config, read_only=True)
        try:
            assert examine(store, anchor_of(config)).sound
            with store.snapshot() as snapshot:
                return list(snapshot.entries(EntryFilter(kind="charge")))
        finally:
            store.close()


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    town = Town(tmp_path_factory.mktemp("workers") / "town")
    yield town
    assert town.end(signal.SIGTERM) == 0
    log = (town.place.folder / f"server-{town.port}.log").read_text()
    assert "Traceback" not in log
    assert "with 2 workers" in log


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_one_request_to_both_workers_at_once_is_charged_once(town: Town) -> None:
    body = town.place.question(1, own_key=True)
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda caller: caller.query(body, "one"), town.both()))
    assert [reply.status for reply in replies] == [200, 200]
    assert kept(replies[0]) == kept(replies[1])
    assert sum("> 1.5 / 1000" in entry.query for entry in town.charges()) == 1


def test_both_workers_together_never_pass_a_cap(town: Town) -> None:
    callers = [caller for _ in range(2) for caller in town.both("ben")]

    def spend(number: int) -> int:
        body = town.place.question(100 + number, own_key=True) | {"epsilon": "0.3"}
        return callers[number].query(body, f"ben-{number}").status

    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(spend, range(4)))
    assert sorted(statuses) == [200, 200, 200, 409]
    assert sum(entry.analyst == "ben" for entry in town.charges()) == 3


def test_a_job_is_known_and_cancelled_at_the_other_worker(town: Town) -> None:
    first, second = town.both()
    sent = first.ask(
        "POST", "/api/v1/query", town.place.question(2, own_key=True), Idempotency_Key="job", Prefer="respond-async"
    )
    place = sent.headers["location"]
    reply = second.ask("GET", place, Prefer="wait=20").json()
    assert reply["state"] == "done"
    assert reply["release"]["answer"]
    assert second.ask("DELETE", place).json()["state"] == "done"  # it has ended already
    assert town.both("ben")[1].ask("GET", place).status == 404


def test_a_release_shows_at_the_other_worker_on_the_quantum_only(town: Town) -> None:
    """Listings that arrive before one quantum has passed show the charge without its release."""
    first, second = town.both("cy")
    early = 0
    for number in range(5):
        key = f"cy-{number}"
        body = town.place.question(200 + number, own_key=True)
        begun = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(first.query, body, key)
            while not answer.done():
                newest = second.ask("GET", "/api/v1/releases?limit=1").json()["releases"]
                if time.monotonic() < begun + QUANTUM and newest and f"{200 + number}.5" in str(newest):
                    assert not newest[0]["released"], "a release shows before its time"
                    early += 1
            assert answer.result().status == 200
        assert second.ask("GET", "/api/v1/releases?limit=1").json()["releases"][0]["released"]
        if early:
            return
    raise AssertionError("the machine is too slow to look before the quantum has passed")


def test_a_session_of_the_pages_holds_at_both_workers(town: Town) -> None:
    first, second = town.both()
    form = first.ask("GET", "/sign-in")
    cookie = form.headers["set-cookie"].partition(";")[0]
    token = re.findall(r'name="csrf" value="([^"]+)"', form.body.decode())[0]
    fields = urlencode({"csrf": token, "token": town.place.tokens["ana"], "next": "/"})
    reply = second.send("POST", "/sign-in", fields, Cookie=cookie, **_FORM)
    assert reply.status == 303, reply.body
    cookie = reply.headers["set-cookie"].partition(";")[0]
    page = first.ask("GET", "/", Cookie=cookie)
    assert page.status == 200
    token = re.findall(r'name="csrf" value="([^"]+)"', page.body.decode())[0]
    assert second.send("POST", "/sign-out", urlencode({"csrf": token}), Cookie=cookie, **_FORM).status == 303
    assert first.ask("GET", "/", Cookie=cookie).status == 303  # to the sign-in page


def test_a_study_is_known_at_both_workers(town: Town) -> None:
    for caller in (first := town.both("cy")):
        assert caller.ask("GET", "/api/v1/attacks/runs").json() == {"runs": []}
    body = {"attack": "differencing", "epsilons": ["1"], "settings": {}}
    sent = first[1].ask("POST", "/api/v1/attacks/runs", body)
    assert sent.status in (200, 202), sent.body
    place = f"/api/v1/attacks/runs/{sent.json()['id']}"
    for caller in first:
        assert caller.ask("DELETE", place).status == 200
        assert caller.ask("GET", place).json()["state"] in ("cancelled", "done")


def test_a_change_of_the_policy_and_a_revoked_token_hold_at_both_at_once(town: Town) -> None:
    first, second = town.both("olga")
    config = first.ask("GET", "/api/v1/config").json()
    text = config["text"].replace("analysts:\n", "analysts:\n  dan: {visits: {epsilon: 1}}\n")
    assert first.ask("PUT", "/api/v1/config", {"text": text}, If_Match=config["hash"]).status == 200
    issued = second.ask("POST", "/api/v1/tokens", {"name": "dan", "role": "analyst", "days": 1})
    assert issued.status in (200, 201), issued.body
    town.place.tokens["dan"] = issued.json()["token"]
    callers = town.both("dan")
    for number, caller in enumerate(callers):
        assert caller.query(town.place.question(300 + number, own_key=True), f"dan-{number}").status == 200
    config = second.ask("GET", "/api/v1/config").json()
    text = config["text"].replace("  dan: {visits: {epsilon: 1}}\n", "")
    assert second.ask("PUT", "/api/v1/config", {"text": text}, If_Match=config["hash"]).status == 200
    assert [caller.ask("GET", "/api/v1/me").status for caller in callers] == [401, 401]


def test_metrics_are_those_of_all_workers(town: Town) -> None:
    first, second = town.both()
    for caller in (first, second, second):
        caller.ask("GET", "/api/v1/explain?epsilon=1")

    def count(caller: Caller) -> int:
        text = caller.ask("GET", "/metrics").body.decode()
        found = re.findall(r'hubbub_requests_total\{route="/api/v1/explain",method="GET",status="2xx"\} (\d+)', text)
        return int(found[0]) if found else 0

    until(lambda: count(first) == count(second) == 3)


def _killed(town: Town) -> None:
    """Kill the second worker, and see what clients, the supervisor and the ledger make of it."""
    first, second = town.both()
    body = town.place.question(1, own_key=True)
    answer = second.query(body, "one")
    assert answer.status == 200
    before = town.server.workers()
    os.kill(max(before), signal.SIGKILL)
    assert kept(first.query(body, "one")) == kept(answer)
    until(lambda: len(town.server.workers()) == 2 and town.server.workers() != before)
    first, second = town.both()
    assert kept(second.query(body, "one")) == kept(answer)
    assert len(town.charges()) == 1
    # guesses are counted together: twenty for each address, and three at once
    guess = [town.caller("hub_000000000000_" + "x" * 43) for _ in range(6)]
    assert {caller.ask("GET", "/api/v1/me").json()["code"] for caller in guess} == {"HB701", "HB721"}
    assert first.ask("GET", "/api/v1/me").json()["code"] == second.ask("GET", "/api/v1/me").json()["code"] == "HB721"


def test_a_killed_worker_is_replaced_and_its_answers_stand(tmp_path: Path) -> None:
    town = Town(tmp_path / "town")
    try:
        _killed(town)
        config = town.place.config
        with pytest.raises(LedgerError, match="HB303"):
            open_curator(load(config), exclusive=True)
        with pytest.raises(LedgerError, match="HB303"):
            Supervisor(config, read_settings(config), 2)
    finally:
        workers = town.server.workers()
        town.end(signal.SIGKILL)
    # without their supervisor, workers end by themselves, and the ledger is free again
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    store_of(load(town.place.config), exclusive=True).close()


def test_workers_share_a_ledger_in_postgresql(tmp_path: Path, postgres_dsn: str) -> None:
    town = Town(tmp_path / "town", postgres_dsn)
    try:
        _killed(town)
    finally:
        assert town.end(signal.SIGTERM) == 0


def test_the_port_of_another_server_is_refused(town: Town, tmp_path: Path) -> None:
    other = ServerFolder(tmp_path / "other").config
    with pytest.raises(ConfigError, match="HB420"):
        Supervisor(other, read_settings(other, port=town.port), 2)
