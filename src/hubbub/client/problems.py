"""From what a server answers back to the error that it raised: the same class, code, message, remedy and position."""

import re
from collections.abc import Mapping
from typing import Any

import httpx

from hubbub.errors import (
    AccessError,
    AttackError,
    AuditError,
    BudgetError,
    ConfigError,
    CrowdError,
    HubbubError,
    LedgerError,
    MechanismError,
    ParameterError,
    QueryError,
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

#: Options that are refused while a query is planned have codes among those of queries.
_OPTIONS = frozenset({"HB553", "HB556", "HB558", "HB566", "HB567"})
#: Streams had codes among those of queries before they had some of their own.
_STREAMS = frozenset({"HB531", "HB532", "HB533", "HB534"})


#: Attacks, crowd sanitizers and audits have parts of the six hundreds, and spent charges of the nine hundreds, by tens.
_TENS: Mapping[str, type[HubbubError]] = {
    "HB62": CrowdError,
    "HB63": AuditError,
    "HB64": AttackError,
    "HB65": AttackError,
    "HB66": StreamError,
    "HB90": SpentError,
}


def error_class(code: str) -> type[HubbubError]:
    """Say which class an error of this code has."""
    if code in _STREAMS:
        return StreamError
    return ParameterError if code in _OPTIONS else _TENS.get(code[:4]) or _CLASSES.get(code[:3], HubbubError)


def error(problem: Mapping[str, Any], *, wait: float = 0) -> HubbubError:
    """Make the error that a problem tells of."""
    code, message, remedy = (str(problem[name]) for name in ("code", "detail", "remedy"))
    if code == RunError().code:
        return RunError()
    kind = error_class(code)
    # the message has all its words already: what a class adds to them is left out
    found = kind.__new__(kind)
    HubbubError.__init__(found, code, message, remedy)
    if isinstance(found, QueryError):
        place = problem["position"]
        found.position = None if place is None else (int(place[0]), int(place[1]))
    if isinstance(found, AccessError):
        found.wait = int(wait)
    return found


def refusal(response: httpx.Response) -> HubbubError:
    """Make the error of a response that is not a success."""
    try:
        return error(response.json(), wait=wait(response))
    except (ValueError, KeyError, TypeError, IndexError):
        pass
    if response.status_code in (502, 503, 504):
        return unreachable(f"a proxy before it says {response.status_code}")
    return unreadable(f"it says {response.status_code}")


def wait(response: httpx.Response) -> float:
    """Read how many seconds a server wants us to wait; 0 where it does not say."""
    given = response.headers.get("Retry-After", "")
    return float(given) if re.fullmatch(r"\d{1,9}", given, re.ASCII) else 0.0


def unreadable(why: str) -> ServerError:
    """Make the error of an answer that no curator gives."""
    return ServerError(
        "HB802",
        f"what answers at this address is not a curator that this client knows: {why}.",
        "Check the address, and that client and server are of one version.",
    )


def untrusted() -> ServerError:
    """Make the error of a server whose certificate nobody vouches for."""
    return ServerError(
        "HB803",
        "the server's certificate is not one that is trusted here. Nothing was sent.",
        "Give ca= the certificate of who signed it; ask the operator for it.",
    )


def closed() -> ServerError:
    """Make the error of a session that is over."""
    return ServerError("HB804", "this session was closed.", "Open another one.")


def unreachable(why: str) -> ServerError:
    """Make the error of a server that does not answer."""
    return ServerError(
        "HB801",
        f"the server cannot be reached: {why}.",
        "Check the address and the network. If a question was on its way, it may have been charged; asked again "
        "without a new key, it is answered on that charge.",
    )
