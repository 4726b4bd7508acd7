"""Requests about what one worker alone knows: they are passed on to that worker over its Unix socket.

Studies and assistants are served by the first worker. A job runs in the worker that accepted it, whose number its id
begins with. The socket is in a folder that only this user can enter, and a request over it carries the supervisor's
secret, so that nobody else can choose the address that limits count.

Tested in tests/cli/test_serve_workers.py.
"""

import asyncio
import hmac
import re
from contextlib import suppress
from ssl import CERT_NONE, PROTOCOL_TLS_CLIENT, SSLContext

from starlette.types import ASGIApp, Receive, Scope, Send

from hubbub.errors import AccessError
from hubbub.server.problems import ProblemResponse
from hubbub.server.worker import Worker

#: Studies, their uploads, and what assistants have spent are in the memory of the first worker.
_STUDIES = re.compile(r"/(?:api/v1/attacks|explain/lab|explain/crowd|mcp)(?:[/.].*)?")
_JOB = re.compile(r"/api/v1/jobs/([0-9a-f]{2})[0-9a-f]{30}")
_HEADER = b"x-hubbub-worker"
#: Headers about one connection, and those that this file writes.
_OWN = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"upgrade", b"te", _HEADER})
_SECONDS = 60.0
_MAX_HEAD = 65536


class Forward:
    """ASGI middleware that answers requests or passes them on."""

    def __init__(self, app: ASGIApp, worker: Worker, *, tls: bool) -> None:
        self._app, self._worker, self._tls = app, worker, tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http" and not self._arrived(scope):
            place = self._place(scope["path"])
            if place is not None and place != self._worker.number and place < self._worker.count:
                scope["state"]["forwarded"] = True
                await self._pass_on(place, scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _arrived(self, scope: Scope) -> bool:
        """Return whether another worker passed this request on; its client then has the address that it states."""
        for name, value in scope["headers"]:
            secret, _, host = value.partition(b" ")
            if name == _HEADER and hmac.compare_digest(secret, self._worker.secret.encode()):
                scope["client"] = (host.decode(), 0) if host else None
                return True
        return False

    @staticmethod
    def _place(path: str) -> int | None:
        if _STUDIES.fullmatch(path):
            return 0
        job = _JOB.fullmatch(path)
        return None if job is None else int(job[1], 16)

    async def _pass_on(self, place: int, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:  # its size and time are bounded: see `middleware`
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        try:
            status, headers, content = await asyncio.wait_for(self._ask(place, scope, body), _SECONDS)
        except (OSError, TimeoutError, EOFError, ValueError):
            scope["state"]["forwarded"] = False
            busy = AccessError("HB725", "The process that knows this is restarting.", "Try again in a few seconds.", 5)
            await ProblemResponse(busy, scope["state"]["request_id"])(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _ask(self, place: int, scope: Scope, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Send the request in HTTP/1.0, in which the end of the connection ends the response."""
        tls = None
        if self._tls:  # uvicorn speaks TLS on all of its sockets; here it protects nothing
            tls = SSLContext(PROTOCOL_TLS_CLIENT)
            tls.check_hostname, tls.verify_mode = False, CERT_NONE
        reader, writer = await asyncio.open_unix_connection(
            self._worker.socket_path(place), ssl=tls, server_hostname="worker" if tls else None, limit=_MAX_HEAD
        )
        try:
            query = b"?" + scope["query_string"] if scope["query_string"] else b""
            client = (scope.get("client") or ("",))[0]
            kept = [(name, value) for name, value in scope["headers"] if name not in _OWN]
            own = [(_HEADER, f"{self._worker.secret} {client}".encode()), (b"content-length", b"%d" % len(body))]
            lines = [b"%b %b HTTP/1.0" % (scope["method"].encode(), scope["raw_path"] + query)]
            lines += [b"%b: %b" % header for header in (*kept, *own)]
            writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            first, *rest = head[:-4].split(b"\r\n")
            headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in rest)]
            content = await reader.read(-1)
            return int(first.split(b" ")[1]), [pair for pair in headers if pair[0] != b"connection"], content
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
