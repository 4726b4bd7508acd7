"""POST /mcp: the tools for AI assistants over streamable HTTP, with the same tokens, roles and limits as the API.

Each request stands alone and is authenticated, so there is no session to take over, and none to renew an allowance:
what assistants spend without asking is counted for each token while the server runs. The person allows it in the header
`Hubbub-Allow`, which their client sends; a model cannot set headers.

Tested in tests/mcp/test_http.py.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import anyio
from fastapi import HTTPException, Request
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import Estimate
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.schema import Table
from hubbub.curator.question import Question
from hubbub.errors import HubbubError, ParameterError
from hubbub.mcp.allowance import Allowance, PrivacyAmount
from hubbub.mcp.consent import Context
from hubbub.mcp.server import build
from hubbub.mcp.spending import Caller
from hubbub.server.accounts import Principal
from hubbub.server.api.route import authenticated
from hubbub.server.problems import STEP
from hubbub.server.service import Service

T = TypeVar("T")
Refusal = Callable[[Request, Exception], Awaitable[Response]]

PATH = "/mcp"
#: Responses are padded to a multiple of this many bytes: their length tells little about the digits of noisy numbers.
_PAD = 4 * STEP


class ServiceBackend:
    """The service, as one principal sees it; what is free runs in the pool of free requests."""

    def __init__(self, service: Service, principal: Principal) -> None:
        self._service = service
        self._principal = principal

    async def datasets(self) -> tuple[str, ...]:
        """List the datasets."""
        return await self._free(self._service.catalog.datasets)

    async def describe(self, dataset: str) -> Table:
        """Return the declarations of a dataset."""
        return Table.from_json(await self._free(partial(_describe, self._service), dataset))

    async def budget(self) -> tuple[BudgetOverview, ...]:
        """Return the budgets."""
        return await self._free(self._service.catalog.budget)

    async def releases(self, limit: int) -> tuple[PastCharge, ...]:
        """List past charges."""
        return await self._free(partial(self._service.catalog.releases, limit=limit))

    async def release(self, number: int) -> Release:
        """Return an earlier release."""
        return await self._free(self._service.catalog.release, number)

    async def estimate(self, sql: str, options: Options) -> Estimate:
        """Estimate a query."""
        return await self._free(self._service.queries.estimate, Question(sql, **options))

    async def query(self, sql: str, options: Options, *, key: str | None, free: bool, request: str) -> Release:
        """Answer a query on the time quantum; `request` is its Idempotency-Key."""
        question = Question(sql, **options)
        return await self._service.queries.ask(self._principal, question, key=key, header=f"mcp {request}", free=free)

    async def try_query(self, sql: str, options: Options) -> Release:
        """Answer a query on made-up rows; nothing is charged or recorded."""
        return await self._service.sandbox.ask(self._principal, Question(sql, **options))

    async def _free(self, call: Callable[..., T], *args: Any) -> T:
        return await self._service.free_pool.run(self._principal, _stay, call, self._principal, *args)


class McpEndpoint:
    """ASGI middleware that answers /mcp. `refused` and `http` are the handlers of errors."""

    def __init__(self, app: ASGIApp, service: Service, *, refused: Refusal, http: Refusal) -> None:
        self._app, self._service = app, service
        self._refused, self._http = refused, http
        self._allowances: dict[tuple[str, str, str | None], Allowance] = {}
        self._manager = StreamableHTTPSessionManager(build(self._caller), json_response=True, stateless=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            async with _running(self._manager):
                await self._app(scope, receive, send)
            return
        if scope["type"] != "http" or scope["path"] != PATH or scope.get("root_path"):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        scope["route"] = SimpleNamespace(path=PATH)
        try:
            await authenticated(self._service, request)
            request.state.allowed = allowed(request)
            if scope["method"] != "POST":
                raise HTTPException(405, headers={"Allow": "POST"})
        except HubbubError as error:
            response = await self._refused(request, error)
        except HTTPException as error:
            response = await self._http(request, error)
        else:
            await self._manager.handle_request(scope, receive, _padded(send))
            return
        await response(scope, receive, send)

    def _caller(self, context: Context) -> Caller:
        """Find on whose behalf a request is made: what its token says, and what its header allows."""
        request: Request = context.request  # type: ignore[assignment]  # over HTTP each message has one
        state = request.state
        principal: Principal = state.principal
        known = (principal.role, principal.name, principal.token)
        allowance = self._allowances.setdefault(known, Allowance())
        name = " ".join(part for part in known if part is not None)
        return Caller(ServiceBackend(self._service, principal), allowance, state.allowed, name)


def allowed(request: Request) -> PrivacyAmount:
    """Read what the person allows without being asked; nothing, if the headers are absent."""
    epsilon, delta = (_amount(request, name) for name in ("hubbub-allow", "hubbub-allow-delta"))
    return PrivacyAmount(epsilon, delta)


def _amount(request: Request, name: str) -> Fraction:
    given = request.headers.getlist(name)
    if not given:
        return Fraction(0)
    if len(given) > 1:
        raise ParameterError("HB169", f"The header {name} was sent twice.", "Send it once.")
    return numbers.in_range(given[0], name, Fraction(0), Fraction(1000))


def _describe(service: Service, principal: Principal, dataset: str) -> dict[str, Any]:
    return service.catalog.describe(principal, dataset)


async def _stay() -> Message:
    """Wait for a client that never disconnects: a charge that was begun is finished, whoever waits for it."""
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


@asynccontextmanager
async def _running(manager: StreamableHTTPSessionManager) -> AsyncIterator[None]:
    async with manager.run():
        yield


def _padded(send: Send) -> Send:
    """Pad JSON with spaces, so that its length reveals little."""
    start: MutableMapping[str, Any] | None = None
    parts: list[bytes] = []

    async def send_padded(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type", "").startswith("application/json"):
                start = message
                return
        elif message["type"] == "http.response.body" and start is not None:
            parts.append(message.get("body", b""))
            if message.get("more_body", False):
                return
            body = b"".join(parts)
            body += b" " * (-len(body) % _PAD)
            MutableHeaders(scope=start)["content-length"] = str(len(body))
            await send(start)
            start = None
            message = {"type": "http.response.body", "body": body}
        await send(message)

    return send_padded
