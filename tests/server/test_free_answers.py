"""Free answers over HTTP: nothing is charged, retries get the same release, and estimates and pages say so."""

from typing import Any

BY_PLAN = "SELECT coinsurance, COUNT(*) AS n FROM health GROUP BY coinsurance"
ONE_PLAN = "SELECT COUNT(*) AS n FROM health WHERE coinsurance = 25"


def test_what_follows_from_an_earlier_release_is_not_charged(app: Any) -> None:
    assert app.ask(sql=BY_PLAN, header="one", epsilon="0.5").status_code == 200
    client = app.client("ana")
    estimate = client.post("/api/v1/estimate", json={"sql": ONE_PLAN, "epsilon": "0.1"}).json()
    assert estimate["free"]["enough"] is True
    first = app.ask(sql=ONE_PLAN, header="two", epsilon="0.1").json()
    assert first["epsilon"] == "0"
    assert first["receipt"]["derived"]["sources"][0]["charge"] == estimate["free"]["releases"][0]
    again = app.ask(sql=ONE_PLAN, header="two", epsilon="0.1").json()
    assert (again["answer"], again["receipt"]) == (first["answer"], first["receipt"])
    assert app.spent() == {"health": "1/2"}


def test_a_request_may_ask_for_a_free_answer_alone(app: Any) -> None:
    refused = app.ask(sql=ONE_PLAN, header="one", epsilon=None, free=True)
    assert refused.json()["code"] == "HB167"
    app.ask(sql=BY_PLAN, header="two", epsilon="0.5")
    answer = app.ask(sql=ONE_PLAN, header="three", epsilon=None, free=True)
    assert answer.json()["epsilon"] == "0"
    assert app.spent() == {"health": "1/2"}


def test_other_analysts_pay_for_themselves(app: Any) -> None:
    app.ask(sql=BY_PLAN, header="one", epsilon="0.5")
    other = app.client("ben").post("/api/v1/estimate", json={"sql": ONE_PLAN, "epsilon": "0.1"}).json()
    assert other["free"] is None


def test_a_retry_of_a_combined_query_is_one_charge_and_one_answer(app: Any) -> None:
    app.ask(sql=BY_PLAN, header="one", epsilon="0.3")
    first = app.ask(sql=BY_PLAN, header="two", epsilon="0.35", combine=True).json()
    spent = app.spent()
    assert len(first["receipt"]["derived"]["sources"]) == 2
    again = app.ask(sql=BY_PLAN, header="two", epsilon="0.35", combine=True).json()
    assert (again["answer"], again["receipt"]) == (first["answer"], first["receipt"])
    assert app.spent() == spent
