"""Frames that no client sends, to the PostgreSQL port: nothing crashes, nothing is charged, others are still served.

Each connection, signed in or not, sends frames of wrong lengths, kinds, states and contents until the server ends it.
The planted error is a frame that asks a query with a price: the ledger must show it.
"""

import logging
import random
import socket
import struct
import tempfile
from pathlib import Path

import psycopg
from tests.campaigns.frame import Report, run
from tests.gateway.conftest import Port, port
from tests.gateway.raw import RawClient

from hubbub.gateway import wire
from hubbub.server.limits import RateLimit

_KINDS = b"QPBDECHSFdcfpX?\0\xff"
_TEXTS = (
    b"SELECT COUNT(*) AS n FROM health",
    b"SELECT age FROM health",
    b"SELECT relname FROM pg_class WHERE oid = $1",
    b"COPY (SELECT 1) TO STDOUT (FORMAT binary)",
    b"BEGIN; FETCH ALL FROM c; ROLLBACK",
    b"SELECT '",
    b"/* epsilon=",
)


def frame(source: random.Random) -> bytes:
    """A frame, right or wrong."""
    kind = bytes([source.choice(_KINDS)])
    content = source.choice((source.choice(_TEXTS) + b"\0", source.randbytes(source.randrange(40)), b"\0\0", b""))
    if kind == b"P":
        content = b"\0" * source.randrange(3) + content + struct.pack(">h", source.choice((0, 1, -1)))
    if kind in b"BDEC" and source.random() < 0.5:
        content = source.choice((b"\0\0" + bytes(6), b"S\0", b"P\0", b"\0" + bytes(4)))
    size = len(content) + 4
    if source.random() < 0.05:
        size = source.choice((0, 3, -1, size + 1, 2**31 - 1, 2**20 + 5))
    return kind + struct.pack(">i", size) + content


def attack(running: Port, source: random.Random, most: int) -> int:
    """Send frames over one connection until it ends; return how many."""
    sent = 0
    with RawClient(running.number, timeout=30) as client:
        try:
            if source.random() < 0.7:
                client.sign_in(running.tokens["ana"])
            else:
                client.send(source.choice((source.randbytes(8), struct.pack(">ii", 8, wire.SSL_REQUEST))))
            for _ in range(source.randrange(1, most)):
                client.send(frame(source))
                sent += 1
            client.socket.shutdown(socket.SHUT_WR)
            while client.socket.recv(1 << 16):
                pass
        except (OSError, EOFError, AssertionError):
            pass  # the server has ended it, which is right
    return sent


class Collector(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(record)


def fuzz(report: Report) -> None:
    """Send frames, and look at the ledger and at another client in between."""
    handler = Collector(logging.ERROR)
    unexpected = handler.records
    logging.getLogger("hubbub.gateway").addHandler(handler)
    source, sent = random.Random(7), 0
    with tempfile.TemporaryDirectory() as folder, port(Path(folder)) as running:
        running.service.attempts_limit = RateLimit(1_000_000_000)
        goal = report.scale(ci=1500, full=100_000)
        while sent < goal:
            sent += attack(running, source, 60) or 1
        served = running.connect("ben").execute("SELECT 1").fetchone() == (1,)
        charged = running.spent()
        with RawClient(running.number) as client:  # the planted error
            client.sign_in(running.tokens["ana"])
            client.send(wire.message(b"Q", b"/* epsilon=0.1 */ SELECT COUNT(*) AS n FROM health\0"))
            client.until()
        planted = running.spent()
    report.figure("frames", sent)
    report.target("charges of malformed frames", charged, at_most=0)
    report.figure("unexpected errors", str([getattr(each, "fields", {}).get("at") for each in unexpected[:3]]))
    report.target("errors that are no answer", len(unexpected), at_most=0)
    report.target("other clients are served", int(served), at_least=1)
    report.target("the planted charge is seen", planted, at_least=0.01)


if __name__ == "__main__":
    try:
        run(fuzz)
    except psycopg.Error as error:
        raise SystemExit(str(error)) from error
