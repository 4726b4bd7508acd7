"""The desk: what costs no budget and blocks a thread, for everybody who is known, in turns.

Estimates and pages are free, so nothing but fairness bounds them: few threads, a share of them and of the places in
line for each principal, a deadline, and an end when the client hangs up. Who has the fewest running is served next;
among equals, who waits longest. Signing in and health have threads of their own.
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

from hubbub.core import deadline as patience
from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.state import Role

T = TypeVar("T")

#: Requests of one principal that may wait at the desk.
MOST_WAITING = 64
#: Who is trusted with more time, and the seconds for it: to verify the whole ledger, for one.
TRUSTED: frozenset[Role] = frozenset({"owner", "auditor"})
TRUSTED_SECONDS = 600.0


@dataclass(eq=False)
class _Errand:
    owner: str
    run: Callable[[], Any]
    future: "Future[Any]" = field(default_factory=Future)
    stopped: AccessError | None = None

    def check(self) -> None:
        """Raise where nobody waits any longer."""
        if self.stopped is not None:
            raise self.stopped


class Desk:
    """Runs errands on so many threads, of which nobody can take all."""

    def __init__(self, *, threads: int, seconds: float) -> None:
        self._seconds = seconds
        self._idle = threads
        self._most_running = max(1, threads // 2)
        self._running: Counter[str] = Counter()
        self._waiting: list[_Errand] = []
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="hubbub-desk")

    async def run(
        self, principal: Principal, receive: Receive, call: Callable[..., T], /, *args: Any, **options: Any
    ) -> T:
        """Run a call of a principal's in its turn; `receive` is the request's, and says when the client has hung up."""
        errand = _Errand(f"{principal.role} {principal.name}", partial(call, *args, **options))
        self._take(errand)
        future = asyncio.wrap_future(errand.future)
        future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody may be there to take it
        watch = asyncio.ensure_future(_hung_up(receive))
        seconds = TRUSTED_SECONDS if principal.role in TRUSTED else self._seconds
        try:
            await asyncio.wait({future, watch}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                found: T = future.result()
                return found
            errand.stopped = _gone() if watch.done() else _late(seconds)
            raise errand.stopped
        finally:
            watch.cancel()
            self._drop(errand)

    def counts(self) -> tuple[int, int]:
        """Say how many errands run and how many wait."""
        with self._mutex:
            return sum(self._running.values()), len(self._waiting)

    def _take(self, errand: _Errand) -> None:
        with self._mutex:
            if sum(each.owner == errand.owner for each in self._waiting) >= MOST_WAITING:
                raise AccessError("HB726", "you have too many requests waiting.", "Wait for some to end.", 2)
            self._waiting.append(errand)
            self._dispatch()

    def _drop(self, errand: _Errand) -> None:
        """Forget an errand that has not begun; one that runs stops at its next check."""
        if errand.stopped is None and not errand.future.done():
            errand.stopped = _gone()
        with self._mutex:
            if errand in self._waiting:
                self._waiting.remove(errand)

    def _dispatch(self) -> None:
        """Give each idle thread the next errand; whoever calls this holds the mutex."""
        while self._idle:
            may = [each for each in self._waiting if self._running[each.owner] < self._most_running]
            if not may:
                return
            chosen = min(may, key=lambda each: self._running[each.owner])  # the oldest among equals
            self._waiting.remove(chosen)
            self._idle -= 1
            self._running[chosen.owner] += 1
            self._pool.submit(self._run, chosen)

    def _run(self, errand: _Errand) -> None:
        try:
            with patience.limited(errand.check):
                errand.check()
                found = errand.run()
        except BaseException as error:  # noqa: BLE001 - it goes to whoever waits
            self._end(errand)
            with suppress(InvalidStateError):  # nobody waits for it any longer
                errand.future.set_exception(error)
        else:
            self._end(errand)
            with suppress(InvalidStateError):
                errand.future.set_result(found)

    def _end(self, errand: _Errand) -> None:
        with self._mutex:
            self._idle += 1
            self._running[errand.owner] -= 1
            if not self._running[errand.owner]:
                del self._running[errand.owner]
            self._dispatch()


class Doors:
    """Threads that nobody's errands can take: for who comes in, by the API or by the pages, and for who watches."""

    def __init__(self) -> None:
        self._limits: dict[str, CapacityLimiter] = {}

    async def enter(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Say who asks for something of the API."""
        return await self._through("enter", 8, partial(call, *args, **options))

    async def sign_in(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Sign in, or say who asks for a page."""
        return await self._through("sign in", 8, partial(call, *args, **options))

    async def health(self, call: Callable[..., T], *args: Any) -> T:
        """Look whether all is well."""
        return await self._through("health", 2, partial(call, *args))

    async def _through(self, name: str, threads: int, call: Callable[[], T]) -> T:
        if name not in self._limits:  # made where the event loop runs, as it must be
            self._limits[name] = CapacityLimiter(threads)
        return await anyio.to_thread.run_sync(call, limiter=self._limits[name])


async def _hung_up(receive: Receive) -> None:
    """Wait until the client has hung up; what it still sends is not for anybody."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _gone() -> AccessError:
    return AccessError("HB728", "the client hung up.", "Ask again.")


def _late(seconds: float) -> AccessError:
    return AccessError(
        "HB727",
        f"this took more than {seconds:g} s, and was stopped. Nothing was charged.",
        "Ask for less at once, or ask again when fewer of your requests are waiting.",
        2,
    )
