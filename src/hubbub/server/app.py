"""The ASGI application around one service: API, pages, health checks, and metrics.

Tested in tests/server/test_api.py.
"""

import logging
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.telemetry import TelemetryConfig
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute

from hubbub.errors import AccessError, HubbubError, ParameterError
from hubbub.server import pages, threads
from hubbub.server.api import administration, attacks, publications, queries, reviews, sandbox, schedules, streams
from hubbub.server.api.direct import Direct
from hubbub.server.api.route import MAX_NAMES, missing_key
from hubbub.server.forward import Forward
from hubbub.server.free_pool import presented
from hubbub.server.health import Readiness
from hubbub.server.middleware import JsonFormatter, RequestMiddleware, too_large
from hubbub.server.problems import PaddedJson, ProblemResponse, not_found
from hubbub.server.service import PATIENCE, Service
from hubbub.server.settings import Settings

_API = "/api/v1"
#: A Host header: a name or IPv4 address, or an IPv6 address in brackets, with an optional port.
_HOST = re.compile(r"(?:([a-z0-9.-]+)|\[([0-9a-f:.]+)\])(?::[0-9]{1,5})?", re.ASCII)


#: FastAPI would tell OpenTelemetry the exact time of every request, which may depend on the data.
_NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}

#: What runs in the server's event loop beside the application, from its start to its end.
Beside = Callable[[], AbstractAsyncContextManager[None]]


def create_app(service: Service, beside: Beside = nullcontext) -> FastAPI:
    """Build the application; it closes the service when it stops."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            service.scheduler.start()
            async with beside():
                yield
        finally:
            await run_in_threadpool(service.close)

    app = FastAPI(
        title="hubbub",
        version="1",
        description="Differentially private SQL queries on sensitive data. Every error is application/problem+json.",
        openapi_url=f"{_API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry=_NO_TELEMETRY,
    )
    app.state.service = service
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    app.router.routes.extend(_api_routes())
    _add_monitoring(app, service)
    pages.mount(app, service)
    app.add_exception_handler(HubbubError, _refused)
    app.add_exception_handler(StarletteHTTPException, _http)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_middleware(Direct, service=service, refused=_refused, http=_http)
    _add_assistants(app, service)
    if service.worker is not None:
        app.add_middleware(Forward, worker=service.worker, tls=service.settings.certificate is not None)
    app.add_middleware(RequestMiddleware, service=service)
    return app


def _add_assistants(app: FastAPI, service: Service) -> None:
    """Answer /mcp, if the library for it is installed."""
    try:
        from hubbub.server.mcp_endpoint import McpEndpoint
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        return
    app.add_middleware(McpEndpoint, service=service, refused=_refused, http=_http)


@cache
def _api_routes() -> tuple[BaseRoute, ...]:
    """Build the API's routes once in a process: they find the service of the application that is asked.

    FastAPI would build them at the first request, concurrently if several come.
    """
    router = APIRouter()
    for part in (queries, administration, streams, attacks, publications, schedules, reviews, sandbox):
        router.include_router(part.router)
    for route in router.routes:
        route.matches({"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []})
    return tuple(router.routes)


def _document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document, with the authentication scheme."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            openapi_version=app.openapi_version,
        )
        document["components"]["securitySchemes"] = {
            "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token created by the data owner, or one from the identity provider.",
            }
        }
        document["security"] = [{"token": []}]
        app.openapi_schema = document
    return app.openapi_schema


def serve(
    service: Service,
    sockets: list[socket.socket] | None = None,
    started: Callable[[], None] = lambda: None,
    beside: Beside = nullcontext,
) -> None:
    """Serve until SIGINT or SIGTERM; running queries then finish or fail, and no charge is lost.

    `sockets` are open already, if several workers share them; `started` is called when requests can come.
    """
    log_to_stderr()
    if service.telemetry is not None:
        logging.getLogger("hubbub").addHandler(service.telemetry.handler)
    threads.share_cores()
    app = create_app(service, beside)
    threads.collect_seldom()
    started()
    uvicorn.Server(uvicorn_config(app, service)).run(sockets)


def uvicorn_config(app: FastAPI, service: Service) -> uvicorn.Config:
    """Return uvicorn's settings; forwarded addresses are trusted only from the configured proxies."""
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
    """Log to stderr, one JSON object per line."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    for name in ("hubbub", "uvicorn"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(logging.INFO)


def _add_monitoring(app: FastAPI, service: Service) -> None:
    readiness = Readiness(service)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        """Report that the process is alive."""
        return PaddedJson({"alive": True})

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        """Report whether queries can be answered now."""
        parts = await readiness.check()
        return PaddedJson(parts, status_code=200 if parts["ready"] else 503)

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        """Return the metrics, to this machine or to owners and auditors."""
        if _local(request) and not service.settings.behind_proxy and _has_own_host(request, service.settings):
            text = service.audit.local_figures()
        else:
            principal = await service.reserved.authenticate(
                presented(request), service.accounts.authenticate, *request.headers.getlist("authorization")
            )
            text = service.audit.figures(principal)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _local(request: Request) -> bool:
    """Return whether a request comes from this machine (behind a proxy, all would)."""
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _has_own_host(request: Request, settings: Settings) -> bool:
    """Return whether a request names this server in its Host header.

    With DNS rebinding, a web page opened on this machine can resolve its own name to this machine and read the
    responses. Its requests are local, but carry that name as Host.
    """
    public = urlsplit(settings.public_url or "").hostname
    hosts = [_HOST.fullmatch(host.lower()) for host in request.headers.getlist("host")]
    known = {"localhost", "127.0.0.1", "::1", settings.host.lower(), public}
    return len(hosts) == 1 and hosts[0] is not None and (hosts[0][1] or hosts[0][2]) in known


def _request_id(request: Request) -> str:
    return str(request.state.request_id)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HubbubError)  # noqa: S101 - the class it was registered for
    return ProblemResponse(error, _request_id(request))


async def _http(request: Request, error: Exception) -> Response:
    """Answer an error of Starlette with one of our problems."""
    assert isinstance(error, StarletteHTTPException)  # noqa: S101
    problem = _HTTP_ERRORS.get(error.status_code) or not_found("page or route at this address")
    response = ProblemResponse(problem, _request_id(request))
    response.headers.update(error.headers or {})
    return response


async def _malformed(request: Request, error: Exception) -> Response:
    """Report the first part of a request that does not match the schema, without quoting its value."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    errors = error.errors()
    first: dict[str, Any] = errors[0]
    location = [str(part) for part in first["loc"]]
    if location[:2] == ["header", "Idempotency-Key"]:
        return ProblemResponse(missing_key(), _request_id(request))
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    detail = f"{'.'.join(location)}: {first['msg']}"[:300] + more
    remedy = f"See {_API}/openapi.json for the schema."
    return ProblemResponse(
        ParameterError("HB170", f"The request does not match the schema. {detail}", remedy), _request_id(request)
    )


_HTTP_ERRORS: dict[int, HubbubError] = {
    400: ParameterError(
        "HB160",
        "The body is not valid or not unambiguous JSON.",
        f"Send UTF-8 JSON without NaN, duplicate keys, NUL characters, deep nesting, or more than {MAX_NAMES} keys.",
    ),
    405: ParameterError("HB165", "This HTTP method is not supported here.", f"See {_API}/openapi.json."),
    408: AccessError("HB729", "The body did not arrive in time.", "Send the request again without pauses."),
    413: too_large(),
    415: ParameterError(
        "HB163", "The body is not declared as JSON.", "Send the header `Content-Type: application/json`."
    ),
}
