"""Serve the set-up page on the loopback address until hubbub.yaml is written.

Tested in tests/server/test_setup.py and tests/cli/test_serve_setup.py.
"""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hubbub.errors import AccessError, ConfigError
from hubbub.server.middleware import HEADERS, MAX_BODY, bounded, declared_length, too_large
from hubbub.server.problems import ProblemResponse
from hubbub.server.setup.access import Access
from hubbub.server.setup.draft import SetupDraft
from hubbub.server.setup.pages import SetupPages

LOOPBACK = "127.0.0.1"


def create_app(setup: SetupPages) -> ASGIApp:
    """Build the application."""
    return _Guard(Starlette(routes=setup.routes()), setup.access)


def listen(port: int) -> socket.socket:
    """Open the port on the loopback address."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise ConfigError(
            "HB420",
            f"The address {LOOPBACK}:{port} cannot be used ({error.strerror}).",
            "Choose another --port, or stop the server that uses it.",
        ) from error


def run(path: Path, listening: socket.socket, url: str, show: Callable[[str], None]) -> bool:
    """Serve until hubbub.yaml is written (True), or until Ctrl-C; `show` is given the link.

    The socket stays open: a browser that goes on to the server waits there until the server has started.
    """
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    server: uvicorn.Server

    async def finished() -> None:
        for each in server.servers:
            each.close()  # now, so that whoever connects from here on waits for the server that comes next
        server.should_exit = True

    setup = SetupPages(SetupDraft(path), url, finished)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(setup),
            server_header=False,
            access_log=False,
            log_config=None,
            ws="none",
            lifespan="off",
            proxy_headers=False,
            timeout_graceful_shutdown=5,
        )
    )
    port = listening.getsockname()[1]
    with listening.dup() as own, suppress(KeyboardInterrupt):
        show(f"http://{LOOPBACK}:{port}/setup?token={setup.access.link_token}")
        server.run([own])
    return setup.written


class _Guard:
    """Checks the Host header, limits the body, and adds the headers of all pages."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return

        async def send_response(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._access.check_host(Headers(scope=scope).getlist("host"))
        except AccessError as error:
            await ProblemResponse(error, "set-up")(scope, receive, send_response)
            return
        if declared_length(scope) > MAX_BODY:
            await ProblemResponse(too_large(), "set-up")(scope, receive, send_response)
            return
        await self._app(scope, bounded(receive), send_response)
