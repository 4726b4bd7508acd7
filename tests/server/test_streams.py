"""Streams over HTTP: paid for by an analyst, fed by the owner, read by both; a lost answer is asked for again."""

from pathlib import Path
from typing import Any

import pytest

from hubbub.analyses.streams import folders
from hubbub.analyses.streams.folders import folder_of_analyst
from hubbub.errors import AccessError
from hubbub.server.keyring import Keyring
from hubbub.server.sessions import Sessions

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
    fed = {"taken": 5000, "of_feeder": 0}
    assert owner.post("/api/v1/streams/seen/arrivals", json=body).json() == fed
    # the answer was lost on its way, and the same is sent again: a density counts no lines, and loses nothing by it
    assert owner.post("/api/v1/streams/seen/arrivals", json=body).json() == fed
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
    assert (again.status_code, again.json()["arrivals"]) == (201, None)


def test_nobody_sees_the_stream_of_another_analyst(begun: Any) -> None:
    ben = begun.client("ben")
    assert ben.get("/api/v1/streams").json() == {"streams": [], "listed": []}
    there = ben.get("/api/v1/streams/seen")
    nowhere = ben.get("/api/v1/streams/none")
    assert (there.status_code, nowhere.status_code) == (404, 404)
    assert there.json()["code"] == nowhere.json()["code"] == "HB164"
    assert ben.post("/api/v1/streams/seen/answer").status_code == 404
    assert ben.post("/api/v1/streams", json={"release": begun.number}).status_code == 404
    for who in ("ana", "owner", "auditor"):
        assert begun.client(who).get("/api/v1/streams").json() == {
            "streams": ["seen"],
            "listed": [{"name": "seen", "analyst": "ana", "dataset": "health"}],
        }


def state(begun: Any, analyst: str = "ana", name: str = "seen") -> Path:
    return folder_of_analyst(begun.folder / "hubbub-streams", analyst) / f"{name}.stream"


def test_what_is_no_feeding_is_refused_and_changes_nothing(begun: Any) -> None:
    owner, before = begun.client("owner"), state(begun).read_bytes()
    for body, status in (
        ({"lines": ["1"] * 10_001}, 422),
        ({"lines": ["1" * 201]}, 422),
        ({"lines": [1]}, 422),
        ({"lines": "1"}, 422),
        ({"lines": ["1"], "before": -9}, 422),
        ({"lines": ["1"], "feeder": "a b"}, 422),
        ({}, 422),
        ({"lines": ["1"], "more": 1}, 422),
    ):
        assert owner.post("/api/v1/streams/seen/arrivals", json=body).status_code == status
    assert owner.post("/api/v1/streams/seen/arrivals", content=b"x" * (1 << 21)).status_code in (413, 415)
    assert state(begun).read_bytes() == before
    assert owner.post("/api/v1/streams/..%2Fup/arrivals", json={"lines": []}).status_code in (404, 422)


def test_a_release_that_paid_for_no_stream_begins_none(begun: Any) -> None:
    other = begun.ask(epsilon="0.01").json()["receipt"]["ledger"][0]["sequence"]
    answer = begun.client("ana").post("/api/v1/streams", json={"release": other})
    assert (answer.status_code, answer.json()["code"]) == (422, "HB531")


def test_a_lost_state_is_not_drawn_again(begun: Any) -> None:
    state(begun).unlink()
    answer = begun.client("ana").post("/api/v1/streams", json={"release": begun.number})
    assert (answer.status_code, answer.json()["code"]) == (503, "HB532")
    assert str(begun.folder) not in answer.text


def test_every_stream_route_is_described_with_examples(begun: Any) -> None:
    document = begun.client("owner").get("/api/v1/openapi.json").json()
    paths = {path for path in document["paths"] if "/streams" in path}
    assert len(paths) == 4
    assert "delete" in document["paths"]["/api/v1/streams/{name}"]
    arrivals = document["components"]["schemas"]["ArrivalsBody"]["properties"]
    assert all("examples" in each for each in arrivals.values())


def feeder(begun: Any, *streams: str, name: str = "web") -> Any:
    """Give a client with a feeder's token, as the owner issues it."""
    body = {"name": name, "role": "feeder", "streams": list(streams)}
    made = begun.client("owner").post("/api/v1/tokens", json=body)
    assert made.status_code == 201, made.text
    begun.tokens[name] = made.json()["token"]
    return begun.client(name)


def edited(begun: Any, old: str, new: str) -> None:
    """Change hubbub.yaml as its owner does."""
    owner = begun.client("owner")
    found = owner.get("/api/v1/config").json()
    assert old in found["text"]
    put = owner.put(
        "/api/v1/config", json={"text": found["text"].replace(old, new)}, headers={"If-Match": f'"{found["hash"]}"'}
    )
    assert put.status_code == 200, put.text


def test_a_purchase_begins_its_stream_and_a_retry_charges_nothing(app: Any) -> None:
    paid = app.ask(sql=PAID, epsilon="1", header="once")
    assert app.client("ana").get("/api/v1/streams").json()["streams"] == ["seen"]
    spent = app.spent()
    assert app.ask(sql=PAID, epsilon="1", header="once").json()["receipt"] == paid.json()["receipt"]
    assert app.ask(sql=PAID, epsilon="1", header="twice").json()["receipt"] == paid.json()["receipt"]
    other = app.ask(sql=PAID.replace("9999", "99"), epsilon="1")
    assert (other.status_code, other.json()["code"]) == (422, "HB531")
    assert app.spent() == spent


def test_a_retry_of_a_charge_whose_stream_did_not_begin_begins_it(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.analyses.streams import purchase

    with monkeypatch.context() as patch:
        patch.setattr(purchase, "begin", lambda *_, **__: 1 / 0)
        assert app.ask(sql=PAID, epsilon="1", header="once").status_code == 500
    spent = app.spent()
    assert app.client("ana").get("/api/v1/streams").json()["streams"] == []
    assert app.ask(sql=PAID, epsilon="1", header="once").status_code == 200
    assert app.client("ana").get("/api/v1/streams").json()["streams"] == ["seen"]
    assert app.spent() == spent


def test_names_belong_to_their_analyst(begun: Any) -> None:
    assert begun.ask("ben", sql=PAID.replace("9999", "99"), epsilon="0.5").status_code == 200
    owner, ben = begun.client("owner"), begun.client("ben")
    assert ben.get("/api/v1/streams/seen").json()["terms"]["universe"] == [0, 99]
    assert begun.client("ana").get("/api/v1/streams/seen").json()["terms"]["universe"] == [0, 9999]
    which = owner.get("/api/v1/streams/seen")
    assert (which.status_code, which.json()["code"]) == (409, "HB663")
    assert owner.get("/api/v1/streams/seen?analyst=ben").json()["terms"]["universe"] == [0, 99]
    assert ben.get("/api/v1/streams/seen?analyst=ana").status_code == 404
    assert owner.post("/api/v1/streams/seen/arrivals?analyst=ana", json={"lines": ["1"]}).status_code == 200
    assert ben.delete("/api/v1/streams/seen?analyst=ana").status_code == 404
    assert begun.client("auditor").delete("/api/v1/streams/seen?analyst=ana").status_code == 403
    assert ben.delete("/api/v1/streams/seen").status_code == 204
    assert ben.get("/api/v1/streams/seen").status_code == 404
    assert ben.delete("/api/v1/streams/seen").status_code == 404
    assert owner.delete("/api/v1/streams/seen").status_code == 204
    assert owner.get("/api/v1/streams").json()["streams"] == []
    again = begun.client("ana").post("/api/v1/streams", json={"release": begun.number})
    assert (again.status_code, again.json()["code"]) == (503, "HB532")


def test_the_limit_is_each_analysts_own_and_looked_at_before_the_charge(
    begun: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_STREAMS", 1)
    spent = begun.spent()
    over = begun.ask(sql=PAID.replace("'seen'", "'more'"), epsilon="1")
    assert (over.status_code, over.json()["code"]) == (409, "HB661")
    assert begun.spent() == spent
    assert begun.ask("ben", sql=PAID, epsilon="0.5").status_code == 200


def test_a_feeder_feeds_its_streams_and_does_nothing_else(begun: Any) -> None:
    assert begun.ask(sql=PAID.replace("'seen'", "'other'"), epsilon="1").status_code == 200
    assert begun.ask("ben", sql=PAID, epsilon="0.5").status_code == 200
    web = feeder(begun, "ana/seen")
    fed = web.post("/api/v1/streams/seen/arrivals", json={"lines": ["1"], "feeder": "owner"})
    assert (fed.status_code, fed.json()) == (200, {"taken": 1, "of_feeder": 0})
    assert web.post("/api/v1/streams/seen/arrivals?analyst=ana", json={"lines": ["1"]}).status_code == 200
    for path in ("seen/arrivals?analyst=ben", "other/arrivals", "none/arrivals"):
        refused = web.post(f"/api/v1/streams/{path}", json={"lines": ["1"]})
        assert (refused.status_code, refused.json()["code"]) == (404, "HB164")
    for method, path in (
        ("GET", "/me"),
        ("GET", "/streams"),
        ("GET", "/streams/seen"),
        ("DELETE", "/streams/seen"),
        ("POST", "/streams/seen/answer"),
        ("GET", "/budget"),
        ("GET", "/datasets"),
        ("GET", "/releases"),
        ("GET", "/tokens"),
        ("GET", "/config"),
        ("GET", "/ledger"),
        ("GET", "/attacks"),
    ):
        refused = web.request(method, f"/api/v1{path}")
        assert (refused.status_code, refused.json()["code"]) == (403, "HB710"), path
    # its lines are counted under its own name, so it hears nothing of another's
    edited(begun, "unit: row\n", "unit: row\n    arrivals: public\n")
    call = "CALL stream(table => 'wards', name => 'visits', kind => 'count', horizon => 100)"
    assert begun.ask("ben", sql=call, epsilon="0.5").status_code == 200
    owner, one = begun.client("owner"), feeder(begun, "ben/visits", name="one")
    owner.post("/api/v1/streams/visits/arrivals", json={"lines": ["1"] * 41, "feeder": "two"})
    heard = one.post("/api/v1/streams/visits/arrivals", json={"lines": ["1"] * 2, "feeder": "two"}).json()
    assert heard == {"taken": 2, "of_feeder": 2}


@pytest.mark.parametrize(
    "body",
    [
        {"name": "web", "role": "feeder"},
        {"name": "web", "role": "feeder", "streams": []},
        {"name": "web", "role": "auditor", "streams": ["ana/seen"]},
        {"name": "web", "role": "feeder", "streams": ["seen"]},
        {"name": "web", "role": "feeder", "streams": ["ana/../seen"]},
    ],
)
def test_a_feeders_token_names_its_streams_and_no_other_does(app: Any, body: dict[str, Any]) -> None:
    refused = app.client("owner").post("/api/v1/tokens", json=body)
    assert refused.status_code == 422, refused.text


def test_a_feeders_token_opens_no_page(begun: Any) -> None:
    feeder(begun, "ana/seen")
    accounts = begun.service.accounts
    with pytest.raises(AccessError, match="HB710"):
        Sessions(Keyring(b"s" * 32), accounts).sign(accounts.identify(begun.tokens["web"]))


def test_a_withdrawn_analyst_reads_nothing_and_nothing_more_is_let_in(begun: Any) -> None:
    """The cap on the dataset is gone, or the analyst is: no answer, no list, no arrivals."""
    owner, ana = begun.client("owner"), begun.client("ana")
    before = state(begun).read_bytes()
    edited(begun, "ana: {health: {epsilon: 10}}", "ana: {}")
    assert ana.get("/api/v1/streams").json() == {"streams": [], "listed": []}
    assert ana.get("/api/v1/streams/seen").status_code == 404
    assert ana.post("/api/v1/streams/seen/answer").status_code == 404
    assert ana.post("/api/v1/streams", json={"release": begun.number}).status_code == 404
    fed = owner.post("/api/v1/streams/seen/arrivals", json={"lines": ["1"]})
    assert (fed.status_code, fed.json()["code"]) == (409, "HB662")
    edited(begun, "  ana: {}\n", "")
    assert ana.get("/api/v1/streams/seen").status_code in (401, 403)
    assert owner.post("/api/v1/streams/seen/arrivals", json={"lines": ["1"]}).status_code == 409
    assert state(begun).read_bytes() == before
    assert owner.delete("/api/v1/streams/seen").status_code == 204


def test_nobody_but_the_owner_sees_how_many_arrivals_there_were(begun: Any) -> None:
    """41 arrivals of one person: no answer, list, state or length tells them, whoever asks and whatever was said."""
    owner, ana = begun.client("owner"), begun.client("ana")
    quiet = ana.get("/api/v1/streams/seen").content
    owner.post("/api/v1/streams/seen/arrivals", json={"lines": ["7"] * 41, "feeder": "web-1", "before": 0})
    for who in ("ana", "auditor", "owner"):
        seen = begun.client(who).get("/api/v1/streams/seen")
        assert seen.content == quiet
    size = state(begun).stat().st_size
    head = state(begun).read_bytes().partition(b"\n")[0]
    owner.post("/api/v1/streams/seen/arrivals", json={"lines": ["7"] * 4000, "feeder": "web-2"})
    assert state(begun).read_bytes().partition(b"\n")[0] == head
    assert state(begun).stat().st_size == size
    told = ana.post("/api/v1/streams/seen/answer").json()
    assert told["arrivals"] is None
    assert list(told["told"][0]) == ["value"]


def test_log_and_figures_do_not_count_arrivals(begun: Any, caplog: pytest.LogCaptureFixture) -> None:
    """One request an arrival, as a web front end sends them: neither is data that a dashboard may show."""
    owner = begun.client("owner")
    caplog.set_level("INFO", "hubbub.server")
    for _ in range(3):
        assert owner.post("/api/v1/streams/seen/arrivals", json={"lines": ["7"]}).status_code == 200
    owner.get("/api/v1/streams/seen")
    assert owner.post("/api/v1/streams/none/arrivals", json={"lines": ["7"]}).status_code == 404
    routes = [(line.fields["route"], line.fields["status"]) for line in caplog.records if hasattr(line, "fields")]
    assert ("/api/v1/streams/{name}", 200) in routes
    assert [status for route, status in routes if route.endswith("/arrivals")] == [404]
    figures = begun.service.metrics.text({})
    assert 'route="/api/v1/streams/{name}/arrivals",method="POST",status="4xx"} 1' in figures
    assert 'arrivals",method="POST",status="2xx"' not in figures


def test_a_count_is_for_data_sets_whose_arrivals_are_public(app: Any) -> None:
    call = "CALL stream(table => 'wards', name => 'visits', kind => 'count', horizon => 100)"
    refused = app.ask("ben", sql=call, epsilon="0.000001")
    assert (refused.status_code, refused.json()["code"]) == (403, "HB664")
    free = app.client("ben").post("/api/v1/estimate", json={"sql": call, "epsilon": "0.1"})
    assert (free.status_code, free.json()["code"]) == (403, "HB664")
    edited(app, "unit: row\n", "unit: row\n    arrivals: public\n")
    assert app.ask("ben", sql=call, epsilon="0.5").status_code == 200
    app.client("owner").post("/api/v1/streams/visits/arrivals", json={"lines": ["1"] * 7})
    assert app.client("ben").get("/api/v1/streams/visits").json()["arrivals"] == 7
    assert app.client("ben").get("/api/v1/datasets/wards").json()["arrivals"] == "public"
    # the owner takes it back: streams that tell it are read by nobody else, also those of before there was such a word
    edited(app, "    arrivals: public\n", "")
    for who in ("ben", "auditor"):
        hidden = app.client(who).get("/api/v1/streams/visits")
        assert (hidden.status_code, hidden.json()["code"]) == (403, "HB664")
        assert "7" not in hidden.json()["detail"]
    assert app.client("owner").get("/api/v1/streams/visits").json()["arrivals"] == 7
