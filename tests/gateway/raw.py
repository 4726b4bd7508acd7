"""A client that writes single messages, right or wrong."""

import base64
import hashlib
import hmac
import socket
import ssl
import struct
from types import TracebackType
from typing import Self

from hubbub.gateway import wire


class RawClient:
    """A socket with the messages of the protocol. Tests use it where no client library would send the same."""

    def __init__(self, port: int, *, timeout: float = 20.0) -> None:
        self.socket: socket.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        self.socket.sendall(b"".join(parts))

    def startup(self, user: str = "ana", version: int = 3 << 16, **more: str) -> None:
        content = b"".join(wire.text(n) + wire.text(v) for n, v in {"user": user, **more}.items()) + b"\0"
        self.send(struct.pack(">ii", len(content) + 8, version) + content)

    def encrypt(self, context: ssl.SSLContext) -> None:
        self.send(struct.pack(">ii", 8, wire.SSL_REQUEST))
        assert self.socket.recv(1) == b"S"
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")

    def take(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise EOFError
            parts += part
        return parts

    def receive(self) -> tuple[bytes, bytes]:
        kind, size = struct.unpack(">ci", self.take(5))
        return kind, self.take(size - 4)

    def until(self, last: bytes = b"Z") -> list[tuple[bytes, bytes]]:
        messages = [self.receive()]
        while messages[-1][0] != last:
            messages.append(self.receive())
        return messages

    def sign_in(self, token: str, user: str = "ana", version: int = 3 << 16, **more: str) -> dict[bytes, bytes]:
        """Sign in by SCRAM as RFC 7677 describes it, without using the server's code for it."""
        self.startup(user, version, **more)
        self.answer_scram(token)
        return dict(self.until())

    def answer_scram(self, token: str, header: bytes = b"n,,", bound: bytes = b"", name: str = "SCRAM-SHA-256") -> None:
        kind, content = self.receive()
        while kind == b"v":
            kind, content = self.receive()
        if kind == b"E":
            raise PermissionError(content)
        assert (kind, content[:4]) == (b"R", struct.pack(">i", 10))
        bare = b"n=,r=" + base64.b64encode(b"nonce of a test")
        self.send(wire.message(b"p", wire.text(name) + struct.pack(">i", len(header + bare)) + header + bare))
        kind, content = self.receive()
        if kind == b"E":
            raise PermissionError(content)
        first = content[4:]
        facts = dict(part.split(b"=", 1) for part in first.split(b","))
        salted = hashlib.pbkdf2_hmac("sha256", token.encode(), base64.b64decode(facts[b"s"]), int(facts[b"i"]))
        client = hmac.digest(salted, b"Client Key", "sha256")
        last = b"c=" + base64.b64encode(header + bound) + b",r=" + facts[b"r"]
        exchange = b",".join((bare, first, last))
        signature = hmac.digest(hashlib.sha256(client).digest(), exchange, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client, signature, strict=True)))
        self.send(wire.message(b"p", last + b",p=" + proof))
        kind, content = self.receive()
        if kind == b"E":
            raise PermissionError(content)
        own = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), exchange, "sha256")
        assert content[4:] == b"v=" + base64.b64encode(own)
