"""Rate limits: a token bucket for each name, in memory, or on the board that workers share."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from threading import Lock

from hubbub.server.board import Board, SharedBuckets

#: Maximum number of buckets; the least recently used are dropped first.
MAX_NAMES = 100_000


class RateLimit:
    """Allow each name `per_minute` calls on average and `burst` at once. Safe to use from many threads."""

    def __init__(
        self,
        per_minute: int,
        *,
        burst: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        board: Board | None = None,
        kind: str = "",
    ) -> None:
        """With a `board`, the limits of this kind hold for all workers together."""
        self._rate = per_minute / 60
        self._burst = float(burst or max(1, per_minute // 6))
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()
        self._shared: SharedBuckets | None = None
        if board is not None:
            self._shared = SharedBuckets(board, kind, rate=self._rate, burst=self._burst, most=MAX_NAMES)

    def take(self, name: str) -> int:
        """Take one call from a name's bucket; return 0, or the seconds to wait if the bucket is empty."""
        if self._shared is not None:
            return 0 if self._shared.take(name, self._clock()) else max(1, self.wait(name))
        with self._lock:
            content, now = self._content(name)
            if content >= 1:
                self._keep(name, content - 1, now)
                return 0
            return max(1, math.ceil((1 - content) / self._rate))

    def take_at_once(self, name: str) -> bool:
        """Take one call if that needs no wait for anybody; False if `take` has to be asked."""
        if self._shared is not None:
            return self._shared.take_at_once(name, self._clock())
        return self.take(name) == 0

    def has_at_once(self, name: str) -> bool:
        """Say whether there is a call, without a wait for anybody; False if `wait` has to be asked."""
        if self._shared is not None:
            return self._shared.has_at_once(name, self._clock())
        return self.wait(name) == 0

    def wait(self, name: str) -> int:
        """Return what `take` would return, without taking."""
        if self._shared is not None:
            content = self._shared.content(name, self._clock())
        else:
            with self._lock:
                content, _ = self._content(name)
        return 0 if content >= 1 else max(1, math.ceil((1 - content) / self._rate))

    def _content(self, name: str) -> tuple[float, float]:
        now = self._clock()
        content, at = self._buckets.get(name, (self._burst, now))
        return min(self._burst, content + (now - at) * self._rate), now

    def _keep(self, name: str, content: float, now: float) -> None:
        self._buckets[name] = (content, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > MAX_NAMES:
            self._buckets.popitem(last=False)


def address(client: str | None) -> str:
    """Return the name of a client address for a limit; an IPv6 /64 network counts as one client.

    >>> address("203.0.113.9"), address("2001:db8::1:2"), address("::ffff:203.0.113.9"), address(None)
    ('203.0.113.9', '2001:db8::/64', '203.0.113.9', 'unknown')
    """
    try:
        parsed = ip_address((client or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"
    return str(parsed)
