"""Routes for those who ask: datasets, estimates, queries and their answers."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from hubbub.answers.release import Release
from hubbub.server.api import schemas as forms
from hubbub.server.api.routing import BEFORE, LIMIT, ApiRoute, Asking, Retry, Serving, at_the_desk, refusals
from hubbub.server.problems import Padded, problem, released

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_PREFER = Header(description="`respond-async` answers at once with the place of a job.", examples=["respond-async"])
_WAIT = Header(description="`wait=10` lets the answer wait for the job's end, so many seconds at most (30).")
_MOST_WAIT = 30
_NUMBER = r"^[0-9a-f]{32}$"


@router.get("/me", operation_id="me", responses={200: {"model": forms.Me}, **refusals()})
def me(service: Serving, principal: Asking) -> Response:
    """Say who asks."""
    return Padded(service.me(principal))


@router.get("/datasets", operation_id="datasets", responses={200: {"model": forms.Datasets}, **refusals()})
def datasets(service: Serving, principal: Asking) -> Response:
    """List the datasets: an analyst's own; for owner and auditor, all."""
    return Padded({"datasets": list(service.datasets(principal))})


@router.get("/datasets/{name}", operation_id="describe", responses={200: {"model": forms.Dataset}, **refusals()})
def describe(service: Serving, principal: Asking, name: forms.Name) -> Response:
    """Show what is declared about a dataset: who is protected, its columns with their facts."""
    return Padded(service.describe(principal, name))


@router.post("/estimate", operation_id="estimate", responses={200: {"model": forms.EstimateForm}, **refusals()})
def estimate(service: Serving, principal: Asking, body: forms.Ask) -> Response:
    """Say what a question would cost and how exact its answer would be; free."""
    return Padded(service.estimate(principal, body.question()).form())


@router.post("/explain", operation_id="explain", responses={200: {"model": forms.Explanation}, **refusals()})
def explain(service: Serving, principal: Asking, body: forms.Ask) -> Response:
    """Say how a question is answered: the derivation of its noise and what the engine runs; free."""
    return Padded(service.explain(principal, body.question()))


@router.get("/explain", operation_id="meaning", responses={200: {"model": dict[str, Any]}, **refusals()})
def meaning(
    service: Serving,
    principal: Asking,
    epsilon: Annotated[str, Query(max_length=60, examples=["0.1"], description="The ε to explain.")],
    delta: Annotated[str, Query(max_length=60, examples=["0"])] = "0",
    prior: Annotated[str | None, Query(max_length=60, description="How sure somebody was before.")] = None,
    n: Annotated[int | None, Query(ge=1, le=10**12, description="How many people are in the data.")] = None,
) -> Response:
    """Say what an ε means: odds, posteriors, the best guess and the best test."""
    return Padded(service.meaning(principal, epsilon=epsilon, delta=delta, prior=prior, people=n).form())


@router.post(
    "/query",
    operation_id="query",
    responses={
        200: {"model": forms.ReleaseForm, "description": "The release."},
        202: {
            "model": forms.JobForm,
            "description": "A job, if that was preferred.",
            "headers": {"Location": {"description": "Where to ask for it.", "schema": {"type": "string"}}},
        },
        **refusals(
            (409, "A cap would be passed; nothing was run or charged."),
            (424, "The query could not be completed; its charge stays."),
        ),
    },
)
async def query(
    request: Request,
    service: Serving,
    principal: Asking,
    body: forms.Spend,
    header: Retry,
    prefer: Annotated[str | None, _PREFER] = None,
) -> Response:
    """Ask, for a price. The charge is made before the data is touched, and is never given back."""
    question, arrived = body.question(), request.state.arrived
    if prefer is not None and "respond-async" in [word.strip().lower() for word in prefer.split(",")]:
        number = await at_the_desk(
            service, principal, service.enqueue, principal, question, key=body.key, header=header, arrived=arrived
        )
        place = f"/api/v1/jobs/{number}"
        return Padded({"id": number, "state": "queued"}, status_code=202, headers={"Location": place})
    release = await service.ask(principal, question, key=body.key, header=header, arrived=arrived)
    return await at_the_desk(service, principal, _written, release)


@router.get("/jobs/{number}", operation_id="job", responses={200: {"model": forms.JobForm}, **refusals()})
async def job(
    request: Request,
    service: Serving,
    principal: Asking,
    number: Annotated[str, forms.Field(pattern=_NUMBER)],
    prefer: Annotated[str | None, _WAIT] = None,
) -> Response:
    """Say what became of a question in line; its answer or its problem, once it has ended."""
    await service.wait(principal, number, _seconds(prefer))
    state, release, error = await at_the_desk(service, principal, service.job, principal, number)
    found: dict[str, Any] = {"id": number, "state": state}
    if state == "running" and (step := service.progress(principal, number)) is not None:
        found["progress"] = {"done": step[0], "what": step[1]}
    if release is not None:
        return await at_the_desk(service, principal, _written, release, **found)
    if error is not None:
        found["problem"] = problem(error, request.state.request_id)
    return Padded(found)


@router.delete("/jobs/{number}", operation_id="cancel", responses={200: {"model": forms.JobForm}, **refusals()})
def cancel(service: Serving, principal: Asking, number: Annotated[str, forms.Field(pattern=_NUMBER)]) -> Response:
    """Cancel a question in line. If its charge was made, that stands."""
    return Padded({"id": number, "state": service.cancel(principal, number)})


@router.get("/releases", operation_id="releases", responses={200: {"model": forms.Releases}, **refusals()})
def releases(
    service: Serving,
    principal: Asking,
    limit: Annotated[int, LIMIT] = 50,
    before: Annotated[int | None, BEFORE] = None,
) -> Response:
    """List charges, the newest first: an analyst's own; for owner and auditor, all."""
    found = service.releases(principal, limit=limit, before=before)
    last = found[-1].id if len(found) == limit else None
    return Padded({"releases": [each.form() for each in found], "next": last})


@router.get("/releases/{number}", operation_id="release", responses={200: {"model": forms.ReleaseForm}, **refusals()})
def release(service: Serving, principal: Asking, number: Annotated[int, forms.Field(ge=1, le=2**62)]) -> Response:
    """Give a release once more, free."""
    return released(service.release(principal, number).form())


@router.get("/budget", operation_id="budget", responses={200: {"model": forms.Budgets}, **refusals()})
def budget(service: Serving, principal: Asking, analyst: Annotated[forms.Name | None, Query()] = None) -> Response:
    """Say what is spent and left: an analyst's own; for owner and auditor, that of one or all."""
    return Padded({"budgets": [view.form() for view in service.budget(principal, analyst)]})


def _written(release: Release, **around: Any) -> Response:
    """Write a release, which may be large: never where everybody else's requests wait."""
    return released(release.form(), **around)


def _seconds(prefer: str | None) -> int:
    """Read how long a client would wait (RFC 7240)."""
    for word in (prefer or "").split(","):
        name, _, value = word.strip().lower().partition("=")
        if name == "wait" and value.isdecimal() and len(value) < 6:
            return min(_MOST_WAIT, int(value))
    return 0
