"""Routes of the sandbox: they have addresses of their own, so that no other server can take one for a real query.

Tested in tests/server/test_sandbox.py.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from hubbub.server.api import schemas as forms
from hubbub.server.api.route import ApiRoute, PrincipalParam, ServiceParam, error_responses, run_free
from hubbub.server.problems import PaddedJson, release_response

router = APIRouter(prefix="/api/v1/sandbox", route_class=ApiRoute)


@router.get(
    "/datasets", operation_id="sandbox_datasets", responses={200: {"model": forms.DatasetList}, **error_responses()}
)
def datasets(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List the datasets that can be tried on made-up rows."""
    return PaddedJson({"datasets": list(service.sandbox.datasets(principal))})


@router.get(
    "/datasets/{name}",
    operation_id="sandbox_describe",
    responses={200: {"model": forms.SandboxDataset}, **error_responses()},
)
def describe(service: ServiceParam, principal: PrincipalParam, name: Annotated[forms.Name, Path()]) -> Response:
    """Show the declarations of a dataset that can be tried on made-up rows."""
    return PaddedJson(service.sandbox.describe(principal, name).to_json())


@router.post(
    "/estimate", operation_id="sandbox_estimate", responses={200: {"model": forms.EstimateForm}, **error_responses()}
)
def estimate(service: ServiceParam, principal: PrincipalParam, body: forms.EstimateBody) -> Response:
    """Estimate a query without looking at a budget. Free."""
    return PaddedJson(service.sandbox.estimate(principal, body.question()).to_json())


@router.post("/query", operation_id="sandbox_query", responses={200: {"model": forms.ReleaseForm}, **error_responses()})
async def query(
    request: Request, service: ServiceParam, principal: PrincipalParam, body: forms.EstimateBody
) -> Response:
    """Answer a query on made-up rows, with the noise of a real answer. Nothing is charged or recorded."""
    release = await service.sandbox.ask(principal, body.question(), arrived=request.state.arrived)
    return await run_free(service, principal, release_response, release.to_json())
