"""Errors and notices as PostgreSQL clients expect them: SQLSTATE, detail, hint, and the code of hubbub.

Tested in tests/gateway/test_failures.py.
"""

import logging
import secrets
from collections.abc import Mapping

from hubbub.errors import HubbubError, QueryError
from hubbub.gateway import wire
from hubbub.gateway.result import Notice
from hubbub.server.middleware import code_locations
from hubbub.server.problems import internal_error, redacted

_log = logging.getLogger("hubbub.gateway")

#: SQLSTATE by the code of hubbub, or by its first letters; the longest match counts.
_STATES: Mapping[str, str] = {
    "HB1": "22023",
    "HB12": "42704",
    "HB124": "22023",
    "HB132": "22023",
    "HB185": "42704",
    "HB186": "42P01",
    "HB2": "53400",
    "HB3": "58030",
    "HB319": "57P01",
    "HB320": "57014",
    "HB4": "58000",
    "HB5": "0A000",
    "HB500": "42601",
    "HB501": "42601",
    "HB504": "42883",
    "HB506": "42P01",
    "HB507": "42703",
    "HB6": "22023",
    "HB7": "42501",
    "HB70": "28000",
    "HB701": "28P01",
    "HB72": "53000",
    "HB721": "28000",
    "HB8": "08000",
    "HB805": "08P01",
    "HB806": "28000",
    "HB807": "53300",
    "HB808": "22023",
    "HB809": "0A000",
    "HB810": "0A000",
    "HB811": "57014",
    "HB812": "26000",
    "HB813": "22P02",
    "HB814": "22000",
    "HB815": "57P01",
    "HB816": "34000",
    "HB817": "0A000",
    "HB818": "0A000",
    "HB819": "53200",
    "HB9": "58000",
    "HB91": "42501",
    "HB999": "XX000",
}


def state_of(code: str) -> str:
    """Return the SQLSTATE of an error.

    >>> state_of("HB201"), state_of("HB701"), state_of("HB900")
    ('53400', '28P01', '58000')
    """
    return next(_STATES[code[:size]] for size in range(len(code), 2, -1) if code[:size] in _STATES)


def error(problem: BaseException, *, severity: str = "ERROR", sql: str = "") -> bytes:
    """Write an error; one that hubbub does not know is one constant, and its kind goes to the log."""
    number = secrets.token_hex(8)
    if not isinstance(problem, HubbubError):
        facts = {"request": number, "error": type(problem).__name__, "at": code_locations(problem)}
        _log.error("failed", extra={"fields": facts})
        problem = internal_error()
    shown = redacted(problem, number)
    fields = {
        "S": severity,
        "V": severity,
        "C": state_of(shown.code),
        "M": f"{shown.code} {shown.message}",
        "D": f"request {number}" if shown.code == "HB999" or shown is not problem else "",
        "H": shown.remedy,
        "R": shown.code,
    }
    position = shown.position if isinstance(shown, QueryError) else None
    if position is not None:
        lines = sql.split("\n")
        fields["P"] = str(sum(len(line) + 1 for line in lines[: position[0] - 1]) + position[1])
    return wire.fields(b"E", {name: value for name, value in fields.items() if value})


def notice(remark: Notice) -> bytes:
    """Write a notice."""
    fields = {"S": remark.severity, "V": remark.severity, "C": remark.state, "M": remark.text, "D": remark.detail}
    return wire.fields(b"N", {name: value for name, value in fields.items() if value})
