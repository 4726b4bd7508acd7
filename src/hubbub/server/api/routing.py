"""How a request of the API comes in: who asks is known before its body is read, and JSON is read strictly."""

import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Annotated, Any, NoReturn, TypeVar

from fastapi import Depends, Header, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive

from hubbub.errors import AccessError, ParameterError
from hubbub.server.accounts import Principal
from hubbub.server.limits import address
from hubbub.server.service import Service

T = TypeVar("T")

#: Names that all objects of a body have together: a refusal is made for each of them, while everybody else waits.
MOST_NAMES = 1200

#: What any route may answer beside its own; each is a problem.
REFUSALS: Mapping[int | str, dict[str, Any]] = {
    400: {"description": "The request is not HTTP or JSON as it should be."},
    401: {
        "description": "Who asks is not known.",
        "headers": {"WWW-Authenticate": {"description": "How to say who asks.", "schema": {"type": "string"}}},
    },
    403: {"description": "The role may not do this."},
    404: {"description": "There is no such thing, or not for who asks."},
    413: {"description": "The body is too long."},
    415: {"description": "The body is not JSON."},
    422: {"description": "What is said cannot be accepted; nothing was run or charged."},
    429: {
        "description": "Too much at once.",
        "headers": {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}},
    },
    503: {"description": "The ledger cannot be used now; nothing was run or charged."},
}


def refusals(*more: tuple[int, str]) -> dict[int | str, dict[str, Any]]:
    """Document what a route may refuse."""
    body = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    every: dict[int | str, dict[str, Any]] = {**REFUSALS, **{status: {"description": text} for status, text in more}}
    return {status: {**said, **body} for status, said in every.items()}


class _Strict(Request):
    """A request whose JSON means one thing to everybody who reads it."""

    async def json(self) -> Any:
        """Read the body: no NaN, no name twice, no half characters, no NUL, not too deep and not too many names."""
        body = await self.body()
        try:
            found = json.loads(body, parse_constant=_refuse, object_pairs_hook=_Names().once)
            if b"\\u" in body:
                _check_text(found)
        except (ValueError, RecursionError) as error:
            raise HTTPException(400) from error
        return found


class ApiRoute(APIRoute):
    """A route for those who are known."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Let an endpoint that blocks take its turn at the desk."""
        super().__init__(path, endpoint if inspect.iscoroutinefunction(endpoint) else _in_turn(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Say who asks, then go on."""
        inner = super().get_route_handler()
        wants_body = self.body_field is not None

        async def handle(request: Request) -> Response:
            service: Service = request.app.state.service
            request.state.principal = await service.doors.enter(_who, service, request)
            _RECEIVE.set(request.receive)
            if wants_body and not _is_json(request.headers.getlist("content-type")):
                raise HTTPException(415)
            return await inner(_Strict(request.scope, request.receive))

        return handle


_RECEIVE: ContextVar[Receive] = ContextVar("receive")


async def at_the_desk(
    service: Service, principal: Principal, call: Callable[..., T], /, *args: Any, **options: Any
) -> T:
    """Run what blocks, or takes long, in the principal's turn; stopped when the client of this request hangs up."""
    return await service.desk.run(principal, _RECEIVE.get(), call, *args, **options)


def _in_turn(endpoint: Callable[..., Response]) -> Callable[..., Coroutine[Any, Any, Response]]:
    """Every blocking endpoint names the service and who asks."""

    @wraps(endpoint)
    async def turn(**values: Any) -> Response:
        return await at_the_desk(values["service"], values["principal"], endpoint, **values)

    return turn


def _who(service: Service, request: Request) -> Principal:
    """Say who asks, by the token alone; those who guess must wait, and so must those who ask too often."""
    where = address(request.client.host if request.client else None)
    wait = service.attempts_limit.wait(where)
    if wait:
        raise AccessError("HB721", "too many attempts with tokens that are not valid.", f"Wait {wait} s.", wait)
    try:
        principal = service.accounts.authenticate(*request.headers.getlist("authorization"))
    except AccessError as error:
        if error.code in ("HB701", "HB704"):  # a guess; who is known, or has no token at all, guesses nothing
            service.attempts_limit.take(where)
        raise
    wait = service.requests_limit.take(f"{principal.role} {principal.name}")
    if wait:
        raise AccessError("HB720", "too many requests.", f"Wait {wait} s.", wait)
    return principal


def _is_json(types: list[str]) -> bool:
    return len(types) == 1 and types[0].partition(";")[0].strip().lower() == "application/json"


def _refuse(_: str) -> NoReturn:
    raise ValueError("not a number of JSON")


class _Names:
    """Reads the objects of one body, and counts their names."""

    def __init__(self) -> None:
        self._count = 0

    def once(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name stands twice")
        self._count += len(found)
        if self._count > MOST_NAMES:
            raise ValueError("too many names")
        return found


def _check_text(found: Any) -> None:
    """Refuse text that cannot be written down: a lone half of a pair, a NUL."""
    match found:
        case str():
            found.encode()
            if "\0" in found:
                raise ValueError("NUL")
        case list():
            for each in found:
                _check_text(each)
        case dict():
            for name, each in found.items():
                _check_text(name)
                _check_text(each)


# asynchronous, though they wait for nothing: else each would cost a thread
async def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def _principal(request: Request) -> Principal:
    found: Principal = request.state.principal
    return found


LIMIT = Query(ge=1, le=500, description="So many at most.")
BEFORE = Query(ge=1, le=2**62, description="Only those with a smaller number: `next` of the page before.")
_KEY = Header(
    alias="Idempotency-Key",
    min_length=1,
    max_length=200,
    pattern=r"^[ -~]+$",
    examples=["0b6e9a52-7f7c-4a58-8f5e-2f1f0c6b8a11"],
    description="Names this request and all that repeat it: however often it is sent, it is charged once.",
)


async def _retry(request: Request, key: Annotated[str, _KEY]) -> str:
    """Read the name of this try and all that repeat it; given twice, nobody could say which one counts."""
    if len(request.headers.getlist("idempotency-key")) != 1:
        raise no_key()
    return key


def no_key() -> ParameterError:
    """Make the refusal of a spend that has no name."""
    return ParameterError(
        "HB161",
        "a spend needs the header Idempotency-Key, once, with 1 to 200 printable ASCII characters.",
        "Draw a random one, such as a UUID, for each new request; send it again if the answer was lost: the same key "
        "is charged once.",
    )


Serving = Annotated[Service, Depends(_service)]
Asking = Annotated[Principal, Depends(_principal)]
Retry = Annotated[str, Depends(_retry)]
