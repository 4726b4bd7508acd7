"""A real server whose jobs are canceled by DELETE, and which is killed, while a charge runs."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.analyses.conftest import EXAMPLES, IN_ADVANCE
from tests.campaigns.frame import Report
from tests.campaigns.rig.interrupted_runs import RunTrace
from tests.fixtures.neighboring_data import _town
from tests.fixtures.server_config import issue
from tests.fixtures.server_process import Caller, ForkedServer, await_ready, free_port, prepare

from hubbub.errors import RunError
from hubbub.noise.source import RandomSource, Words

#: Duration of a statement in seconds, so that a DELETE arrives while it runs.
SLOWLY = 0.05
PATIENCE = 60.0
_SERVER = "server: {quantum: 0, workers: 3, queue: 16, per_minute: 1000000}\n"


class Noted:
    """The random words of a run, recorded as they are used."""

    def __init__(self, source: RandomSource, note: Callable[[str, str], None]) -> None:
        self._source, self._note = source, note

    def words(self, count: int) -> Words:
        found = self._source.words(count)
        self._note("words", sha256(found.tobytes()).hexdigest())
        return found


def plant(folder: Path) -> None:
    """In the server: log each step of a run, and make statements slow and interruptible."""
    from hubbub.curator import draws
    from hubbub.engines.duckdb.connection import DuckDBEngine
    from hubbub.server.query_pool import Job

    own = threading.local()
    stopped: set[int] = set()
    begin, ask, interrupt, advance = draws.Draws.begin, DuckDBEngine.run, DuckDBEngine.interrupt, Job.advance

    def note(kind: str, what: str) -> None:
        os.write(own.file, f"{kind} {what}\n".encode())

    def began(self: Any, *rest: Any) -> Any:
        stopped.discard(threading.get_ident())
        number = f"{time.time_ns()}-{os.getpid()}-{threading.get_ident()}"
        own.file = os.open(folder / f"run-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        found = begin(self, *rest)
        return None if found is None else draws.Draw(Noted(found.source, note), found.retried)

    def slow(self: Any, sql: str) -> Any:
        note("statement", sha256(sql.encode()).hexdigest()[:16])
        end = time.monotonic() + SLOWLY
        while time.monotonic() < end:
            if threading.get_ident() in stopped:
                raise RunError
            time.sleep(0.005)
        return ask(self, sql)

    def stop(self: Any, caller: int | None = None) -> None:
        if caller is not None:
            stopped.add(caller)
        interrupt(self, caller)

    def step(self: Any, done: float, what: str) -> None:
        note("step", f"{done} {what}")
        advance(self, done, what)

    draws.Draws.begin = began  # type: ignore[method-assign, assignment]
    DuckDBEngine.run = slow  # type: ignore[method-assign]
    DuckDBEngine.interrupt = stop  # type: ignore[method-assign]
    Job.advance = step  # type: ignore[method-assign]


class Served:
    """Successive servers on one ledger, and the logs of their runs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        _town(folder, "add_remove", 0)
        self.config = folder / "hubbub.yaml"
        self.config.write_text(self.config.read_text() + _SERVER)
        self.folder = folder
        self.token = issue(self.config, {"ana": "analyst"})["ana"]
        self.stops = 0
        self._tries = 0

    @contextmanager
    def server(self) -> Iterator[tuple[ForkedServer, Caller]]:
        port = free_port()
        server = ForkedServer(self.config, port, partial(plant, self.folder))
        await_ready(port, server)
        caller = Caller(port, self.token)
        try:
            yield server, caller
        finally:
            caller.close()
            server.end(signal.SIGTERM)

    def runs(self) -> list[RunTrace]:
        """Read the logs of the runs, oldest first."""
        found = []
        for path in sorted(self.folder.glob("run-*")):
            lines = [tuple(line.split(" ", 1)) for line in path.read_text().splitlines()]
            found.append(RunTrace(events=[(kind, what) for kind, what in lines]))
        return found

    def begin(self, caller: Caller, body: dict[str, str], events: int) -> str:
        """Start a new job and wait until its run has reached this step; return the URL of the job."""
        before = len(self.runs())
        self._tries += 1
        headers = {"Idempotency_Key": f"try-{self._tries}", "Prefer": "respond-async"}
        reply = caller.ask("POST", "/api/v1/query", body, **headers)
        place = reply.headers.get("location") or reply.headers["Location"]
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            runs = self.runs()
            if len(runs) > before and len(runs[-1].events) >= events:
                return place
            if caller.ask("GET", place).json()["state"] in ("done", "failed"):
                return place
            time.sleep(0.005)
        raise TimeoutError("the run never came so far")

    def await_end(self) -> None:
        """Wait until the last run has stopped."""
        seen = -1
        while seen != (seen := sum(len(run.events) for run in self.runs())):
            time.sleep(4 * SLOWLY)


def served(report: Report, folder: Path) -> tuple[list[str], int]:
    """Cancel jobs and kill servers; return the runs that differ, and the number of interruptions."""
    prepare()
    own = Served(folder)
    broken: list[str] = []
    names = sorted(set(EXAMPLES) - IN_ADVANCE) if report.full else ["decision_tree"]
    for name in report.progress(names, "cancelled and killed over HTTP"):
        body = {"sql": EXAMPLES[name], "epsilon": "0.5"}
        done = len(own.runs())
        for stop in range(1, 12, 2) if report.full else (2, 4):
            with own.server() as (server, caller):
                place = own.begin(caller, body, stop)
                caller.ask("DELETE", place)
                own.await_end()
                own.begin(caller, body, stop + 1)
                server.end(signal.SIGKILL)
                own.stops += 2
        with own.server() as (_, caller):
            try:
                reply = caller.query(body, f"last {name}")
            except (OSError, HTTPException) as error:
                broken.append(f"{name}: {error}")
                continue
            again = caller.query(body, f"again {name}")
            if (reply.status, again.status) != (200, 200) or reply.json()["answer"] != again.json()["answer"]:
                broken.append(f"{name}: it ended with {reply.status} and {again.status}")
        tries = [each for each in own.runs()[done:] if each.events]
        whole = max(tries, key=lambda each: len(each.events))
        broken += [f"{name} over HTTP: a try went another way" for each in tries if not each.begins(whole)]
        if not whole.drawn or len(tries) < 2:
            broken.append(f"{name} over HTTP: nothing was drawn or stopped")
    return broken, own.stops
