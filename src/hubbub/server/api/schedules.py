"""Routes of scheduled queries: list, add and remove them, and read their answers.

Tested in tests/server/test_schedules.py.
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from hubbub.core.blocks import BlockLength
from hubbub.server.api.route import ApiRoute, PrincipalParam, ServiceParam, error_responses
from hubbub.server.api.schemas import Exact, Name, Number, RequestModel
from hubbub.server.problems import PaddedJson
from hubbub.server.schedule_service import ScheduledBlock, ScheduleView

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Analyst = Annotated[str, Path(pattern=r"^[\w.@+-]{1,100}$", examples=["ana"])]
_Name = Annotated[str, Path(pattern=r"^[\w.@+-]{1,100}$", examples=["monthly"])]
_SQL = "SELECT COUNT(*) AS n FROM visits WHERE visited_on >= $1 AND visited_on < $2"


class ScheduleBody(RequestModel):
    """A query to run once for each block of its dataset, after the block has ended."""

    name: Name = Field(examples=["monthly"])
    sql: str = Field(
        max_length=100_000,
        description="$1 is the first day of a block, and $2 the day after its last.",
        examples=[_SQL],
    )
    every: BlockLength = Field(description="Length of the dataset's blocks.", examples=["month"])
    epsilon: Number = Field(description="Privacy cost for each block, charged to this block alone.")
    analyst: Name | None = Field(
        None, description="Analyst to charge; analysts may leave it out and mean themselves.", examples=[None]
    )
    first: str | None = Field(
        None, max_length=20, description="The first block; the current one if left out.", examples=[None]
    )
    wait: int = Field(1, ge=0, le=366, description="Days to wait for late rows after the end of a block.")


class BlockAnswerForm(BaseModel):
    """One block of a scheduled query."""

    block: str
    state: Literal["answered", "waiting", "refused"]
    release: int | None = Field(description="Number of its release, if it has an answer.")
    problem: str = Field(description="Why the last try gave no answer.")


class ScheduleForm(BaseModel):
    """A scheduled query."""

    name: str
    analyst: str
    dataset: str
    sql: str
    epsilon: Exact
    every: str = Field(description="Length of the blocks; empty if the dataset has no such blocks any more.")
    first: str
    wait: int
    next_run: str | None = Field(description="The next day on which it runs, in UTC.")
    last: BlockAnswerForm | None = Field(description="The newest block that is due.")
    paused: bool = Field(description="Whether it does not run because all tokens of its analyst are revoked.")


class ScheduleList(BaseModel):
    """The scheduled queries visible to the caller."""

    schedules: list[ScheduleForm]


class ScheduleAnswersForm(ScheduleForm):
    """A scheduled query with its newest blocks, the earliest first, and their answers as one CSV table."""

    blocks: list[BlockAnswerForm]
    table: str = Field(description="CSV with the block first, and an interval for each noisy number.")


@router.get("/schedules", operation_id="schedules", responses={200: {"model": ScheduleList}, **error_responses()})
def schedules(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List scheduled queries: an analyst's own; for owners and auditors, all."""
    return PaddedJson({"schedules": [_form(each) for each in service.schedules.entries(principal)]})


@router.post(
    "/schedules",
    operation_id="add_schedule",
    status_code=201,
    responses={201: {"model": ScheduleForm}, **error_responses()},
)
def add_schedule(service: ServiceParam, principal: PrincipalParam, body: ScheduleBody) -> Response:
    """Schedule a query. Each run is charged to its block alone; adding the query costs nothing."""
    added = service.schedules.add(
        principal,
        name=body.name,
        sql=body.sql,
        every=body.every,
        epsilon=body.epsilon,
        analyst=body.analyst,
        first=body.first,
        wait=body.wait,
    )
    return PaddedJson(_form(added), status_code=201)


@router.get(
    "/schedules/{analyst}/{name}",
    operation_id="schedule",
    responses={200: {"model": ScheduleAnswersForm}, **error_responses()},
)
def schedule(service: ServiceParam, principal: PrincipalParam, analyst: _Analyst, name: _Name) -> Response:
    """Return a scheduled query with its answers; free."""
    found = service.schedules.show(principal, analyst, name)
    blocks = [_block(each) for each in found.blocks]
    return PaddedJson({**_form(found.view), "blocks": blocks, "table": found.table()})


@router.delete(
    "/schedules/{analyst}/{name}", operation_id="remove_schedule", status_code=204, responses=error_responses()
)
def remove_schedule(service: ServiceParam, principal: PrincipalParam, analyst: _Analyst, name: _Name) -> Response:
    """Remove a scheduled query. Its answers stay in the ledger."""
    service.schedules.remove(principal, analyst, name)
    return Response(status_code=204)


def _form(view: ScheduleView) -> dict[str, object]:
    each = view.schedule
    return {
        "name": each.name,
        "analyst": each.analyst,
        "dataset": each.dataset,
        "sql": each.sql,
        "epsilon": each.epsilon,
        "every": view.every,
        "first": each.first,
        "wait": each.wait,
        "next_run": None if view.next_run is None else view.next_run.isoformat(),
        "last": None if view.last is None else _block(view.last),
        "paused": view.paused,
    }


def _block(each: ScheduledBlock) -> dict[str, object]:
    return {"block": each.block, "state": each.state, "release": each.release, "problem": each.problem}
