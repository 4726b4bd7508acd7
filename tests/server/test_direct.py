"""Estimates and queries that skip the general routing get what their routes would give."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from hubbub.server.api import direct, route
from hubbub.server.limits import RateLimit
from hubbub.server.middleware import MAX_BODY

COUNT = "SELECT COUNT(*) AS n FROM health"
GOOD = {"sql": COUNT, "epsilon": "0.1"}
JSON = {"Content-Type": "application/json"}
KEY = JSON | {"Idempotency-Key": "test"}
#: Headers and a body: what is right, and what is wrong in one way or in several.
REQUESTS: dict[str, tuple[dict[str, str] | list[tuple[str, str]], bytes]] = {
    "good": (KEY, b'{"sql": "%s", "epsilon": "0.1"}' % COUNT.encode()),
    "with everything": (
        KEY | {"Content-Type": "Application/JSON; charset=utf-8"},
        b'{"sql": "SELECT COUNT(*) AS n FROM health WHERE visits > $1", "epsilon": 0.1, "delta": 0, "parameters": [3],'
        b' "groups": 1, "rows": 2, "weights": {"n": 1}, "raw": true, "dialect": "postgres", "intervals": "joint"}',
    ),
    "public": (KEY, b'{"sql": "SELECT COUNT(*) AS n FROM plans", "epsilon": 1}'),
    "not a query": (KEY, b'{"sql": "SELECT nothing FROM health", "epsilon": "0.1"}'),
    "not theirs": (KEY, b'{"sql": "SELECT COUNT(*) FROM wards", "epsilon": "0.1"}'),
    "too dear": (KEY, b'{"sql": "%s", "epsilon": "9"}' % COUNT.encode()),
    "unknown field": (KEY, b'{"sql": "SELECT 1", "epsilon": "0.1", "more": 1}'),
    "wrong type": (KEY, b'{"sql": 1, "epsilon": "0.1"}'),
    "several errors": (JSON, b'{"raw": "yes", "rows": 1.5}'),
    "no fields": (KEY, b"{}"),
    "a list": (KEY, b"[]"),
    "null": (KEY, b"null"),
    "nothing": (KEY, b""),
    "not JSON": (KEY, b"{"),
    "twice": (KEY, b'{"sql": "SELECT 1", "sql": "SELECT 2", "epsilon": 1}'),
    "surrogate": (KEY, b'{"sql": "\\ud800", "epsilon": 1}'),
    "too large": (KEY, b" " * (MAX_BODY + 1)),
    "text": ({"Idempotency-Key": "test", "Content-Type": "text/plain"}, b"{}"),
    "no type": ({"Idempotency-Key": "test"}, b"{}"),
    "two types": ([*KEY.items(), ("Content-Type", "application/json")], b"{}"),
    "two keys": ([*KEY.items(), ("Idempotency-Key", "other")], b'{"sql": "%s", "epsilon": "0.1"}' % COUNT.encode()),
    "no key": (JSON, b'{"sql": "%s", "epsilon": "0.1"}' % COUNT.encode()),
    "empty key": (JSON | {"Idempotency-Key": ""}, b'{"sql": "%s", "epsilon": "0.1"}' % COUNT.encode()),
    "long key": (JSON | {"Idempotency-Key": "k" * 201}, b'{"sql": "%s", "epsilon": "0.1"}' % COUNT.encode()),
    "tab in key": (JSON | {"Idempotency-Key": "a\tb"}, b'{"sql": "%s", "epsilon": "0.1"}' % COUNT.encode()),
}


def told(answer: httpx2.Response) -> tuple[int, dict[str, str], Any]:
    """Give what an answer tells: without the id of its request, and whether it is a repetition."""
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    body = answer.json()
    return answer.status_code, headers, {name: body[name] for name in body if name not in ("instance", "replayed")}


@pytest.fixture
def both(shared: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Any]]:
    """Send a request twice: as it is, and with the general routing alone."""

    def send(path: str, who: str | None, headers: Any, body: bytes) -> tuple[Any, Any]:
        client = shared.client(who)
        first = told(client.post(path, headers=headers, content=body))
        with monkeypatch.context() as patch:
            patch.setattr(direct, "_ROUTES", {})
            return first, told(client.post(path, headers=headers, content=body))

    return send


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("path", ["/api/v1/estimate", "/api/v1/query"])
def test_an_answer_is_that_of_the_route(both: Any, path: str, name: str) -> None:
    headers, body = REQUESTS[name]
    if isinstance(headers, dict) and headers.get("Idempotency-Key") == "test":
        headers = headers | {"Idempotency-Key": name}
    first, second = both(path, "ana", headers, body)
    assert first == second


@pytest.mark.parametrize("who", [None, "owner", "auditor"])
@pytest.mark.parametrize("path", ["/api/v1/estimate", "/api/v1/query"])
@pytest.mark.parametrize("name", ["good", "no fields", "text"])
def test_whoever_may_not_ask_gets_the_same_refusal(both: Any, path: str, who: str | None, name: str) -> None:
    first, second = both(path, who, *REQUESTS[name])
    assert first == second
    assert first[0] in (401, 403, 415, 422)


def test_a_retry_gets_joint_intervals_again(shared: Any) -> None:
    grouped = "SELECT site, COUNT(*) AS n FROM health GROUP BY site"
    asked = {"sql": grouped, "epsilon": "0.1", "intervals": "joint"}
    first, again = (shared.ask(header="joint", **asked).json() for _ in range(2))
    assert first["answer"] == again["answer"]
    assert (first["replayed"], again["replayed"]) == (False, True)


def test_a_query_that_shall_become_a_job_becomes_one(both: Any) -> None:
    headers = KEY | {"Prefer": "respond-async", "Idempotency-Key": "job"}
    for status, _, body in both("/api/v1/query", "ana", headers, REQUESTS["good"][1]):
        assert (status, body["state"]) == (202, "queued")


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_authenticated_and_counted_once(shared: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    counted: list[str] = []
    real = RateLimit.take

    def take(self: RateLimit, name: str) -> int:
        counted.append(name)
        return real(self, name)

    monkeypatch.setattr(RateLimit, "take", take)
    headers, body = REQUESTS[name]
    shared.client("ana").post("/api/v1/estimate", headers=headers, content=body)
    assert counted.count("analyst ana") == (0 if name == "too large" else 1)


def test_well_formed_requests_need_no_routing(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("routed")

    monkeypatch.setattr(route.ApiRoute, "handle", fail)
    client = shared.client("ana")
    assert client.post("/api/v1/estimate", json=GOOD).status_code == 200
    assert client.post("/api/v1/query", json=GOOD, headers={"Idempotency-Key": "direct"}).status_code == 200


def test_requests_are_counted_under_their_route(shared: Any) -> None:
    shared.client("ana").post("/api/v1/estimate", json=GOOD)
    assert 'route="/api/v1/estimate"' in shared.client("owner").get("/metrics").text


def test_a_known_token_needs_no_thread_until_it_is_revoked(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual request is authenticated where it is read; the other way says what is wrong."""
    asked: list[str] = []
    usual = route._authenticate

    def noting(service: Any, request: Any) -> Any:
        asked.append(request.headers["authorization"])
        return usual(service, request)

    monkeypatch.setattr(route, "_authenticate", noting)
    client = app.client("ana")
    for _ in range(3):
        assert client.post("/api/v1/estimate", json=GOOD).status_code == 200
    assert len(asked) == 1  # the first use of the day is written down
    token = next(each for each in app.service.accounts.state.tokens.list("ana") if each.used is not None)
    app.service.accounts.revoke(token.id)
    assert client.post("/api/v1/estimate", json=GOOD).json()["code"] == "HB703"
    assert len(asked) == 2


def test_analysts_of_a_changed_file_are_not_known_at_once(app: Any) -> None:
    current, path = app.service.current, app.folder / "hubbub.yaml"
    current._check_seconds = 0.0
    known = current.analysts_at_once()
    assert known is not None
    assert known.keys() == current.analysts().keys()
    path.write_text(path.read_text() + "# changed\n")
    assert current.analysts_at_once() is None
    current.analysts()  # reads it again
    assert current.analysts_at_once() is not None
