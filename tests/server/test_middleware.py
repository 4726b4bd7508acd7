"""What comes in at the border that should not: bodies, headers, paths and methods that mean harm or nothing."""

import json
import logging
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.exceptions import RequestValidationError
from tests.server.conftest import behind_a_port

from hubbub.errors import LedgerError
from hubbub.server.api.route import MAX_NAMES
from hubbub.server.limits import RateLimit
from hubbub.server.middleware import MAX_BODY, JsonFormatter
from hubbub.server.service import Service

QUERY = {"sql": "SELECT COUNT(*) AS n FROM health", "epsilon": "0.1"}
JSON = {"Content-Type": "application/json"}


def post(world: Any, body: bytes | Iterator[bytes], path: str = "/api/v1/estimate", **headers: str) -> Any:
    return world.client().post(path, content=body, headers=JSON | headers)


def refused(answer: Any, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"nothing",
        b"\xff\xfe{}",
        b"{'sql': 1}",
        b'{"sql": "SELECT 1", "epsilon": NaN}',
        b'{"sql": "SELECT 1", "epsilon": Infinity}',
        b'{"sql": "SELECT 1", "epsilon": -Infinity}',
        b'{"sql": "SELECT 1", "sql": "SELECT 2", "epsilon": 1}',
        b'{"sql": "SELECT \\ud800", "epsilon": 1}',
        b'{"sql": "SELECT \\u0000", "epsilon": 1}',
        b'{"sql": "SELECT 1", "epsilon": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_a_body_that_is_not_json_to_everybody_is_refused(shared: Any, body: bytes) -> None:
    answer = post(shared, body)
    assert (answer.status_code, answer.json()["code"]) in ((400, "HB160"), (422, "HB170")), answer.text


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "1e999"},
        {"epsilon": True},
        {"epsilon": []},
        {"epsilon": {}},
        {"epsilon": ""},
        {"epsilon": -1},
        {"epsilon": 0},
        {"epsilon": 1e-300},
        {"epsilon": 10**400},
        {"epsilon": "nan"},
        {"sql": 7},
        {"sql": ""},
        {"sql": None},
        {"groups": 1.5},
        {"groups": "1"},
        {"groups": -1},
        {"rows": 10**30},
        {"raw": 1},
        {"dialect": "klingon"},
        {"parameters": {}},
        {"parameters": [None]},
        {"parameters": [[1]]},
        {"parameters": [{"date": "never"}]},
        {"parameters": [{"number": "1/0"}]},
        {"weights": {"n": "much"}},
        {"weights": {"nothing": 1}},
        {"unknown": 1},
        {"analyst": "ben"},
        {"within": "50", "epsilon": "1"},
        {"delta": 2},
        {"delta": "x"},
        {"parameters": [10**400]},
        {"parameters": [1e308, "\u202e"]},
    ],
    ids=repr,
)
def test_a_field_that_cannot_be_is_refused_and_costs_nothing(shared: Any, change: dict[str, Any]) -> None:
    before = shared.spent()
    headers = {"Idempotency-Key": f"field {abs(hash(repr(change)))}"}
    answer = shared.client().post("/api/v1/query", json={**QUERY, **change}, headers=headers)
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"].startswith("HB")
    assert shared.spent() == before


def test_a_refusal_never_repeats_what_was_sent(shared: Any) -> None:
    answer = shared.client().post("/api/v1/estimate", json={**QUERY, "groups": "CANARY-7431"})
    assert answer.status_code == 422
    assert "CANARY" not in answer.text


def test_a_huge_body_is_refused_whether_it_says_so_or_not(served: Any) -> None:
    body = b'{"sql": "' + b"x" * MAX_BODY + b'"}'
    refused(post(served, body), 413, "HB162")
    pieces = (body[start : start + 65536] for start in range(0, len(body), 65536))
    refused(post(served, pieces), 413, "HB162")
    assert served.client().get("/api/v1/me").status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_a_body_of_another_type_is_refused(shared: Any, kind: str) -> None:
    answer = shared.client().post("/api/v1/estimate", content=json.dumps(QUERY), headers={"Content-Type": kind})
    refused(answer, 415, "HB163")


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_no_header_changes_the_method(shared: Any, header: str) -> None:
    token = shared.service.accounts.issue("zoe", "auditor", 1).token.id
    owner = shared.client("owner")
    answer = owner.get(f"/api/v1/tokens/{token}", headers={header: "DELETE"})
    assert answer.status_code == 405
    assert owner.post(f"/api/v1/tokens/{token}", headers={header: "DELETE"}).status_code == 405
    assert owner.get("/api/v1/tokens", params={"_method": "DELETE"}).status_code == 200
    assert shared.service.state.tokens.find(token).revoked is None


@pytest.fixture(scope="module")
def behind_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One service behind a port for requests that change nothing."""
    with behind_a_port(tmp_path_factory.mktemp("port")) as world:
        yield world


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/datasets/..%2f..%2fhubbub.yaml",
        "/api/v1/datasets/%2e%2e",
        "/api/v1/datasets/..",
        "/api/v1/datasets/%00",
        "/api/v1/datasets/health%00.csv",
        "/api/v1/datasets/%c0%ae%c0%ae",
        "/static/../../../pyproject.toml",
        "/static/..%2f..%2fservice.py",
        "/static/%2e%2e/%2e%2e/service.py",
        "/static//etc/passwd",
        "/api/v1/../../etc/passwd",
        "/api/v1/jobs/../config",
        "/api/v1/groups/..%5c..%5c",
        "//etc/passwd",
        "/api/v1//config",
        "/%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_no_path_leads_out(behind_port: Any, path: str) -> None:
    """Sent as it stands, by a socket: a client would tidy it up."""
    place = urlsplit(behind_port.url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as line:
        token = behind_port.tokens["ana"]
        line.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    head = answer.split(b"\r\n", 1)[0]
    assert head.split()[1] in (b"403", b"404", b"422", b"303", b"400"), answer[:500]
    for word in (b"root:", b"epsilon: 30", b"[build-system]", b"class Service"):
        assert word not in answer


def test_the_identity_never_comes_from_a_header_that_the_client_chooses(shared: Any) -> None:
    claims = {
        "X-Forwarded-User": "owner",
        "X-Remote-User": "owner",
        "Remote-User": "owner",
        "X-User": "owner",
        "user-name": "owner",
        "X-Role": "owner",
        "X-Analyst": "ben",
        "Cookie": "hubbub=owner; session=owner",
    }
    assert shared.client(None).get("/api/v1/me", headers=claims).status_code == 401
    assert shared.client("ana").get("/api/v1/me", headers=claims).json()["name"] == "ana"
    assert shared.client("ana").get("/api/v1/config", headers=claims).status_code == 403
    twice = [("Authorization", f"Bearer {shared.tokens['owner']}"), ("Authorization", f"Bearer {shared.tokens['ana']}")]
    assert shared.client(None).get("/api/v1/me", headers=twice).status_code == 401


def test_a_forwarded_address_is_believed_only_behind_a_proxy(start_served: Any, tmp_path: Any) -> None:
    """Metrics are for this machine: a spoofed address must open nothing, and behind a proxy nobody is local."""
    spoof = {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
    direct = start_served()
    away = {"X-Forwarded-For": "198.51.100.7"}
    # directly reached from this machine: local, whatever is claimed
    assert direct.client(None).get("/metrics", headers=away).status_code == 200
    (tmp_path / "proxied").mkdir()
    proxied = start_served(tmp_path / "proxied", behind_proxy=True)
    assert proxied.client(None).get("/metrics", headers=spoof).status_code == 401
    assert proxied.client(None).get("/metrics", headers=away).status_code == 401
    assert proxied.client("auditor").get("/metrics", headers=spoof).status_code == 200
    assert proxied.client("ana").get("/metrics", headers=spoof).status_code == 403


def test_failed_sign_ins_are_limited_by_the_true_address(start_served: Any) -> None:
    world = start_served()
    world.service.attempts_limit = RateLimit(20, clock=lambda: 0.0)  # time stands still: the machine may be busy
    client, codes = world.client(None), []
    for number in range(20):
        headers = {"Authorization": "Bearer hub_000000000000_" + "x" * 43, "X-Forwarded-For": f"198.51.100.{number}"}
        codes.append(client.get("/api/v1/me", headers=headers).status_code)
    assert codes[0] == 401
    assert codes.count(429) > 10
    answer = client.get("/api/v1/me", headers=headers)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0


def test_metrics_are_not_for_everybody(shared: Any) -> None:
    assert shared.client(None).get("/metrics").status_code == 401
    assert shared.client("ana").get("/metrics").status_code == 403
    assert shared.client("owner").get("/metrics").status_code == 200
    local = shared.client(None, client=("127.0.0.1", 1))
    assert local.get("/metrics", headers={"Host": "127.0.0.1:8321"}).status_code == 200


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        (["localhost"], 200),
        (["LOCALHOST:8321"], 200),
        (["[::1]:8321"], 200),
        (["127.0.0.1"], 200),
        (["attacker.example:8321"], 401),
        (["127.0.0.1.attacker.example"], 401),
        (["localhost@attacker.example"], 401),
        (["attacker.example@localhost"], 401),
        ([""], 401),
        (["127.0.0.1", "attacker.example"], 401),
        (["[::1"], 401),
        (["localhost:8321/x"], 401),
        (["localhost, attacker.example"], 401),
        (["0x7f.1"], 401),
    ],
)
def test_a_page_of_somebody_else_that_leads_here_reads_no_metrics(shared: Any, hosts: list[str], status: int) -> None:
    """A name that its owner lets point to 127.0.0.1 makes a visitor's browser local, under that name."""
    local = shared.client(None, client=("127.0.0.1", 1))
    answer = local.get("/metrics", headers=[("Host", host) for host in hosts])
    assert answer.status_code == status
    assert ("hubbub_requests_total" in answer.text) == (status == 200)


def test_every_answer_carries_the_headers_that_keep_browsers_strict(shared: Any) -> None:
    for path in ("/healthz", "/api/v1/me", "/api/v1/datasets", "/api/v1/nothing", "/", "/sign-in"):
        headers = shared.client("ana" if path.endswith("s") else None).get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cache-Control"] == "no-store"
        assert len(headers["X-Request-Id"]) == 16
        assert "Server" not in headers


def test_https_is_insisted_on_where_there_is_https(start_app: Any) -> None:
    assert "Strict-Transport-Security" in start_app(behind_proxy=True).client(None).get("/healthz").headers


def test_the_number_of_a_request_is_ours(shared: Any) -> None:
    answer = shared.client(None).get("/api/v1/me", headers={"X-Request-Id": "forged\nline"})
    assert answer.headers["X-Request-Id"] != "forged"
    assert answer.json()["instance"] == answer.headers["X-Request-Id"]


def test_logs_are_json_and_hold_no_literal_token_or_query(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sql = "SELECT COUNT(*) AS n FROM health WHERE health = 'CANARY-7431'"
    answer = app.ask(sql=sql, header="CANARY-header", key="CANARY-key")
    app.ask(sql="SELECT CANARY FROM nothing", header="x")
    app.client("ana").get("/api/v1/datasets/CANARY")
    app.client("ana").get("/CANARY?CANARY=1")
    lines = [JsonFormatter().format(record) for record in caplog.records if record.name.startswith("hubbub")]
    found = [json.loads(line) for line in lines]
    asked = next(line for line in found if line.get("request") == answer.headers["X-Request-Id"])
    assert (asked["who"], asked["route"], asked["status"]) == ("ana", "/api/v1/query", 200)
    text = "\n".join(lines)
    for secret in ("CANARY", app.tokens["ana"], app.tokens["ana"].split("_", 2)[2], "SELECT", 'n":'):
        assert secret not in text


def test_an_error_that_nobody_thought_of_is_one_constant(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("CANARY-7431")

    app.service.current.curator.estimate = broken
    caplog.set_level(logging.INFO)
    answer = app.client().post("/api/v1/estimate", json=QUERY)
    refused(answer, 500, "HB999")
    assert "CANARY" not in answer.text
    lines = "\n".join(JsonFormatter().format(record) for record in caplog.records if record.name.startswith("hubbub"))
    assert "KeyError" in lines
    assert answer.json()["instance"] in lines
    assert "CANARY" not in lines


def test_metrics_count_a_query_that_failed_after_its_charge_like_one_that_was_answered(app: Any) -> None:
    def broken(_: str) -> None:
        raise ValueError("too large")

    app.service.current.curator.engine.run = broken
    assert app.ask().status_code == 424
    text = app.client("owner").get("/metrics").text
    assert 'hubbub_requests_total{route="/api/v1/query",method="POST",status="2xx"} 1' in text
    assert "health" not in text  # no name of a dataset, no figure of an answer


def test_the_service_is_not_ready_when_its_data_is_gone(app: Any) -> None:
    assert app.client(None).get("/readyz").json() == {
        "ready": True,
        "ledger": True,
        "state": True,
        "sources": True,
        "config": True,
    }
    (app.folder / "health.csv").unlink()
    time.sleep(1.1)  # a finding holds for a second
    answer = app.client(None).get("/readyz")
    assert answer.status_code == 503
    assert not answer.json()["sources"]
    assert app.client(None).get("/healthz").status_code == 200


def test_a_second_server_on_one_file_refuses_to_start(app: Any) -> None:
    with pytest.raises(LedgerError):
        Service(app.folder / "hubbub.yaml", app.service.settings)


def _routes_with_bodies(world: Any) -> list[tuple[str, str]]:
    paths = world.client().get("/api/v1/openapi.json").json()["paths"]
    return [(path, method) for path, each in paths.items() for method in each if "requestBody" in each[method]]


@pytest.mark.parametrize("shape", ["names", "weights", "settings", "values"])
def test_no_body_is_checked_name_by_name_without_end(shared: Any, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal for each name is made where everybody's requests wait: a megabyte of them took six seconds."""
    refusals: list[int] = []
    kept = RequestValidationError.errors

    def counted(self: RequestValidationError) -> Any:
        found = kept(self)
        refusals.append(len(found))
        return found

    monkeypatch.setattr(RequestValidationError, "errors", counted)
    many: dict[str, Any] = {f"{n:x}": [] for n in range(3 * MAX_NAMES)}
    spread: list[dict[str, Any]] = [{f"{n:x}": [] for n in range(80)} for _ in range(3 * MAX_NAMES // 80)]
    body = {
        "names": many,
        "weights": {"sql": "SELECT 1", "epsilon": 1, "weights": many},
        "settings": {"attack": "x", "epsilons": [1], "settings": many},
        "values": {"sql": "SELECT 1", "epsilon": 1, "parameters": spread},
    }[shape]
    routes = _routes_with_bodies(shared)
    assert len(routes) > 8
    content, client = json.dumps(body).encode(), shared.client()
    for path, method in routes:
        answer = client.request(
            method,
            path.replace("{number}", "1").replace("{name}", "x"),
            content=content,
            headers=JSON | {"Idempotency-Key": "k", "If-Match": "x"},
        )
        assert 400 <= answer.status_code < 500, (path, answer.text)
    assert max(refusals, default=0) <= 1.5 * MAX_NAMES < 3_000
