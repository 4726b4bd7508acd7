"""Run one study, of an attack or of a crowd sanitizer, in a separate process; `study_worker.py` is the other side.

The child knows only its order: its environment contains no configuration, ledger, address or secret. Its private folder
is in an in-memory file system and is deleted when the study ends, so an uploaded table is never written to disk. The
child is limited in memory and time, and is killed with all of its children when its time is up or it is canceled.

Tested in tests/server/test_attack_lab.py.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from hubbub.attacks.base import Progress
from hubbub.errors import AttackError

T = TypeVar("T")

PROGRAM = ("-m", "hubbub.attacks.study_worker")
_LINE = 1 << 20  # bytes of a study as JSON
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a private folder is created there


class StudyProcess:
    """A process that runs one study. Call `run` once; `kill` works from any thread, before or during the run."""

    def __init__(self, *, seconds: float, memory: int, program: Sequence[str] = PROGRAM) -> None:
        self._seconds, self._memory, self._program = seconds, memory, program
        self._process: subprocess.Popen[bytes] | None = None
        self._mutex = threading.Lock()
        self._killed = self._late = False

    def run(self, order: Mapping[str, Any], report: Progress, read: Callable[[Mapping[str, Any]], T]) -> T:
        """Run the order and read its result. The process and its folder are removed in every case."""
        folder = tempfile.mkdtemp(prefix="hubbub-lab-", dir=_folder_location(uploaded=order["csv"] is not None))
        limits = {"memory": self._memory, "seconds": int(self._seconds) + 10}
        try:
            with _start(self._program, folder) as process:
                study = self._supervise(process, {**order, **limits}, report, read)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if study is not None:
            return study
        if self._late:
            raise AttackError(
                "HB649", f"The study exceeded {self._seconds:g} s and was stopped.", "Use smaller settings."
            )
        raise no_result_error()

    def kill(self) -> None:
        """Kill the process and all of its children."""
        with self._mutex:
            self._killed = True
            # until it is waited for, its process ID cannot be reused
            if self._process is not None and self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def _supervise(
        self,
        process: "subprocess.Popen[bytes]",
        order: Mapping[str, Any],
        report: Progress,
        read: Callable[[Mapping[str, Any]], T],
    ) -> T | None:
        with self._mutex:
            self._process, killed = process, self._killed
        if killed:
            self.kill()
        timer = threading.Timer(self._seconds, self._end)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                _send(process.stdin, order)
            return _listen(process.stdout, report, read)
        finally:
            timer.cancel()
            self.kill()
            with self._mutex:
                self._process = None
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # it may have been killed before it read everything
                    process.stdin.close()

    def _end(self) -> None:
        self._late = True
        self.kill()


def _start(program: Sequence[str], folder: str) -> "subprocess.Popen[bytes]":
    """Start the process in its own session, with an environment that has only its folder and one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return subprocess.Popen(  # noqa: S603 - our own program, no shell
        [sys.executable, "-I", "-B", "-X", "utf8", *program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={"TMPDIR": folder, "HOME": folder, **threads},
        start_new_session=True,
        umask=0o077,
    )


def _send(inlet: IO[bytes] | None, order: Mapping[str, Any]) -> None:
    if inlet is not None:
        inlet.write(json.dumps(order).encode() + b"\n")
        inlet.flush()  # stays open: end of file tells the child that this process is gone


def _listen(outlet: IO[bytes] | None, report: Progress, read: Callable[[Mapping[str, Any]], T]) -> T | None:
    """Report the child's progress until it sends its study or an error, or closes its output."""
    while outlet is not None and (line := outlet.readline(_LINE)):
        try:
            message = json.loads(line)
            if "study" in message:
                return read(message["study"])
            if "progress" in message:
                done, step = message["progress"]
                report(min(1.0, max(0.0, float(done))), str(step)[:200])
                continue
            code, problem, remedy = map(str, message["problem"])
        except (ValueError, KeyError, TypeError):
            return None
        raise AttackError(code, problem, remedy)
    return None


def _folder_location(*, uploaded: bool) -> Path | None:
    """Return where to create the folder: in memory. Without an in-memory file system, uploads are rejected."""
    if _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK):
        return _IN_MEMORY
    if uploaded:
        raise AttackError(
            "HB645",
            "This server has no in-memory file system, so it cannot keep an uploaded table off its disk.",
            "Run the attack on your own machine with `hubbub attack NAME table.csv`.",
        )
    return None


def no_result_error() -> AttackError:
    """Return the error for a study that ended without a result."""
    return AttackError("HB648", "The study ended without a result.", "Use smaller settings and run it again.")
