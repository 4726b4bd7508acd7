"""What the owner does: hubbub.yaml, analysts, groups, tokens, requests for more budget."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest


def config(world: Any) -> tuple[str, str]:
    found = world.client("owner").get("/api/v1/config")
    assert found.headers["ETag"] == f'"{found.json()["hash"]}"'
    return found.json()["text"], found.json()["hash"]


def put(world: Any, text: str, digest: str | None) -> Any:
    headers = {} if digest is None else {"If-Match": f'"{digest}"'}
    return world.client("owner").put("/api/v1/config", json={"text": text}, headers=headers)


def test_a_change_is_checked_with_its_diff_and_promise_and_then_applied(app: Any) -> None:
    text, digest = config(app)
    new = text.replace("ben: {health: {epsilon: 1}", "ben: {health: {epsilon: 2}")
    found = app.client("owner").post("/api/v1/config/check", json={"text": new}).json()
    assert found["problems"] == []
    assert "-  ben: {health: {epsilon: 1}" in found["diff"]
    assert "+  ben: {health: {epsilon: 2}" in found["diff"]
    assert found["promise"][0]["dataset"] == "health"
    assert config(app) == (text, digest)  # checking changes nothing
    answer = put(app, new, digest)
    assert answer.status_code == 200, answer.text
    assert config(app) == (new, answer.json()["hash"])
    assert (app.folder / "hubbub.yaml.previous").read_text() == text
    assert app.ask("ben", epsilon="1.5").status_code == 200  # the new cap holds at once
    policies = app.client("owner").get("/api/v1/ledger", params={"kind": "policy"}).json()["entries"]
    assert len(policies) == 2  # and the ledger knows of both
    assert app.client("owner").post("/api/v1/ledger/verify").json()["sound"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("version: 1", "version: 2", "HB409"),
        ("bounds: [0, 65]", "bounds: [65, 0]", "HB"),
        ("ben: {health: {epsilon: 1}", "ben: {health: {epsilon: 31}", "HB406"),
        ("source: wards.csv", "source: ../../etc/nowhere.csv", "HB"),
        ("source: wards.csv", "source: https://example.org/wards.csv", "HB769"),
        ("groups:\n", "groups: [\n", "HB400"),
        ("analysts:\n", "ledger: {database: elsewhere.db}\nanalysts:\n", "HB432"),
        ("analysts:\n", "server: {host: 0.0.0.0}\nanalysts:\n", "HB432"),
    ],
)
def test_a_config_that_does_not_check_is_refused_and_nothing_changes(app: Any, old: str, new: str, code: str) -> None:
    text, digest = config(app)
    assert old in text
    wrong = text.replace(old, new, 1)
    problems = app.client("owner").post("/api/v1/config/check", json={"text": wrong}).json()["problems"]
    assert problems[0]["code"].startswith(code), problems
    answer = put(app, wrong, digest)
    assert (answer.status_code, answer.json()["code"]) == (422, problems[0]["code"])
    assert config(app) == (text, digest)
    assert app.ask().status_code == 200
    assert not (app.folder / "elsewhere.db").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unit: {column: person, groups: 5, rows: 5}", "unit: row"),
        ("unit: {column: person, groups: 5, rows: 5}", "relation: replace\n    unit: {column: person}"),
        ("unit: {column: person, groups: 5, rows: 5}", "unit: {column: site}"),
    ],
)
def test_a_change_that_breaks_what_a_charge_promised_is_refused_and_nothing_is_written(
    app: Any, old: str, new: str
) -> None:
    assert app.ask().status_code == 200
    text, digest = config(app)
    wrong = text.replace(old, new)
    problems = app.client("owner").post("/api/v1/config/check", json={"text": wrong}).json()["problems"]
    assert [each["code"] for each in problems] == ["HB433"]
    answer = put(app, wrong, digest)
    assert (answer.status_code, answer.json()["code"]) == (422, "HB433")
    assert config(app) == (text, digest)
    assert app.ask(key="again").status_code == 200
    renamed = wrong.replace("  health:\n    source", "  health2:\n    source").replace("{health: {", "{health2: {")
    renamed = renamed.replace("eve], health:", "eve], health2:")
    assert put(app, renamed, digest).status_code == 200, "a new name is a new budget"
    assert app.client("owner").post("/api/v1/ledger/verify").json()["sound"]


def test_bounds_and_contributions_may_change_and_each_change_is_an_entry(app: Any) -> None:
    assert app.ask().status_code == 200
    for old, new in (
        ("bounds: [0, 65]", "bounds: [0, 90]"),
        ("rows: 5", "rows: 4"),
        ("groups: 5,", "groups: 5, entity: person,"),
    ):
        text, digest = config(app)
        assert put(app, text.replace(old, new), digest).status_code == 200
        assert app.ask(key=new).status_code == 200
    policies = app.client("owner").get("/api/v1/ledger", params={"kind": "policy"}).json()["entries"]
    assert len(policies) == 4


def test_of_two_changes_from_the_same_text_one_is_refused(app: Any) -> None:
    text, digest = config(app)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: put(app, f"{text}# change {n}\n", digest).status_code, range(4)))
    assert sorted(answers) == [200, 412, 412, 412]
    assert put(app, text, None).json()["code"] == "HB166"
    assert put(app, text, None).status_code == 428


def test_a_file_that_was_changed_by_hand_is_read_again_and_a_broken_one_is_not_used(app: Any) -> None:
    path = app.folder / "hubbub.yaml"
    text = path.read_text()
    current = app.service.current

    def look() -> None:
        current._checked = float("-inf")

    path.write_text(text.replace("ana: {health: {epsilon: 10}}", "ana: {health: {epsilon: 11}}"))
    look()
    (view,) = app.client("ana").get("/api/v1/budget").json()["budgets"]
    assert next(cap["epsilon"] for cap in view["caps"] if cap["scope"] == "analyst") == "11"
    path.write_text(text[: len(text) // 2])
    look()
    assert app.ask().status_code == 200
    assert not app.client(None).get("/readyz").json()["config"]
    path.write_text(text)
    look()
    assert app.ask(key="after").status_code == 200
    app.service.current.reload()
    assert current.trouble is None


def test_queries_go_on_while_the_config_changes(app: Any) -> None:
    def ask(number: int) -> int:
        status: int = app.ask(key=f"q{number}", epsilon="0.01").status_code
        return status

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, number) for number in range(16)]
        for number in range(4):
            text, digest = config(app)
            assert put(app, f"{text}# change {number}\n", digest).status_code == 200
        assert {each.result() for each in asked} <= {200, 429}
    assert app.client("owner").post("/api/v1/ledger/verify").json()["sound"]


def test_an_analyst_is_added_gets_a_token_asks_and_is_removed(app: Any) -> None:
    owner = app.client("owner")
    made = owner.post("/api/v1/analysts", json={"name": "tom", "caps": {"health": {"epsilon": "0.5"}}})
    assert made.json() == {"name": "tom", "caps": {"health": {"epsilon": "1/2", "delta": "1/10000000"}}}
    issued = owner.post("/api/v1/tokens", json={"name": "tom", "role": "analyst", "days": 2}).json()
    app.tokens["tom"] = issued["token"]
    assert app.ask("tom", epsilon="0.5").status_code == 200
    assert app.ask("tom", epsilon="0.1", key="x").status_code == 409
    listed = next(each for each in owner.get("/api/v1/tokens").json()["tokens"] if each["id"] == issued["id"])
    assert issued["token"] not in str(owner.get("/api/v1/tokens").json())
    assert listed["role"] == "analyst"
    assert owner.delete("/api/v1/analysts/tom").status_code == 204
    assert app.client("tom").get("/api/v1/me").status_code in (401, 403)
    assert owner.delete("/api/v1/analysts/tom").status_code == 404
    # the name is not given again, unless the owner says that it is the same person
    again = owner.post("/api/v1/analysts", json={"name": "tom", "caps": {"health": {"epsilon": 1}}})
    assert (again.status_code, again.json()["code"]) == (422, "HB434")
    text, digest = config(app)
    text = text.replace("analysts:\n", "analysts:\n  tom: {health: {epsilon: 1}}\n") + "returning: [tom]\n"
    assert put(app, text, digest).status_code == 200
    # what was spent stays spent: who comes back finds it
    assert app.spent("tom") == {"health": "1/2"}
    assert app.client("tom").get("/api/v1/me").status_code == 401  # the old token stays closed


def test_a_revoked_token_is_of_no_use(app: Any) -> None:
    owner = app.client("owner")
    issued = owner.post("/api/v1/tokens", json={"name": "ana", "role": "analyst"}).json()
    app.tokens["other"] = issued["token"]
    assert app.client("other").get("/api/v1/me").status_code == 200
    assert owner.delete(f"/api/v1/tokens/{issued['id']}").status_code == 204
    answer = app.client("other").get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "HB703")
    assert app.client("ana").get("/api/v1/me").status_code == 200


def test_groups_bound_what_their_members_spend_together(app: Any) -> None:
    owner = app.client("owner")
    terms = {"members": ["ana", "eve"], "caps": {"health": {"epsilon": "10"}}}
    assert owner.put("/api/v1/groups/all", json=terms).json()["members"] == ["ana", "eve"]
    assert app.ask("eve", epsilon="3").status_code == 200
    answer = app.ask("eve", epsilon="2", key="x")
    assert answer.status_code == 409  # guests have 4 together
    assert owner.get("/api/v1/groups/all").json()["caps"]["health"]["epsilon"] == "10"
    assert owner.delete("/api/v1/groups/all").status_code == 204
    assert owner.get("/api/v1/groups/all").status_code == 404


def ask_more(world: Any, epsilon: str, who: str = "ben", dataset: str = "health") -> Any:
    asked = {"dataset": dataset, "epsilon": epsilon, "reason": "the second half"}
    return world.client(who).post("/api/v1/requests", json=asked)


def test_a_request_is_granted_once_and_within_the_caps(app: Any) -> None:
    owner = app.client("owner")
    number = ask_more(app, "0.5").json()["id"]
    with ThreadPoolExecutor(4) as pool:
        granting = pool.map(lambda _: app.client("owner").post(f"/api/v1/requests/{number}/grant", json={}), range(4))
        assert sorted(answer.status_code for answer in granting) == [200, 409, 409, 409]
    assert app.ask("ben", epsilon="1.6").status_code == 409
    assert app.ask("ben", epsilon="1.5").status_code == 200
    assert owner.get("/api/v1/requests").json()["requests"][0]["state"] == "granted"
    # guests have 4 together: ben's own cap must stay below it
    text, _ = config(app)
    number = ask_more(app, "3").json()["id"]
    answer = owner.post(f"/api/v1/requests/{number}/grant", json={"note": "yes"})
    assert answer.status_code == 422
    assert config(app)[0] == text
    assert owner.get("/api/v1/requests").json()["requests"][0]["state"] == "open"
    assert owner.post(f"/api/v1/requests/{number}/refuse", json={"note": "no"}).json()["note"] == "no"


def test_less_than_was_requested_can_be_approved_and_never_more(app: Any) -> None:
    owner = app.client("owner")
    number = ask_more(app, "0.5").json()["id"]
    effect = owner.get(f"/api/v1/requests/{number}/effect").json()["effect"]
    assert "instead of 1" in " ".join(effect)
    assert app.client("ben").get(f"/api/v1/requests/{number}/effect").status_code == 403
    more = owner.post(f"/api/v1/requests/{number}/grant", json={"epsilon": "0.6"})
    assert more.json()["code"] == "HB204"
    answer = owner.post(f"/api/v1/requests/{number}/grant", json={"epsilon": "0.2", "note": "for now"})
    assert answer.json()["note"] == "Approved ε = 0.2 of 0.5. for now"
    assert app.ask("ben", epsilon="1.3").status_code == 409
    assert app.ask("ben", epsilon="1.2").status_code == 200


def test_a_grant_never_passes_the_cap_of_the_data_set(app: Any) -> None:
    number = ask_more(app, "21", who="ana").json()["id"]
    answer = app.client("owner").post(f"/api/v1/requests/{number}/grant", json={})
    assert (answer.status_code, answer.json()["code"]) == (422, "HB406")
    number = ask_more(app, "20", who="ana").json()["id"]
    assert app.client("owner").post(f"/api/v1/requests/{number}/grant", json={}).status_code == 200


def test_requests_are_for_what_one_can_see_and_are_seen_by_who_made_them(app: Any) -> None:
    assert ask_more(app, "1", who="ana", dataset="wards").status_code in (403, 404)
    assert ask_more(app, "1", who="ana", dataset="nothing").status_code == 404
    assert ask_more(app, "1", who="ana").status_code == 201
    assert ask_more(app, "1", who="ben").status_code == 201
    assert {r["analyst"] for r in app.client("ana").get("/api/v1/requests").json()["requests"]} == {"ana"}
    seen = app.client("auditor").get("/api/v1/requests", params={"limit": 1}).json()
    assert seen["requests"][0]["analyst"] == "ben"
    rest = app.client("auditor").get("/api/v1/requests", params={"before": seen["next"]}).json()
    assert [r["analyst"] for r in rest["requests"]] == ["ana"]


def test_pages_of_releases_and_of_the_ledger_meet_without_gap(app: Any) -> None:
    for number in range(5):
        app.ask(key=f"k{number}", epsilon="0.01")
    seen, before = [], None
    while True:
        params = {"limit": 2} | ({} if before is None else {"before": before})
        page = app.client().get("/api/v1/releases", params=params).json()
        seen += [each["id"] for each in page["releases"]]
        before = page["next"]
        if before is None:
            break
    everything = app.client("auditor").get("/api/v1/ledger", params={"kind": "charge"}).json()["entries"]
    assert seen == [entry["sequence"] for entry in everything]
    assert len(seen) == 5


def test_a_change_by_another_process_is_noticed_at_the_charge(app: Any) -> None:
    """The policy in the ledger is another than ours: the file is read again, and the query goes on."""
    from hubbub.config import load

    path, current = app.folder / "hubbub.yaml", app.service.current
    path.write_text(path.read_text().replace("ana: {health: {epsilon: 10}}", "ana: {health: {epsilon: 12}}"))
    current._checked = float("inf")  # not by looking at the file
    ledger, other = current.curator.ledger, load(path).policy
    before = ledger._totals.policy
    ledger.govern(other)
    ledger._totals.policy = before  # as in a process that has not heard of it
    assert app.ask(epsilon="0.1").status_code == 200
    assert current.config.policy.hash == other.hash
