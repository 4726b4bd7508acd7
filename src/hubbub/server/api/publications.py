"""Routes for publishing releases. The public pages themselves are in `server.pages.published`.

Tested in tests/server/test_publications.py.
"""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from hubbub.accounting.publications import text_hash
from hubbub.server.api import administration_schemas as forms
from hubbub.server.api.route import BEFORE, LIMIT, ApiRoute, PrincipalParam, ServiceParam, error_responses
from hubbub.server.problems import PaddedJson
from hubbub.server.state import PublicationAction

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Page = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{16}$", examples=["0123456789abcdef"])]


@router.post(
    "/publications",
    operation_id="publish",
    status_code=201,
    responses={201: {"model": forms.PublicationForm}, **error_responses()},
)
def publish(service: ServiceParam, principal: PrincipalParam, body: forms.PublicationBody) -> Response:
    """Publish a recorded release on a public page, with its data sheet and receipt. This costs nothing."""
    done = service.publications.publish(principal, body.release, body.title, body.notes)
    return PaddedJson(_form(done), status_code=201)


@router.get(
    "/publications",
    operation_id="publications",
    responses={200: {"model": forms.PublicationList}, **error_responses()},
)
def publications(
    service: ServiceParam,
    principal: PrincipalParam,
    limit: Annotated[int, LIMIT] = 50,
    before: Annotated[int | None, BEFORE] = None,
) -> Response:
    """List what was published and withdrawn, by whom and when, newest first."""
    actions = service.publications.actions(principal, limit=limit, before=before)
    last = actions[-1].id if len(actions) == limit else None
    return PaddedJson({"publications": [_form(action) for action in actions], "next": last})


@router.get(
    "/publications/waiting",
    operation_id="waiting_publications",
    responses={200: {"model": forms.WaitingPublications}, **error_responses()},
)
def waiting(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List publications that wait for approval. For owners, stewards and auditors."""
    return PaddedJson({"publications": [_form(action) for action in service.publications.waiting(principal)]})


@router.post(
    "/publications/waiting/{number}",
    operation_id="decide_publication",
    responses={200: {"model": forms.PublicationForm}, **error_responses()},
)
def decide(
    service: ServiceParam,
    principal: PrincipalParam,
    number: Annotated[int, Path(ge=1, le=2**62, examples=[1])],
    body: forms.PublicationDecisionBody,
) -> Response:
    """Approve or decline the publication of a release; the last approval that is needed publishes it."""
    done = service.publications.decide(principal, number, approve=body.approve, text=body.text, reason=body.reason)
    return PaddedJson(_form(done))


@router.delete(
    "/publications/{page}",
    operation_id="withdraw",
    responses={200: {"model": forms.PublicationForm}, **error_responses()},
)
def withdraw(service: ServiceParam, principal: PrincipalParam, page: _Page) -> Response:
    """Withdraw a public page. Publishing its release again restores it at the same address."""
    return PaddedJson(_form(service.publications.withdraw(principal, page)))


def _form(action: PublicationAction) -> dict[str, object]:
    text = text_hash(action.title, action.notes)
    return {**action.to_json(), "path": f"/published/{action.page}", "text": text}
