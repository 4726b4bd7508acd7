"""The border: what every request passes on its way in and every answer on its way out, whatever route it takes.

It gives the request a number, bounds its body, counts and logs it, puts the headers on that keep browsers strict, and
turns what nobody caught into one constant. Logs hold who asked which route and how it ended: never a literal, a token,
a query or a value.
"""

import asyncio
import json
import logging
import secrets
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hubbub.errors import HubbubError, ParameterError
from hubbub.server.problems import Refusal, inside
from hubbub.server.query_pool import clock
from hubbub.server.service import Service

#: Bytes of a body: a query has at most a million characters, a hubbub.yaml far less.
MOST = 1 << 20
#: Seconds in which a body must be there.
SECONDS = 30.0

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ONLY_HTTPS = "max-age=31536000"
#: What a log says of a duration.
_COARSE = ((0.25, "below 0.25 s"), (1.0, "below 1 s"), (5.0, "below 5 s"), (30.0, "below 30 s"))

_log = logging.getLogger("hubbub.server")


class RequestMiddleware:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no websockets here
        state = scope.setdefault("state", {})
        state["request_id"] = number = secrets.token_hex(8)  # never the client's: it could write into our log
        state["arrived"] = arrived = clock()
        status = 0

        async def leaving(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._dress(MutableHeaders(scope=message), number)
            await send(message)

        try:
            if _declared(scope) > MOST:
                await Refusal(too_large(), number)(scope, receive, leaving)
            else:
                await self._app(scope, _bounded(receive), leaving)
        except Exception as error:  # noqa: BLE001 - its text may hold anything, so none of it leaves or is logged
            _log.error("failed", extra={"fields": {"request": number, "error": type(error).__name__, "at": _at(error)}})
            if not status:
                await Refusal(inside(), number)(scope, receive, leaving)
        finally:
            self._note(scope, status or 499, clock() - arrived)

    def _dress(self, headers: MutableHeaders, number: str) -> None:
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers["X-Request-Id"] = number
        if self._service.settings.secure:
            headers.setdefault("Strict-Transport-Security", _ONLY_HTTPS)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        state = scope["state"]
        route = getattr(scope.get("route"), "path", None) or "none"
        if route.endswith(_FEEDING) and status < 400:
            return  # how often something arrives is data, and the log and the figures hold none
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._service.metrics.count(route, method, status, seconds)
        principal = state.get("principal")
        _log.info(
            "request",
            extra={
                "fields": {
                    "request": state["request_id"],
                    "who": None if principal is None else principal.name,
                    "role": None if principal is None else principal.role,
                    "method": method,
                    "route": route,
                    "status": status,
                    "took": next((text for end, text in _COARSE if seconds < end), "30 s or more"),
                }
            },
        )


_FEEDING = "/streams/{name}/arrivals"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


def too_large() -> HubbubError:
    """Make the refusal of a body that is too long."""
    return ParameterError("HB162", f"the body is longer than {MOST} bytes.", "Send less.")


def _declared(scope: Scope) -> int:
    text = Headers(scope=scope).get("content-length", "0")
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _bounded(receive: Receive) -> Receive:
    """Count what comes in, and for how long: a length that was declared may be a lie, or missing, or a promise."""
    size, whole, until = 0, False, clock() + SECONDS

    async def counted() -> Message:
        nonlocal size, whole
        try:
            # once the body is there, only the end of the connection can come
            message = await (receive() if whole else asyncio.wait_for(receive(), max(0.0, until - clock())))
        except TimeoutError:
            raise HTTPException(408) from None
        size += len(message.get("body", b""))
        whole = whole or not message.get("more_body", False)
        if size > MOST:
            raise HTTPException(413)
        return message

    return counted


def _at(error: BaseException) -> list[str]:
    """Say where an error came from: places in the code, without its text."""
    return [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]


class JsonLines(logging.Formatter):
    """One JSON object a line. Of an exception only its type is written."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "from": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            said["error"] = record.exc_info[0].__name__
        return json.dumps(said, ensure_ascii=False, default=str)
