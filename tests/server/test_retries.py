"""One request, however often it is sent: one charge, one release."""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hubbub.accounting.calls import Charge, ChargeRequest
from hubbub.errors import LedgerError

BY_PLAN = "SELECT coinsurance, COUNT(*) AS n FROM health GROUP BY coinsurance"


def kept(answer: Any) -> tuple[Any, Any]:
    assert answer.status_code == 200, answer.text
    return answer.json()["answer"], answer.json()["receipt"]


def test_a_retry_gets_the_same_release_and_is_charged_once(app: Any) -> None:
    first = app.ask(sql=BY_PLAN, header="one", epsilon="0.5")
    for _ in range(3):
        assert kept(app.ask(sql=BY_PLAN, header="one", epsilon="0.5")) == kept(first)
    assert app.spent() == {"health": "1/2"}


def test_the_same_request_many_times_at_once_is_charged_once(app: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: app.ask(header="one", key="drawn", epsilon="0.5"), range(8)))
    assert len({str(kept(answer)) for answer in answers}) == 1
    assert app.spent() == {"health": "1/2"}


def test_a_retry_after_the_data_changed_gets_the_old_release(app: Any) -> None:
    first = app.ask(header="one")
    data = app.folder / "health.csv"
    lines = data.read_text().splitlines(keepends=True)
    data.write_text("".join(lines[:-5]))
    assert kept(app.ask(header="one")) == kept(first)
    assert app.spent() == {"health": "1/10"}
    other = app.ask(header="two")  # no retry: the data is another now, and the answer is paid for anew
    assert kept(other)[1]["data"][0]["version"] != kept(first)[1]["data"][0]["version"]
    assert app.spent() == {"health": "1/5"}


def test_a_retry_after_the_declarations_changed_gets_the_old_release(app: Any) -> None:
    first = app.ask(sql=BY_PLAN, header="one")
    owner = app.client("owner")
    found = owner.get("/api/v1/config").json()
    text = found["text"].replace("      coinsurance: {values: [0, 25, 50, 95, 100]}\n", "")
    assert owner.put("/api/v1/config", json={"text": text}, headers={"If-Match": found["hash"]}).status_code == 200
    assert app.ask(sql=BY_PLAN, header="two").status_code == 422
    assert kept(app.ask(sql=BY_PLAN, header="one")) == kept(first)


def test_a_key_that_is_used_for_another_request_is_refused(app: Any) -> None:
    app.ask(header="one")
    for change in ({"epsilon": "0.2"}, {"key": "drawn"}, {"rows": 1}, {"raw": True}, {"sql": BY_PLAN}):
        answer = app.ask(header="one", **change)
        assert (answer.status_code, answer.json()["code"]) == (422, "HB124")
    assert app.spent() == {"health": "1/10"}


def test_a_key_belongs_to_one_analyst(app: Any) -> None:
    assert kept(app.ask("ana", header="one", key="k")) != kept(app.ask("ben", header="one", key="k"))
    assert (app.spent("ana")["health"], app.spent("ben")["health"]) == ("1/10", "1/10")


def test_a_new_try_of_the_same_question_is_free_and_a_new_draw_is_not(app: Any) -> None:
    first = app.ask(header="one")
    assert kept(app.ask(header="two")) == kept(first)
    assert app.spent() == {"health": "1/10"}
    assert kept(app.ask(header="three", key="drawn anew")) != kept(first)
    assert app.spent() == {"health": "1/5"}


@pytest.mark.parametrize("keys", [[], [""], ["a", "b"], ["x" * 201], ["é".encode()]])
def test_a_spend_without_a_usable_key_is_refused(app: Any, keys: list[str]) -> None:
    headers = [("Idempotency-Key", key) for key in keys]
    answer = app.client().post("/api/v1/query", json={"sql": "SELECT 1", "epsilon": 1}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "HB161")
    assert "remedy" in answer.json()


def test_the_claim_is_durable_before_the_charge(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = app.service.current.curator.ledger
    charge, seen = ledger.charge_all, []

    def watched(requests: Sequence[ChargeRequest]) -> list[Charge]:
        # another connection sees what is committed, and nothing else
        with sqlite3.connect(app.folder / "hubbub-ledger" / "server.db") as other:
            seen.extend(other.execute("SELECT analyst, header, ledger_key FROM retries").fetchall())
        other.close()
        assert seen[-1] == ("ana", "one", requests[0].key)
        found: list[Charge] = charge(requests)
        return found

    monkeypatch.setattr(ledger, "charge_all", watched)
    assert app.ask(header="one").status_code == 200
    assert len(seen) == 1


def test_a_stop_between_claim_and_charge_costs_nothing(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = app.service.current.curator.ledger

    def stopped(_: Sequence[ChargeRequest]) -> list[Charge]:
        raise LedgerError("HB303", "the ledger /srv/ledger.db is busy.", "Try again.")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "charge_all", stopped)
        answer = app.ask(header="one")
        assert (answer.status_code, answer.json()["code"]) == (503, "HB303")
        assert "/srv/ledger.db" not in answer.text  # where things are is the operator's alone
    assert app.spent() == {"health": "0"}
    assert app.ask(header="one").status_code == 200
    assert app.spent() == {"health": "1/10"}


def test_a_refused_request_can_be_sent_again_when_there_is_budget(app: Any) -> None:
    assert app.ask("ben", header="one", epsilon="0.9").status_code == 200
    answer = app.ask("ben", header="two", epsilon="0.5", key="more")
    assert (answer.status_code, answer.json()["code"]) == (409, "HB201")
    asked = app.client("ben").post("/api/v1/requests", json={"dataset": "health", "epsilon": 1, "reason": "more"})
    assert app.client("owner").post(f"/api/v1/requests/{asked.json()['id']}/grant", json={}).status_code == 200
    assert app.ask("ben", header="two", epsilon="0.5", key="more").status_code == 200


def test_retries_survive_a_restart(start_app: Any) -> None:
    first = start_app()
    answer = first.ask(header="one", key="k")
    first.service.close()
    second = start_app(first.folder)
    assert kept(second.ask(header="one", key="k")) == kept(answer)
    assert second.spent() == {"health": "1/10"}


def fail(app: Any, **said: Any) -> Any:
    """Ask while the engine cannot answer."""
    engine = app.service.current.curator.engine
    run = engine.run

    def broken(_: str) -> None:
        raise ValueError("no more memory")

    engine.run = broken
    try:
        answer = app.ask(**said)
    finally:
        engine.run = run
    assert (answer.status_code, answer.json()["code"]) == (424, "HB900")
    return answer


def test_a_retry_after_a_failed_run_goes_on_from_its_charge(app: Any) -> None:
    fail(app, header="one")
    assert app.ask(header="one").status_code == 200
    assert app.spent() == {"health": "1/10"}


def test_a_retry_after_a_failed_run_and_a_change_of_the_data_is_refused_and_costs_nothing(app: Any) -> None:
    """The noise of the failed run was drawn on the old data: on the new it would tell the difference."""
    fail(app, header="one")
    data = app.folder / "health.csv"
    data.write_text("".join(data.read_text().splitlines(keepends=True)[:-5]))
    for code in ("HB902", "HB901"):  # changed; and spent for good
        answer = app.ask(header="one")
        assert (answer.status_code, answer.json()["code"]) == (424, code)
    assert app.spent() == {"health": "1/10"}
    assert app.ask(header="two").status_code == 200  # without a key, new data is a new question
    assert app.spent() == {"health": "1/5"}


def test_after_some_failures_an_analyst_waits_for_the_owner(app: Any) -> None:
    for number in range(3):
        fail(app, header=f"h{number}", key=f"k{number}")
    for path in ("query", "estimate"):
        body = {"sql": BY_PLAN, "epsilon": "0.1"}
        headers = {"Idempotency-Key": "more"} if path == "query" else {}
        answer = app.client("ana").post(f"/api/v1/{path}", json=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "HB325"), answer.text
    spent = app.spent()
    owner = app.client("owner")
    listed = owner.get("/api/v1/ledger?kind=failure").json()["entries"]
    assert [(each["analyst"], each["dataset"]) for each in listed] == [("ana", "health")] * 3
    who = {"analyst": "ana", "dataset": "health"}
    done = owner.post("/api/v1/ledger/review", json=who)
    assert done.json()["charges"] == sorted(each["charge"] for each in listed)
    assert owner.post("/api/v1/ledger/review", json=who).json()["code"] == "HB327"
    assert app.ask(header="more", sql=BY_PLAN).status_code == 200
    assert app.spent() != spent
    assert owner.post("/api/v1/ledger/verify").json()["sound"]
