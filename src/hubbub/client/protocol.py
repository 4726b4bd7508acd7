"""The client protocol as generators without I/O, shared by the synchronous and the asynchronous session.

A generator yields requests and pauses, receives the responses, and returns the result. So retries, polling and
cancellation are implemented once, and the two sessions only perform the steps.

Tested in tests/client/test_retries.py.
"""

import re
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import SystemRandom
from typing import Any, TypeVar

import httpx2

from hubbub.client import problems
from hubbub.errors import HubbubError, LedgerError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, relative to the base address of the API."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str | int] | None = None
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause between two requests; with the progress of a job, if it is known."""

    seconds: float
    progress: tuple[float, str] | None = None


Steps = Generator[Request | Pause, httpx2.Response | None, T]

#: Status codes worth a retry: too many requests, a proxy without its server, a server that is stopping or starting.
_RETRYABLE = frozenset({429, 502, 503, 504})

#: Maximum seconds before the first retry; the maximum doubles for each further retry, up to `_LONGEST`.
_FIRST, _LONGEST = 0.25, 8.0

#: Maximum seconds between two tries, whatever Retry-After says.
_MAX_WAIT = 60.0

#: Seconds for which the server may hold its response while a job is running.
_HOLD = 10

#: The code for an unknown job: the server restarted, or has discarded an old job.
_NO_SUCH_JOB = "HB164"

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError)

_jitter = SystemRandom().uniform


def send(request: Request, *, retries: int) -> Steps[Any]:
    """Send a request, with retries, and parse the response as JSON.

    Every retry has the same Idempotency-Key, so the server charges at most once.
    """
    problem: HubbubError
    for tried in range(retries + 1):
        wait, retry = 0.0, True
        try:
            response = yield request
        except httpx2.TimeoutException:
            problem = problems.unreachable("the request timed out")
        except httpx2.TransportError as error:
            retry = "CERTIFICATE_VERIFY_FAILED" not in str(error)
            problem = problems.unreachable(type(error).__name__) if retry else problems.untrusted()
        else:
            if response is None or response.is_success:
                return _json(response)
            retry, wait = response.status_code in _RETRYABLE, problems.wait(response)
            problem = problems.refusal(response)
        if not retry or tried == retries:
            break
        yield Pause(delay(tried, wait))
    raise problem  # outside the handlers, so that it does not reference a request with its token


def delay(tried: int, wait: float) -> float:
    """Return the seconds before the next retry: Retry-After, or exponential backoff.

    It has random jitter, so that clients rejected together do not return together.
    """
    if wait > 0:
        return min(wait, _MAX_WAIT) + _jitter(0, _FIRST)
    return _jitter(0, min(_LONGEST, _FIRST * 2.0**tried))


def read(steps: Steps[Any], reader: Callable[[Any], T]) -> Steps[T]:
    """Parse the result of some steps, or raise if it is malformed."""
    reply = yield from steps
    try:
        return reader(reply)
    except _MALFORMED:
        pass
    raise problems.unreadable("its response has another format")


def run_query(body: Mapping[str, Any], *, retries: int) -> Steps[Any]:
    """Submit a query and wait for its answer.

    A restarted server does not know earlier jobs; submitting the same request again reuses the charge.
    """
    key = secrets.token_hex(16)
    post = Request("POST", "query", body, headers={"Idempotency-Key": key, "Prefer": "respond-async"})
    for _ in range(retries + 1):
        number = yield from read(send(post, retries=retries), _number)
        release = yield from _follow_job(number, retries=retries)
        if release is not None:
            return release
    raise problems.unreachable("it lost the job repeatedly")


def _follow_job(number: str, *, retries: int) -> Steps[Any]:
    """Poll a job until it ends, or cancel it if the wait is interrupted; return None for an unknown job."""
    poll = Request("GET", f"jobs/{number}", headers={"Prefer": f"wait={_HOLD}"})
    pause = 0.01
    try:
        while True:
            state, release, problem, progress = yield from read(send(poll, retries=retries), _job)
            if problem is not None:
                raise problem
            if state == "done":
                return release
            if state == "cancelled":
                raise LedgerError(
                    "HB320",
                    "The query was canceled. If the charge was already made, it stands.",
                    "Run the query again.",
                )
            yield Pause(pause, progress)
            pause = min(1.0, pause * 2)
    except HubbubError as error:
        if error.code == _NO_SUCH_JOB:
            return None
        raise
    except GeneratorExit:
        raise
    except BaseException:  # Ctrl-C, or a canceled task
        with suppress(HubbubError):
            yield from send(Request("DELETE", f"jobs/{number}"), retries=0)
        raise


def _number(job: Any) -> str:
    number = job["id"]
    if not re.fullmatch(r"[\w-]{1,100}", number, re.ASCII):
        raise ValueError("invalid job id")
    return str(number)


def _job(job: Any) -> tuple[str, Any, HubbubError | None, tuple[float, str] | None]:
    state = job["state"]
    problem = problems.error(job["problem"]) if state == "failed" else None
    step = job.get("progress")
    progress = None if step is None else (float(step["done"]), str(step["what"]))
    return state, job["release"] if state == "done" else None, problem, progress


def _json(response: httpx2.Response | None) -> Any:
    try:
        return None if response is None else response.json()
    except ValueError:
        pass
    raise problems.unreadable("its response is not JSON")
