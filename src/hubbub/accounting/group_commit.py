"""Group commit: calls from many threads are served together by one of them.

Whoever comes while nobody serves becomes the leader and serves itself; whoever comes while another serves waits in
line, and the whole line is served together by the next leader, in the order of arrival. One commit then makes many
calls durable, and no call returns before the commit that holds it. A single caller never waits.
"""

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

from hubbub.errors import HubbubError

#: As many calls as one commit serves: it bounds how long the last of a long line waits for the first.
LARGEST = 512


class Call:
    """One call on its way; whoever serves it fills in the outcome."""

    __slots__ = ("error", "gate", "served")

    def __init__(self) -> None:
        self.served = False
        self.error: HubbubError | None = None
        self.gate: Lock | None = None

    def reset(self) -> None:
        """Forget what was decided: the transaction that held it was undone."""
        self.error = None


C = TypeVar("C", bound=Call)


class GroupCommit(Generic[C]):
    """Lets calls through in groups; `serve` is never run by two threads at once and must not raise."""

    def __init__(self, serve: Callable[[Sequence[C]], None]) -> None:
        self._serve = serve
        self._line: deque[C] = deque()
        self._mutex = Lock()
        self._leading = False

    def take(self, call: C) -> None:
        """Return when the call was served."""
        with self._mutex:
            if self._leading:
                gate = call.gate = Lock()
                gate.acquire()
                self._line.append(call)
            else:
                self._leading = True  # and the line is empty, or somebody would lead
                gate = None
        group = [call]
        if gate is not None:
            gate.acquire()
            if call.served:
                return
            with self._mutex:
                while self._line and len(group) < LARGEST:
                    group.append(self._line.popleft())
        # from here this thread leads: nobody else serves until it hands over
        try:
            self._serve(group)
        finally:
            self._hand_over(group)

    def _hand_over(self, group: Sequence[C]) -> None:
        with self._mutex:
            heir = self._line.popleft() if self._line else None
            self._leading = heir is not None
        for call in group:
            call.served = True
            if call.gate is not None and call is not group[0]:
                call.gate.release()
        # the heir wakes last, so that those just served can be in line again when it gathers its group
        if heir is not None and heir.gate is not None:
            heir.gate.release()
