"""Telemetry: what is sent has no query and no exact time, and nothing waits for it."""

import json
import logging
import socket
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from tests.server.conftest import Starter, World

from hubbub.errors import ConfigError
from hubbub.server.metrics import BUCKETS
from hubbub.server.middleware import RequestMiddleware
from hubbub.server.telemetry import LENGTHS, MAX_WAITING, Span, Telemetry, logs_of, parent_of, syslog_line, traces_of
from hubbub.server.telemetry_settings import TelemetrySettings, read

LOCAL = TelemetrySettings(otlp="http://127.0.0.1:4318")


class Collector:
    """Takes what is sent, as a collector would."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, path: str, body: bytes) -> None:
        self.taken.append((path, json.loads(body)))

    def spans(self) -> list[dict[str, Any]]:
        return [
            span
            for path, body in self.taken
            if path == "/v1/traces"
            for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        ]


def record(**fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("hubbub.server", logging.INFO, "", 0, "request", None, None)
    made.fields = fields
    return made


def values(span: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: each["value"]["stringValue"] for each in span["attributes"]}


def span_of(seconds: float, status: int = 200) -> dict[str, Any]:
    body = traces_of([Span("POST", "/api/v1/query", status, "analyst", 1_900_000_000.125, seconds, None)])
    found: dict[str, Any] = body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    return found


@pytest.mark.parametrize(("shorter", "longer"), [(0.001, 0.249), (0.26, 0.99), (1.5, 4.99), (5.1, 29.0), (31.0, 900.0)])
def test_the_length_of_a_span_is_the_end_of_a_bucket(shorter: float, longer: float) -> None:
    lengths = []
    for seconds in (shorter, longer):
        span = span_of(seconds)
        assert span["startTimeUnixNano"] == "1900000000125000000"
        lengths.append((int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e9)
    assert lengths[0] == lengths[1]
    assert lengths[0] in LENGTHS
    assert LENGTHS[:-1] == BUCKETS


def test_a_query_that_failed_after_its_charge_looks_answered() -> None:
    assert values(span_of(0.1, 424)) == values(span_of(0.1, 200))
    one, other = (logs_of([record(status=status, who="ana")]) for status in (424, 200))
    for each in (one, other):
        each["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0].pop("timeUnixNano")
    assert one == other
    assert '"status": "2xx"' in syslog_line(record(status=424)).decode()


@pytest.fixture
def served(start_app: Starter) -> Iterator[tuple[World, Telemetry, Collector]]:
    """A server whose telemetry goes to a collector in this process."""
    world, collector = start_app(), Collector()
    telemetry = world.service.telemetry = Telemetry(LOCAL, collector)
    log = logging.getLogger("hubbub")
    level = log.level
    log.addHandler(telemetry.handler)
    log.setLevel(logging.INFO)
    yield world, telemetry, collector
    log.removeHandler(telemetry.handler)
    log.setLevel(level)
    telemetry.close()


def test_what_is_sent_has_no_query_and_no_value(served: tuple[World, Telemetry, Collector]) -> None:
    world, telemetry, collector = served
    client, token = world.client("ana"), world.tokens["ana"]
    headers = {"Idempotency-Key": "a-key-that-nobody-should-see"}
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    sql = "SELECT COUNT(*) AS n FROM health WHERE age > 41.73"
    body = {"sql": sql, "epsilon": "0.0625"}
    answer = client.post("/api/v1/query", json=body, headers=headers | {"traceparent": parent})
    assert answer.status_code == 200, answer.text
    client.get("/api/v1/nothing/41.73?sql=41.73", headers={"traceparent": "00-<script>"})
    telemetry.close()
    text = json.dumps(collector.taken)
    for secret in ("41.73", "SELECT", "0.0625", token, token.split("_")[-1], "nobody-should-see", "script"):
        assert secret not in text
    spans = collector.spans()
    assert [span["name"] for span in spans] == ["POST /api/v1/query", "GET none"]
    assert (spans[0]["traceId"], spans[0]["parentSpanId"]) == ("a" * 32, "b" * 16)
    assert "parentSpanId" not in spans[1]
    assert values(spans[0]) == {
        "http.request.method": "POST",
        "http.route": "/api/v1/query",
        "hubbub.status": "2xx",
        "hubbub.role": "analyst",
    }
    logs = [body for path, body in collector.taken if path == "/v1/logs"]
    assert '"ana"' in json.dumps(logs), "the audit log says who"


@pytest.mark.parametrize(
    "header", [None, "", "00-" + "0" * 32 + "-" + "b" * 16 + "-01", "00-" + "A" * 32 + "-" + "b" * 16 + "-01", "x" * 99]
)
def test_a_traceparent_that_is_not_one_is_ignored(header: str | None) -> None:
    assert parent_of(header) is None


def test_a_collector_that_never_answers_holds_nothing_up() -> None:
    """The sender hangs; more records than the queue has room for are taken at once, and the rest is counted."""
    hanging, begun = threading.Event(), threading.Event()

    def hang(_: str, __: bytes) -> None:
        begun.set()
        hanging.wait()

    telemetry = Telemetry(LOCAL, hang)
    try:
        telemetry.put(record(status=200))
        assert begun.wait(30)
        for _ in range(MAX_WAITING + 7):
            telemetry.put(record(status=200))
        assert telemetry.dropped == 7
    finally:
        hanging.set()
        telemetry.close()


def test_what_cannot_be_sent_is_counted_and_the_thread_goes_on() -> None:
    collector, fail = Collector(), threading.Event()
    fail.set()

    def send(path: str, body: bytes) -> None:
        if fail.is_set():
            fail.clear()
            raise OSError("no route to the collector")
        collector(path, body)

    telemetry = Telemetry(LOCAL, send)
    telemetry.put(record(status=200))
    telemetry.put(Span("GET", "/", 200, None, 0.0, 0.1, None))
    telemetry.close()
    assert telemetry.dropped == 1
    assert len(collector.spans()) == 1


def test_a_real_collector_and_a_real_syslog_get_both(tmp_path: Path) -> None:
    got: list[tuple[str, str | None, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer of-the-collector\n")
    headers.chmod(0o600)
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(str(tmp_path / "log"))
        address = f"http://127.0.0.1:{server.server_address[1]}/otlp"
        telemetry = Telemetry(TelemetrySettings(address, headers, str(tmp_path / "log")))
        telemetry.put(record(status=200, who="ana", route="/api/v1/query"))
        telemetry.put(Span("GET", "/", 200, None, 0.0, 0.1, None))
        telemetry.close()
        line = syslog.recv(65536).decode()
    server.shutdown()
    thread.join()
    server.server_close()
    assert [(path, token) for path, token, _ in got] == [
        ("/otlp/v1/logs", "Bearer of-the-collector"),
        ("/otlp/v1/traces", "Bearer of-the-collector"),
    ]
    assert line.startswith("<86>1 ")
    assert json.loads(line.partition(" audit - ")[2]) == {
        "event": "request",
        "from": "hubbub.server",
        "status": "2xx",
        "who": "ana",
        "route": "/api/v1/query",
    }
    assert telemetry.dropped == 0


@pytest.mark.parametrize(
    "given",
    [
        {"otlp": "http://collector.example:4318"},
        {"otlp": "https://"},
        {"otlp": "https://user:word@collector.example"},
        {"otlp": 4318},
        {"syslog": "udp://10.0.0.1:514"},
        {"syslog": "log"},
        {"otlp": "https://collector.example", "headers_file": "missing"},
        {"otlp": "https://collector.example", "headers_file": "open"},
    ],
)
def test_a_place_where_others_could_read_it_is_refused(given: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "open").write_text("Authorization: x\n")
    (tmp_path / "open").chmod(0o644)
    with pytest.raises(ConfigError, match="HB895"):
        read(given, tmp_path)
    assert read(None, tmp_path) is None


@pytest.mark.parametrize("seconds", [0.001, 0.124, 0.2, 0.7, 40.0])
def test_a_line_about_a_request_ends_when_its_span_ends(
    served: tuple[World, Telemetry, Collector], seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Start of the span and time of the line would otherwise give the length to a millisecond."""
    world, telemetry, collector = served
    caplog.set_level(logging.INFO, "hubbub")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    scope = {"type": "http", "method": "GET", "headers": [], "state": {"request_id": "a"}}
    RequestMiddleware(app, world.service)._record(scope, 200, seconds)
    telemetry.close()
    end = int(collector.spans()[0]["endTimeUnixNano"]) / 1e9
    (record,) = [each for each in caplog.records if each.getMessage() == "request"]
    (line,) = logs_of([record])["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    at = datetime.fromisoformat(syslog_line(record).split()[1].decode()).timestamp()
    for shown in (int(line["timeUnixNano"]) / 1e9, at):
        assert abs(shown - end) <= 0.002, "rounded to milliseconds"
