"""The two requests that analysts make most, without the general routing: POST estimate and POST query.

Finding a route among a hundred, solving its dependencies and unwinding their exit stacks took several times as long as
a free estimate. A well-formed request needs none of it: it is authenticated, read and validated as by its route, and
the same endpoint answers. Everything else, such as a body that does not match the schema, goes the usual way, which
describes the error; it is neither authenticated nor counted a second time.

Tested in tests/server/test_direct.py.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import HTTPException, Request
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hubbub.errors import HubbubError
from hubbub.server.api import queries
from hubbub.server.api import schemas as forms
from hubbub.server.api.route import StrictRequest, authenticated, is_json, listen, run_free
from hubbub.server.service import Service

Handler = Callable[[Request, Exception], Awaitable[Response]]

_ESTIMATE, _QUERY = "/api/v1/estimate", "/api/v1/query"
_ROUTES = {path: each for each in queries.router.routes if (path := getattr(each, "path", "")) in (_ESTIMATE, _QUERY)}
#: What `route.IdempotencyKey` accepts.
_KEY = re.compile(r"[ -~]{1,200}")


class Direct:
    """ASGI middleware that answers the two requests itself. `refused` and `http` are the handlers of errors."""

    def __init__(self, app: ASGIApp, service: Service, *, refused: Handler, http: Handler) -> None:
        self._app, self._service = app, service
        self._refused, self._http = refused, http

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        route = _ROUTES.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if route is None or scope.get("root_path"):
            await self._app(scope, receive, send)
            return
        request = StrictRequest(scope, receive)
        response: Response | None
        try:
            await authenticated(self._service, request)
            response = await self._answer(request) if is_json(request.headers.getlist("content-type")) else None
        except HubbubError as error:
            response = await self._refused(request, error)
        except HTTPException as error:
            response = await self._http(request, error)
        if response is None:
            await self._app(scope, await _again(request), send)
            return
        scope["route"] = route
        await response(scope, receive, send)

    async def _answer(self, request: StrictRequest) -> Response | None:
        """Answer a request that is all right; None if its route must say what is wrong with it, or knows more."""
        try:
            await request.body()
        except ClientDisconnect:
            raise HTTPException(400) from None
        keys = request.headers.getlist("idempotency-key")
        is_query = request.scope["path"] == _QUERY
        if is_query and (len(keys) != 1 or not _KEY.fullmatch(keys[0]) or "prefer" in request.headers):
            return None
        try:
            content = await request.json()
            body = (forms.QueryBody if is_query else forms.EstimateBody).model_validate(content)
        except (HTTPException, ValidationError):
            return None
        listen(request.receive)
        service, principal = self._service, request.state.principal
        if isinstance(body, forms.QueryBody):
            return await queries.query(request, service, principal, body, keys[0])
        asked: dict[str, Any] = {"service": service, "principal": principal, "body": body}
        return await run_free(service, principal, queries.estimate, **asked)


async def _again(request: StrictRequest) -> Receive:
    """Return a `receive` that gives the body that was read, if it was read, and then goes on."""
    if not request.read:
        return request.receive
    body, left = await request.body(), [True]

    async def receive() -> Message:
        if left:
            left.clear()
            return {"type": "http.request", "body": body, "more_body": False}
        return await request.receive()

    return receive
