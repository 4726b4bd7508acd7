"""What a client does, step by step, without doing it: one account for those who wait and for those who `await`.

A generator yields a request to send or a time to pause, is told what came of it, and returns what was asked for. So
retries, polling and cancelling are written once, and the two sessions only carry steps out.
"""

import re
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import SystemRandom
from typing import Any, TypeVar

import httpx

from hubbub.client import problems
from hubbub.errors import HubbubError, LedgerError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, below the API's address."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str | int] | None = None
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """So many seconds of nothing."""

    seconds: float


Steps = Generator[Request | Pause, httpx.Response | None, T]

#: Answers that another try may better: too many requests, a proxy without its server, a server that stops or starts.
_PASSING = frozenset({429, 502, 503, 504})

#: Seconds before the second try, at most; each further one waits twice as long, and none longer than `_LONGEST`.
_FIRST, _LONGEST = 0.25, 8.0

#: No server is waited for longer than this between two tries, whatever it says.
_PATIENCE = 60.0

#: Seconds for which the server may hold its answer about a job that has not ended.
_HOLD = 10

#: What a server says of a job that it does not know: it was started anew since, or has forgotten an old one.
_NO_SUCH_JOB = "HB164"

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError)

_jitter = SystemRandom().uniform


def send(request: Request, *, retries: int) -> Steps[Any]:
    """Send until there is an answer that another try would not better, and read it as JSON.

    Every try is the same request under the same Idempotency-Key, so a server charges for it once at most.
    """
    problem: HubbubError
    for tried in range(retries + 1):
        wait, again = 0.0, True
        try:
            response = yield request
        except httpx.TimeoutException:
            problem = problems.unreachable("it did not answer in time")
        except httpx.TransportError as error:
            again = "CERTIFICATE_VERIFY_FAILED" not in str(error)
            problem = problems.unreachable(type(error).__name__) if again else problems.untrusted()
        else:
            if response is None or response.is_success:
                return _json(response)
            again, wait = response.status_code in _PASSING, problems.wait(response)
            problem = problems.refusal(response)
        if not again or tried == retries:
            break
        yield Pause(delay(tried, wait))
    raise problem  # out here, so that no request, with its token, hangs on to it


def delay(tried: int, wait: float) -> float:
    """Say how long to wait before another try: what the server says, or up to twice as long each time.

    By chance, so that many clients that were turned away together do not come back together.
    """
    if wait > 0:
        return min(wait, _PATIENCE) + _jitter(0, _FIRST)
    return _jitter(0, min(_LONGEST, _FIRST * 2.0**tried))


def read(steps: Steps[Any], reader: Callable[[Any], T]) -> Steps[T]:
    """Read what comes of some steps, or say that it is not what a curator answers."""
    found = yield from steps
    try:
        return reader(found)
    except _MALFORMED:
        pass
    raise problems.unreadable("its answer has another form")


def run_query(body: Mapping[str, Any], *, retries: int) -> Steps[Any]:
    """Put a question in line and wait for its answer.

    A server that was started anew knows nothing of its jobs; the same request finds the same charge again.
    """
    key = secrets.token_hex(16)
    post = Request("POST", "query", body, headers={"Idempotency-Key": key, "Prefer": "respond-async"})
    for _ in range(retries + 1):
        number = yield from read(send(post, retries=retries), _number)
        found = yield from _followed(number, retries=retries)
        if found is not None:
            return found
    raise problems.unreachable("it forgets what it was asked")


def _followed(number: str, *, retries: int) -> Steps[Any]:
    """Follow a job to its end, or cancel it where the wait is broken off; None of a job that nobody knows any more."""
    ask = Request("GET", f"jobs/{number}", headers={"Prefer": f"wait={_HOLD}"})
    pause = 0.01
    try:
        while True:
            state, release, problem = yield from read(send(ask, retries=retries), _job)
            if problem is not None:
                raise problem
            if state == "done":
                return release
            if state == "cancelled":
                raise LedgerError("HB320", "the query was cancelled. If its charge was made, it stands.", "Ask again.")
            yield Pause(pause)
            pause = min(1.0, pause * 2)
    except HubbubError as error:
        if error.code == _NO_SUCH_JOB:
            return None
        raise
    except GeneratorExit:
        raise
    except BaseException:  # Ctrl-C, or a task that was cancelled
        with suppress(HubbubError):
            yield from send(Request("DELETE", f"jobs/{number}"), retries=0)
        raise


def _number(job: Any) -> str:
    number = job["id"]
    if not re.fullmatch(r"[\w-]{1,100}", number, re.ASCII):
        raise ValueError("this would lead elsewhere")
    return str(number)


def _job(job: Any) -> tuple[str, Any, HubbubError | None]:
    state = job["state"]
    problem = problems.error(job["problem"]) if state == "failed" else None
    return state, job["release"] if state == "done" else None, problem


def _json(response: httpx.Response | None) -> Any:
    try:
        return None if response is None else response.json()
    except ValueError:
        pass
    raise problems.unreadable("its answer is not JSON")
