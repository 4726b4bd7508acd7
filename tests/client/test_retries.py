"""Tries under one key: what fails on the way is tried again, charged once, and never for ever."""

import asyncio
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import httpx2
import pytest
from tests.server.conftest import World

import hubbub
from hubbub.client import protocol as steps
from hubbub.client.session import RemoteSession, connect
from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays, Engine
from hubbub.errors import AccessError, BudgetError, LedgerError, RunError, ServerError

COUNT = "SELECT COUNT(*) AS n FROM health"
RELEASE: dict[str, Any] = {
    "answer": {"columns": [], "ratio": []},
    "receipt": {},
    "epsilon": "1",
    "delta": "0",
    "left": None,
    "replayed": False,
}

Answer = httpx2.Response | Exception


class Script:
    """Answers the requests of a session, the first being who asks, by a list; remembers all of them."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = [httpx2.Response(200, json={"name": "ana"}), *answers]
        self.seen: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def keys(self) -> set[str]:
        return {each.headers["Idempotency-Key"] for each in self.seen if each.method == "POST"}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pause for no time, and remember for how long it would have been."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


def session(script: Script, *, retries: int = 4) -> RemoteSession:
    return connect("https://data.example", "hub_secret", retries=retries, transport=httpx2.MockTransport(script))


def problem(status: int, code: str, **headers: str) -> httpx2.Response:
    body = {"code": code, "detail": "no.", "remedy": "wait.", "position": None}
    return httpx2.Response(status, json=body, headers={name.replace("_", "-"): text for name, text in headers.items()})


JOB = httpx2.Response(202, json={"id": "a1", "state": "queued"})
DONE = httpx2.Response(200, json={"id": "a1", "state": "done", "release": RELEASE})


@pytest.mark.parametrize(
    "failures",
    [
        [httpx2.ConnectError("refused")],
        [httpx2.ReadError("reset")],
        [httpx2.RemoteProtocolError("closed")],
        [httpx2.ReadTimeout("slow"), httpx2.ConnectTimeout("slow")],
        [httpx2.Response(502, text="<html>"), httpx2.Response(503), httpx2.Response(504)],
        [problem(503, "HB319"), problem(429, "HB722", Retry_After="2")],
    ],
)
def test_what_fails_on_the_way_is_tried_again_under_the_same_key(failures: list[Answer], pauses: list[float]) -> None:
    script = Script(*failures, JOB, *failures, DONE)
    assert session(script).query(COUNT, epsilon=1).epsilon == 1
    assert len(script.keys()) == 1
    posts = [each for each in script.seen if each.method == "POST"]
    assert len(posts) == len(failures) + 1
    assert len({each.content for each in posts}) == 1
    assert script.answers == []
    assert len(pauses) == 2 * len(failures)


def test_each_call_has_a_key_of_its_own(pauses: list[float]) -> None:
    script = Script(JOB, DONE, JOB, DONE)
    found = session(script)
    found.query(COUNT, epsilon=1)
    found.query(COUNT, epsilon=1)
    assert len(script.keys()) == 2


def test_tries_come_to_an_end_with_the_last_error(pauses: list[float]) -> None:
    script = Script(*[httpx2.ConnectError("refused")] * 5)
    with pytest.raises(ServerError, match=r"HB801.*ConnectError"):
        session(script).budget()
    assert script.answers == []
    assert len(pauses) == 4
    script = Script(*[problem(429, "HB720", Retry_After="3")] * 3)
    with pytest.raises(AccessError, match="HB720"):
        session(script, retries=2).budget()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(409, "HB201"), BudgetError),
        (problem(401, "HB701"), AccessError),
        (problem(500, "HB999"), Exception),
        (httpx2.Response(307, headers={"Location": "https://evil.example"}), ServerError),
    ],
)
def test_what_another_try_would_not_better_is_not_tried_again(
    answer: httpx2.Response, kind: type[Exception], pauses: list[float]
) -> None:
    script = Script(answer)
    with pytest.raises(kind):
        session(script).query(COUNT, epsilon=1)
    assert pauses == []
    assert {each.url.host for each in script.seen} == {"data.example"}


def test_the_server_says_how_long_to_wait(pauses: list[float]) -> None:
    session(Script(problem(429, "HB722", Retry_After="5"), httpx2.Response(200, json={"budgets": []}))).budget()
    assert 5 <= pauses[0] <= 5.25
    assert 60 <= steps.delay(0, 10_000.0) <= 60.25


def test_waits_grow_and_are_spread_by_chance() -> None:
    for tried, most in enumerate((0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0)):
        drawn = [steps.delay(tried, 0) for _ in range(200)]
        assert 0 <= min(drawn) < max(drawn) <= most
        assert max(drawn) - min(drawn) > most / 4  # false alarm: below (1/4 + 1/4)^200 · 200


def test_a_server_that_was_started_anew_is_asked_again_under_the_same_key(pauses: list[float]) -> None:
    running = httpx2.Response(200, json={"id": "a1", "state": "running"})
    script = Script(JOB, running, problem(404, "HB164"), JOB, running, DONE)
    session(script).query(COUNT, epsilon=1)
    assert len(script.keys()) == 1
    assert [each.method for each in script.seen[1:]] == ["POST", "GET", "GET", "POST", "GET", "GET"]
    script = Script(*[JOB, problem(404, "HB164")] * 3)
    with pytest.raises(ServerError, match="lost the job"):
        session(script, retries=2).query(COUNT, epsilon=1)


def test_a_job_that_somebody_else_cancelled_says_so(pauses: list[float]) -> None:
    script = Script(JOB, httpx2.Response(200, json={"id": "a1", "state": "cancelled"}))
    with pytest.raises(LedgerError, match="canceled"):
        session(script).query(COUNT, epsilon=1)


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, json=[]),
        httpx2.Response(200, json={"budgets": [{}]}),
        httpx2.Response(200, json={"budgets": 3}),
        httpx2.Response(200, json=None),
        httpx2.Response(204),
    ],
)
def test_an_answer_of_another_form_is_an_error_of_ours(answer: httpx2.Response) -> None:
    with pytest.raises(ServerError, match="HB802"):
        session(Script(answer)).budget()


def test_a_job_cannot_lead_elsewhere() -> None:
    script = Script(httpx2.Response(202, json={"id": "../../evil", "state": "queued"}))
    with pytest.raises(ServerError, match="HB802"):
        session(script).query(COUNT, epsilon=1)
    assert len(script.seen) == 2


# --- with a real server


class Cutting:
    """Stands before a server and cuts connections, after the request went through or before its answer is whole."""

    def __init__(self, url: str, cuts: list[str]) -> None:
        self.target = httpx2.URL(url)
        self.cuts = cuts
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.posts = 0
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=[near], daemon=True).start()

    def _pass(self, near: socket.socket) -> None:
        with near, socket.create_connection((self.target.host, self.target.port or 80)) as far:
            data = self._request(near)
            is_query = data.startswith(b"POST") and b"/query" in data.split(b"\r\n")[0]
            data = data.replace(b"Connection: keep-alive", b"Connection: close")
            cut = self.cuts.pop(0) if is_query and self.cuts else ""
            self.posts += is_query
            if cut == "before":
                return
            far.sendall(data)
            first = far.recv(1 << 20)
            if cut == "after":
                return
            near.sendall(first[: len(first) // 2] if cut == "half" else first)
            while cut != "half" and (more := far.recv(1 << 20)):
                near.sendall(more)

    @staticmethod
    def _request(near: socket.socket) -> bytes:
        data = near.recv(1 << 20)
        while b"\r\n\r\n" not in data:
            data += near.recv(1 << 20)
        length = re.search(rb"(?i)content-length: (\d+)", data)
        whole = data.index(b"\r\n\r\n") + 4 + (0 if length is None else int(length[1]))
        while len(data) < whole:
            data += near.recv(1 << 20)
        return data

    def close(self) -> None:
        self.listener.close()


@pytest.fixture
def cutting(world: World) -> Iterator[Callable[..., Cutting]]:
    made: list[Cutting] = []

    def make(*cuts: str) -> Cutting:
        made.append(Cutting(world.url, list(cuts)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("cuts", [("before",), ("after",), ("half",), ("after", "before", "half")])
def test_a_query_whose_connection_is_cut_is_charged_once(
    world: World, cutting: Callable[..., Cutting], cuts: tuple[str, ...]
) -> None:
    between = cutting(*cuts)
    with hubbub.connect(between.url, world.tokens["ana"], timeout=10) as found:
        release = found.query(COUNT, epsilon="0.25", key="mine")
    assert between.posts == len(cuts) + 1
    assert world.spent("ana")["health"] == "1/4"
    with hubbub.connect(world.url, world.tokens["ana"]) as found:
        assert found.query(COUNT, epsilon="0.25", key="mine").document() == release.document()
        assert len(found.releases()) == 1


class Endless:
    """An engine whose queries take until they are stopped."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.dialect = engine.dialect
        self.runs, self.stopped = threading.Event(), threading.Event()

    def run(self, sql: str) -> Secret[Arrays]:  # noqa: ARG002
        self.runs.set()
        assert self.stopped.wait(30)
        raise RuntimeError("stopped")

    def content_hash(self, name: str) -> Secret[bytes] | None:
        return self._engine.content_hash(name)

    def fingerprint(self, name: str) -> Secret[bytes]:
        return self._engine.fingerprint(name)

    def interrupt(self, caller: int | None = None) -> None:  # noqa: ARG002
        self.stopped.set()

    def close(self) -> None:
        self._engine.close()


@pytest.fixture
def endless(world: World) -> Iterator[Endless]:
    with world.service.current.using() as curator:
        engine = Endless(curator.engine)
        curator.engine = engine
    yield engine
    engine.stopped.set()


def test_ctrl_c_cancels_the_query_and_the_charge_stands(world: World, endless: Endless) -> None:
    followed = threading.Event()

    def follow(request: httpx2.Request) -> None:
        if "/jobs/" in request.url.path:
            followed.set()

    def interrupt() -> None:
        assert endless.runs.wait(30)
        assert followed.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    waiting = threading.Thread(target=interrupt)
    try:
        with hubbub.connect(world.url, world.tokens["ana"]) as found:
            found._client.event_hooks["request"] = [follow]
            waiting.start()
            with pytest.raises(KeyboardInterrupt):
                found.query(COUNT, epsilon="0.25")
            assert endless.stopped.wait(30)
            assert world.spent("ana")["health"] == "1/4"
            assert [each.released for each in found.releases()] == [False]
    finally:
        waiting.join()
        signal.signal(signal.SIGINT, handler)


def test_a_task_that_is_cancelled_cancels_its_query(world: World, endless: Endless) -> None:
    async def follow(request: httpx2.Request) -> None:
        if "/jobs/" in request.url.path:
            followed.set()

    followed = threading.Event()

    async def broken_off() -> None:
        async with hubbub.connect_async(world.url, world.tokens["ana"]) as found:
            found._client.event_hooks["request"] = [follow]
            task = asyncio.create_task(found.query(COUNT, epsilon="0.25"))
            await asyncio.to_thread(endless.runs.wait, 30)
            await asyncio.to_thread(followed.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(broken_off())
    assert endless.stopped.wait(30)
    assert world.spent("ana")["health"] == "1/4"


def test_a_failure_after_the_charge_is_the_one_constant(world: World, endless: Endless) -> None:
    endless.stopped.set()
    with hubbub.connect(world.url, world.tokens["ana"]) as found, pytest.raises(RunError) as caught:
        found.query(COUNT, epsilon="0.25")
    assert str(caught.value) == str(RunError())


def test_many_tasks_ask_at_once(world: World) -> None:
    async def many() -> list[Any]:
        async with hubbub.connect_async(world.url, world.tokens["ana"]) as found:
            asked = [found.query(COUNT, epsilon="0.01", key=f"number {number}") for number in range(15)]
            return list(await asyncio.gather(*asked))

    assert len({release.receipt["ledger"][0]["sequence"] for release in asyncio.run(many())}) == 15
    assert Fraction(world.spent("ana")["health"]) <= Fraction(15, 100)  # together they may cost less than their sum


def test_a_query_that_was_canceled_elsewhere_says_so() -> None:
    canceled = httpx2.Response(200, json={"id": "a1", "state": "cancelled", "release": None})
    with pytest.raises(LedgerError, match="HB320"):
        session(Script(JOB, canceled)).query(COUNT, epsilon="0.1")
