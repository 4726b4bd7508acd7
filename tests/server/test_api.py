"""The API as an analyst uses it: from a token to an answer and back to it."""

from typing import Any

from hubbub.audit.receipt import check_receipt

COUNT = "SELECT COUNT(*) AS n FROM health"


def test_an_analyst_asks_and_pays(app: Any) -> None:
    ana = app.client("ana")
    assert ana.get("/api/v1/me").json()["role"] == "analyst"
    assert ana.get("/api/v1/datasets").json() == {"datasets": ["health", "plans"]}
    assert "each person" in ana.get("/api/v1/datasets/health").json()["protected"]
    estimate = ana.post("/api/v1/estimate", json={"sql": COUNT, "epsilon": "0.5"}).json()
    assert estimate["admitted"]
    assert app.spent() == {"health": "0"}
    answer = app.ask(epsilon="0.5")
    assert answer.status_code == 200, answer.text
    assert answer.json()["epsilon"] == "1/2"
    assert app.spent() == {"health": "1/2"}
    (past,) = ana.get("/api/v1/releases").json()["releases"]
    again = ana.get(f"/api/v1/releases/{past['id']}").json()
    assert again["answer"] == answer.json()["answer"]
    assert again["replayed"]
    assert app.spent() == {"health": "1/2"}


def test_a_real_server_answers(served: Any) -> None:
    assert served.client(None).get("/healthz").status_code == 200
    assert served.client(None).get("/readyz").json()["ready"]
    assert served.ask().status_code == 200


def test_a_question_is_explained_before_it_is_paid_for(app: Any) -> None:
    found = app.client("ana").post("/api/v1/explain", json={"sql": COUNT, "epsilon": "0.5"}).json()
    assert any("contribution bounds" in line for line in found["derivation"])
    assert found["sql"][0].startswith(("SELECT", "WITH"))
    assert found["split"][0]["name"] == "n"
    assert app.spent() == {"health": "0"}


def test_an_epsilon_is_explained_to_everybody(app: Any) -> None:
    for who in ("ana", "owner", "auditor"):
        found = app.client(who).get("/api/v1/explain", params={"epsilon": "0.1", "delta": "1e-9", "n": 1000})
        assert found.status_code == 200, found.text
    answer = app.client("ana").get("/api/v1/explain", params={"epsilon": "nan"})
    assert (answer.status_code, answer.json()["code"]) == (422, "HB102")


def test_owner_and_auditor_see_every_release_and_budget(app: Any) -> None:
    app.ask("ana")
    app.ask("ben")
    for who in ("owner", "auditor"):
        client = app.client(who)
        listed = client.get("/api/v1/releases").json()["releases"]
        assert {each["analyst"] for each in listed} == {"ana", "ben"}
        assert all(client.get(f"/api/v1/releases/{each['id']}").json()["replayed"] for each in listed)
        budgets = client.get("/api/v1/budget").json()["budgets"]
        assert {(each["analyst"], each["dataset"]) for each in budgets} == {
            ("ana", "health"),
            ("ben", "health"),
            ("ben", "wards"),
            ("eve", "health"),
        }
        assert client.get("/api/v1/datasets").json()["datasets"] == ["health", "wards", "plans"]


def test_a_refusal_says_what_why_and_what_to_do(app: Any) -> None:
    answer = app.ask(sql="SELECT nothing\nFROM health")
    found = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert found == {
        "type": f"urn:hubbub:{found['code']}",
        "title": found["title"],
        "status": 422,
        "detail": found["detail"],
        "code": found["code"],
        "remedy": found["remedy"],
        "position": [1, 8],
        "instance": answer.headers["X-Request-Id"],
    }
    assert "Nothing was run or charged" in found["detail"]
    over = app.ask("ben", epsilon="2").json()
    assert (over["status"], over["code"]) == (409, "HB201")
    assert over["remedy"]


def test_a_release_verifies_by_its_receipt_alone(app: Any) -> None:
    found = app.ask(sql="SELECT site, COUNT(*) AS n FROM health GROUP BY site", epsilon="1").json()
    document = {"answer": found["answer"], "receipt": found["receipt"]}
    assert check_receipt(document).problems == []
    found["answer"]["columns"][1]["values"][0] += 1
    assert check_receipt(document).problems
