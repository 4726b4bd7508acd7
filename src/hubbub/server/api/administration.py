"""Routes for owner and auditor: analysts, groups, tokens, hubbub.yaml, requests, the ledger."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response

from hubbub.accounting.chain import Kind
from hubbub.accounting.filters import Budget
from hubbub.accounting.store import Filter
from hubbub.errors import ParameterError
from hubbub.server.api import administration_schemas as forms
from hubbub.server.api.routing import BEFORE, LIMIT, ApiRoute, Asking, Serving, refusals
from hubbub.server.api.schemas import Name
from hubbub.server.problems import Padded, missing

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Number = Annotated[int, Path(ge=1, le=2**62, examples=[1])]
_TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$", examples=["0123456789ab"])]
_Microseconds = Annotated[int | None, Query(ge=0, le=2**62, description="Microseconds since 1970.")]
_UNCHANGED = (409, "It is decided or taken already, or cannot be written; nothing was changed.")
_TAG = {"ETag": {"description": "The hash, for If-Match.", "schema": {"type": "string"}}}


# --- requests for more budget -----------------------------------------------------------------------------------------


@router.post(
    "/requests",
    operation_id="request",
    status_code=201,
    responses={201: {"model": forms.RequestForm}, **refusals(_UNCHANGED)},
)
def request(service: Serving, principal: Asking, body: forms.More) -> Response:
    """Ask the owner for more on a dataset: `epsilon` is what would be added to one's cap."""
    made = service.request(principal, body.dataset, body.epsilon, body.reason)
    return Padded(made.form(), status_code=201)


@router.get("/requests", operation_id="requests", responses={200: {"model": forms.Requests}, **refusals()})
def requests(
    service: Serving, principal: Asking, limit: Annotated[int, LIMIT] = 50, before: Annotated[int | None, BEFORE] = None
) -> Response:
    """List requests, the newest first: an analyst's own; for owner and auditor, all."""
    found = service.requests(principal, limit=limit, before=before)
    last = found[-1].id if len(found) == limit else None
    return Padded({"requests": [each.form() for each in found], "next": last})


@router.post(
    "/requests/{number}/grant",
    operation_id="grant",
    responses={200: {"model": forms.RequestForm}, **refusals(_UNCHANGED)},
)
def grant(service: Serving, principal: Asking, number: _Number, body: forms.Verdict) -> Response:
    """Raise the cap of who asked; never above the caps of the dataset and of the groups."""
    return Padded(service.grant(principal, number, body.note).form())


@router.post(
    "/requests/{number}/refuse",
    operation_id="refuse",
    responses={200: {"model": forms.RequestForm}, **refusals(_UNCHANGED)},
)
def refuse(service: Serving, principal: Asking, number: _Number, body: forms.Verdict) -> Response:
    """Refuse a request."""
    return Padded(service.refuse(principal, number, body.note).form())


# --- analysts, groups, tokens -----------------------------------------------------------------------------------------


@router.get("/analysts", operation_id="analysts", responses={200: {"model": forms.Analysts}, **refusals()})
def analysts(service: Serving, principal: Asking) -> Response:
    """List analysts with their own caps."""
    found = service.analysts(principal).items()
    return Padded({"analysts": [{"name": name, "caps": _caps(own)} for name, own in found]})


@router.post(
    "/analysts",
    operation_id="add_analyst",
    status_code=201,
    responses={201: {"model": forms.AnalystForm}, **refusals(_UNCHANGED)},
)
def add_analyst(service: Serving, principal: Asking, body: forms.NewAnalyst) -> Response:
    """Add an analyst to hubbub.yaml, or change the caps of one who is there."""
    service.add_analyst(principal, body.name, {dataset: cap.budget() for dataset, cap in body.caps.items()})
    made = service.analysts(principal)[body.name]
    return Padded({"name": body.name, "caps": _caps(made)}, status_code=201)


@router.delete("/analysts/{name}", operation_id="remove_analyst", status_code=204, responses=refusals(_UNCHANGED))
def remove_analyst(service: Serving, principal: Asking, name: Name) -> Response:
    """Remove an analyst from hubbub.yaml and close all of their tokens; the ledger keeps what they spent."""
    service.remove_analyst(principal, name)
    return Response(status_code=204)


@router.get("/groups", operation_id="groups", responses={200: {"model": forms.Groups}, **refusals()})
def groups(service: Serving, principal: Asking) -> Response:
    """List groups."""
    return Padded({"groups": [_group(name, *terms) for name, terms in service.groups(principal).items()]})


@router.get("/groups/{name}", operation_id="group", responses={200: {"model": forms.GroupForm}, **refusals()})
def group(service: Serving, principal: Asking, name: Name) -> Response:
    """Show a group."""
    found = service.groups(principal)
    if name not in found:
        raise missing(f"group called {name!r}")
    return Padded(_group(name, *found[name]))


@router.put(
    "/groups/{name}",
    operation_id="set_group",
    responses={200: {"model": forms.GroupForm}, **refusals(_UNCHANGED)},
)
def set_group(service: Serving, principal: Asking, name: Name, body: forms.GroupTerms) -> Response:
    """Make a group what this says."""
    service.set_group(principal, name, body.members, {d: cap.budget() for d, cap in body.caps.items()})
    return Padded(_group(name, *service.groups(principal)[name]))


@router.delete("/groups/{name}", operation_id="remove_group", status_code=204, responses=refusals(_UNCHANGED))
def remove_group(service: Serving, principal: Asking, name: Name) -> Response:
    """Remove a group: its members keep their own caps."""
    service.remove_group(principal, name)
    return Response(status_code=204)


@router.get("/tokens", operation_id="tokens", responses={200: {"model": forms.Tokens}, **refusals()})
def tokens(service: Serving, principal: Asking) -> Response:
    """List tokens; of each, what is kept: never the secret."""
    return Padded({"tokens": [each.form() for each in service.tokens(principal)]})


@router.post("/tokens", operation_id="issue", status_code=201, responses={201: {"model": forms.Issued}, **refusals()})
def issue(service: Serving, principal: Asking, body: forms.NewToken) -> Response:
    """Make a token. Its text is shown this once."""
    made, text = service.issue(principal, body.name, body.role, body.days, body.streams)
    return Padded({**made.form(), "token": text}, status_code=201)


@router.delete("/tokens/{number}", operation_id="revoke", status_code=204, responses=refusals())
def revoke(service: Serving, principal: Asking, number: _TokenId) -> Response:
    """Close a token for good."""
    service.revoke(principal, number)
    return Response(status_code=204)


# --- hubbub.yaml ------------------------------------------------------------------------------------------------------


@router.get(
    "/config", operation_id="config", responses={200: {"model": forms.ConfigForm, "headers": _TAG}, **refusals()}
)
def config(service: Serving, principal: Asking) -> Response:
    """Give hubbub.yaml and its hash."""
    text, digest = service.config(principal)
    return Padded({"text": text, "hash": digest}, headers={"ETag": f'"{digest}"'})


@router.post("/config/check", operation_id="check", responses={200: {"model": forms.CheckForm}, **refusals()})
def check(service: Serving, principal: Asking, body: forms.Text) -> Response:
    """Say what a new hubbub.yaml would change and promise, or all that is wrong with it; nothing is changed."""
    return Padded(service.check(principal, body.text))


@router.put(
    "/config",
    operation_id="apply",
    responses={
        200: {"model": forms.Applied, "headers": _TAG},
        **refusals(
            _UNCHANGED,
            (412, "hubbub.yaml was changed meanwhile; nothing was written."),
            (428, "If-Match is missing."),
        ),
    },
)
def apply(
    service: Serving,
    principal: Asking,
    body: forms.Text,
    if_match: Annotated[str | None, Header(max_length=200, description="The hash that GET gave.")] = None,
) -> Response:
    """Go on under a new hubbub.yaml, if the old one is still the one that was looked at."""
    if if_match is None:
        raise ParameterError(
            "HB166", "it is not said which hubbub.yaml this one replaces.", 'Send its hash: `If-Match: "…"`.'
        )
    digest = service.apply(principal, body.text, if_match.strip().strip('"'))
    return Padded({"hash": digest}, headers={"ETag": f'"{digest}"'})


# --- the ledger -------------------------------------------------------------------------------------------------------


@router.get("/ledger", operation_id="history", responses={200: {"model": forms.History}, **refusals()})
def history(
    service: Serving,
    principal: Asking,
    *,
    kind: Kind | None = None,
    analyst: Annotated[Name | None, Query()] = None,
    dataset: Annotated[Name | None, Query()] = None,
    since: _Microseconds = None,
    until: _Microseconds = None,
    unreleased: Annotated[bool, Query()] = False,
    limit: Annotated[int, LIMIT] = 50,
    before: Annotated[int | None, BEFORE] = None,
) -> Response:
    """Read the ledger, the newest entry first."""
    which = Filter(kind, analyst, dataset, since, until, before)
    found = service.history(principal, which=which, unreleased=unreleased, limit=limit)
    last = found[-1]["sequence"] if len(found) == limit else None
    return Padded({"entries": found, "next": last})


@router.post("/ledger/verify", operation_id="verify", responses={200: {"model": forms.Verified}, **refusals()})
def verify(service: Serving, principal: Asking) -> Response:
    """Derive everything in the ledger again."""
    return Padded(service.verify(principal))


@router.post(
    "/ledger/review", operation_id="review", responses={200: {"model": forms.Reviewed}, **refusals(_UNCHANGED)}
)
def review(service: Serving, principal: Asking, body: forms.Review) -> Response:
    """Note that the failed queries of an analyst on a dataset were looked at, and let the analyst go on."""
    return Padded({"charges": list(service.review(principal, body.analyst, body.dataset))})


def _caps(caps: Mapping[str, Budget]) -> dict[str, dict[str, str]]:
    return {dataset: {"epsilon": str(cap.epsilon), "delta": str(cap.delta)} for dataset, cap in caps.items()}


def _group(name: str, members: tuple[str, ...], caps: Mapping[str, Budget]) -> dict[str, Any]:
    return {"name": name, "members": list(members), "caps": _caps(caps)}
