"""Streams over HTTP: paid for by an analyst, fed by the owner, read by both; a lost answer is asked for again."""

from typing import Any

import pytest

PAID = "CALL stream(table => 'health', name => 'seen', kind => 'density', universe => [0, 9999], outputs => 2)"


@pytest.fixture
def begun(app: Any) -> Any:
    """A world with one stream that ana paid for."""
    paid = app.ask(sql=PAID, epsilon="1")
    assert paid.status_code == 200, paid.text
    app.number = paid.json()["receipt"]["ledger"][0]["sequence"]
    made = app.client("ana").post("/api/v1/streams", json={"release": app.number})
    assert made.status_code == 201, made.text
    return app


def test_a_stream_is_paid_for_begun_fed_and_answered(begun: Any) -> None:
    spent = begun.spent()
    owner, ana = begun.client("owner"), begun.client("ana")
    body = {"lines": [str(i) for i in range(5000)], "feeder": "web-1", "before": 0}
    assert owner.post("/api/v1/streams/seen/arrivals", json=body).json() == {
        "taken": 5000, "of_feeder": 5000, "arrivals": 5000,
    }  # fmt: skip
    # the answer was lost on its way, and the same is sent again
    assert owner.post("/api/v1/streams/seen/arrivals", json=body).json()["taken"] == 0
    assert ana.get("/api/v1/streams/seen").json()["values"] == []
    answer = ana.post("/api/v1/streams/seen/answer").json()
    assert answer["values"][0]["value"] == pytest.approx(0.5, abs=0.2)
    assert answer["answers_left"] == 1
    assert ana.get("/api/v1/streams/seen").json() == answer
    assert ana.post("/api/v1/streams/seen/answer").status_code == 200
    over = ana.post("/api/v1/streams/seen/answer")
    assert (over.status_code, over.json()["code"]) == (422, "HB534")
    assert begun.spent() == spent
    again = ana.post("/api/v1/streams", json={"release": begun.number})
    assert (again.status_code, again.json()["arrivals"]) == (201, 5000)


def test_nobody_sees_the_stream_of_another_analyst(begun: Any) -> None:
    ben = begun.client("ben")
    assert ben.get("/api/v1/streams").json() == {"streams": []}
    there = ben.get("/api/v1/streams/seen")
    nowhere = ben.get("/api/v1/streams/none")
    assert (there.status_code, nowhere.status_code) == (404, 404)
    assert there.json()["code"] == nowhere.json()["code"] == "HB164"
    assert ben.post("/api/v1/streams/seen/answer").status_code == 404
    assert ben.post("/api/v1/streams", json={"release": begun.number}).status_code == 404
    for who in ("ana", "owner", "auditor"):
        assert begun.client(who).get("/api/v1/streams").json() == {"streams": ["seen"]}


def test_what_is_no_feeding_is_refused_and_changes_nothing(begun: Any) -> None:
    owner = begun.client("owner")
    for body, status in (
        ({"lines": ["1"] * 10_001}, 422), ({"lines": ["1" * 201]}, 422), ({"lines": [1]}, 422), ({"lines": "1"}, 422),
        ({"lines": ["1"], "before": 9}, 422), ({"lines": ["1"], "feeder": "a b"}, 422), ({}, 422),
        ({"lines": ["1"], "more": 1}, 422),
    ):  # fmt: skip
        assert owner.post("/api/v1/streams/seen/arrivals", json=body).status_code == status
    assert owner.post("/api/v1/streams/seen/arrivals", content=b"x" * (1 << 21)).status_code in (413, 415)
    assert owner.get("/api/v1/streams/seen").json()["arrivals"] == 0
    assert owner.post("/api/v1/streams/..%2Fup/arrivals", json={"lines": []}).status_code in (404, 422)


def test_a_release_that_paid_for_no_stream_begins_none(begun: Any) -> None:
    other = begun.ask(epsilon="0.01").json()["receipt"]["ledger"][0]["sequence"]
    answer = begun.client("ana").post("/api/v1/streams", json={"release": other})
    assert (answer.status_code, answer.json()["code"]) == (422, "HB531")


def test_a_lost_state_is_not_drawn_again(begun: Any) -> None:
    (begun.folder / "hubbub-streams" / "seen.stream").unlink()
    answer = begun.client("ana").post("/api/v1/streams", json={"release": begun.number})
    assert (answer.status_code, answer.json()["code"]) == (503, "HB532")
    assert str(begun.folder) not in answer.text


def test_every_stream_route_is_described_with_examples(begun: Any) -> None:
    document = begun.client("owner").get("/api/v1/openapi.json").json()
    paths = {path for path in document["paths"] if "/streams" in path}
    assert len(paths) == 4
    arrivals = document["components"]["schemas"]["Arrivals"]["properties"]
    assert all("examples" in each for each in arrivals.values())
