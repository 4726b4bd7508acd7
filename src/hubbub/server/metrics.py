"""Prometheus metrics about the load of the service; none depends on the data.

A query that failed after its charge is counted as answered, because the failure may depend on the data. Durations end
when the response is sent, on the time quantum, and fall into a few wide buckets.

Tested in tests/server/test_api.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

#: Upper bounds in seconds; wide, so that they reveal only large delays.
BUCKETS = (0.25, 1.0, 5.0, 30.0)

#: Requests, buckets and routes, each a list of keys with a number at the end.
Counters = tuple[list[list[Any]], list[list[Any]], list[list[Any]]]


class Metrics:
    """In-memory counters."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._routes: Counter[str] = Counter()

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one response."""
        kind = "2xx" if status == 424 else f"{status // 100}xx"
        with self._mutex:
            self._requests[route, method, kind] += 1
            self._routes[route] += 1
            self._buckets.update((route, end) for end in BUCKETS if seconds <= end)

    def counters(self) -> Counters:
        """Return all counts as lists, to be shared."""
        with self._mutex:
            return (
                [[*key, number] for key, number in self._requests.items()],
                [[*key, number] for key, number in self._buckets.items()],
                [[key, number] for key, number in self._routes.items()],
            )

    def add(self, counters: Counters) -> None:
        """Add the counts of another process."""
        requests, buckets, routes = counters
        with self._mutex:
            for route, method, kind, number in requests:
                self._requests[route, method, kind] += number
            for route, end, number in buckets:
                self._buckets[route, end] += number
            for route, number in routes:
                self._routes[route] += number

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all metrics in Prometheus' text format; `gauges` maps names to a description and a current value."""
        with self._mutex:
            return "\n".join(self._lines(gauges)) + "\n"

    def _lines(self, gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        yield "# HELP hubbub_requests_total Requests answered, by route, method, and status class."
        yield "# TYPE hubbub_requests_total counter"
        for (route, method, kind), number in sorted(self._requests.items()):
            yield f'hubbub_requests_total{{route="{route}",method="{method}",status="{kind}"}} {number}'
        yield "# HELP hubbub_request_seconds Time from the arrival of a request to its response."
        yield "# TYPE hubbub_request_seconds histogram"
        for route, number in sorted(self._routes.items()):
            for end in BUCKETS:
                yield f'hubbub_request_seconds_bucket{{route="{route}",le="{end:g}"}} {self._buckets[route, end]}'
            yield f'hubbub_request_seconds_bucket{{route="{route}",le="+Inf"}} {number}'
            yield f'hubbub_request_seconds_count{{route="{route}"}} {number}'
        for name, (meaning, value) in gauges.items():
            yield f"# HELP hubbub_{name} {meaning}"
            yield f"# TYPE hubbub_{name} gauge"
            yield f"hubbub_{name} {value:g}"
