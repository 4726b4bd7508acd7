"""Whether the service is alive, and whether it can answer.

A probe writes for real: a row of the server's own database, durably, and a file on the disks of ledger and anchor. It
runs apart from whoever asks, one at a time, so asking often costs nothing, and an answer comes in time although a
database does not.
"""

import asyncio
import os
import secrets
import threading
from concurrent.futures import Future
from pathlib import Path

from hubbub.errors import HubbubError
from hubbub.server.query_pool import clock
from hubbub.server.service import Service

#: Seconds for which a finding holds: looking costs a turn of the ledger, and nobody needs a token to ask.
_HOLDS = 1.0
#: Seconds for which a disk that took a write is believed to take another; one that did not is tried each time.
_WRITTEN_HOLDS = 4.0
#: Seconds that an answer waits for a probe. What is not known by then counts as not ready.
_PATIENCE = 1.5
#: Bytes that are written: more than the room that a file system may give a small file for nothing.
_SCRATCH = 1 << 16

_PARTS = ("ledger", "state", "sources", "config")


class Readiness:
    """Says whether queries can be answered: ledger sound and writable, sources reachable, hubbub.yaml in order."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._mutex = threading.Lock()
        self._at = self._written = float("-inf")
        self._found: dict[str, bool] = {}
        self._probing: Future[None] | None = None

    async def look(self) -> dict[str, bool]:
        """Look, or say what was found a moment ago."""
        with self._mutex:
            if self._probing is None and clock() - self._at >= _HOLDS:
                self._probing, self._found = Future(), {}
                threading.Thread(target=self._probe, args=[self._probing], name="hubbub-ready", daemon=True).start()
            probing = self._probing
        if probing is not None:
            await asyncio.wait([asyncio.wrap_future(probing)], timeout=_PATIENCE)
        parts = {name: self._found.get(name, False) for name in _PARTS}
        return {"ready": all(parts.values()), **parts}

    def _probe(self, probing: "Future[None]") -> None:
        looks = {"state": self._state, "ledger": self._ledger, "sources": self._sources, "config": self._config}
        found = self._found
        try:
            for name, look in looks.items():
                try:
                    found[name] = look()
                except (OSError, HubbubError):
                    found[name] = False
        finally:
            with self._mutex:
                self._probing, self._at = None, clock()
            probing.set_result(None)

    def _ledger(self) -> bool:
        """Take a writer's turn, and write to its disk: a ledger that stopped since it was verified refuses."""
        with self._service.current.using() as curator:
            curator.ledger.recall("", "readiness")
            if clock() - self._written >= _WRITTEN_HOLDS:
                for folder in curator.ledger.folders:
                    scratch(folder)
                self._written = clock()
        return True

    def _state(self) -> bool:
        self._service.state.writable()
        return True

    def _sources(self) -> bool:
        with self._service.current.using() as curator:
            for name in curator.tables:
                curator.engine.fingerprint(name)
        return True

    def _config(self) -> bool:
        return self._service.current.trouble is None


def scratch(folder: Path) -> None:
    """Write a file, wait until the disk has it, and remove it; raise OSError where the disk does not take it."""
    path = folder / f".hubbub-ready-{secrets.token_hex(8)}"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(secrets.token_bytes(_SCRATCH))  # random: a file system may store equal bytes as nothing
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    finally:
        os.close(file)
        path.unlink()
