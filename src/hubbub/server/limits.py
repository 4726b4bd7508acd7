"""Rate limits: a bucket for each name, that drips full again. In memory: a restart forgives."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from threading import Lock

#: How many names are remembered. The one that was seen longest ago is forgotten first.
REMEMBERED = 100_000


class Limit:
    """At most `per_minute` in the long run, and `burst` at once, for each name. Safe to use from many threads."""

    def __init__(
        self, per_minute: int, *, burst: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = per_minute / 60
        self._most = float(burst or max(1, per_minute // 6))
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, name: str) -> int:
        """Take one from the name's bucket: 0 is go, else the seconds to wait (nothing is taken then)."""
        with self._lock:
            content, now = self._content(name)
            if content >= 1:
                self._keep(name, content - 1, now)
                return 0
            return max(1, math.ceil((1 - content) / self._rate))

    def wait(self, name: str) -> int:
        """Say what `take` would, without taking."""
        with self._lock:
            content, _ = self._content(name)
            return 0 if content >= 1 else max(1, math.ceil((1 - content) / self._rate))

    def _content(self, name: str) -> tuple[float, float]:
        now = self._clock()
        content, at = self._buckets.get(name, (self._most, now))
        return min(self._most, content + (now - at) * self._rate), now

    def _keep(self, name: str, content: float, now: float) -> None:
        self._buckets[name] = (content, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)


def address(client: str | None) -> str:
    """Name a client's address for a limit: one network of IPv6 (/64) is one client, since it has 2⁶⁴ addresses.

    >>> address("203.0.113.9"), address("2001:db8::1:2"), address("::ffff:203.0.113.9"), address(None)
    ('203.0.113.9', '2001:db8::/64', '203.0.113.9', 'unknown')
    """
    try:
        found = ip_address((client or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{IPv6Address(int(found) >> 64 << 64)}/64"
    return str(found)
