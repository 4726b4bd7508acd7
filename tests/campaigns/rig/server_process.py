"""A real `hubbub serve` in its own process on a free port, and HTTP clients for it.

The process is spawned (`SpawnedServer`), or forked from one with everything imported (`ForkedServer`), which makes a
thousand starts cheap; both run the same command.
"""

import http.client
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_context = multiprocessing.get_context("forkserver")

READY = 60.0  # timeout in seconds for a server that does not respond
IDLE = 2.0  # maximum idle time in seconds before reconnecting: the server closes idle connections after five


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def arguments(config: Path, port: int) -> list[str]:
    """Return the arguments of the command that starts a server."""
    return ["serve", "--config", str(config), "--port", str(port)]


class SpawnedServer:
    """A server started as an operator would start it."""

    def __init__(self, config: Path, port: int, **environment: str) -> None:
        self._log = (config.parent / f"server-{port}.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hubbub", *arguments(config, port)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=os.environ | environment,
        )

    def running(self) -> bool:
        """Return whether the process is running."""
        return self._process.poll() is None

    def end(self, how: signal.Signals) -> int:
        """Send a signal, wait for the process to end, and return its exit code."""
        if self.running():
            self._process.send_signal(how)
        code = self._process.wait(60)
        self._log.close()
        return code


def _forked(config: Path, port: int, before: Callable[[], None] | None) -> None:
    log = os.open(config.parent / f"server-{port}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    from hubbub.cli import main

    if before is not None:
        before()
    sys.exit(main(arguments(config, port)))


class ForkedServer:
    """A server forked from a process with all imports done; `before` can break something first."""

    def __init__(self, config: Path, port: int, before: Callable[[], None] | None = None) -> None:
        self._process: BaseProcess = _context.Process(target=_forked, args=(config, port, before), daemon=True)
        self._process.start()

    def running(self) -> bool:
        """Return whether the process is running."""
        return self._process.is_alive()

    def end(self, how: signal.Signals) -> int:
        """Send a signal, wait for the process to end, and return its exit code."""
        if self.running() and self._process.pid is not None:
            os.kill(self._process.pid, how)
        self._process.join(60)
        return self._process.exitcode or 0


def prepare() -> None:
    """Start the process that servers are forked from, with all modules imported."""
    _context.set_forkserver_preload(["tests.campaigns.rig.server_process", "hubbub.cli.service", "hubbub.server.app"])


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Parse the body."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class Caller:
    """A client with one connection, which is reopened after errors. Not thread-safe."""

    def __init__(self, port: int, token: str | None = None, *, patience: float = 60.0) -> None:
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
        self._used = time.monotonic()

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Send one request; raise OSError or HTTPException if the server disappears."""
        sent = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if time.monotonic() - self._used > IDLE:
            self._connection.close()
        try:
            self._connection.request(method, path, sent, self._headers | named)
            response = self._connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        except BaseException:
            self._connection.close()
            raise
        finally:
            self._used = time.monotonic()

    def query(self, body: object, key: str) -> Reply:
        """Run a query with an idempotency key."""
        return self.ask("POST", "/api/v1/query", body, Idempotency_Key=key)

    def estimate(self, body: object) -> Reply:
        """Request an estimate."""
        return self.ask("POST", "/api/v1/estimate", body)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def await_ready(port: int, server: SpawnedServer | ForkedServer) -> float:
    """Wait until /readyz succeeds; return the seconds it took."""
    begun = time.perf_counter()
    caller = Caller(port, patience=5)
    try:
        while time.perf_counter() - begun < READY:
            try:
                if caller.ask("GET", "/readyz").status == 200:
                    return time.perf_counter() - begun
            except (OSError, http.client.HTTPException):
                pass
            if not server.running():
                raise RuntimeError("the server ended by itself; see its log")
            time.sleep(0.01)
    finally:
        caller.close()
    raise TimeoutError(f"the server was not ready after {READY} s")
