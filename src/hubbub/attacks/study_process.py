"""Run one study in a separate process; `study_worker.py` is the other side.

The child knows only its order: its environment contains no configuration, ledger, address or secret. Its private folder
is in an in-memory file system and is deleted when the study ends, so an uploaded table is never written to disk. The
child is limited in memory and time, and is killed with all of its children when its time is up or it is canceled.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from hubbub.attacks.base import AttackStudy, Progress
from hubbub.errors import AttackError

PROGRAM = ("-m", "hubbub.attacks.study_worker")
_LINE = 1 << 20  # bytes of a study as JSON
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made there, for us alone


class Child:
    """A process that makes one study. `run` it once; `kill` it from any thread, before or while it runs."""

    def __init__(self, *, seconds: float, memory: int, program: Sequence[str] = PROGRAM) -> None:
        self._seconds, self._memory, self._program = seconds, memory, program
        self._process: subprocess.Popen[bytes] | None = None
        self._mutex = threading.Lock()
        self._killed = self._late = False

    def run(self, order: Mapping[str, Any], tell: Progress) -> AttackStudy:
        """Run what is ordered; whatever happens, the process and its folder are gone at the end."""
        folder = tempfile.mkdtemp(prefix="hubbub-lab-", dir=_place(sent=order["csv"] is not None))
        limits = {"memory": self._memory, "seconds": int(self._seconds) + 10}
        try:
            with _started(self._program, folder) as process:
                found = self._watched(process, {**order, **limits}, tell)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if found is not None:
            return found
        if self._late:
            raise AttackError(
                "HB649", f"The attack exceeded {self._seconds:g} s and was stopped.", "Use smaller settings."
            )
        raise lost()

    def kill(self) -> None:
        """End it with all that it started."""
        with self._mutex:
            self._killed = True
            # while nobody has waited for it, its number is no other's
            if self._process is not None and self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def _watched(
        self, process: "subprocess.Popen[bytes]", order: Mapping[str, Any], tell: Progress
    ) -> AttackStudy | None:
        with self._mutex:
            self._process, killed = process, self._killed
        if killed:
            self.kill()
        timer = threading.Timer(self._seconds, self._end)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                _send(process.stdin, order)
            return _listen(process.stdout, tell)
        finally:
            timer.cancel()
            self.kill()
            with self._mutex:
                self._process = None
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # of what it did not read before it was killed
                    process.stdin.close()

    def _end(self) -> None:
        self._late = True
        self.kill()


def _started(program: Sequence[str], folder: str) -> "subprocess.Popen[bytes]":
    """Start it: an environment empty but for its folder and one thread, a session of its own."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return subprocess.Popen(  # noqa: S603 - our own program, and no shell
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
        inlet.flush()  # and stays open: its end is the sign that we are gone


def _listen(outlet: IO[bytes] | None, tell: Progress) -> AttackStudy | None:
    """Pass on how far the child is, until it gives its study or its problem, or says nothing more."""
    while outlet is not None and (line := outlet.readline(_LINE)):
        try:
            said = json.loads(line)
            if "study" in said:
                return AttackStudy.read(said["study"])
            if "progress" in said:
                done, what = said["progress"]
                tell(min(1.0, max(0.0, float(done))), str(what)[:200])
                continue
            code, message, remedy = map(str, said["problem"])
        except (ValueError, KeyError, TypeError):
            return None
        raise AttackError(code, message, remedy)
    return None


def _place(*, sent: bool) -> Path | None:
    """Say where the folder goes: in memory; where that cannot be had, nothing that was sent is taken."""
    if _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK):
        return _IN_MEMORY
    if sent:
        raise AttackError(
            "HB645",
            "This server has no in-memory file system, so it cannot keep an uploaded table off its disk.",
            "Run the attack on your own machine with `hubbub attack NAME table.csv`.",
        )
    return None


def lost() -> AttackError:
    """Return the error for a study that ended without a result."""
    return AttackError("HB648", "The attack ended without a result.", "Use smaller settings and run it again.")
