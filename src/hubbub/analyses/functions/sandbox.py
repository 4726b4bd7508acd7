"""Sandbox: run an untrusted function on blocks of rows, isolated and each for a fixed time.

`sandbox_worker.py` is the isolated process; its docstring describes the isolation.
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

_WORKER = Path(__file__).with_name("sandbox_worker.py")
_MACHINES = ("x86_64", "aarch64")
_START = 60.0  # seconds to load the libraries
_GRACE = 10.0
_MARGIN = 0.1  # seconds after the function's time to end its process
_MAX_LENGTH = 100_000

#: Tests the isolation: computing must work, and each of these attempts must fail.
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
_PROBE_RESULT = (7.0, 4.0)


@dataclass(frozen=True, slots=True)
class Code:
    """The source code of a function and its name; the ledger records the hash."""

    text: str
    name: str

    @property
    def hash(self) -> str:
        """Hash of the source code."""
        return sha256(self.text.encode()).hexdigest()

    @classmethod
    def of(cls, function: Callable[..., Any] | str) -> Self:
        """Accept source code that defines `f`, or a self-contained function, which is sent as source code.

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
                raise _invalid_function("its source code is not available") from None
            if inspect.getclosurevars(function).nonlocals:
                raise _invalid_function("it uses variables of an enclosing function")
        if len(text) > _MAX_LENGTH:
            raise _invalid_function(f"its source code has more than {_MAX_LENGTH} characters")
        try:
            defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        except SyntaxError:
            raise _invalid_function("it is not valid Python") from None
        if name not in defined:
            raise _invalid_function(f"it does not define a function named {name!r}")
        return cls(text, name)


def _invalid_function(reason: str) -> ParameterError:
    return ParameterError(
        "HB191",
        f"The function cannot run in the sandbox: {reason}.",
        "Pass a `def` with its imports inside, or source code that defines f(rows).",
    )


class Sandbox:
    """A process that runs one function on blocks, one after the other. Start it, call `run`, then close it.

    Theorem (A block sees itself alone). The result of `run` depends on the rows that it receives, on the function, and
    on randomness and time that are independent of other blocks' rows.
    Proof    Each run is a child of a process that holds libraries and no rows; the child gets one block, and a filter
             of system calls under which it can neither reach a file, a socket or another process, nor leave anything
             behind but its answer. Blocks run one after the other, each for the same time, and the answer is cut to a
             fixed number of doubles, which the caller clamps.
    Assumes  Linux enforces the filter. Traces in the processor's caches are not hidden (docs/known-limits.md).
    Tested   tests/analyses/functions/test_sandbox.py::test_a_hostile_function_gives_nothing_and_reaches_nothing
             tests/analyses/functions/test_sandbox.py::test_no_block_finds_another_blocks_rows_in_memory
             tests/analyses/functions/test_sandbox.py::test_a_run_takes_the_same_time_whatever_the_function_does
    """

    def __init__(
        self, code: Code, *, outputs: int, seconds: float, memory: int = 1024, imports: Sequence[str] = ()
    ) -> None:
        """Start the process and test its isolation; refuse if it fails. Memory is in megabytes per block."""
        if sys.platform != "linux" or platform.machine() not in _MACHINES:
            raise _unavailable()
        self._outputs, self._seconds = outputs, seconds
        functions = {
            "probe": {"text": _PROBE, "name": "probe", "outputs": 2, "seconds": _GRACE},
            "own": {"text": code.text, "name": code.name, "outputs": outputs, "seconds": seconds},
        }
        self._worker = _Worker({"memory": memory << 20, "imports": list(imports), "functions": functions})
        try:
            rows = {"x": np.array([1.0, 2.0])}
            if self._worker.run("probe", rows, outputs=2, seconds=_GRACE, wait=False) != _PROBE_RESULT:
                raise _unavailable()
        except BaseException:
            self.close()
            raise

    def run(self, rows: Mapping[str, Any]) -> tuple[float, ...] | None:
        """Run the function on one block, for exactly the given time; return its finite numbers, or None."""
        return self._worker.run("own", rows, outputs=self._outputs, seconds=self._seconds, wait=True)

    def close(self) -> None:
        """End the process."""
        self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Worker:
    """The process that runs `sandbox_worker.py`."""

    def __init__(self, order: Mapping[str, object]) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                    [sys.executable, "-I", "-B", str(_WORKER), str(theirs.fileno())],
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
            raise _unavailable() from None
        try:
            self._channel.settimeout(_START)
            self._channel.send(json.dumps(order).encode())
            if self._channel.recv(16) != b"R":
                raise _unavailable()
        except OSError:
            self.close()
            raise _unavailable() from None
        except BaseException:
            self.close()
            raise

    def run(
        self, name: str, rows: Mapping[str, Any], *, outputs: int, seconds: float, wait: bool
    ) -> tuple[float, ...] | None:
        """Run one block. With `wait`, always use up the time."""
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
            answer = _read(inlet, 8 * outputs, end)
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
        numbers = struct.unpack(f"{outputs}d", answer) if len(answer) == 8 * outputs else None
        return numbers if numbers is not None and all(map(math.isfinite, numbers)) else None

    def close(self) -> None:
        self._channel.close()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _read(inlet: int, size: int, end: float) -> bytes:
    """Read up to `size` bytes, until the time `end`."""
    content = b""
    while len(content) < size:
        ready, _, _ = select.select([inlet], [], [], max(0.0, end - time.monotonic()))
        part = os.read(inlet, size - len(content)) if ready else b""
        if not part:
            break
        content += part
    return content


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _unavailable() -> ParameterError:
    return ParameterError(
        "HB192",
        "This machine cannot isolate an untrusted function. Nothing was run or charged.",
        "Use Linux on x86-64 or ARM64 with seccomp filters.",
    )
