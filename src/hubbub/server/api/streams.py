"""Routes of streams: begin one that was paid for, feed it, read it, end it."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from hubbub.server.api.routing import ApiRoute, Asking, Serving, refusals
from hubbub.server.api.schemas import Given
from hubbub.server.problems import Padded

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$", examples=["seen"])]
_Whose = Annotated[
    str | None, Query(max_length=100, description="Whose stream, where several analysts have one of this name.")
]


class Begin(Given):
    """Which charge paid for the stream: the number of the release of CALL stream(…)."""

    release: int = Field(ge=1, le=2**62, examples=[1])


class Arrivals(Given):
    """Lines, one arrival each; whatever is not of the stream's universe or bins is the arrival of nothing."""

    lines: list[Annotated[str, Field(max_length=200)]] = Field(max_length=10_000, examples=[["17", "4", "17"]])
    feeder: str = Field("http", pattern=r"^[\w.@+-]{1,100}$", examples=["web-1"], description="Who counts these lines.")
    before: int | None = Field(
        None,
        ge=0,
        le=2**62,
        examples=[0],
        description="How many lines of this feeder came before. Lines that were taken already are passed over, so a "
        "request whose answer was lost is simply sent again.",
    )


class Listed(BaseModel):
    """A stream in the list."""

    name: str
    analyst: str | None
    dataset: str | None


class Streams(BaseModel):
    """The streams that may be read: their names, and whose each is."""

    streams: list[str]
    listed: list[Listed]


class ValueForm(BaseModel):
    """One answer, with the ends of its 95% interval."""

    name: str
    value: float
    low: float
    high: float


class StreamForm(BaseModel):
    """A stream: its terms, what it says now, and for whom it was paid."""

    name: str
    terms: dict[str, Any]
    paid: dict[str, Any] | None
    arrivals: int | None = Field(description="Of a count, whose arrivals are public.", examples=[17])
    values: list[ValueForm]
    told: list[dict[str, float]]
    answers_left: int | None
    state: str = Field(description="private: it survives one look; secret: it does not.", examples=["private"])


class Taken(BaseModel):
    """What became of arrivals: all of them are on the disk. A density does not count a feeder's lines: 0."""

    taken: int
    of_feeder: int


@router.get("/streams", operation_id="streams", responses={200: {"model": Streams}, **refusals()})
def streams(service: Serving, principal: Asking) -> Response:
    """Name the streams: an analyst's own; for owner and auditor, all."""
    seen = service.streams(principal)
    return Padded(
        {
            "streams": sorted({each.name for each in seen}),
            "listed": [{"name": each.name, "analyst": each.analyst, "dataset": each.dataset} for each in seen],
        }
    )


@router.post(
    "/streams", operation_id="begin_stream", status_code=201, responses={201: {"model": StreamForm}, **refusals()}
)
def begin_stream(service: Serving, principal: Asking, body: Begin) -> Response:
    """Begin a stream that was paid for by POST /query with CALL stream(…); again, it is the same stream."""
    return Padded(service.begin_stream(principal, body.release), status_code=201)


@router.get("/streams/{name}", operation_id="stream", responses={200: {"model": StreamForm}, **refusals()})
def stream(service: Serving, principal: Asking, name: _Name, analyst: _Whose = None) -> Response:
    """Say what a stream says now; nothing is drawn or charged."""
    return Padded(service.stream(principal, name, analyst))


@router.delete("/streams/{name}", operation_id="end_stream", status_code=204, responses=refusals())
def end_stream(service: Serving, principal: Asking, name: _Name, analyst: _Whose = None) -> Response:
    """End a stream: its state is erased, and its charge stands."""
    service.end_stream(principal, name, analyst)
    return Response(status_code=204)


@router.post("/streams/{name}/arrivals", operation_id="feed_stream", responses={200: {"model": Taken}, **refusals()})
def feed_stream(service: Serving, principal: Asking, name: _Name, body: Arrivals, analyst: _Whose = None) -> Response:
    """Let arrivals in; they are on the disk when this answers."""
    taken = service.feed_stream(principal, name, body.lines, feeder=body.feeder, before=body.before, analyst=analyst)
    return Padded(taken)


@router.post(
    "/streams/{name}/answer", operation_id="answer_stream", responses={200: {"model": StreamForm}, **refusals()}
)
def answer_stream(service: Serving, principal: Asking, name: _Name) -> Response:
    """Draw one of the answers of a density that were paid for."""
    return Padded(service.answer_stream(principal, name))
