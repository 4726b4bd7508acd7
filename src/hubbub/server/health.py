"""Readiness of the service.

A probe really writes: a durable row in the server's database, and a file on the disks of the ledger and the anchor.
Probes run one at a time in the background, so frequent checks cost nothing, and a check returns in time even if a
database hangs.
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

#: Seconds for which a result is reused: a probe takes the ledger lock, and anyone may call it without a token.
_HOLDS = 1.0
#: Seconds for which a successful disk write is reused; a failed one is retried each time.
_WRITTEN_HOLDS = 4.0
#: Seconds to wait for a probe; parts not probed by then count as not ready.
_PATIENCE = 1.5
#: Bytes written: more than a file system may store inside the inode.
_SCRATCH = 1 << 16

_PARTS = ("ledger", "state", "sources", "config")


class Readiness:
    """Checks whether queries can be answered: ledger writable, sources reachable, hubbub.yaml valid."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._mutex = threading.Lock()
        self._at = self._written = float("-inf")
        self._parts: dict[str, bool] = {}
        self._probing: Future[None] | None = None

    async def check(self) -> dict[str, bool]:
        """Return the state of each part, from a new or a recent probe."""
        with self._mutex:
            if self._probing is None and clock() - self._at >= _HOLDS:
                self._probing, self._parts = Future(), {}
                threading.Thread(target=self._probe, args=[self._probing], name="hubbub-ready", daemon=True).start()
            probing = self._probing
        if probing is not None:
            await asyncio.wait([asyncio.wrap_future(probing)], timeout=_PATIENCE)
        parts = {name: self._parts.get(name, False) for name in _PARTS}
        return {"ready": all(parts.values()), **parts}

    def _probe(self, probing: "Future[None]") -> None:
        probes = {"state": self._state, "ledger": self._ledger, "sources": self._sources, "config": self._config}
        parts = self._parts
        try:
            for name, probe in probes.items():
                try:
                    parts[name] = probe()
                except (OSError, HubbubError):
                    parts[name] = False
        finally:
            with self._mutex:
                self._probing, self._at = None, clock()
            probing.set_result(None)

    def _ledger(self) -> bool:
        """Take the writer lock and write to the ledger's disk; a ledger that has stopped raises."""
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
    """Write, sync, and delete a file; raise OSError if the disk is not writable."""
    path = folder / f".hubbub-ready-{secrets.token_hex(8)}"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(secrets.token_bytes(_SCRATCH))  # random, because a file system may compress equal bytes
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    finally:
        os.close(file)
        path.unlink()
