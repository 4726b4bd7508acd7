"""ASGI middleware applied to every request and response.

It assigns a request id, limits the body, counts and logs the request, adds security headers, and turns any uncaught
exception into one constant error. Logs name the principal, the route, and the status, but never a literal, a token, a
query, or a value.
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
from hubbub.server.problems import ProblemResponse, internal_error
from hubbub.server.query_pool import clock
from hubbub.server.service import Service
from hubbub.server.telemetry import Span, length_of, parent_of, wall_clock

#: Maximum bytes of a body: a query has at most a million characters, a hubbub.yaml far less.
MAX_BODY = 1 << 20
#: Seconds within which the body must arrive.
BODY_SECONDS = 30.0

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
_HSTS = "max-age=31536000"
#: Coarse durations for the log.
_COARSE = ((0.25, "below 0.25 s"), (1.0, "below 1 s"), (5.0, "below 5 s"), (30.0, "below 30 s"))

_log = logging.getLogger("hubbub.server")


class RequestMiddleware:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # websockets are not supported
        state = scope.setdefault("state", {})
        state["request_id"] = number = secrets.token_hex(
            8
        )  # never the client's id, which could inject text into the log
        state["arrived"] = arrived = clock()
        status = 0

        async def send_response(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if not state.get("forwarded"):
                    self._add_headers(MutableHeaders(scope=message), number)
            await send(message)

        try:
            if declared_length(scope) > MAX_BODY:
                await ProblemResponse(too_large(), number)(scope, receive, send_response)
            else:
                await self._app(scope, bounded(receive), send_response)
        except Exception as error:  # noqa: BLE001 - its text may hold data, so it is neither sent nor logged
            _log.error(
                "failed",
                extra={"fields": {"request": number, "error": type(error).__name__, "at": code_locations(error)}},
            )
            if not status:
                await ProblemResponse(internal_error(), number)(scope, receive, send_response)
        finally:
            self._record(scope, status or 499, clock() - arrived)

    def _add_headers(self, headers: MutableHeaders, number: str) -> None:
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers["X-Request-Id"] = number
        if self._service.settings.secure:
            headers.setdefault("Strict-Transport-Security", _HSTS)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        state = scope["state"]
        if state.get("forwarded"):
            return  # the worker that answered has counted and logged it
        route = getattr(scope.get("route"), "path", None) or "none"
        if route.endswith(_ARRIVALS) and status < 400:
            return  # the rate of arrivals is data, so keep it out of the log and the metrics
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._service.metrics.count(route, method, status, seconds)
        principal = state.get("principal")
        role = None if principal is None else principal.role
        began = wall_clock(seconds)
        if self._service.telemetry is not None:
            parent = parent_of(Headers(scope=scope).get("traceparent"))
            self._service.telemetry.put(Span(method, route, status, role, began, seconds, parent))
        _log.info(
            "request",
            extra={
                "shown_at": began + length_of(seconds),
                "fields": {
                    "request": state["request_id"],
                    "who": None if principal is None else principal.name,
                    "role": role,
                    "method": method,
                    "route": route,
                    "status": status,
                    "took": next((text for end, text in _COARSE if seconds < end), "30 s or more"),
                },
            },
        )


_ARRIVALS = "/streams/{name}/arrivals"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


def too_large() -> HubbubError:
    """Return the error for a body that is too large."""
    return ParameterError("HB162", f"The body is larger than {MAX_BODY} bytes.", "Send a smaller body.")


def declared_length(scope: Scope) -> int:
    """Return the length that a request declares for its body."""
    text = Headers(scope=scope).get("content-length", "0")
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def bounded(receive: Receive) -> Receive:
    """Limit size and duration of the body as it arrives; the declared length may be wrong or missing."""
    size, complete, until = 0, False, clock() + BODY_SECONDS

    async def receive_bounded() -> Message:
        nonlocal size, complete
        try:
            # after the body, only a disconnect can follow
            message = await (receive() if complete else asyncio.wait_for(receive(), max(0.0, until - clock())))
        except TimeoutError:
            raise HTTPException(408) from None
        size += len(message.get("body", b""))
        complete = complete or not message.get("more_body", False)
        if size > MAX_BODY:
            raise HTTPException(413)
        return message

    return receive_bounded


def code_locations(error: BaseException) -> list[str]:
    """Return where an error was raised, as code locations without its text."""
    return [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]


class JsonFormatter(logging.Formatter):
    """One JSON object per line. Of an exception, only the type is written."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "from": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
        return json.dumps(fields, ensure_ascii=False, default=str)
