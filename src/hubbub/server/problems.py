"""Errors as problem+json (RFC 9457): one table from our codes to a status, and the words of what HTTP itself refuses.

A problem is made of an error's code, message and remedy, which never hold a value from the data, and of the request's
number, by which the operator finds it in the log.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from hubbub.core import chunked_json as pieces
from hubbub.errors import AccessError, HubbubError, LedgerError, ParameterError, QueryError

_log = logging.getLogger("hubbub.server")

#: JSON leaves in steps of so many bytes, so that its length says little.
STEP = 1024
#: As many as a number takes, with its comma: 24 for the longest double.
_WIDTH = 26

#: The status of each class of errors, by the first digit of its codes: see `hubbub.errors`.
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
#: Codes whose status is not that of their class.
_CODES: Mapping[str, int] = {
    "HB120": 404,
    "HB121": 403,
    "HB122": 403,
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
    "HB170": 422,
    "HB325": 409,
    "HB327": 409,
    "HB532": 503,
    "HB426": 412,
    "HB428": 409,
    "HB705": 403,
    "HB999": 500,
    "HB660": 409,
    "HB661": 409,
    "HB662": 409,
    "HB663": 409,
    "HB664": 403,
    "HB729": 408,
}
_TENS: Mapping[str, int] = {"HB70": 401, "HB72": 429}
#: Errors of the service itself: they say nothing of where things are.
_FRANK = frozenset({"HB532", "HB318", "HB319", "HB320", "HB324"})
_LATER = (
    "Send the same request with the same Idempotency-Key in a minute: it is charged once. If it goes on, tell the "
    "operator the number of the request."
)
_TITLES: Mapping[int, str] = {409: "Budget or state does not allow it", 424: "The query could not be completed"}


def status_of(error: HubbubError) -> int:
    """Give the status of an error: by its code, or by the class of its code."""
    return _CODES.get(error.code) or _TENS.get(error.code[:4]) or _CLASSES.get(error.code[:3], 422)


def shown(error: HubbubError, request_id: str) -> HubbubError:
    """Give an error as it may leave; what names files and machines is the operator's alone, and goes to the log."""
    if status_of(error) != 503 or error.code in _FRANK:
        return error
    _log.warning("ledger", extra={"fields": {"request": request_id, "code": error.code, "says": error.message}})
    return LedgerError(error.code, "the ledger cannot be used now.", _LATER)


def problem(error: HubbubError, request_id: str) -> dict[str, Any]:
    """Give the body of a problem."""
    status, error = status_of(error), shown(error, request_id)
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


class Padded(Response):
    """JSON, filled up with spaces to at least so many bytes, and then to a multiple of `STEP`."""

    media_type = "application/json"

    def __init__(
        self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None, *, least: int = 0
    ) -> None:
        self._least = least
        super().__init__(content, status_code, headers)

    def render(self, content: Any) -> bytes:
        """Write JSON and the spaces after it."""
        text = _json(content)
        size = max(len(text), self._least)
        return text + b" " * (size - size % -STEP - len(text))


def released(form: dict[str, Any], **around: Any) -> Padded:
    """Answer with a release; its length tells how many numbers it has, not how long they are."""
    columns = form["answer"]["columns"]
    numeric = [column["kind"] in ("integer", "real") for column in columns]
    bare: dict[str, Any] = {"values": [], "low": None, "high": None}
    skeleton = [{**column, **bare} if bared else column for column, bared in zip(columns, numeric, strict=True)]
    numbers = len(form["answer"]["ratio"]) * (1 + 3 * sum(numeric))
    body = {**around, "release": form} if around else form
    shape = _json({**around, **form, "answer": {"columns": skeleton, "ratio": []}})
    return Padded(body, least=len(shape) + numbers * _WIDTH)


def _json(content: Any) -> bytes:
    return pieces.dumps(content).encode()


class Refusal(Padded):
    """A problem on its way out."""

    media_type = "application/problem+json"

    def __init__(self, error: HubbubError, request_id: str) -> None:
        body = problem(error, request_id)
        headers = {}
        if body["status"] == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="hubbub"'
        if isinstance(error, AccessError) and error.wait:
            headers["Retry-After"] = str(error.wait)
        super().__init__(body, status_code=body["status"], headers=headers)


def missing(what: str) -> ParameterError:
    """Make the refusal of what is not there, or not for who asks: the same words for both."""
    return ParameterError("HB164", f"there is no {what}.", "GET /api/v1/openapi.json lists what can be asked for.")


def inside() -> HubbubError:
    """Make the one error of everything that nobody thought of: it says nothing of what it was."""
    return HubbubError(
        "HB999",
        "something went wrong inside the server.",
        "Tell the operator the number of the request: the log says where. A charge that was made stands, and the same "
        "request with the same Idempotency-Key goes on from it.",
    )
