"""The collector writes nothing about who answers: not when a connection breaks, nor when a request is no request."""

import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

#: All of 127/8 is this machine, so a visitor can have an address that nothing else has.
VISITOR = "127.9.8.7"
SURVEY = """
survey: 1
title: Habits
questions:
  smokes: {text: "Do you smoke?", answers: ["no", "yes"], epsilon: 1}
"""


class Running:
    """A collector in a process of its own, with everything that it writes."""

    def __init__(self, folder: Path) -> None:
        (folder / "survey.yaml").write_text(SURVEY)
        self.folder, self.output = folder, folder / "output"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hubbub", "survey", "collect", "--port", "0", "survey.yaml"],
                cwd=folder,
                stdout=file,
                stderr=file,
            )
        until = time.monotonic() + 60
        while "http://127.0.0.1:" not in self.said and time.monotonic() < until:
            assert self.process.poll() is None, self.said
            time.sleep(0.05)
        self.port = int(self.said.split("http://127.0.0.1:")[1].split("/")[0])

    @property
    def said(self) -> str:
        return self.output.read_text()

    def send(self, *parts: bytes, reset: bool = False, read: bool = True) -> bytes:
        """Send bytes as the visitor; end with a reset, or wait for the answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(VISITOR, 0)) as line:
            for part in parts:
                line.sendall(part)
            if reset:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return b""
            return b"".join(iter(lambda: line.recv(65536), b"")) if read else b""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    collector = Running(tmp_path)
    yield collector
    collector.process.terminate()
    collector.process.wait(timeout=20)


def post(body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return (
        f"POST /responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    ).encode() + body


def test_no_address_is_written_whatever_a_visitor_does(running: Running) -> None:
    before = running.said
    for _ in range(3):
        running.send(post(b"{", 1000), reset=True)  # while its body is read
        running.send(b"GET / HT", reset=True)  # while its first line is read
        running.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", reset=True)  # while the page is written
        running.send(b"", reset=True)
    assert b"200" in running.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")[:20]
    for bad in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n",  # the beginning of TLS
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"BREW / HTTP/1.1\r\n\r\n",
        b"G" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"\r\n",
        post(b"x" * 10, 10**8),
        post(b"x" * 10, 10**12),
        post(b"[" * 60_000),
        post(b"{}"),
        post(b"\xff\xfe"),
    ):
        answer = running.send(bad)
        assert b"200" not in answer[:20]
    time.sleep(0.5)  # threads that write late
    assert running.process.poll() is None
    assert running.said == before
    assert VISITOR not in running.said


def test_a_full_disk_is_said_without_a_word_about_anybody(running: Running) -> None:
    (running.folder / "responses.jsonl").mkdir()  # cannot be written by anybody, root included
    survey = running.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200" in survey[:20]
    run = subprocess.run(
        [sys.executable, "-m", "hubbub", "survey", "answer", "survey.yaml", "--set", "smokes=no"],
        cwd=running.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    response = json.dumps(json.loads(run.stdout)).encode()
    assert b" 507 " in running.send(post(response))[:20]
    assert "cannot store responses" in running.said
    assert VISITOR not in running.said
