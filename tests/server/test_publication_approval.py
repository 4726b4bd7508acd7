"""Publishing where a dataset has a review rule: who approves, what is public when, and what the chain says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fixtures.page_visits import token
from tests.server.conftest import YAML, World, in_process, lay_out

from hubbub.accounting import publications as chain
from hubbub.accounting.store import EntryFilter
from hubbub.errors import ReviewError

COUNT = "SELECT site, COUNT(*) AS n FROM health GROUP BY site"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("approved")
    lay_out(folder)
    rule = "    source: health.csv\n    review: {above: 4, people: 2}\n"
    (folder / "hubbub.yaml").write_text(YAML.replace("    source: health.csv\n", rule))
    with in_process(folder) as opened:
        for name in ("stella", "otto", "ana"):
            opened.tokens[f"{name} the steward"] = opened.service.accounts.issue(name, "steward", 1)[1]
        yield opened


def requested(world: World, **fields: str) -> dict[str, Any]:
    """Ask to publish a new release."""
    answer = world.ask(sql=COUNT, epsilon=f"0.1{world.keys:03}", key=f"approval {world.keys}").json()
    body = {"release": answer["receipt"]["ledger"][0]["sequence"], "title": "Visits by site"} | fields
    done = world.client("owner").post("/api/v1/publications", json=body)
    assert done.status_code == 201, done.text
    return dict(done.json())


def decide(world: World, who: str, number: int, *, approve: bool = True, reason: str = "") -> Any:
    """Decide about the text that waits now, as somebody does who has just read it."""
    listed = world.client("auditor").get("/api/v1/publications/waiting").json()["publications"]
    read = next((each["text"] for each in listed if each["release"] == number), "0" * 64)
    return decide_about(world, who, number, text=read, approve=approve, reason=reason)


def decide_about(world: World, who: str, number: int, *, text: str, approve: bool = True, reason: str = "") -> Any:
    body = {"approve": approve, "reason": reason, "text": text}
    return world.client(who).post(f"/api/v1/publications/waiting/{number}", json=body)


def acts(world: World, number: int) -> list[tuple[str, str]]:
    """What the chain says about publishing a release."""
    with world.service.current.curator.ledger.snapshot() as snapshot:
        entries = [each for each in snapshot.entries(EntryFilter(kind="publication")) if each.charge == number]
    return [(facts["act"], facts["by"]) for facts in (json.loads(each.facts) for each in entries)]


def is_public(world: World, path: str) -> bool:
    codes = {world.client(None).get(path + form).status_code for form in ("", ".csv", ".json")}
    assert len(codes) == 1
    return codes == {200}


def test_a_page_is_public_after_the_approvals_of_its_text_alone(world: World) -> None:
    asked = requested(world)
    number = asked["release"]
    assert asked["action"] == "requested"
    assert not is_public(world, asked["path"])
    assert number in [
        each["release"] for each in world.client("auditor").get("/api/v1/publications/waiting").json()["publications"]
    ]
    assert decide(world, "stella the steward", number).json()["action"] == "requested"
    assert not is_public(world, asked["path"])
    other = {"release": number, "title": "Another title"}
    assert world.client("owner").post("/api/v1/publications", json=other).json()["action"] == "requested"
    assert decide(world, "otto the steward", number).json()["action"] == "requested"  # stella approved another text
    assert not is_public(world, asked["path"])
    assert decide(world, "stella the steward", number).json()["action"] == "published"
    assert is_public(world, asked["path"])
    assert "Another title" in world.client(None).get(asked["path"]).text
    assert acts(world, number) == [
        ("requested", "owner"),
        ("approved", "stella"),
        ("requested", "owner"),
        ("approved", "otto"),
        ("approved", "stella"),
        ("published", "stella"),
    ]


def test_a_decision_is_about_the_text_that_was_read(world: World) -> None:
    """The owner asks for another text between the moment that a steward reads and the one that the steward decides."""
    asked = requested(world)
    number, read = asked["release"], asked["text"]
    assert decide_about(world, "otto the steward", number, text=read).json()["action"] == "requested"
    world.client("owner").post("/api/v1/publications", json={"release": number, "title": "What nobody has read"})
    for who in ("stella the steward", "otto the steward"):
        for approve in (True, False):
            refused = decide_about(world, who, number, text=read, approve=approve, reason="too small")
            assert (refused.status_code, refused.json()["code"]) == (422, "HB867")
    assert not is_public(world, asked["path"])
    assert [act for act, _ in acts(world, number)] == ["requested", "approved", "requested"]
    body = {"approve": True, "reason": ""}
    without = world.client("stella the steward").post(f"/api/v1/publications/waiting/{number}", json=body)
    assert without.status_code == 422


def test_nobody_approves_their_own(world: World) -> None:
    number = requested(world)["release"]
    for who in ("owner", "ana the steward"):
        assert decide(world, who, number).json()["code"] == "HB868"
    assert decide(world, "stella the steward", number).status_code == 200
    assert decide(world, "stella the steward", number).json()["code"] == "HB868"
    for who in ("ana", "auditor"):
        assert decide(world, who, number).status_code == 403
    assert acts(world, number) == [("requested", "owner"), ("approved", "stella")]


def test_one_person_declines_with_a_reason(world: World) -> None:
    asked = requested(world)
    number = asked["release"]
    assert decide(world, "stella the steward", number, approve=False).json()["code"] == "HB869"
    assert decide(world, "stella the steward", number, approve=False, reason="too small").json()["action"] == "declined"
    assert decide(world, "otto the steward", number).status_code == 404
    assert not is_public(world, asked["path"])
    assert acts(world, number)[-1] == ("declined", "stella")


def test_a_withdrawn_page_is_gone_and_its_return_needs_new_approvals(world: World) -> None:
    asked = requested(world)
    number = asked["release"]
    for who in ("stella", "otto"):
        decide(world, f"{who} the steward", number)
    assert is_public(world, asked["path"])
    new = {"release": number, "title": "New title"}
    world.client("owner").post("/api/v1/publications", json=new)
    assert "Visits by site" in world.client(None).get(asked["path"]).text  # until the new text is approved
    assert world.client("owner").delete(f"/api/v1/publications/{asked['page']}").json()["action"] == "withdrawn"
    assert not is_public(world, asked["path"])
    assert decide(world, "stella the steward", number).status_code == 404
    assert world.client("owner").post("/api/v1/publications", json=new).json()["action"] == "requested"
    assert not is_public(world, asked["path"])
    assert acts(world, number)[-2:] == [("withdrawn", "owner"), ("requested", "owner")]


def test_the_chain_is_sound_and_shows_what_was_done(world: World) -> None:
    requested(world)
    verified = world.client("owner").post("/api/v1/ledger/verify").json()
    assert verified["sound"], verified
    entries = world.client("auditor").get("/api/v1/ledger", params={"kind": "publication"}).json()["entries"]
    assert entries[0]["kind"] == "publication"
    assert entries[0]["charge"]


def test_a_steward_decides_on_a_page(world: World) -> None:
    asked = requested(world, title="<b>Visits</b>")
    client = world.client(None, follow_redirects=True)
    entered = client.get("/sign-in")
    client.post(
        "/sign-in", data={"csrf": token(entered), "token": world.tokens["stella the steward"], "next": "/reviews"}
    )
    assert "Publications that wait" in client.get("/reviews").text
    path = f"/reviews/publications/{asked['release']}"
    page = client.get(path)
    assert "&lt;b&gt;Visits" in page.text
    assert "nobody yet" in page.text
    form = {"csrf": token(page), "reason": "", "text": asked["text"]}
    assert f'name="text" value="{asked["text"]}"' in page.text
    assert "HB869" in client.post(path, data=form | {"decision": "decline"}).text
    assert "HB867" in client.post(path, data=form | {"decision": "approve", "text": "0" * 64}).text
    client.post(path, data=form | {"decision": "approve"})
    assert acts(world, asked["release"])[-1] == ("approved", "stella")


def test_without_a_rule_the_owner_publishes_and_the_chain_says_so(tmp_path: Any) -> None:
    with in_process(tmp_path) as opened:
        done = requested(opened)
        assert done["action"] == "published"
        assert is_public(opened, done["path"])
        opened.client("owner").delete(f"/api/v1/publications/{done['page']}")
        assert acts(opened, done["release"]) == [("published", "owner"), ("withdrawn", "owner")]


def test_nothing_else_can_be_decided(world: World) -> None:
    number = requested(world)["release"]
    curator = world.service.current.curator
    charge = curator.charge(number)
    chain.note(curator.ledger, charge, "withdrawn", by="owner", text="")
    with pytest.raises(ReviewError, match="HB867"):
        chain.decide(curator.ledger, charge, approve=True, by="stella", text="", reason="", people=1)


def test_an_approval_of_an_older_text_does_not_count(world: World) -> None:
    """A steward who decides while the owner asks for another text has approved the older one."""
    number = requested(world)["release"]
    curator = world.service.current.curator
    charge = curator.charge(number)
    chain.note(curator.ledger, charge, "approved", by="stella", text=chain.text_hash("An older title", ""))
    with curator.ledger.snapshot() as snapshot:
        assert chain.publication(snapshot, number).approvals == ()
