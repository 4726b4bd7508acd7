"""Group commit: one thread serves the calls of many threads in one transaction.

A thread that finds no leader becomes the leader and serves its own call. Threads that arrive meanwhile wait in a queue,
and the next leader serves the whole queue in order of arrival. One commit thus makes many calls durable, and no call
returns before its commit. A single caller never waits.
"""

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

from hubbub.errors import HubbubError

#: Calls that one commit serves; this bounds how long the first call of a long queue waits for the last.
MAX_BATCH = 512


class PendingCall:
    """A call that waits to be served; the thread that serves it sets the outcome."""

    __slots__ = ("error", "gate", "served")

    def __init__(self) -> None:
        self.served = False
        self.error: HubbubError | None = None
        self.gate: Lock | None = None

    def reset(self) -> None:
        """Discard the outcome, after its transaction was rolled back."""
        self.error = None


C = TypeVar("C", bound=PendingCall)


class GroupCommit(Generic[C]):
    """Serve calls in batches; `serve` never runs in two threads at once and must not raise."""

    def __init__(self, serve: Callable[[Sequence[C]], None]) -> None:
        self._serve = serve
        self._queue: deque[C] = deque()
        self._mutex = Lock()
        self._leading = False

    def take(self, call: C) -> None:
        """Return after the call was served."""
        with self._mutex:
            if self._leading:
                gate = call.gate = Lock()
                gate.acquire()
                self._queue.append(call)
            else:
                self._leading = True  # the queue is empty, otherwise another thread would lead
                gate = None
        group = [call]
        if gate is not None:
            gate.acquire()
            if call.served:
                return
            with self._mutex:
                while self._queue and len(group) < MAX_BATCH:
                    group.append(self._queue.popleft())
        # from here on this thread leads, until it hands over
        try:
            self._serve(group)
        finally:
            self._hand_over(group)

    def _hand_over(self, group: Sequence[C]) -> None:
        with self._mutex:
            successor = self._queue.popleft() if self._queue else None
            self._leading = successor is not None
        for call in group:
            call.served = True
            if call.gate is not None and call is not group[0]:
                call.gate.release()
        # the next leader wakes last, so that threads just served can queue again before it collects its batch
        if successor is not None and successor.gate is not None:
            successor.gate.release()
