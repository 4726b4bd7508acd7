"""Thread pool for requests that cost no budget, such as estimates and pages.

Because these are free, fairness must bound them: few threads, a limited share of threads and queue for each principal,
a deadline, and cancellation when the client disconnects. The principal with the fewest running tasks is next; ties go
to the longest wait. Authentication and health checks have reserved threads.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.types import Receive

from hubbub.core import deadline
from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.state import Role

T = TypeVar("T")

#: Maximum number of waiting requests of one principal.
MAX_WAITING = 64
#: Roles with a longer deadline, for example to verify the whole ledger.
TRUSTED: frozenset[Role] = frozenset({"owner", "auditor"})
TRUSTED_SECONDS = 600.0


@dataclass(eq=False)
class _Task:
    owner: str
    run: Callable[[], Any]
    future: "Future[Any]" = field(default_factory=Future)
    stopped: AccessError | None = None

    def check(self) -> None:
        """Raise if no one waits for the result any longer."""
        if self.stopped is not None:
            raise self.stopped


class FreePool:
    """Runs tasks on a few threads, of which no principal can take more than half."""

    def __init__(self, *, threads: int, seconds: float) -> None:
        self._seconds = seconds
        self._idle = threads
        self._max_running = max(1, threads // 2)
        self._running: Counter[str] = Counter()
        self._waiting: list[_Task] = []
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="hubbub-free")

    async def run(
        self, principal: Principal, receive: Receive, call: Callable[..., T], /, *args: Any, **options: Any
    ) -> T:
        """Run a call for a principal; `receive` belongs to the request and reports when the client disconnects."""
        task = _Task(f"{principal.role} {principal.name}", partial(call, *args, **options))
        self._take(task)
        future = asyncio.wrap_future(task.future)
        future.add_done_callback(
            lambda ended: ended.cancelled() or ended.exception()
        )  # retrieve the exception even if no one waits
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
            self._drop(task)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of running and waiting tasks."""
        with self._mutex:
            return sum(self._running.values()), len(self._waiting)

    def _take(self, task: _Task) -> None:
        with self._mutex:
            if sum(other.owner == task.owner for other in self._waiting) >= MAX_WAITING:
                raise AccessError("HB726", "You have too many waiting requests.", "Wait for some of them to finish.", 2)
            self._waiting.append(task)
            self._dispatch()

    def _drop(self, task: _Task) -> None:
        """Drop a task that has not started; a running one stops at its next check."""
        if task.stopped is None and not task.future.done():
            task.stopped = _gone()
        with self._mutex:
            if task in self._waiting:
                self._waiting.remove(task)

    def _dispatch(self) -> None:
        """Give each idle thread the next eligible task; the caller holds the mutex."""
        while self._idle:
            eligible = [task for task in self._waiting if self._running[task.owner] < self._max_running]
            if not eligible:
                return
            chosen = min(eligible, key=lambda task: self._running[task.owner])  # ties: the oldest
            self._waiting.remove(chosen)
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


class ReservedThreads:
    """Threads that no task can take: for authentication by the API and the pages, and for health checks."""

    def __init__(self) -> None:
        self._limits: dict[str, CapacityLimiter] = {}

    async def authenticate(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Authenticate an API request."""
        return await self._run("authenticate", 8, partial(call, *args, **options))

    async def sign_in(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Sign in, or authenticate a page request."""
        return await self._run("sign in", 8, partial(call, *args, **options))

    async def health(self, call: Callable[..., T], *args: Any) -> T:
        """Run a health check."""
        return await self._run("health", 2, partial(call, *args))

    async def _run(self, name: str, threads: int, call: Callable[[], T]) -> T:
        if name not in self._limits:  # must be created inside the event loop
            self._limits[name] = CapacityLimiter(threads)
        return await anyio.to_thread.run_sync(call, limiter=self._limits[name])


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
