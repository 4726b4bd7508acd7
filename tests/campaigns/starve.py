"""One analyst tries to stop the others: 64 hostile clients against a real server, while another analyst works.

The hostile clients hold one analyst's token and do what costs no budget or next to none: estimates of the heaviest
calls and queries that pass the static bounds, nested queries, bodies that come byte by byte, connections that are
closed before the answer, sign-ins without end, and as many real queries as the line takes. Meanwhile another analyst
estimates, asks, signs in, and a monitor asks /readyz: 99 of 100 of each are answered within a second.

The campaign has an error planted too: a server without separate threads, where everybody's blocking work shares one
pool. It must be caught. Everything stays on this machine, and ends by itself.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.starve
"""

import http.client
import json
import multiprocessing
import os
import random
import re
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from urllib.parse import urlencode

from tests.campaigns.frame import Report, run
from tests.fixtures.server_config import ServerFolder
from tests.fixtures.server_process import Caller, ForkedServer, await_ready, free_port, prepare

CLIENTS = 64
BOUND = 1.0  # seconds that 99 of 100 answers take at most
_BUSY = 1.5  # a thread that takes so much longer shares its core with others
LATE = 30.0  # seconds after which an answer counts as never given
_CSRF = re.compile(rb'name="csrf" value="([^"]+)"')

Hostile = Callable[[int, str, random.Random], None]


def ranges(port: int, token: str, chance: random.Random) -> None:
    """Estimate a call whose strategy nobody has searched for yet."""
    bins, workload = chance.randint(300, 1024), chance.choice(("ranges", "prefixes"))
    text = f"CALL ranges(table => 'visits', column => {{'column': 'age', 'bins': {bins}}}, workload => '{workload}')"
    _ask(port, token, "/api/v1/estimate", {"sql": text, "epsilon": "0.1"})


def large(port: int, token: str, chance: random.Random) -> None:
    """Estimate a query of nearly ten thousand words, or one whose keys have many combinations."""
    numbers = ", ".join(str(chance.randint(0, 10**6)) for _ in range(4500))
    texts = (
        f"SELECT ward, COUNT(*) FROM visits WHERE age IN ({numbers}) GROUP BY ward",
        "SELECT CAST(floor(age * 800) AS INTEGER) % 90000 AS k, COUNT(*) FROM visits GROUP BY 1",
        f"SELECT ward, SUM({' + '.join(f'CASE WHEN age > {n} THEN age ELSE {n} END' for n in range(700))}) FROM visits"
        " GROUP BY ward",
    )
    _ask(port, token, "/api/v1/estimate", {"sql": chance.choice(texts), "epsilon": "0.1"})


def nested(port: int, token: str, chance: random.Random) -> None:
    """Estimate expressions over released answers that double at each level."""
    step = chance.choice(("t + t", "1 / t", "CASE WHEN t > 1 THEN t ELSE -t END"))
    levels = [f"a{n} AS (SELECT {step} AS t FROM a{n - 1})" for n in range(1, chance.randint(10, 40))]
    text = f"WITH a0 AS (SELECT COUNT(*) AS t FROM visits), {', '.join(levels)} SELECT t FROM a{len(levels)}"
    _ask(port, token, "/api/v1/estimate", {"sql": text, "epsilon": "0.1"})


def queries(port: int, token: str, chance: random.Random) -> None:
    """Ask for heavy releases at a tiny price."""
    bins = chance.randint(300, 1024)
    text = f"CALL ranges(table => 'visits', column => {{'column': 'age', 'bins': {bins}}})"
    _ask(port, token, "/api/v1/query", {"sql": text, "epsilon": "0.0001"}, Idempotency_Key=str(chance.getrandbits(64)))


def slow(port: int, token: str, chance: random.Random) -> None:
    """Send a body byte by byte."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as held:
        held.sendall(_head(token, 100_000))
        for _ in range(chance.randint(1, 40)):
            held.sendall(b"x")
            time.sleep(0.05)


def hung_up(port: int, token: str, chance: random.Random) -> None:
    """Ask for something heavy, and do not wait for it."""
    bins = chance.randint(300, 1024)
    text = f"CALL ranges(table => 'visits', column => {{'column': 'age', 'bins': {bins}}}, workload => 'prefixes')"
    body = json.dumps({"sql": text, "epsilon": "0.1"}).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as held:
        held.sendall(_head(token, len(body)) + body)
        time.sleep(chance.random() / 10)


def sign_in(port: int, token: str, _: random.Random | None = None) -> None:
    """Sign in with a token, as a browser does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LATE)
    try:
        connection.request("GET", "/sign-in")
        page = connection.getresponse()
        cookie = (page.getheader("Set-Cookie") or "").partition(";")[0]
        csrf = _CSRF.search(page.read())
        if page.status != 200 or csrf is None:
            raise ConnectionError(f"the page to sign in has the status {page.status}")
        form = urlencode({"token": token, "csrf": csrf[1].decode(), "next": "/"})
        headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/sign-in", form, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 303:
            raise ConnectionError(f"signing in has the status {answer.status}")
    finally:
        connection.close()


_HOSTILE: tuple[Hostile, ...] = (ranges, ranges, large, nested, queries, slow, hung_up, sign_in)


def _ask(port: int, token: str, path: str, body: Mapping[str, str], **headers: str) -> None:
    caller = Caller(port, token, patience=LATE)
    try:
        caller.ask("POST", path, body, **headers)
    finally:
        caller.close()


def _head(token: str, length: int) -> bytes:
    return (
        f"POST /api/v1/estimate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def besiege(port: int, token: str, seconds: float, begun: Event) -> None:
    """Be hostile with all clients, in a process of their own, for so long; say when all have begun."""
    until = time.monotonic() + seconds

    def client(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < until:
            with suppress(OSError, http.client.HTTPException):
                _HOSTILE[number % len(_HOSTILE)](port, token, chance)

    threads = [threading.Thread(target=client, args=[number], daemon=True) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    begun.set()
    time.sleep(max(0.0, until - time.monotonic()))


class Victim:
    """Another analyst, and a monitor: each kind of request again and again, each with the time that it took."""

    def __init__(self, town: ServerFolder, port: int) -> None:
        self._port, self._token = port, town.tokens["ben"]
        self._town = town
        self._asked = 0
        self.taken: dict[str, list[float]] = {}
        self.failed: Counter[str] = Counter()

    def work(self, until: float) -> None:
        """Work until then, on each kind at the same time."""
        kinds: dict[str, Callable[[], None]] = {
            "estimate": self._estimate,
            "query": self._query,
            "sign-in": self._sign_in,
            "readyz": self._readyz,
        }
        threads = [threading.Thread(target=self._repeat, args=[name, kind, until]) for name, kind in kinds.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _repeat(self, name: str, kind: Callable[[], None], until: float) -> None:
        taken = self.taken.setdefault(name, [])
        while time.monotonic() < until:
            begun = time.monotonic()
            try:
                kind()
            except (OSError, http.client.HTTPException):
                self.failed[name] += 1
            taken.append(time.monotonic() - begun)
            time.sleep(0.02)

    def _expect(self, status: int, caller: Caller, *request: object, **headers: str) -> None:
        try:
            found = caller.ask(*request, **headers)  # type: ignore[arg-type]
            if found.status != status:
                raise ConnectionError(f"status {found.status}")
        finally:
            caller.close()

    def _estimate(self) -> None:
        body = self._town.question(1, own_key=False)
        self._expect(200, Caller(self._port, self._token, patience=LATE), "POST", "/api/v1/estimate", body)

    def _query(self) -> None:
        self._asked += 1
        body, key = self._town.question(self._asked, own_key=False), f"ben-{self._asked}"
        caller = Caller(self._port, self._token, patience=LATE)
        self._expect(200, caller, "POST", "/api/v1/query", body, Idempotency_Key=key)

    def _sign_in(self) -> None:
        sign_in(self._port, self._token)

    def _readyz(self) -> None:
        self._expect(200, Caller(self._port, patience=LATE), "GET", "/readyz")


def shared() -> None:
    """Break the server: all blocking work, of whatever kind and whoever asks, shares one pool of threads."""
    import anyio.to_thread

    from hubbub.server.free_pool import FreePool, ReservedThreads

    async def in_turn(
        _: object, __: object, ___: object, call: Callable[..., object], /, *args: object, **options: object
    ) -> object:
        return await through(None, call, *args, **options)

    async def through(_: object, call: Callable[..., object], /, *args: object, **options: object) -> object:
        return await anyio.to_thread.run_sync(partial(call, *args, **options))

    async def of_owner(_: object, __: str, call: Callable[..., object], /, *args: object, **options: object) -> object:
        return await through(None, call, *args, **options)

    FreePool.run = in_turn  # type: ignore[method-assign,assignment]
    ReservedThreads.authenticate = ReservedThreads.sign_in = of_owner  # type: ignore[method-assign,assignment]
    ReservedThreads.health = through  # type: ignore[method-assign,assignment]


def siege(folder: Path, seconds: float, before: Callable[[], None] | None = None) -> Victim:
    """Serve, besiege, and let somebody else work."""
    town = ServerFolder(folder, workers=4)
    port = free_port()
    server = ForkedServer(town.config, port, before)
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    crowd = context.Process(target=besiege, args=(port, town.tokens["ana"], seconds + LATE, begun))
    try:
        await_ready(port, server)
        Victim(town, port).work(time.monotonic() + 0.5)  # what is imported at its first use is not measured
        crowd.start()
        if not begun.wait(60):
            raise TimeoutError("the hostile clients did not begin")
        time.sleep(1)
        victim = Victim(town, port)
        victim._asked = 1000
        victim.work(time.monotonic() + seconds)
        return victim
    finally:
        if crowd.pid is not None:
            crowd.kill()
            crowd.join()
        server.end(signal.SIGKILL)


def slowdown() -> float:
    """Give how much longer than alone a thread takes on this machine now: what others run on it is not our doing."""
    begun, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < 0.5:
        pass
    return max(1.0, (time.monotonic() - begun) / 0.5)


def within(taken: list[float], share: int) -> float:
    """Give the time within which so many of 100 were answered."""
    return sorted(taken)[max(0, -(-share * len(taken) // 100) - 1)]


def body(report: Report) -> None:
    """Run both servers. Where others want the cores too, seconds say more about them: then the two are compared.

    Beside other tests they always do, whatever a first look says.
    """
    prepare()
    factor = slowdown()
    report.figure("slowdown by others", round(factor, 2))
    alone = factor < _BUSY and "PYTEST_XDIST_WORKER" not in os.environ
    with tempfile.TemporaryDirectory() as folder:
        victim = siege(Path(folder) / "right", float(report.scale(ci=4, full=120)))
        planted = siege(Path(folder) / "planted", float(report.scale(ci=3, full=20)), shared)
    for name, taken in victim.taken.items():
        report.figure(f"{name}: answers", len(taken))
        report.figure(f"{name}: p50, s", round(within(taken, 50), 3))
        if alone:
            report.target(f"{name}: p99, s", round(within(taken, 99), 3), at_most=BOUND)
        else:
            report.figure(f"{name}: p99, s", round(within(taken, 99), 3))
    right, wrong = (max(within(taken, 99) for taken in each.taken.values()) for each in (victim, planted))
    report.figure("failed", sum(victim.failed.values()))
    report.figure("planted: failed", sum(planted.failed.values()))
    report.figure("planted: worst p99, s", round(wrong, 3))
    # an answer that never came counts as LATE, so on a very busy machine the planted error cannot look much worse
    most = 0.67 if alone else 0.9
    report.target("worst p99 beside that with the planted error", round(right / wrong, 3), at_most=most)
    report.target("planted error is caught", float(wrong > BOUND), at_least=1)


if __name__ == "__main__":
    run(body)
