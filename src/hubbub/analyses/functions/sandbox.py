"""Running a stranger's function on one block after another, each for a fixed time, with nothing in reach.

The other side of this is `cell.py`, which says how it is locked.
"""

import ast
import inspect
import json
import math
import os
import pickle
import platform
import select
import socket
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from hubbub.errors import ParameterError

_CELL = Path(__file__).with_name("sandbox_worker.py")
_MACHINES = ("x86_64", "aarch64")
_START = 60.0  # seconds that libraries may take to load
_GRACE = 10.0
_MARGIN = 0.1  # seconds after the function's time in which its process is taken away
_LONGEST = 100_000

#: What a lock is tried with: computing must work, and each of these must not.
_PROBE = """
def probe(rows):
    import os, socket
    attempts = (
        lambda: open("/proc/self/status"), lambda: open("/tmp/hubbub-probe", "w"), lambda: socket.socket(),
        lambda: os.fork(), lambda: os.kill(os.getpid(), 0), lambda: os.listdir("/"), lambda: os.execv("/bin/sh", ["t"]),
    )
    denied = 0
    for attempt in attempts:
        try:
            attempt()
        except OSError:
            denied += 1
    return [denied, float(np.linalg.det(np.eye(3)) + rows["x"].sum())]
"""
_PROBED = (7.0, 4.0)


@dataclass(frozen=True, slots=True)
class Code:
    """The text of a function and its name: what runs, and what the ledger names by its hash."""

    text: str
    name: str

    @property
    def hash(self) -> str:
        """The text's hash."""
        return sha256(self.text.encode()).hexdigest()

    @classmethod
    def of(cls, function: Callable[..., Any] | str) -> Self:
        """Take a text that defines `f`, or a function that stands by itself: it travels as its text.

        >>> Code.of("def f(rows): return rows['age'].mean()").name
        'f'
        """
        if isinstance(function, str):
            text, name = function, "f"
        else:
            name = getattr(function, "__name__", "")
            try:
                text = textwrap.dedent(inspect.getsource(function))
            except (OSError, TypeError):
                raise _refused("its text cannot be found") from None
            if inspect.getclosurevars(function).nonlocals:
                raise _refused("it uses variables of the function around it")
        if len(text) > _LONGEST:
            raise _refused(f"its text has more than {_LONGEST} characters")
        try:
            defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        except SyntaxError:
            raise _refused("it is not a text of Python") from None
        if name not in defined:
            raise _refused(f"it does not define a function called {name!r}")
        return cls(text, name)


def _refused(why: str) -> ParameterError:
    return ParameterError(
        "HB191",
        f"this function cannot be run by itself: {why}.",
        "Give a `def` whose imports are inside, or a text that defines f(rows).",
    )


class Sandbox:
    """A process that runs one function on blocks, one after the other. Start it, then `run`; close it.

    Theorem (A block sees itself alone). What `run` gives depends on the rows that it is handed, on the function, and on
    randomness and time that are independent of other blocks' rows.
    Proof    Each run is a child of a process that holds libraries and no rows; the child gets one block, and a filter
             of system calls under which it can neither reach a file, a socket or another process, nor leave anything
             behind but its answer. Blocks run one after the other, each for the same time, and the answer is cut to a
             fixed number of doubles; whatever it is, the caller clamps it.
    Assumes  Linux keeps its filter. Traces in the processor's caches are not hidden (docs/known-limits.md).
    Tested   tests/analyses/functions/test_sandbox.py::test_a_hostile_function_gives_nothing_and_reaches_nothing
             tests/analyses/functions/test_sandbox.py::test_no_block_finds_another_blocks_rows_in_memory
             tests/analyses/functions/test_sandbox.py::test_a_run_takes_the_same_time_whatever_the_function_does
    """

    def __init__(
        self, code: Code, *, outputs: int, seconds: float, memory: int = 1024, imports: Sequence[str] = ()
    ) -> None:
        """Start the process and try its lock; refuse where there is none. Memory is in megabytes, for each block."""
        if sys.platform != "linux" or platform.machine() not in _MACHINES:
            raise _unlocked()
        self._outputs, self._seconds = outputs, seconds
        functions = {
            "probe": {"text": _PROBE, "name": "probe", "outputs": 2, "seconds": _GRACE},
            "own": {"text": code.text, "name": code.name, "outputs": outputs, "seconds": seconds},
        }
        self._cell = _Cell({"memory": memory << 20, "imports": list(imports), "functions": functions})
        try:
            rows = {"x": np.array([1.0, 2.0])}
            if self._cell.run("probe", rows, outputs=2, seconds=_GRACE, wait=False) != _PROBED:
                raise _unlocked()
        except BaseException:
            self.close()
            raise

    def run(self, rows: Mapping[str, Any]) -> tuple[float, ...] | None:
        """Run the function on one block, for exactly the given time; give its finite numbers, or None."""
        return self._cell.run("own", rows, outputs=self._outputs, seconds=self._seconds, wait=True)

    def close(self) -> None:
        """End the process."""
        self._cell.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Cell:
    """The process of one `cell.py`."""

    def __init__(self, order: Mapping[str, object]) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                    [sys.executable, "-I", "-B", str(_CELL), str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=settings,
                    cwd="/",
                    start_new_session=True,
                )
        except OSError:
            self._channel.close()
            raise _unlocked() from None
        try:
            self._channel.settimeout(_START)
            self._channel.send(json.dumps(order).encode())
            if self._channel.recv(16) != b"R":
                raise _unlocked()
        except OSError:
            self.close()
            raise _unlocked() from None
        except BaseException:
            self.close()
            raise

    def run(
        self, name: str, rows: Mapping[str, Any], *, outputs: int, seconds: float, wait: bool
    ) -> tuple[float, ...] | None:
        """Run one block. With `wait`, the time is used up whatever happens."""
        end = time.monotonic() + seconds
        inlet, outlet = os.pipe()
        given = os.memfd_create("block", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(given), "wb") as file:
                pickle.dump(dict(rows), file)
            os.lseek(given, 0, os.SEEK_SET)
            socket.send_fds(self._channel, [name.encode()], [given, outlet])
            os.close(outlet)
            outlet = -1
            found = _read(inlet, 8 * outputs, end)
            if wait:
                _sleep_until(end)
            self._channel.settimeout(_GRACE)
            self._channel.send(b"K")
            self._channel.recv(16)
            if wait:
                _sleep_until(end + _MARGIN)
        finally:
            for each in (inlet, outlet, given):
                if each >= 0:
                    os.close(each)
        numbers = struct.unpack(f"{outputs}d", found) if len(found) == 8 * outputs else None
        return numbers if numbers is not None and all(map(math.isfinite, numbers)) else None

    def close(self) -> None:
        self._channel.close()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _read(inlet: int, size: int, end: float) -> bytes:
    """Read up to so many bytes, until then."""
    found = b""
    while len(found) < size:
        ready, _, _ = select.select([inlet], [], [], max(0.0, end - time.monotonic()))
        part = os.read(inlet, size - len(found)) if ready else b""
        if not part:
            break
        found += part
    return found


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _unlocked() -> ParameterError:
    return ParameterError(
        "HB192",
        "a function of somebody else cannot be shut in on this machine.",
        "It takes Linux on x86-64 or ARM64, with filters of system calls (seccomp). Nothing was run or charged.",
    )
