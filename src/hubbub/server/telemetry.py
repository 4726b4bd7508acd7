"""The audit log and traces of requests, sent to syslog and to an OpenTelemetry collector (OTLP over HTTP, as JSON).

What is sent is what the log on standard error has: who asked on which route, and how it ended, without a query, a
literal, a token or a value. A trace has one span for each request. Its length is the end of a wide bucket, as in the
metrics, and never the time that a query took: that time can depend on the data. The log's line about a request has the
same end as its time, or the two together would tell the length. Requests that feed streams are left
out, because the number of arrivals is data.

Records wait in a queue of bounded length for one thread. If they come faster than they can be sent, or the other side
does not answer, they are dropped and counted: no request ever waits for telemetry, and none fails because of it.

Tested in tests/server/test_telemetry.py.
"""

import http.client
import json
import logging
import os
import re
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from hubbub.server.metrics import BUCKETS
from hubbub.server.telemetry_settings import TelemetrySettings

T = TypeVar("T")
#: Records that wait, and records that are sent together.
MAX_WAITING, _BATCH = 4096, 256
#: Seconds between two batches; within which the other side has to answer; and that are left for the last batch.
_PERIOD, _TIMEOUT, _LAST = 1.0, 5.0, 2.0
#: What the length of a span can be; the last one stands for everything longer.
LENGTHS = (*BUCKETS, 60.0)
_PARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")
_FACILITY = 10  # authpriv of syslog
_SEVERITIES = {logging.DEBUG: (7, 5), logging.INFO: (6, 9), logging.WARNING: (4, 13), logging.ERROR: (3, 17)}


class Span(NamedTuple):
    """One request: `seconds` is how long it took, and is sent as the end of its bucket."""

    method: str
    route: str
    status: int
    role: str | None
    arrived: float
    seconds: float
    parent: str | None


class Telemetry:
    """Sends records in the background. Safe to use from many threads."""

    def __init__(self, settings: TelemetrySettings, send: "Callable[[str, bytes], None] | None" = None) -> None:
        """Start the thread; `send` takes the path and body of a request to the collector."""
        self._settings = settings
        self._send = send or self._post
        self._queue: Queue[logging.LogRecord | Span] = Queue(MAX_WAITING)
        self._mutex = threading.Lock()
        self._dropped = 0
        self._stopping = threading.Event()
        self.handler = _QueueHandler(self)
        self._thread = threading.Thread(target=self._run, name="hubbub-telemetry", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The number of records that could not be sent."""
        return self._dropped

    def put(self, record: "logging.LogRecord | Span") -> None:
        """Take a record without waiting, or drop it.

        Theorem (No query waits). `put` returns after a bounded number of steps, whatever the collector, the network and
        the sender do, and raises nothing.
        Proof    It tries to append to a queue of bounded length once, and counts what does not fit. The sender holds no
                 lock of the queue or the counter while it sends.
        Charges  nothing.
        Tested   tests/server/test_telemetry.py::test_a_collector_that_never_answers_holds_nothing_up
        """
        try:
            self._queue.put_nowait(record)
        except Full:
            self._drop(1)

    def close(self) -> None:
        """Send what waits, for two seconds at most."""
        self._stopping.set()
        self._thread.join(_LAST)

    def _drop(self, number: int) -> None:
        with self._mutex:
            self._dropped += number

    def _run(self) -> None:
        while True:
            last = self._stopping.wait(_PERIOD)
            while batch := self._take():
                self._deliver(batch)
                if last and self._queue.empty():
                    break
            if last:
                return

    def _take(self) -> list[logging.LogRecord | Span]:
        batch: list[logging.LogRecord | Span] = []
        with suppress(Empty):
            while len(batch) < _BATCH:
                batch.append(self._queue.get_nowait())
        return batch

    def _deliver(self, batch: list[logging.LogRecord | Span]) -> None:
        """Send a batch; whatever goes wrong, the records are dropped, and the thread goes on."""
        logs = [each for each in batch if isinstance(each, logging.LogRecord)]
        spans = [each for each in batch if isinstance(each, Span)]
        if self._settings.otlp is not None:
            if logs:
                self._offer("/v1/logs", logs, logs_of)
            if spans:
                self._offer("/v1/traces", spans, traces_of)
        if self._settings.syslog is not None and logs:
            try:
                self._to_syslog([syslog_line(record) for record in logs])
            except Exception:  # noqa: BLE001 - as above
                self._drop(len(logs))

    def _offer(self, path: str, records: list[T], written: Callable[[list[T]], dict[str, Any]]) -> None:
        try:
            self._send(path, json.dumps(written(records), ensure_ascii=False).encode())
        except Exception:  # noqa: BLE001 - telemetry must never fail anything
            self._drop(len(records))

    def _post(self, path: str, body: bytes) -> None:
        """Post to the collector; redirects are not followed."""
        parts = urlsplit(self._settings.otlp or "")
        host = parts.hostname or ""
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, parts.port, timeout=_TIMEOUT, context=context)
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=_TIMEOUT)
        try:
            headers = {"Content-Type": "application/json", **self._settings.headers()}
            connection.request("POST", parts.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            answer.read(1 << 16)
            if answer.status >= 300:
                raise OSError(answer.status)
        finally:
            connection.close()

    def _to_syslog(self, lines: list[bytes]) -> None:
        place = self._settings.syslog or ""
        if place.startswith("udp://"):
            parts = urlsplit(place)
            found = socket.getaddrinfo(parts.hostname, parts.port or 514, type=socket.SOCK_DGRAM)
            family: int = found[0][0]
            target: Any = found[0][4]
        else:
            family, target = socket.AF_UNIX, place
        with socket.socket(family, socket.SOCK_DGRAM) as opened:
            opened.settimeout(_TIMEOUT)
            for line in lines:
                opened.sendto(line, target)


class _QueueHandler(logging.Handler):
    """Gives records of the log to the sender."""

    def __init__(self, telemetry: Telemetry) -> None:
        super().__init__(logging.INFO)
        self._telemetry = telemetry

    def emit(self, record: logging.LogRecord) -> None:
        self._telemetry.put(record)


def parent_of(header: str | None) -> str | None:
    """Return a valid traceparent header: hexadecimal digits alone, so that no text of a client gets into a trace."""
    return header if header is not None and _PARENT.fullmatch(header) else None


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record as the log shows them; of an exception, only the type.

    The status of a request is its class, and a query that failed after its charge counts as answered, as in the
    metrics: a failure can depend on the data.
    """
    fields = {"event": record.getMessage(), "from": record.name, **getattr(record, "fields", {})}
    if isinstance(fields.get("status"), int):
        fields["status"] = status_class(fields["status"])
    if record.exc_info and record.exc_info[0] is not None:
        fields["error"] = record.exc_info[0].__name__
    return {name: value for name, value in fields.items() if value is not None}


def status_class(status: int) -> str:
    """Return the class of a status, as the metrics count it."""
    return "2xx" if status == 424 else f"{status // 100}xx"


def length_of(seconds: float) -> float:
    """Return the end of the bucket of a length."""
    return next((end for end in LENGTHS if seconds <= end), LENGTHS[-1])


def _time_of(record: logging.LogRecord) -> float:
    """Return the time that is sent: of a request, the end of its span, because its own end depends on the data."""
    return float(getattr(record, "shown_at", record.created))


def syslog_line(record: logging.LogRecord) -> bytes:
    """Write a record in the form of RFC 5424, with its fields as JSON."""
    severity, _ = _SEVERITIES.get(record.levelno, (2, 21))
    at = datetime.fromtimestamp(_time_of(record), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    text = json.dumps(fields_of(record), ensure_ascii=True, default=str)
    return f"<{8 * _FACILITY + severity}>1 {at} {socket.gethostname()} hubbub {os.getpid()} audit - {text}".encode()


def logs_of(records: list[logging.LogRecord]) -> dict[str, Any]:
    """Write records as an OTLP request."""
    lines = []
    for record in records:
        fields = fields_of(record)
        _, severity = _SEVERITIES.get(record.levelno, (2, 21))
        lines.append(
            {
                "timeUnixNano": str(int(_time_of(record) * 1000) * 1_000_000),
                "severityNumber": severity,
                "severityText": record.levelname,
                "body": {"stringValue": fields.pop("event")},
                "attributes": _attributes(fields),
            }
        )
    return {
        "resourceLogs": [{"resource": _resource(), "scopeLogs": [{"scope": {"name": "hubbub"}, "logRecords": lines}]}]
    }


def traces_of(spans: list[Span]) -> dict[str, Any]:
    """Write requests as an OTLP request: their lengths are ends of buckets."""
    written = []
    for span in spans:
        match = _PARENT.fullmatch(span.parent or "")
        start = int(span.arrived * 1000) * 1_000_000
        length = length_of(span.seconds)
        fields = {
            "http.request.method": span.method,
            "http.route": span.route,
            "hubbub.status": status_class(span.status),
            "hubbub.role": span.role,
        }
        written.append(
            {
                "traceId": match[1] if match else secrets.token_hex(16),
                "spanId": secrets.token_hex(8),
                **({"parentSpanId": match[2]} if match else {}),
                "name": f"{span.method} {span.route}",
                "kind": 2,
                "startTimeUnixNano": str(start),
                "endTimeUnixNano": str(start + int(length * 1_000_000_000)),
                "attributes": _attributes({name: value for name, value in fields.items() if value is not None}),
            }
        )
    return {
        "resourceSpans": [{"resource": _resource(), "scopeSpans": [{"scope": {"name": "hubbub"}, "spans": written}]}]
    }


def _resource() -> dict[str, Any]:
    return {
        "attributes": _attributes(
            {"service.name": "hubbub", "service.instance.id": f"{socket.gethostname()}:{os.getpid()}"}
        )
    }


def _attributes(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value, default=str)}}
        for name, value in fields.items()
    ]


def wall_clock(seconds_ago: float) -> float:
    """Return the time that many seconds ago, since 1970."""
    return time.time() - seconds_ago
