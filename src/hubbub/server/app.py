"""The application: the API, the pages and what keeps watch over them, put together around one service."""

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import PlainTextResponse, Response

from hubbub.errors import AccessError, HubbubError, ParameterError
from hubbub.server import pages, threads
from hubbub.server.api import administration as governing
from hubbub.server.api import attacks, streams
from hubbub.server.api import queries as asking
from hubbub.server.api.routing import MOST_NAMES, no_key
from hubbub.server.health import Readiness
from hubbub.server.middleware import JsonLines, RequestMiddleware, too_large
from hubbub.server.problems import Padded, Refusal, missing
from hubbub.server.service import PATIENCE, Service
from hubbub.server.settings import Settings

_API = "/api/v1"
#: A Host header: a name or an address of version 4, or one of version 6 in brackets; and a port.
_HOST = re.compile(r"(?:([a-z0-9.-]+)|\[([0-9a-f:.]+)\])(?::[0-9]{1,5})?", re.ASCII)


def create_app(service: Service) -> FastAPI:
    """Put the application together; it closes the service when it stops."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await run_in_threadpool(service.close)

    app = FastAPI(
        title="hubbub",
        version="1",
        description="Answers about the crowd, never about the person. Every error is application/problem+json.",
        openapi_url=f"{_API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.service = service
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    for part in (asking, governing, streams, attacks):
        app.include_router(part.router)
    _watch(app, service)
    pages.mount(app, service)
    app.add_exception_handler(HubbubError, _refused)
    app.add_exception_handler(StarletteHTTPException, _http)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_middleware(RequestMiddleware, service=service)
    _build(app)
    return app


def _build(app: FastAPI) -> None:
    """Have every route made now: FastAPI would make them at the first request, several at once if several come."""
    for route in app.routes:
        route.matches({"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []})


def _document(app: FastAPI) -> dict[str, Any]:
    """Describe the API (OpenAPI 3.1), with how to say who asks."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            openapi_version=app.openapi_version,
        )
        made["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "A token of the owner's, or of the issuer."}
        }
        made["security"] = [{"token": []}]
        app.openapi_schema = made
    return app.openapi_schema


def serve(service: Service) -> None:
    """Serve until told to stop (SIGINT or SIGTERM); what runs then ends or fails, and nothing is lost."""
    log_to_stderr()
    threads.share()
    uvicorn.Server(uvicorn_config(create_app(service), service)).run()


def uvicorn_config(app: FastAPI, service: Service) -> uvicorn.Config:
    """Say how uvicorn serves: forwarded addresses are believed from the named proxies alone, and only where told so."""
    settings = service.settings
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        proxy_headers=settings.behind_proxy,
        forwarded_allow_ips=list(settings.proxies) if settings.behind_proxy else [],
        server_header=False,
        access_log=False,
        log_config=None,
        ws="none",
        timeout_graceful_shutdown=int(PATIENCE) + 10,
    )


def log_to_stderr() -> None:
    """Log JSON, one object a line."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("hubbub", "uvicorn"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(logging.INFO)


def _watch(app: FastAPI, service: Service) -> None:
    readiness = Readiness(service)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        """Say that the process is alive."""
        return Padded({"alive": True})

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        """Say whether queries can be answered now."""
        found = await readiness.look()
        return Padded(found, status_code=200 if found["ready"] else 503)

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        """Give the figures, to this machine or to owner and auditor."""
        if _local(request) and not service.settings.behind_proxy and _called_by_name(request, service.settings):
            text = service.metrics_text()
        else:
            principal = await service.doors.enter(
                service.accounts.authenticate, *request.headers.getlist("authorization")
            )
            text = service.figures(principal)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _local(request: Request) -> bool:
    """Say whether a request comes from this machine (behind a proxy, all would)."""
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _called_by_name(request: Request, settings: Settings) -> bool:
    """Say whether a request asks for this machine by a name that is ours.

    A page that somebody visits here can have its own name lead to this machine (DNS rebinding), and read what comes
    back: its requests are local, but ask for that name.
    """
    public = urlsplit(settings.public_url or "").hostname
    named = [_HOST.fullmatch(host.lower()) for host in request.headers.getlist("host")]
    ours = {"localhost", "127.0.0.1", "::1", settings.host.lower(), public}
    return len(named) == 1 and named[0] is not None and (named[0][1] or named[0][2]) in ours


def _number(request: Request) -> str:
    return str(request.state.request_id)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HubbubError)  # noqa: S101 - what it was registered for
    return Refusal(error, _number(request))


async def _http(request: Request, error: Exception) -> Response:
    """Say in our words what HTTP itself refuses."""
    assert isinstance(error, StarletteHTTPException)  # noqa: S101
    found = _WORDS.get(error.status_code)
    response = Refusal(found or missing("page or route here"), _number(request))
    response.headers.update(error.headers or {})
    return response


async def _malformed(request: Request, error: Exception) -> Response:
    """Say which part of a request has not its form, without a word of what it was."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    found = error.errors()
    first: dict[str, Any] = found[0]
    place = [str(part) for part in first["loc"]]
    if place[:2] == ["header", "Idempotency-Key"]:
        return Refusal(no_key(), _number(request))
    words = f"{'.'.join(place)}: {first['msg']}"[:300] + (f" ({len(found) - 1} more)" if len(found) > 1 else "")
    remedy = f"{_API}/openapi.json says what is asked for."
    return Refusal(ParameterError("HB170", f"the request has not its form. {words}", remedy), _number(request))


_WORDS: dict[int, HubbubError] = {
    400: ParameterError(
        "HB160",
        "the body is not JSON that means one thing to everybody.",
        "Send UTF-8 JSON without NaN, without a name twice, without NUL, not nested thousands deep, and with at most "
        f"{MOST_NAMES} names.",
    ),
    405: ParameterError("HB165", "this address does not know that method.", f"{_API}/openapi.json says more."),
    408: AccessError("HB729", "the body did not arrive in time.", "Send the request again, all of it at once."),
    413: too_large(),
    415: ParameterError("HB163", "the body is not sent as JSON.", "Send the header `Content-Type: application/json`."),
}
