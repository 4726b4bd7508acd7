"""Routes for analysts: datasets, estimates, queries, jobs, releases, and budgets.

Tested in tests/server/test_api.py.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from hubbub.answers.release import Release
from hubbub.server.api import schemas as forms
from hubbub.server.api.route import (
    BEFORE,
    LIMIT,
    ApiRoute,
    IdempotencyKey,
    PrincipalParam,
    ServiceParam,
    error_responses,
    run_free,
)
from hubbub.server.problems import PaddedJson, problem, release_response

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_PREFER = Header(description="`respond-async`: return immediately with the URL of a job.", examples=["respond-async"])
_WAIT = Header(description="`wait=10`: wait up to 10 seconds for the job to finish (maximum 30).")
_MAX_WAIT = 30
_NUMBER = r"^[0-9a-f]{32}$"


@router.get("/me", operation_id="me", responses={200: {"model": forms.PrincipalForm}, **error_responses()})
def me(service: ServiceParam, principal: PrincipalParam) -> Response:
    """Return the name and role of the caller."""
    return PaddedJson(service.catalog.me(principal))


@router.get("/datasets", operation_id="datasets", responses={200: {"model": forms.DatasetList}, **error_responses()})
def datasets(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List datasets: those an analyst may query; for owners and auditors, all."""
    return PaddedJson({"datasets": list(service.catalog.datasets(principal))})


@router.get(
    "/datasets/{name}", operation_id="describe", responses={200: {"model": forms.DatasetForm}, **error_responses()}
)
def describe(service: ServiceParam, principal: PrincipalParam, name: forms.Name) -> Response:
    """Describe a dataset: its privacy unit and its columns with their declared types, bounds, and values."""
    return PaddedJson(service.catalog.describe(principal, name))


@router.post("/estimate", operation_id="estimate", responses={200: {"model": forms.EstimateForm}, **error_responses()})
def estimate(service: ServiceParam, principal: PrincipalParam, body: forms.EstimateBody) -> Response:
    """Estimate a query's privacy cost and accuracy. Free."""
    return PaddedJson(service.queries.estimate(principal, body.question()).to_json())


@router.post("/explain", operation_id="explain", responses={200: {"model": forms.ExplanationForm}, **error_responses()})
def explain(service: ServiceParam, principal: PrincipalParam, body: forms.EstimateBody) -> Response:
    """Explain how a query would be answered: the derivation of its noise and the SQL that the engine runs. Free."""
    return PaddedJson(service.queries.explain(principal, body.question()))


@router.get("/explain", operation_id="meaning", responses={200: {"model": dict[str, Any]}, **error_responses()})
def meaning(
    service: ServiceParam,
    principal: PrincipalParam,
    epsilon: Annotated[str, Query(max_length=60, examples=["0.1"], description="The ε to explain.")],
    delta: Annotated[str, Query(max_length=60, examples=["0"])] = "0",
    prior: Annotated[
        str | None, Query(max_length=60, description="Prior probability of the fact, between 0 and 1.")
    ] = None,
    n: Annotated[int | None, Query(ge=1, le=10**12, description="Number of people in the data.")] = None,
) -> Response:
    """Explain what privacy parameters mean: odds, posterior probabilities, and the best possible test."""
    return PaddedJson(service.catalog.meaning(principal, epsilon=epsilon, delta=delta, prior=prior, people=n).to_json())


@router.post(
    "/query",
    operation_id="query",
    responses={
        200: {"model": forms.ReleaseForm, "description": "The release."},
        202: {
            "model": forms.JobForm,
            "description": "The job, if `Prefer: respond-async` was sent.",
            "headers": {"Location": {"description": "URL of the job.", "schema": {"type": "string"}}},
        },
        **error_responses(
            (409, "The query exceeds the budget; nothing was run or charged."),
            (424, "The query could not be completed; its charge stays."),
        ),
    },
)
async def query(
    request: Request,
    service: ServiceParam,
    principal: PrincipalParam,
    body: forms.QueryBody,
    header: IdempotencyKey,
    prefer: Annotated[str | None, _PREFER] = None,
) -> Response:
    """Run a query and charge its privacy cost. The charge is made before the query runs and is never refunded."""
    question, arrived = body.question(), request.state.arrived
    if prefer is not None and "respond-async" in [word.strip().lower() for word in prefer.split(",")]:
        number = await run_free(
            service,
            principal,
            service.queries.enqueue,
            principal,
            question,
            key=body.key,
            header=header,
            arrived=arrived,
            free=body.free,
        )
        location = f"/api/v1/jobs/{number}"
        return PaddedJson({"id": number, "state": "queued"}, status_code=202, headers={"Location": location})
    release = await service.queries.ask(
        principal, question, key=body.key, header=header, arrived=arrived, free=body.free
    )
    return await run_free(service, principal, _release, release)


@router.post(
    "/batch",
    operation_id="batch",
    responses={
        200: {"model": forms.ReleaseForm, "description": "One release; `model.answers` has the answers."},
        **error_responses(
            (409, "The batch exceeds the budget; nothing was run or charged."),
            (424, "The batch could not be completed; its charge stays."),
        ),
    },
)
async def batch(
    request: Request, service: ServiceParam, principal: PrincipalParam, body: forms.BatchBody, header: IdempotencyKey
) -> Response:
    """Run many queries together, with one charge. No question is less exact than with the price split evenly."""
    arrived = request.state.arrived
    release = await service.queries.ask(principal, body.question(), key=body.key, header=header, arrived=arrived)
    return await run_free(service, principal, _release, release)


@router.post(
    "/batch/estimate",
    operation_id="batch_estimate",
    responses={200: {"model": forms.EstimateForm}, **error_responses()},
)
def batch_estimate(service: ServiceParam, principal: PrincipalParam, body: forms.BatchBody) -> Response:
    """Estimate a batch: `derivation` shows each question's margin of error, and that of an even split. Free."""
    return PaddedJson(service.queries.estimate(principal, body.question()).to_json())


@router.get("/jobs/{number}", operation_id="job", responses={200: {"model": forms.JobForm}, **error_responses()})
async def job(
    request: Request,
    service: ServiceParam,
    principal: PrincipalParam,
    number: Annotated[str, forms.Field(pattern=_NUMBER)],
    prefer: Annotated[str | None, _WAIT] = None,
) -> Response:
    """Return a job: its state, and its release or problem once it has ended."""
    await service.queries.wait(principal, number, _seconds(prefer))
    state, release, error = await run_free(service, principal, service.queries.job, principal, number)
    form: dict[str, Any] = {"id": number, "state": state}
    if state == "running" and (step := service.queries.progress(principal, number)) is not None:
        form["progress"] = {"done": step[0], "what": step[1]}
    if release is not None:
        return await run_free(service, principal, _release, release, **form)
    if error is not None:
        form["problem"] = problem(error, request.state.request_id)
    return PaddedJson(form)


@router.delete("/jobs/{number}", operation_id="cancel", responses={200: {"model": forms.JobForm}, **error_responses()})
def cancel(
    service: ServiceParam, principal: PrincipalParam, number: Annotated[str, forms.Field(pattern=_NUMBER)]
) -> Response:
    """Cancel a job. A charge that was already made stays."""
    return PaddedJson({"id": number, "state": service.queries.cancel(principal, number)})


@router.get("/releases", operation_id="releases", responses={200: {"model": forms.ReleaseList}, **error_responses()})
def releases(
    service: ServiceParam,
    principal: PrincipalParam,
    limit: Annotated[int, LIMIT] = 50,
    before: Annotated[int | None, BEFORE] = None,
) -> Response:
    """List charges, newest first: an analyst's own; for owners and auditors, all."""
    page = service.catalog.releases(principal, limit=limit, before=before)
    last = page[-1].id if len(page) == limit else None
    return PaddedJson({"releases": [charge.to_json() for charge in page], "next": last})


@router.get(
    "/releases/{number}", operation_id="release", responses={200: {"model": forms.ReleaseForm}, **error_responses()}
)
def release(
    service: ServiceParam, principal: PrincipalParam, number: Annotated[int, forms.Field(ge=1, le=2**62)]
) -> Response:
    """Return a recorded release. Free."""
    return release_response(service.catalog.release(principal, number).to_json())


@router.get("/budget", operation_id="budget", responses={200: {"model": forms.BudgetList}, **error_responses()})
def budget(
    service: ServiceParam, principal: PrincipalParam, analyst: Annotated[forms.Name | None, Query()] = None
) -> Response:
    """Return spent and remaining budget: an analyst's own; for owners and auditors, that of one or all analysts."""
    return PaddedJson({"budgets": [view.to_json() for view in service.catalog.budget(principal, analyst)]})


def _release(release: Release, **around: Any) -> Response:
    """Write a release, which may be large; run this in the free pool, not in the event loop."""
    return release_response(release.to_json(), **around)


def _seconds(prefer: str | None) -> int:
    """Read the `wait` preference (RFC 7240)."""
    for preference in (prefer or "").split(","):
        name, _, value = preference.strip().lower().partition("=")
        if name == "wait" and value.isdecimal() and len(value) < 6:
            return min(_MAX_WAIT, int(value))
    return 0
