"""The API as an analyst uses it: from a token to an answer and back to it."""

from typing import Any

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
