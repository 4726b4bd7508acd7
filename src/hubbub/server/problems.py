"""Errors as problem+json (RFC 9457), with one table from error codes to HTTP status codes.

A problem contains an error's code, message, and remedy, which never hold values from the data, and the request id, by
which the operator finds it in the log.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from hubbub.core import chunked_json as pieces
from hubbub.errors import AccessError, HubbubError, LedgerError, ParameterError, QueryError

_log = logging.getLogger("hubbub.server")

#: Responses are padded to a multiple of this many bytes, so that their length reveals little.
STEP = 1024
#: Bytes reserved for one number with its comma; the longest double has 24.
_WIDTH = 26

#: Status by the first digit of the code; see `hubbub.errors`.
_CLASSES: Mapping[str, int] = {
    "HB1": 422,
    "HB2": 409,
    "HB3": 503,
    "HB4": 422,
    "HB5": 422,
    "HB6": 422,
    "HB7": 403,
    "HB9": 424,
}
#: Codes whose status differs from that of their class.
_CODES: Mapping[str, int] = {
    "HB120": 404,
    "HB121": 403,
    "HB122": 403,
    "HB128": 409,
    "HB140": 404,
    "HB141": 409,
    "HB142": 409,
    "HB143": 404,
    "HB146": 404,
    "HB160": 400,
    "HB161": 400,
    "HB162": 413,
    "HB163": 415,
    "HB164": 404,
    "HB165": 405,
    "HB166": 428,
    "HB167": 409,
    "HB170": 422,
    "HB325": 409,
    "HB327": 409,
    "HB532": 503,
    "HB382": 403,
    "HB383": 403,
    "HB384": 422,
    "HB385": 422,
    "HB386": 422,
    "HB387": 422,
    "HB388": 422,
    "HB389": 422,
    "HB390": 409,
    "HB426": 412,
    "HB428": 409,
    "HB705": 403,
    "HB910": 409,
    "HB911": 409,
    "HB912": 404,
    "HB913": 409,
    "HB914": 422,
    "HB915": 403,
    "HB999": 500,
    "HB660": 409,
    "HB661": 409,
    "HB662": 409,
    "HB663": 409,
    "HB664": 403,
    "HB729": 408,
    "HB735": 503,
    "HB797": 422,
    "HB798": 503,
    "HB799": 422,
}
_TENS: Mapping[str, int] = {"HB70": 401, "HB72": 429, "HB84": 422, "HB85": 422} | {
    f"HB7{digit}": 422 for digit in range(3, 9)
}
#: Errors with status 503 whose text names no files or machines.
_PUBLIC = frozenset({"HB532", "HB318", "HB319", "HB320", "HB324", "HB735"})
_RETRY = (
    "Send the same request with the same Idempotency-Key in a minute: it is charged only once. If the error persists, "
    "give the operator the request id."
)
_TITLES: Mapping[int, str] = {409: "Conflict with budget or state", 424: "The query could not be completed"}


def status_of(error: HubbubError) -> int:
    """Return the HTTP status of an error."""
    return _CODES.get(error.code) or _TENS.get(error.code[:4]) or _CLASSES.get(error.code[:3], 422)


def redacted(error: HubbubError, request_id: str) -> HubbubError:
    """Return an error fit for clients; one that names files or machines is logged and replaced."""
    if status_of(error) != 503 or error.code in _PUBLIC:
        return error
    _log.warning("ledger", extra={"fields": {"request": request_id, "code": error.code, "says": error.message}})
    return LedgerError(error.code, "The ledger is currently unavailable.", _RETRY)


def problem(error: HubbubError, request_id: str) -> dict[str, Any]:
    """Return the body of a problem."""
    status, error = status_of(error), redacted(error, request_id)
    return {
        "type": f"urn:hubbub:{error.code}",
        "title": _TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "code": error.code,
        "remedy": error.remedy,
        "position": list(error.position) if isinstance(error, QueryError) and error.position else None,
        "instance": request_id,
    }


class PaddedJson(Response):
    """JSON padded with spaces to at least `least` bytes, then to a multiple of `STEP`."""

    media_type = "application/json"

    def __init__(
        self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None, *, least: int = 0
    ) -> None:
        self._least = least
        super().__init__(content, status_code, headers)

    def render(self, content: Any) -> bytes:
        """Write the JSON and its padding."""
        text = _json(content)
        size = max(len(text), self._least)
        return text + b" " * (size - size % -STEP - len(text))


def release_response(form: dict[str, Any], **around: Any) -> PaddedJson:
    """Return the response for a release; its length reveals how many numbers it has, not their digits."""
    if "form" in form["answer"]:
        # a long answer is compressed, and its length tells what the noisy numbers tell
        return PaddedJson({**around, "release": form} if around else form)
    columns = form["answer"]["columns"]
    numeric = [column["kind"] in ("integer", "real") for column in columns]
    bare: dict[str, Any] = {"values": [], "low": None, "high": None, "sampling": None, "joint": None}
    skeleton = [{**column, **bare} if bared else column for column, bared in zip(columns, numeric, strict=True)]
    more = sum(("sampling" in column) + 2 * ("joint" in column) for column in columns)
    numbers = len(form["answer"]["ratio"]) * (1 + 3 * sum(numeric) + more)
    body = {**around, "release": form} if around else form
    shape = _json({**around, **form, "answer": {"columns": skeleton, "ratio": []}})
    return PaddedJson(body, least=len(shape) + numbers * _WIDTH)


def _json(content: Any) -> bytes:
    return pieces.dumps(content).encode()


class ProblemResponse(PaddedJson):
    """The response for an error."""

    media_type = "application/problem+json"

    def __init__(self, error: HubbubError, request_id: str) -> None:
        body = problem(error, request_id)
        headers = {}
        if body["status"] == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="hubbub"'
        if isinstance(error, AccessError) and error.wait:
            headers["Retry-After"] = str(error.wait)
        super().__init__(body, status_code=body["status"], headers=headers)


def not_found(what: str) -> ParameterError:
    """Return the error for something that does not exist or that the principal may not see: the same for both."""
    return ParameterError(
        "HB164", f"There is no {what}.", "Check the name or number; GET /api/v1/openapi.json lists all routes."
    )


def internal_error() -> HubbubError:
    """Return the constant error for unexpected exceptions; it reveals nothing about them."""
    return HubbubError(
        "HB999",
        "Internal server error.",
        "Give the operator the request id. A charge that was made stays; the same request with the same "
        "Idempotency-Key continues from it.",
    )
