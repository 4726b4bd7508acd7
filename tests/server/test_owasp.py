"""The OWASP API Security Top 10 of 2023: a test for each, or the reason why there is nothing to test.

Who may call what is tested cell by cell in test_roles.py, hostile requests in test_border.py.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

import hubbub
from hubbub.server.api import administration as governing
from hubbub.server.api import attacks, publications, reviews, sandbox, schedules, streams
from hubbub.server.api import queries as asking
from hubbub.server.limits import RateLimit

SOURCE = Path(hubbub.__file__).parent
COUNT = {"sql": "SELECT COUNT(*) AS n FROM health", "epsilon": "0.01"}


def test_api1_objects_of_others_are_not_there(app: Any) -> None:
    """Broken object level authorization: what is others', asked for by its number."""
    mine = app.ask("ana", epsilon="0.01").json()["receipt"]["ledger"][0]["sequence"]
    headers = {"Idempotency-Key": "job", "Prefer": "respond-async"}
    job = app.client("ana").post("/api/v1/query", json=COUNT, headers=headers).headers["Location"]
    app.client("ana").post("/api/v1/requests", json={"dataset": "health", "epsilon": 1, "reason": "x"})
    ben, eve = app.client("ben"), app.client("eve")
    for other in (ben, eve):
        assert other.get(f"/api/v1/releases/{mine}").status_code == 404
        assert other.get("/api/v1/releases/999999").json()["detail"] == (
            other.get(f"/api/v1/releases/{mine}").json()["detail"].replace(str(mine), "999999")
        )
        assert other.get(job).status_code == 404
        assert other.delete(job).status_code == 404
        assert other.get("/api/v1/budget", params={"analyst": "ana"}).status_code == 403
        assert other.get("/api/v1/releases").json()["releases"] == []
        assert other.get("/api/v1/requests").json()["requests"] == []
    assert app.client("ana").get("/api/v1/datasets/wards").status_code == 404
    assert (
        app.client("ana").get("/api/v1/datasets/wards").json()["detail"].replace("wards", "x")
        == (app.client("ana").get("/api/v1/datasets/x").json()["detail"])
    )
    answer = app.ask("ana", sql="SELECT COUNT(*) AS n FROM wards")
    nothing = app.ask("ana", sql="SELECT COUNT(*) AS n FROM warps")
    assert answer.status_code == nothing.status_code == 422
    assert answer.json()["detail"].replace("wards", "warps") == nothing.json()["detail"]


def test_api2_a_token_that_is_nearly_right_is_wrong(shared: Any) -> None:
    """Broken authentication: altered, cut, empty, of another scheme, expired; one answer for all that are unknown."""
    good = shared.tokens["ana"]
    flipped = good[:-1] + ("A" if good[-1] != "A" else "B")
    codes: set[str] = set()
    for text in (flipped, good[:-1], good + "x", "", "hub_", good.upper(), f"{good} {good}", "null", "a.b.c"):
        client = shared.client(None, client=(f"198.51.100.{len(codes) + hash(text) % 200}", 1))
        answer = client.get("/api/v1/me", headers={"Authorization": f"Bearer {text}"})
        assert answer.status_code == 401, text
        codes.add(answer.json()["code"])
    assert codes <= {"HB700", "HB701"}
    for scheme in ("Basic", "Token", "Digest"):
        client = shared.client(None, client=("203.0.113.77", 1))
        assert client.get("/api/v1/me", headers={"Authorization": f"{scheme} {good}"}).status_code == 401
    assert shared.client(None).get("/api/v1/me", params={"token": good, "access_token": good}).status_code == 401


def test_api2_an_expired_token_is_refused(app: Any) -> None:
    now = app.service.accounts.clock()
    app.service.accounts.clock = lambda: now + 2 * 86_400
    answer = app.client("ana").get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "HB702")


def test_api3_nothing_is_taken_from_a_body_that_is_not_asked_for(shared: Any) -> None:
    """Broken object property level authorization: no mass assignment, and no property that is not for who asks."""
    owner = shared.client("owner")
    token = {"name": "zoe", "role": "auditor", "days": 1}
    for extra in ({"id": "0" * 12}, {"digest": "00"}, {"expires": 2**40}, {"revoked": None}):
        assert owner.post("/api/v1/tokens", json=token | extra).status_code == 422
    asked = {"dataset": "health", "epsilon": 1, "reason": "x"}
    for extra in ({"state": "granted"}, {"analyst": "ben"}, {"id": 1}):
        assert shared.client("ana").post("/api/v1/requests", json=asked | extra).status_code == 422
    for extra in ({"analyst": "ben"}, {"dataset": "wards"}, {"salt": "x"}):
        assert shared.client("ana").post("/api/v1/estimate", json=COUNT | extra).status_code == 422
    kept = owner.get("/api/v1/tokens").json()["tokens"][0]
    assert set(kept) == {"id", "name", "role", "created", "expires", "revoked", "used"}  # no digest


def test_api3_the_salt_that_orders_rows_is_never_shown(app: Any) -> None:
    salt = app.service.current.curator._salt
    ana = app.client("ana")
    texts = [ana.post(f"/api/v1/{path}", json=COUNT).text for path in ("estimate", "explain")]
    texts += [app.ask().text, ana.get("/api/v1/releases").text]
    assert salt not in "".join(texts)


def test_api4_what_one_may_use_is_bounded(start_app: Any) -> None:
    """Unrestricted resource consumption: requests a minute, bodies, pages, the line of queries, open requests.

    Time, memory and threads of a query are bounded by the engine (tests/engines/test_locks.py), the line and the queue
    in test_work.py, bodies in test_border.py.
    """
    world = start_app(per_minute=60)
    world.service.requests_limit = RateLimit(60, clock=lambda: 0.0)  # time stands still: the machine may be busy
    statuses = [world.client("ana").get("/api/v1/me").status_code for _ in range(30)]
    assert statuses.count(429) > 5
    answer = world.client("ana").get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (429, "HB720")
    assert int(answer.headers["Retry-After"]) >= 1
    assert world.client("ben").get("/api/v1/me").status_code == 200  # others are not held up
    owner = world.client("owner")
    assert owner.get("/api/v1/ledger", params={"limit": 501}).status_code == 422
    assert owner.get("/api/v1/releases", params={"limit": 10**9}).status_code == 422


def test_api4_open_requests_are_bounded(app: Any) -> None:
    asked = {"dataset": "health", "epsilon": 1, "reason": "x"}
    statuses = [app.client("ana").post("/api/v1/requests", json=asked).status_code for _ in range(25)]
    assert statuses == [201] * 20 + [409] * 5


def test_api5_functions_of_another_role_are_refused_before_their_input_is_looked_at(shared: Any) -> None:
    """Broken function level authorization: cell by cell in test_roles.py. A token has one role, and keeps it."""
    for path in ("/api/v1/config", "/api/v1/tokens"):
        assert shared.client("auditor").get(path).json()["code"] == "HB710"
    assert shared.client("owner").post("/api/v1/query", json=COUNT, headers={"Idempotency-Key": "x"}).status_code == 403
    assert shared.client("ana").put("/api/v1/config", json={"text": ""}).status_code in (403, 428)


def test_api6_spending_cannot_be_automated_past_the_caps(app: Any) -> None:
    """Unrestricted access to sensitive business flows: the flow is spending, and the ledger bounds it."""
    statuses = [app.ask("ben", key=f"{n}", epsilon="0.3").status_code for n in range(5)]
    assert statuses == [200, 200, 200, 409, 409]


def test_api7_the_server_fetches_nothing_that_a_client_names(app: Any) -> None:
    """Server side request forgery: no field of the API is an address that is fetched.

    A `source:` of hubbub.yaml, which only the owner changes, is a file; addresses are refused. The identity provider's
    is in the settings, read at the start, and must be https.
    """
    owner = app.client("owner")
    text = owner.get("/api/v1/config").json()["text"]
    for source in (
        "http://127.0.0.1:1/x.csv",
        "https://example.org/x.parquet",
        "s3://bucket/x.parquet",
        "file:///etc/passwd",
    ):
        wrong = text.replace("source: wards.csv", f"source: {source}")
        assert owner.post("/api/v1/config/check", json={"text": wrong}).json()["problems"], source
    for sql in ("SELECT COUNT(*) FROM 'http://127.0.0.1:1/x.csv'", "SELECT COUNT(*) FROM read_csv('/etc/passwd')"):
        assert app.ask(sql=sql).status_code == 422
    # nobody but the identity provider and the collector of logs, which hubbub.yaml names, is asked, in one file each
    fetching = [
        path.name
        for path in (SOURCE / "server").rglob("*.py")
        if re.search(r"\b(httpx2?|urllib\.request|requests\.get|urlopen|http\.client)\b", path.read_text())
    ]
    assert set(fetching) <= {"oidc.py", "telemetry.py"}


def test_api8_nothing_is_left_open_by_default(shared: Any) -> None:
    """Security misconfiguration: no CORS, no public docs page, no debug, no banner, no stack trace, strict headers."""
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for method, path in (("OPTIONS", "/api/v1/query"), ("GET", "/api/v1/me"), ("OPTIONS", "/api/v1/me")):
        answer = shared.client("ana").request(method, path, headers=origin)
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert shared.client(None).get("/docs", follow_redirects=False).status_code == 303  # a page for users, signed in
    for path in ("/redoc", "/openapi.json", "/debug", "/.env", "/.git/config", "/hubbub.yaml", "/server.db"):
        assert shared.client("ana").get(path).status_code == 404
    assert not shared.app.debug
    for method in ("TRACE", "CONNECT", "PATCH", "PROPFIND"):
        assert shared.client("ana").request(method, "/api/v1/me").status_code == 405


def test_api9_every_route_is_in_the_inventory(shared: Any) -> None:
    """Improper inventory management: one version, and the OpenAPI document lists all of it."""
    document = shared.client(None).get("/api/v1/openapi.json").json()
    listed = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert all(path.startswith("/api/v1/") for _, path in listed)
    assert len(listed) == len(
        {operation["operationId"] for item in document["paths"].values() for operation in item.values()}
    )

    parts = (asking, attacks, governing, publications, reviews, sandbox, schedules, streams)
    served = {(m, r.path) for part in parts for r in part.router.routes for m in r.methods}
    assert served == listed
    assert json.dumps(document).count('"examples"') > 20
    assert "cdn" not in json.dumps(document).lower()


def test_api10_what_other_services_say_is_not_trusted() -> None:
    """Unsafe consumption of APIs: the only other service is the identity provider, whose tokens are verified.

    That is tested in test_oidc.py. Here: nothing that comes from outside is read by a reader that could run it.
    """
    for path in (SOURCE / "server").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                # the owner's own command for keys is run in one file, by a list of words and without a shell
                started = {"subprocess"} if path.name != "key_command.py" else set()
                assert not names & {"pickle", "marshal", "shelve", "yaml", *started}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile", "__import__"), path


@pytest.mark.parametrize("word", ["verify=False", "verify_signature", "shell=True", "debug=True", "autoescape=False"])
def test_no_safeguard_is_switched_off_in_the_code(word: str) -> None:
    for path in (SOURCE / "server").rglob("*.py"):
        assert word not in path.read_text(), path
