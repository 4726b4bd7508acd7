"""API routes: authenticate before reading the body, parse JSON strictly, and document error responses.

Tested in tests/server/test_api.py.
"""

import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from typing import Annotated, Any, NoReturn, TypeVar

from fastapi import Depends, Header, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive

from hubbub.errors import AccessError, HubbubError, ParameterError
from hubbub.server.accounts import Principal
from hubbub.server.free_pool import presented
from hubbub.server.limits import address
from hubbub.server.service import Service

T = TypeVar("T")

#: Maximum number of object keys in a body: validation may report an error for each, and blocks the event loop.
MAX_NAMES = 1200

#: Error responses that every route may give.
ERROR_RESPONSES: Mapping[int | str, dict[str, Any]] = {
    400: {"description": "The request is malformed."},
    401: {
        "description": "Authentication failed.",
        "headers": {"WWW-Authenticate": {"description": "The authentication scheme.", "schema": {"type": "string"}}},
    },
    403: {"description": "The role is not allowed to do this."},
    404: {"description": "Not found."},
    413: {"description": "The body is too large."},
    415: {"description": "The body is not JSON."},
    422: {"description": "The request was rejected; nothing was run or charged."},
    429: {
        "description": "Too many requests.",
        "headers": {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}},
    },
    503: {"description": "The ledger is unavailable; nothing was run or charged."},
}


def error_responses(*more: tuple[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of a route's error responses."""
    body = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}}
    every: dict[int | str, dict[str, Any]] = {
        **ERROR_RESPONSES,
        **{status: {"description": text} for status, text in more},
    }
    return {status: {**response, **body} for status, response in every.items()}


class StrictRequest(Request):
    """A request whose JSON body is unambiguous."""

    @property
    def read(self) -> bool:
        """Whether the body was read."""
        return hasattr(self, "_body")

    async def json(self) -> Any:
        """Parse the body; reject NaN, duplicate keys, lone surrogates, NUL, deep nesting, and too many keys."""
        body = await self.body()
        try:
            content = json.loads(body, parse_constant=_reject, object_pairs_hook=_KeyCounter().unique)
            if b"\\u" in body:
                _check_text(content)
        except (ValueError, RecursionError) as error:
            raise HTTPException(400) from error
        return content


class ApiRoute(APIRoute):
    """A route for authenticated callers."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Run a blocking endpoint in the free pool."""
        super().__init__(path, endpoint if inspect.iscoroutinefunction(endpoint) else _pooled(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Authenticate, then handle the request."""
        inner = super().get_route_handler()
        wants_body = self.body_field is not None

        async def handle(request: Request) -> Response:
            service: Service = request.app.state.service
            await authenticated(service, request)
            listen(request.receive)
            if wants_body and not is_json(request.headers.getlist("content-type")):
                raise HTTPException(415)
            return await inner(StrictRequest(request.scope, request.receive))

        return handle


_RECEIVE: ContextVar[Receive] = ContextVar("receive")


def listen(receive: Receive) -> None:
    """Let `run_free` stop when the client of this request disconnects."""
    _RECEIVE.set(receive)


async def authenticated(service: Service, request: Request) -> Principal:
    """Return the principal of a request; authenticate it, and count it, once."""
    if "principal" not in request.scope["state"]:
        request.state.principal = _authenticated_at_once(service, request) or await service.reserved.authenticate(
            presented(request), _authenticate, service, request
        )
    principal: Principal = request.state.principal
    return principal


async def run_free(service: Service, principal: Principal, call: Callable[..., T], /, *args: Any, **options: Any) -> T:
    """Run a blocking call in the free pool; it is stopped if the client of this request disconnects."""
    return await service.free_pool.run(principal, _RECEIVE.get(), call, *args, **options)


def _pooled(endpoint: Callable[..., Response]) -> Callable[..., Coroutine[Any, Any, Response]]:
    """Wrap a blocking endpoint, which takes the service and the principal."""

    @wraps(endpoint)
    async def pooled(**values: Any) -> Response:
        return await run_free(values["service"], values["principal"], endpoint, **values)

    return pooled


def _authenticate(service: Service, request: Request) -> Principal:
    """Return the principal of the bearer token; apply the limits on guesses and on requests."""
    where = address(request.client.host if request.client else None)
    wait = service.attempts_limit.wait(where)
    if wait:
        raise AccessError("HB721", "Too many attempts with invalid tokens.", f"Wait {wait} s and try again.", wait)
    try:
        principal = service.accounts.authenticate(*request.headers.getlist("authorization"))
    except AccessError as error:
        if error.code in ("HB701", "HB704"):  # a guess; an expired token or none at all is not
            service.attempts_limit.take(where)
        raise
    wait = service.requests_limit.take(f"{principal.role} {principal.name}")
    if wait:
        raise AccessError("HB720", "Too many requests.", f"Wait {wait} s and try again.", wait)
    return principal


def _authenticated_at_once(service: Service, request: Request) -> Principal | None:
    """Return what `_authenticate` would return, if nothing has to be waited for; otherwise None, and nothing changed.

    A thread for this costs more than the lookup: two switches between threads that compute.
    """
    analysts = service.current.analysts_at_once()
    if analysts is None or not service.attempts_limit.has_at_once(
        address(request.client.host if request.client else None)
    ):
        return None
    with suppress(HubbubError):  # the other way says what is wrong
        principal = service.accounts.identify_at_once(*request.headers.getlist("authorization"), analysts=analysts)
        if principal is not None and service.requests_limit.take_at_once(f"{principal.role} {principal.name}"):
            return principal
    return None


def is_json(types: list[str]) -> bool:
    """Return whether the Content-Type headers of a request declare JSON."""
    return len(types) == 1 and types[0].partition(";")[0].strip().lower() == "application/json"


def _reject(_: str) -> NoReturn:
    raise ValueError("not a JSON number")


class _KeyCounter:
    """Builds the objects of one body and counts their keys."""

    def __init__(self) -> None:
        self._count = 0

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) != len(pairs):
            raise ValueError("duplicate key")
        self._count += len(content)
        if self._count > MAX_NAMES:
            raise ValueError("too many keys")
        return content


def _check_text(content: Any) -> None:
    """Reject text with lone surrogates or NUL."""
    match content:
        case str():
            content.encode()
            if "\0" in content:
                raise ValueError("NUL")
        case list():
            for item in content:
                _check_text(item)
        case dict():
            for key, value in content.items():
                _check_text(key)
                _check_text(value)


# async although they do not wait: FastAPI would run each in a thread otherwise
async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _principal(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


LIMIT = Query(ge=1, le=500, description="Maximum number of items to return.")
BEFORE = Query(ge=1, le=2**62, description="Return only items with a smaller number: `next` of the previous page.")
_KEY = Header(
    alias="Idempotency-Key",
    min_length=1,
    max_length=200,
    pattern=r"^[ -~]+$",
    examples=["0b6e9a52-7f7c-4a58-8f5e-2f1f0c6b8a11"],
    description="Identifies this request and its retries, which are charged only once.",
)


async def _idempotency_key(request: Request, key: Annotated[str, _KEY]) -> str:
    """Return the Idempotency-Key; reject the header if it is sent twice."""
    if len(request.headers.getlist("idempotency-key")) != 1:
        raise missing_key()
    return key


def missing_key() -> ParameterError:
    """Return the error for a query without a valid Idempotency-Key."""
    return ParameterError(
        "HB161",
        "A query needs exactly one Idempotency-Key header with 1 to 200 printable ASCII characters.",
        "Use a new random key, such as a UUID, for each request, and the same key for its retries.",
    )


ServiceParam = Annotated[Service, Depends(_service)]
PrincipalParam = Annotated[Principal, Depends(_principal)]
IdempotencyKey = Annotated[str, Depends(_idempotency_key)]
