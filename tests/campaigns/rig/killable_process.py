"""A process that is killed at a random time or right before a given system call, or whose system call fails.

Processes are forked from a single-threaded process with everything imported, so that ten thousand of them are cheap.
strace kills before a call: the call has begun and has had no effect.
"""

import multiprocessing
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Concatenate, ParamSpec

P = ParamSpec("P")
_context = multiprocessing.get_context("forkserver")
_FAILED = re.compile(rb"(\d+\.\d+) [^\n]*\(INJECTED\)")


class Messenger:
    """Sends lines to the parent; a line counts once it has left the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self, line: str) -> None:
        data = line.encode() + b"\n"
        if os.write(self._descriptor, data) != len(data):
            raise OSError("a line was cut short")


def prepare(*modules: str) -> None:
    """Start the process that others are forked from, with these modules imported."""
    _context.set_forkserver_preload(list(modules))


def _live(body: Callable[..., None], gate: Connection, lines: Connection, *args: object) -> None:
    gate.recv()
    body(Messenger(lines.fileno()), *args)


class KillableProcess:
    """A forked process; it starts its work at `go()`."""

    def __init__(self, body: Callable[Concatenate[Messenger, P], None], *args: P.args, **_: P.kwargs) -> None:
        theirs, self._gate = _context.Pipe(duplex=False)
        self._lines, lines = _context.Pipe(duplex=False)
        self._process = _context.Process(target=_live, args=(body, theirs, lines, *args), daemon=True)
        self._process.start()
        theirs.close()
        lines.close()
        self._strace: subprocess.Popen[bytes] | None = None
        self.killed = False
        self.failed_at: float | None = None

    def kill_before(self, call: str, *, when: int, path: Path | None = None) -> None:
        """Kill it right before the n-th such call (on that file)."""
        self._inject(call, "signal=KILL", when, path)

    def fail(self, call: str, error: str, *, when: int, path: Path) -> None:
        """Let the n-th such call on that file fail; `failed_at` is the time of the failure."""
        self._inject(call, f"error={error}", when, path)

    def _inject(self, call: str, what: str, when: int, path: Path | None) -> None:
        where = [] if path is None else ["-P", str(path)]
        self._strace = subprocess.Popen(
            [
                "strace",
                "-f",
                "-ttt",
                "-p",
                str(self._process.pid),
                *where,
                "-e",
                "signal=none",
                "-e",
                f"trace={call}",
                "-e",
                f"inject={call}:{what}:when={when}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if self._strace.stderr is None or b"attached" not in self._strace.stderr.readline():
            raise RuntimeError("strace could not attach: ptrace must be allowed here")

    def go(self) -> None:
        """Start the work."""
        self._gate.send(None)

    def finish(self, *, within: float, kill: bool) -> list[str]:
        """Return all lines it sent; kill it after `kill` seconds, or require that it ends by itself."""
        heard = bytearray()
        deadline = time.monotonic() + within
        while select.select([self._lines], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = os.read(self._lines.fileno(), 65536)
            if not data:
                break
            heard += data
        else:
            self._process.kill()
            while data := os.read(self._lines.fileno(), 65536):
                heard += data
            if not kill:
                raise TimeoutError(f"a victim did not finish in {within} s; it said {bytes(heard[-300:])!r}")
        self._process.join()
        if self._strace is not None:
            made = _FAILED.search(self._strace.communicate()[1])
            self.failed_at = float(made[1]) if made else None
        self._lines.close()
        self._gate.close()
        self.killed = self._process.exitcode == -signal.SIGKILL
        if not self.killed and self._process.exitcode != 0:
            raise RuntimeError(f"a victim failed by itself (exit {self._process.exitcode})")
        return heard.decode().splitlines()
