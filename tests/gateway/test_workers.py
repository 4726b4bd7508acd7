"""The PostgreSQL port of `hubbub serve --workers 2`: a cancellation reaches the worker that it is for.

The kernel chooses a worker by the addresses and ports of a connection, so two connections from the same port of the
client, one after the other, reach the same worker. The test tries ports until it has one for each: 40 attempts miss a
worker with probability 2⁻³⁹.
"""

import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.fixtures.server_config import ServerFolder
from tests.fixtures.server_process import SpawnedServer, await_ready, free_port
from tests.gateway.raw import RawClient

from hubbub.gateway import wire

#: Seconds between the moments at which answers leave; a query is cancelled before the next one.
QUANTUM = 3.0
_QUERY = b"/* epsilon=0.01 */ SELECT ward, COUNT(*) AS n FROM visits WHERE age > %d GROUP BY ward ORDER BY ward\0"
_CHARGES = b"SELECT COUNT(*) FROM hubbub.releases\0"


class BoundClient(RawClient):
    """A client from a port of its choice, which can be used again at once."""

    def __init__(self, port: int, source: int) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(30)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.bind(("127.0.0.1", source))
        self.socket.connect(("127.0.0.1", port))

    def ask(self, text: bytes) -> list[tuple[bytes, bytes]]:
        """Send a simple query; return the messages that answer it."""
        self.send(wire.message(b"Q", text))
        return self.until()


class Pair:
    """A server of two workers."""

    def __init__(self, folder: Path) -> None:
        self.place = ServerFolder(folder, quantum=str(QUANTUM))
        self.port, http = free_port(), free_port()
        text = self.place.config.read_text()
        changed = text.replace("per_minute: 1000000}", f"per_minute: 1000000, postgres: {{port: {self.port}}}}}")
        assert changed != text
        self.place.config.write_text(changed)
        self.server = SpawnedServer(self.place.config, http, workers=2)
        await_ready(http, self.server)

    @contextmanager
    def client(self, source: int = 0) -> Iterator[tuple[BoundClient, bytes]]:
        """Sign in; return the client and its key, whose number tells the worker."""
        with BoundClient(self.port, source) as client:
            key = client.sign_in(self.place.tokens["ana"])[b"K"]
            yield client, key

    def sources(self) -> dict[int, int]:
        """Find a port of the client for each worker."""
        found: dict[int, int] = {}
        for _ in range(40):
            with self.client() as (client, key):
                source = client.socket.getsockname()[1]
            found[worker_of(key)] = source
            if len(found) == 2:
                return found
        raise AssertionError("no connection reached the second worker")


def worker_of(key: bytes) -> int:
    return int(struct.unpack(">i", key[:4])[0]) & 63


def cells(messages: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [content for kind, content in messages if kind == b"D"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    running = Pair(tmp_path_factory.mktemp("workers") / "pair")
    yield running
    assert running.server.end(signal.SIGTERM) == 0


def cancel(pair: Pair, source: int, key: bytes) -> None:
    """Send a cancellation to the worker of a port, and wait until it was taken."""
    with BoundClient(pair.port, source) as client:
        client.send(struct.pack(">ii", 8 + len(key), wire.CANCEL_REQUEST) + key)
        with pytest.raises((EOFError, ConnectionError)):
            client.take(1)


def test_a_query_is_cancelled_through_the_other_worker_and_stays_charged(pair: Pair) -> None:
    sources = pair.sources()
    with pair.client() as (client, key):
        other = sources[1 - worker_of(key)]
        assert len(cells(client.ask(_QUERY % 1))) == 3  # comes at the end of a quantum: the next has just begun
        client.send(wire.message(b"Q", _QUERY % 2))
        with pair.client() as (watcher, _):
            end = time.monotonic() + QUANTUM
            while cells(watcher.ask(_CHARGES))[0][-1:] != b"2":
                assert time.monotonic() < end, "the query was not charged within a quantum"
        cancel(pair, other, key[:4] + b"\0\0\0\0")
        cancel(pair, other, key)
        messages = client.until()
        assert not cells(messages)
        assert b"57014" in dict(messages)[b"E"]
        assert b"HB811" in dict(messages)[b"E"]
        assert cells(client.ask(b"SELECT 1\0"))
    with pair.client(other) as (elsewhere, second):
        assert worker_of(second) != worker_of(key)
        assert len(cells(elsewhere.ask(_QUERY % 2))) == 3  # charged already, so it is free
        assert cells(elsewhere.ask(_CHARGES))[0][-1:] == b"2"
