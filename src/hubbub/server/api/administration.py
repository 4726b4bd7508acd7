"""Routes for owners and auditors: analysts, groups, tokens, hubbub.yaml, budget requests, and the ledger."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response

from hubbub.accounting.chain import Kind
from hubbub.accounting.filters import Budget
from hubbub.accounting.store import EntryFilter
from hubbub.errors import ParameterError
from hubbub.server.api import administration_schemas as forms
from hubbub.server.api.route import BEFORE, LIMIT, ApiRoute, PrincipalParam, ServiceParam, error_responses
from hubbub.server.api.schemas import Name
from hubbub.server.problems import PaddedJson, not_found

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_Number = Annotated[int, Path(ge=1, le=2**62, examples=[1])]
_TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$", examples=["0123456789ab"])]
_Microseconds = Annotated[int | None, Query(ge=0, le=2**62, description="Time in microseconds since 1970-01-01 UTC.")]
_UNCHANGED = (409, "Conflict with the current state; nothing was changed.")
_TAG = {"ETag": {"description": "Hash of hubbub.yaml, to be sent as If-Match.", "schema": {"type": "string"}}}


# --- requests for more budget -----------------------------------------------------------------------------------------


@router.post(
    "/requests",
    operation_id="request",
    status_code=201,
    responses={201: {"model": forms.RequestForm}, **error_responses(_UNCHANGED)},
)
def request(service: ServiceParam, principal: PrincipalParam, body: forms.RequestBody) -> Response:
    """Request more budget on a dataset: `epsilon` is the increase of your cap."""
    created = service.administration.request(principal, body.dataset, body.epsilon, body.reason)
    return PaddedJson(created.to_json(), status_code=201)


@router.get("/requests", operation_id="requests", responses={200: {"model": forms.RequestList}, **error_responses()})
def requests(
    service: ServiceParam,
    principal: PrincipalParam,
    limit: Annotated[int, LIMIT] = 50,
    before: Annotated[int | None, BEFORE] = None,
) -> Response:
    """List budget requests, newest first: an analyst's own; for owners and auditors, all."""
    page = service.administration.requests(principal, limit=limit, before=before)
    last = page[-1].id if len(page) == limit else None
    return PaddedJson({"requests": [request.to_json() for request in page], "next": last})


@router.post(
    "/requests/{number}/grant",
    operation_id="grant",
    responses={200: {"model": forms.RequestForm}, **error_responses(_UNCHANGED)},
)
def grant(service: ServiceParam, principal: PrincipalParam, number: _Number, body: forms.GrantBody) -> Response:
    """Grant a request, or less: raise the analyst's cap, but never above the caps of the dataset and its groups."""
    return PaddedJson(service.administration.grant(principal, number, body.note, body.epsilon).to_json())


@router.get(
    "/requests/{number}/effect",
    operation_id="effect",
    responses={200: {"model": forms.EffectForm}, **error_responses()},
)
def effect(service: ServiceParam, principal: PrincipalParam, number: _Number) -> Response:
    """Describe what a request would buy, and what it would do to the promise. For owners and auditors."""
    return PaddedJson({"effect": list(service.administration.effect(principal, number))})


@router.post(
    "/requests/{number}/refuse",
    operation_id="refuse",
    responses={200: {"model": forms.RequestForm}, **error_responses(_UNCHANGED)},
)
def refuse(service: ServiceParam, principal: PrincipalParam, number: _Number, body: forms.DecisionBody) -> Response:
    """Refuse a request."""
    return PaddedJson(service.administration.refuse(principal, number, body.note).to_json())


# --- analysts, groups, tokens -----------------------------------------------------------------------------------------


@router.get("/analysts", operation_id="analysts", responses={200: {"model": forms.AnalystList}, **error_responses()})
def analysts(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List analysts with their individual caps."""
    analysts = service.administration.analysts(principal)
    return PaddedJson({"analysts": [{"name": name, "caps": _caps(caps)} for name, caps in analysts.items()]})


@router.post(
    "/analysts",
    operation_id="add_analyst",
    status_code=201,
    responses={201: {"model": forms.AnalystForm}, **error_responses(_UNCHANGED)},
)
def add_analyst(service: ServiceParam, principal: PrincipalParam, body: forms.AnalystBody) -> Response:
    """Add an analyst to hubbub.yaml, or change the caps of an existing analyst."""
    service.administration.add_analyst(
        principal, body.name, {dataset: cap.budget() for dataset, cap in body.caps.items()}
    )
    caps = service.administration.analysts(principal)[body.name]
    return PaddedJson({"name": body.name, "caps": _caps(caps)}, status_code=201)


@router.delete(
    "/analysts/{name}", operation_id="remove_analyst", status_code=204, responses=error_responses(_UNCHANGED)
)
def remove_analyst(service: ServiceParam, principal: PrincipalParam, name: Name) -> Response:
    """Remove an analyst from hubbub.yaml and revoke their tokens. Their charges stay in the ledger."""
    service.administration.remove_analyst(principal, name)
    return Response(status_code=204)


@router.get("/groups", operation_id="groups", responses={200: {"model": forms.GroupList}, **error_responses()})
def groups(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List groups."""
    return PaddedJson(
        {"groups": [_group(name, *terms) for name, terms in service.administration.groups(principal).items()]}
    )


@router.get("/groups/{name}", operation_id="group", responses={200: {"model": forms.GroupForm}, **error_responses()})
def group(service: ServiceParam, principal: PrincipalParam, name: Name) -> Response:
    """Show a group."""
    groups = service.administration.groups(principal)
    if name not in groups:
        raise not_found(f"group {name!r}")
    return PaddedJson(_group(name, *groups[name]))


@router.put(
    "/groups/{name}",
    operation_id="set_group",
    responses={200: {"model": forms.GroupForm}, **error_responses(_UNCHANGED)},
)
def set_group(service: ServiceParam, principal: PrincipalParam, name: Name, body: forms.GroupBody) -> Response:
    """Create or replace a group."""
    service.administration.set_group(principal, name, body.members, {d: cap.budget() for d, cap in body.caps.items()})
    return PaddedJson(_group(name, *service.administration.groups(principal)[name]))


@router.delete("/groups/{name}", operation_id="remove_group", status_code=204, responses=error_responses(_UNCHANGED))
def remove_group(service: ServiceParam, principal: PrincipalParam, name: Name) -> Response:
    """Remove a group. Its members keep their individual caps."""
    service.administration.remove_group(principal, name)
    return Response(status_code=204)


@router.get("/tokens", operation_id="tokens", responses={200: {"model": forms.TokenList}, **error_responses()})
def tokens(service: ServiceParam, principal: PrincipalParam) -> Response:
    """List tokens, without their secrets."""
    return PaddedJson({"tokens": [token.to_json() for token in service.administration.tokens(principal)]})


@router.post(
    "/tokens",
    operation_id="issue",
    status_code=201,
    responses={201: {"model": forms.IssuedTokenForm}, **error_responses()},
)
def issue(service: ServiceParam, principal: PrincipalParam, body: forms.TokenBody) -> Response:
    """Create a token. Its text is shown only once."""
    token, text = service.administration.issue(principal, body.name, body.role, body.days, body.streams)
    return PaddedJson({**token.to_json(), "token": text}, status_code=201)


@router.delete("/tokens/{number}", operation_id="revoke", status_code=204, responses=error_responses())
def revoke(service: ServiceParam, principal: PrincipalParam, number: _TokenId) -> Response:
    """Revoke a token permanently."""
    service.administration.revoke(principal, number)
    return Response(status_code=204)


# --- hubbub.yaml ------------------------------------------------------------------------------------------------------


@router.get(
    "/config", operation_id="config", responses={200: {"model": forms.ConfigForm, "headers": _TAG}, **error_responses()}
)
def config(service: ServiceParam, principal: PrincipalParam) -> Response:
    """Return hubbub.yaml and its hash."""
    text, digest = service.administration.config(principal)
    return PaddedJson({"text": text, "hash": digest}, headers={"ETag": f'"{digest}"'})


@router.post("/config/check", operation_id="check", responses={200: {"model": forms.CheckForm}, **error_responses()})
def check(service: ServiceParam, principal: PrincipalParam, body: forms.ConfigBody) -> Response:
    """Check a new hubbub.yaml: its problems, its diff, and the guarantees it would give. Nothing is changed."""
    return PaddedJson(service.administration.check(principal, body.text))


@router.put(
    "/config",
    operation_id="apply",
    responses={
        200: {"model": forms.ConfigHash, "headers": _TAG},
        **error_responses(
            _UNCHANGED,
            (412, "hubbub.yaml has changed since it was read; nothing was written."),
            (428, "The If-Match header is missing."),
        ),
    },
)
def apply(
    service: ServiceParam,
    principal: PrincipalParam,
    body: forms.ConfigBody,
    if_match: Annotated[str | None, Header(max_length=200, description="The ETag returned by GET.")] = None,
) -> Response:
    """Replace hubbub.yaml, if it has not changed since it was read."""
    if if_match is None:
        raise ParameterError(
            "HB166", "The If-Match header is required.", "Send the ETag returned by GET /api/v1/config."
        )
    digest = service.administration.apply(principal, body.text, if_match.strip().strip('"'))
    return PaddedJson({"hash": digest}, headers={"ETag": f'"{digest}"'})


# --- the ledger -------------------------------------------------------------------------------------------------------


@router.get("/ledger", operation_id="history", responses={200: {"model": forms.LedgerEntries}, **error_responses()})
def history(
    service: ServiceParam,
    principal: PrincipalParam,
    *,
    kind: Kind | None = None,
    analyst: Annotated[Name | None, Query()] = None,
    dataset: Annotated[Name | None, Query()] = None,
    since: _Microseconds = None,
    until: _Microseconds = None,
    unreleased: Annotated[bool, Query(description="Only charges without a recorded release.")] = False,
    limit: Annotated[int, LIMIT] = 50,
    before: Annotated[int | None, BEFORE] = None,
) -> Response:
    """List ledger entries, newest first."""
    which = EntryFilter(kind, analyst, dataset, since, until, before)
    page = service.audit.history(principal, which=which, unreleased=unreleased, limit=limit)
    last = page[-1]["sequence"] if len(page) == limit else None
    return PaddedJson({"entries": page, "next": last})


@router.post(
    "/ledger/verify", operation_id="verify", responses={200: {"model": forms.VerificationForm}, **error_responses()}
)
def verify(service: ServiceParam, principal: PrincipalParam) -> Response:
    """Verify the ledger: recompute every hash and every total from the charges."""
    return PaddedJson(service.audit.verify(principal))


@router.post(
    "/ledger/review", operation_id="review", responses={200: {"model": forms.ReviewForm}, **error_responses(_UNCHANGED)}
)
def review(service: ServiceParam, principal: PrincipalParam, body: forms.ReviewBody) -> Response:
    """Record that an analyst's failed queries on a dataset were reviewed, so that the analyst can continue."""
    return PaddedJson({"charges": list(service.audit.review(principal, body.analyst, body.dataset))})


def _caps(caps: Mapping[str, Budget]) -> dict[str, dict[str, str]]:
    return {dataset: {"epsilon": str(cap.epsilon), "delta": str(cap.delta)} for dataset, cap in caps.items()}


def _group(name: str, members: tuple[str, ...], caps: Mapping[str, Budget]) -> dict[str, Any]:
    return {"name": name, "members": list(members), "caps": _caps(caps)}
