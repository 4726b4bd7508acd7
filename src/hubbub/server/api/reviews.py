"""Routes for answers that are reviewed before they are shown.

Tested in tests/server/test_reviews.py.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from hubbub.server.api import administration_schemas as forms
from hubbub.server.api.route import BEFORE, LIMIT, ApiRoute, PrincipalParam, ServiceParam, error_responses
from hubbub.server.problems import PaddedJson, release_response

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Number = Annotated[int, Path(ge=1, le=2**62, examples=[1])]


@router.get(
    "/reviews", operation_id="answer_reviews", responses={200: {"model": forms.AnswerReviewList}, **error_responses()}
)
def reviews(
    service: ServiceParam,
    principal: PrincipalParam,
    limit: Annotated[int, LIMIT] = 50,
    before: Annotated[int | None, BEFORE] = None,
    *,
    waiting: Annotated[bool, Query(description="Only answers that wait for a decision.", examples=[True])] = False,
) -> Response:
    """List answers that need or needed review, newest first. For owners, stewards and auditors."""
    page = service.reviews.entries(principal, limit=limit, before=before, waiting=waiting)
    last = page[-1].number if len(page) == limit else None
    return PaddedJson({"reviews": [each.to_json() for each in page], "next": last})


@router.get(
    "/reviews/{number}",
    operation_id="answer_review",
    responses={200: {"model": forms.ReviewedAnswer}, **error_responses()},
)
def review(service: ServiceParam, principal: PrincipalParam, number: _Number) -> Response:
    """Show an answer to those who decide whether it leaves. For owners and stewards."""
    found, release = service.reviews.show(principal, number)
    if release is None:
        return PaddedJson({"review": found.to_json(), "release": None})
    return release_response(release.to_json(), review=found.to_json())


@router.post(
    "/reviews/{number}", operation_id="decide", responses={200: {"model": forms.AnswerReview}, **error_responses()}
)
def decide(
    service: ServiceParam, principal: PrincipalParam, number: _Number, body: forms.AnswerDecisionBody
) -> Response:
    """Approve an answer, or decline it with a reason. The decision is final and is recorded in the ledger."""
    done = service.reviews.decide(principal, number, approve=body.approve, reason=body.reason)
    return PaddedJson(done.to_json())
