"""Routes of streams: start one that was paid for, feed it, read it, and end it."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from hubbub.server.api.route import ApiRoute, PrincipalParam, ServiceParam, error_responses
from hubbub.server.api.schemas import RequestModel
from hubbub.server.problems import PaddedJson

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$", examples=["seen"])]
_Whose = Annotated[
    str | None,
    Query(max_length=100, description="The stream's analyst, if several analysts have a stream of this name."),
]


class StreamBody(RequestModel):
    """The release of the CALL stream(…) that paid for the stream."""

    release: int = Field(ge=1, le=2**62, examples=[1])


class ArrivalsBody(RequestModel):
    """Arrivals, one per line. Lines outside the stream's universe or bins count as arrivals without a value."""

    lines: list[Annotated[str, Field(max_length=200)]] = Field(max_length=10_000, examples=[["17", "4", "17"]])
    feeder: str = Field(
        "http", pattern=r"^[\w.@+-]{1,100}$", examples=["web-1"], description="Name of the sender of these lines."
    )
    before: int | None = Field(
        None,
        ge=0,
        le=2**62,
        examples=[0],
        description="Number of lines that this feeder sent before. Lines that were already added are skipped, so a "
        "request whose response was lost can be sent again.",
    )


class StreamSummary(BaseModel):
    """One stream of the list."""

    name: str
    analyst: str | None
    dataset: str | None


class StreamList(BaseModel):
    """The streams visible to the caller, and their analysts."""

    streams: list[str]
    listed: list[StreamSummary]


class ValueForm(BaseModel):
    """One answer with its 95% confidence interval."""

    name: str
    value: float
    low: float
    high: float


class StreamForm(BaseModel):
    """A stream: its terms, its current answers, and its charge."""

    name: str
    terms: dict[str, Any]
    paid: dict[str, Any] | None
    arrivals: int | None = Field(description="Number of arrivals; only for a count, where it is public.", examples=[17])
    values: list[ValueForm]
    told: list[dict[str, float]]
    answers_left: int | None
    state: str = Field(
        description="private: the state is pan-private against one intrusion; secret: it holds exact counts and must "
        "be protected.",
        examples=["private"],
    )


class FeedResult(BaseModel):
    """The number of arrivals added, and of all lines of this feeder (0 for a density, which does not count them)."""

    taken: int
    of_feeder: int


@router.get("/streams", operation_id="streams", responses={200: {"model": StreamList}, **error_responses()})
def streams(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List streams: an analyst's own; for owners and auditors, all."""
    entries = service.streams.entries(principal)
    return PaddedJson(
        {
            "streams": sorted({entry.name for entry in entries}),
            "listed": [{"name": entry.name, "analyst": entry.analyst, "dataset": entry.dataset} for entry in entries],
        }
    )


@router.post(
    "/streams",
    operation_id="begin_stream",
    status_code=201,
    responses={201: {"model": StreamForm}, **error_responses()},
)
def begin_stream(service: ServiceParam, principal: PrincipalParam, body: StreamBody) -> Response:
    """Start a stream that was paid for by POST /query with CALL stream(…). Repeated calls return the same stream."""
    return PaddedJson(service.streams.begin(principal, body.release), status_code=201)


@router.get("/streams/{name}", operation_id="stream", responses={200: {"model": StreamForm}, **error_responses()})
def stream(service: ServiceParam, principal: PrincipalParam, name: _Name, analyst: _Whose = None) -> Response:
    """Return the current answers of a stream. No noise is sampled and nothing is charged."""
    return PaddedJson(service.streams.read(principal, name, analyst))


@router.delete("/streams/{name}", operation_id="end_stream", status_code=204, responses=error_responses())
def end_stream(service: ServiceParam, principal: PrincipalParam, name: _Name, analyst: _Whose = None) -> Response:
    """End a stream: its state is erased, and its charge stays."""
    service.streams.end(principal, name, analyst)
    return Response(status_code=204)


@router.post(
    "/streams/{name}/arrivals", operation_id="feed_stream", responses={200: {"model": FeedResult}, **error_responses()}
)
def feed_stream(
    service: ServiceParam, principal: PrincipalParam, name: _Name, body: ArrivalsBody, analyst: _Whose = None
) -> Response:
    """Add arrivals. They are durable when the response is sent."""
    taken = service.streams.feed(principal, name, body.lines, feeder=body.feeder, before=body.before, analyst=analyst)
    return PaddedJson(taken)


@router.post(
    "/streams/{name}/answer", operation_id="answer_stream", responses={200: {"model": StreamForm}, **error_responses()}
)
def answer_stream(service: ServiceParam, principal: PrincipalParam, name: _Name) -> Response:
    """Sample one of the answers of a density that were paid for."""
    return PaddedJson(service.streams.answer(principal, name))
