"""Conversion of error responses to the exceptions that the server raised."""

import re
from collections.abc import Mapping
from typing import Any

import httpx2

from hubbub.errors import (
    AccessError,
    AssistantError,
    AttackError,
    AuditError,
    BudgetError,
    ConfigError,
    CrowdError,
    DeploymentError,
    HubbubError,
    LedgerError,
    MechanismError,
    ParameterError,
    QueryError,
    ReviewError,
    RunError,
    ServerError,
    SpentError,
    StreamError,
)

_CLASSES: Mapping[str, type[HubbubError]] = {
    "HB1": ParameterError,
    "HB2": BudgetError,
    "HB3": LedgerError,
    "HB4": ConfigError,
    "HB5": QueryError,
    "HB6": MechanismError,
    "HB7": AccessError,
    "HB8": ServerError,
}

#: Codes of query options that are rejected during planning; they lie in the range of query errors.
_OPTIONS = frozenset(
    {"HB553", "HB556", "HB558", "HB566", "HB567", "HB584", "HB677", "HB691", "HB692", "HB693", "HB694", "HB768"}
    | {"HB835", "HB836", "HB837", "HB838"}
    # of batches, blocks, schedules, shares, and of statements for the PostgreSQL port
    | {"HB205", "HB206", "HB207", "HB208", "HB793", "HB797", "HB799"}
    | {"HB842", "HB843", "HB844", "HB845"}
    | {f"HB{code}" for code in (808, 809, 810, 812, 813, 814, *range(816, 823))}
)
#: Codes whose class is not that of their range: of declarations and keys, and others as said.
_SINGLE: Mapping[str, type[HubbubError]] = {
    # of the set-up pages, of comments, and of a ledger that was moved
    "HB382": AccessError,
    "HB383": AccessError,
    **{f"HB{code}": ConfigError for code in range(384, 389)},
    "HB389": ParameterError,
    "HB390": ParameterError,
    "HB894": LedgerError,
    "HB735": LedgerError,
    "HB760": ConfigError,
    "HB769": ConfigError,
    "HB798": LedgerError,
    "HB806": AccessError,
    "HB807": AccessError,
    "HB811": LedgerError,
    "HB815": LedgerError,
    # of the sandbox, of rules for small numbers, and of publications
    "HB860": ConfigError,
    "HB861": QueryError,
    "HB866": ConfigError,
    "HB867": ReviewError,
    "HB868": ReviewError,
    "HB869": ReviewError,
}
#: Codes of crowd studies, which lie in the range of analyses.
_CROWD = frozenset({"HB684", "HB685", "HB686"})
#: Older codes of streams, which lie in the range of query errors.
_STREAMS = frozenset({"HB531", "HB532", "HB533", "HB534"})


#: Classes by the first two digits: crowds, audits, attacks, streams and analyses in the 600s, schemas and their queries
#: in the 700s, spent charges in 900s.
_TENS: Mapping[str, type[HubbubError]] = {
    "HB62": CrowdError,
    "HB63": AuditError,
    "HB64": AttackError,
    "HB65": AttackError,
    "HB66": StreamError,
    "HB67": QueryError,
    "HB68": QueryError,
    "HB73": ConfigError,
    "HB74": QueryError,
    "HB75": QueryError,
    "HB76": QueryError,
    "HB77": QueryError,
    "HB78": QueryError,
    "HB79": QueryError,
    "HB83": AssistantError,
    "HB84": QueryError,
    "HB85": QueryError,
    "HB86": ParameterError,
    "HB88": DeploymentError,
    "HB89": DeploymentError,
    "HB90": SpentError,
    "HB91": ReviewError,
}


def error_class(code: str) -> type[HubbubError]:
    """Return the error class of a code."""
    if code in _STREAMS:
        return StreamError
    if code in _CROWD:
        return CrowdError
    if code in _SINGLE:
        return _SINGLE[code]
    return ParameterError if code in _OPTIONS else _TENS.get(code[:4]) or _CLASSES.get(code[:3], HubbubError)


def error(problem: Mapping[str, Any], *, wait: float = 0) -> HubbubError:
    """Create the error that a problem document describes."""
    code, message, remedy = (str(problem[name]) for name in ("code", "detail", "remedy"))
    if code == RunError().code:
        return RunError()
    kind = error_class(code)
    # the message is complete, so skip what the constructors of the classes add to it
    created = kind.__new__(kind)
    HubbubError.__init__(created, code, message, remedy)
    if isinstance(created, QueryError):
        position = problem["position"]
        created.position = None if position is None else (int(position[0]), int(position[1]))
    if isinstance(created, AccessError):
        created.wait = int(wait)
    return created


def refusal(response: httpx2.Response) -> HubbubError:
    """Create the error of an unsuccessful response."""
    try:
        return error(response.json(), wait=wait(response))
    except (ValueError, KeyError, TypeError, IndexError):
        pass
    if response.status_code in (502, 503, 504):
        return unreachable(f"a proxy returned status {response.status_code}")
    return unreadable(f"it returned status {response.status_code}")


def wait(response: httpx2.Response) -> float:
    """Return the Retry-After time in seconds, or 0."""
    seconds = response.headers.get("Retry-After", "")
    return float(seconds) if re.fullmatch(r"\d{1,9}", seconds, re.ASCII) else 0.0


def unreadable(why: str) -> ServerError:
    """Create the error of a response that is not from a compatible server."""
    return ServerError(
        "HB802",
        f"The server at this address is not a compatible hubbub server: {why}.",
        "Check the address, and that client and server have the same version.",
    )


def untrusted() -> ServerError:
    """Create the error of an untrusted certificate."""
    return ServerError(
        "HB803",
        "The certificate of the server is not trusted. Nothing was sent.",
        "Ask the operator for the CA certificate and pass its path as ca=.",
    )


def closed() -> ServerError:
    """Create the error of a closed session."""
    return ServerError("HB804", "The session is closed.", "Open a new session.")


def unreachable(why: str) -> ServerError:
    """Create the error of a server that cannot be reached."""
    return ServerError(
        "HB801",
        f"The server cannot be reached: {why}.",
        "Check the address and the network. A query that was in progress may have been charged; retry it without a new "
        "key to reuse that charge.",
    )
