"""Thread pool for requests that cost no budget, such as estimates and pages.

Because these are free, fairness must bound them: few threads, a limited share of threads and queue for each principal,
a deadline, and cancellation when the client disconnects. Authentication and health checks have reserved threads, which
those who ask share fairly as well.
"""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.types import Receive

from hubbub.core import deadline
from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.limits import address
from hubbub.server.state import Role

T = TypeVar("T")

#: Maximum number of waiting requests of one principal.
MAX_WAITING = 64
#: Maximum number of waiting requests of everyone.
MAX_WAITING_TOTAL = 1024
#: Roles with a longer deadline, for example to verify the whole ledger.
TRUSTED: frozenset[Role] = frozenset({"owner", "auditor", "steward"})
TRUSTED_SECONDS = 600.0


@dataclass(eq=False)
class _Task:
    owner: str
    run: Callable[[], Any]
    future: "Future[Any]" = field(default_factory=Future)
    stopped: AccessError | None = None
    number: int = field(default_factory=count().__next__)  #: the order of arrival

    def check(self) -> None:
        """Raise if no one waits for the result any longer."""
        if self.stopped is not None:
            raise self.stopped


class FairThreads:
    """A few threads that owners share fairly: whoever has the fewest running tasks is next, then who waited longest.

    No owner takes more than `share` threads, or has more than `MAX_WAITING` waiting tasks; all owners together have no
    more than `MAX_WAITING_TOTAL`, because an owner may be a name that a client made up.
    """

    def __init__(self, *, threads: int, share: int, name: str) -> None:
        self._idle = threads
        self._share = share
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Task]] = {}
        self._total = 0
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of running and waiting tasks."""
        with self._mutex:
            return sum(self._running.values()), self._total

    def begin(self, owner: str, call: Callable[[], Any]) -> tuple[_Task, "asyncio.Future[Any]"]:
        """Queue a call; the future belongs to the running event loop."""
        task = _Task(owner, call)
        with self._mutex:
            own = self._waiting.get(owner, ())
            if len(own) >= MAX_WAITING:
                raise AccessError("HB726", "You have too many waiting requests.", "Wait for some of them to finish.", 2)
            if self._total >= MAX_WAITING_TOTAL:
                raise AccessError("HB726", "Too many requests are waiting.", "Try again in 2 s.", 2)
            self._waiting.setdefault(owner, deque()).append(task)
            self._total += 1
            self._dispatch()
        future = asyncio.wrap_future(task.future)
        future.add_done_callback(_retrieve)
        return task, future

    def drop(self, task: _Task) -> None:
        """Drop a task that has not started; a running one stops at its next check."""
        if task.stopped is None and not task.future.done():
            task.stopped = _gone()
        with self._mutex:
            if task in self._waiting.get(task.owner, ()):
                self._forget(task)

    def _forget(self, task: _Task) -> None:
        """Take a task out of the queue; the caller holds the mutex."""
        own = self._waiting[task.owner]
        own.remove(task)
        self._total -= 1
        if not own:
            del self._waiting[task.owner]

    def _dispatch(self) -> None:
        """Give each idle thread the next eligible task; the caller holds the mutex."""
        while self._idle:
            eligible = [own[0] for owner, own in self._waiting.items() if self._running[owner] < self._share]
            if not eligible:
                return
            chosen = min(eligible, key=lambda task: (self._running[task.owner], task.number))
            self._forget(chosen)
            self._idle -= 1
            self._running[chosen.owner] += 1
            self._pool.submit(self._run, chosen)

    def _run(self, task: _Task) -> None:
        try:
            with deadline.add_check(task.check):
                task.check()
                result = task.run()
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting caller
            self._end(task)
            with suppress(InvalidStateError):  # no one waits for it any longer
                task.future.set_exception(error)
        else:
            self._end(task)
            with suppress(InvalidStateError):
                task.future.set_result(result)

    def _end(self, task: _Task) -> None:
        with self._mutex:
            self._idle += 1
            self._running[task.owner] -= 1
            if not self._running[task.owner]:
                del self._running[task.owner]
            self._dispatch()


class FreePool:
    """Runs free requests of authenticated principals, with a deadline; no principal takes more than a quarter."""

    def __init__(self, *, threads: int, seconds: float) -> None:
        self._seconds = seconds
        # threads that compute share one interpreter lock, so each one that a principal takes slows everyone else
        self._threads = FairThreads(threads=threads, share=max(1, threads // 4), name="hubbub-free")

    async def run(
        self, principal: Principal, receive: Receive, call: Callable[..., T], /, *args: Any, **options: Any
    ) -> T:
        """Run a call for a principal; `receive` belongs to the request and reports when the client disconnects."""
        task, future = self._threads.begin(f"{principal.role} {principal.name}", partial(call, *args, **options))
        disconnect = asyncio.ensure_future(_disconnected(receive))
        seconds = TRUSTED_SECONDS if principal.role in TRUSTED else self._seconds
        try:
            await asyncio.wait({future, disconnect}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                result: T = future.result()
                return result
            task.stopped = _gone() if disconnect.done() else _late(seconds)
            raise task.stopped
        finally:
            disconnect.cancel()
            self._threads.drop(task)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of running and waiting tasks."""
        return self._threads.counts()


class ReservedThreads:
    """Threads that no free request or query can take: for authentication by the API and the pages, and health checks.

    Whoever sends requests without end would otherwise keep everyone else waiting to be authenticated. So each
    credential, session or address has its own turn.
    """

    def __init__(self) -> None:
        self._api = FairThreads(threads=4, share=2, name="hubbub-authenticate")
        self._pages = FairThreads(threads=4, share=2, name="hubbub-sign-in")
        self._health: CapacityLimiter | None = None

    async def authenticate(self, owner: str, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Authenticate an API request; `owner` is what the request presents: see `presented`."""
        return await self._run(self._api, owner, partial(call, *args, **options))

    async def sign_in(self, owner: str, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Sign in, or authenticate a page request; `owner` is its session, or its address."""
        return await self._run(self._pages, owner, partial(call, *args, **options))

    async def health(self, call: Callable[..., T], *args: Any) -> T:
        """Run a health check."""
        if self._health is None:  # must be created inside the event loop
            self._health = CapacityLimiter(2)
        return await anyio.to_thread.run_sync(partial(call, *args), limiter=self._health)

    async def _run(self, threads: FairThreads, owner: str, call: Callable[[], T]) -> T:
        task, future = threads.begin(owner, call)
        try:
            result: T = await future
            return result
        finally:
            threads.drop(task)


def presented(request: Request) -> str:
    """Return what an unauthenticated request is queued by: its address and a hash of its credential.

    The whole credential counts, because tokens of one identity provider begin alike. The address counts, because
    anyone can send the public part of someone else's token.
    """
    credential = request.headers.get("authorization", "")
    where = address(request.client.host if request.client else None)
    return f"{where} {sha256(credential.encode()).hexdigest()[:16]}"


def _retrieve(future: "asyncio.Future[Any]") -> None:
    """Retrieve the exception of a future, even if no one waits for it any longer."""
    if not future.cancelled():
        future.exception()


async def _disconnected(receive: Receive) -> None:
    """Wait until the client disconnects, ignoring anything it still sends."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _gone() -> AccessError:
    return AccessError("HB728", "The client disconnected.", "Send the request again.")


def _late(seconds: float) -> AccessError:
    return AccessError(
        "HB727",
        f"The request took more than {seconds:g} s and was stopped. Nothing was charged.",
        "Request less at once, or retry when fewer of your requests are waiting.",
        2,
    )
