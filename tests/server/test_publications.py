"""Releases on public pages: who may publish, what a visitor sees, and how a page is taken back."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import httpx2
import pytest
from playwright.sync_api import expect
from tests.fixtures.page_visits import Outline, Visitor, token

from hubbub.audit.receipt import check_receipt

GROUPED = "SELECT health, COUNT(*) AS n FROM health GROUP BY health"


def charged(world: Any) -> int:
    """Ask something new each time: the same question again would be the same release."""
    answer = world.ask(sql=GROUPED, epsilon=f"0.1{world.keys:03}", key=f"publication {world.keys}")
    return int(answer.json()["receipt"]["ledger"][0]["sequence"])


def published(world: Any, **fields: Any) -> dict[str, Any]:
    body = {"release": charged(world), "title": "Visits by health", "notes": "Contact: data@example.org", **fields}
    answer = world.client("owner").post("/api/v1/publications", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def bare(page: str) -> str:
    """Leave out the address that was asked for, and the word of the page's form."""
    return re.sub(r"/published/[\w-]{16}|value=\"[\w-]{43}\"", "", page)


def test_a_published_release_is_there_for_everyone_with_its_sheet_and_receipt(shared: Any) -> None:
    done = published(shared)
    stranger: httpx2.Client = shared.client(None)
    page = stranger.get(done["path"])
    assert page.status_code == 200
    for text in ("Visits by health", "Contact: data@example.org", "excellent", "GROUP BY", "ε = 0.1", "receipt"):
        assert text.lower() in page.text.lower(), text
    document = stranger.get(f"{done['path']}.json").json()
    assert check_receipt(document).sound
    for form in ("csv", "json"):
        assert sha256(stranger.get(f"{done['path']}.{form}").content).hexdigest() in page.text
    rows = stranger.get(f"{done['path']}.csv").text.splitlines()
    assert rows[0].startswith("health,n")
    assert len(rows) == 5
    assert stranger.get(f"{done['path']}.ipynb").status_code == 404


def test_a_public_page_shows_nothing_else(shared: Any) -> None:
    """No name of anyone, no link into the application, no form, no cookie; nothing else is open to a visitor."""
    done = published(shared)
    stranger: httpx2.Client = shared.client(None)
    other = charged(shared)
    for path in (done["path"], f"{done['path']}.json"):
        answer = stranger.get(path)
        assert not re.search(r"\b(ana|owner|auditor)\b", answer.text)
        assert "set-cookie" not in answer.headers
    outline = Outline(stranger.get(done["path"]).text)
    assert outline.all("form", "input", "script") == []
    assert {link["href"] for link in outline.all("a")} == {f"{done['path']}.csv", f"{done['path']}.json"}
    assert len(outline.all("h1")) == 1
    assert stranger.get(f"/releases/{other}").status_code == 303
    assert stranger.get(f"/releases/{done['release']}.csv").status_code == 303
    for guess in ("/published/0123456789abcdef", f"/published/{done['release']}", "/published/", "/published/..%2f1"):
        assert stranger.get(guess).status_code == 404


def test_a_withdrawn_page_is_like_one_that_never_was_and_comes_back_at_its_address(shared: Any) -> None:
    done = published(shared)
    owner, stranger = shared.client("owner"), shared.client(None)
    never = bare(stranger.get("/published/AAAAAAAAAAAAAAAA").text)
    gone = owner.delete(f"/api/v1/publications/{done['page']}")
    assert gone.json()["action"] == "withdrawn"
    for form in ("", ".csv", ".json"):
        assert stranger.get(done["path"] + form).status_code == 404
    assert bare(stranger.get(done["path"]).text) == never
    assert owner.delete(f"/api/v1/publications/{done['page']}").status_code == 404
    again = owner.post("/api/v1/publications", json={"release": done["release"], "title": "Once more"}).json()
    assert again["page"] == done["page"]
    assert "Once more" in stranger.get(done["path"]).text


def test_a_release_that_two_owners_publish_at_once_is_withdrawn_with_all_of_its_pages(
    shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second owner does not see the page of the first yet: both get an address, and only the newer one is read."""
    done, table = published(shared), type(shared.service.publications._state.publications)
    with monkeypatch.context() as patched:
        patched.setattr(table, "list", lambda *_, **__: [])
        body = {"release": done["release"], "title": "At the same time"}
        other = shared.client("owner").post("/api/v1/publications", json=body).json()
    assert other["page"] != done["page"]
    stranger: httpx2.Client = shared.client(None)
    assert [stranger.get(each["path"]).status_code for each in (done, other)] == [404, 200]
    assert shared.client("owner").delete(f"/api/v1/publications/{other['page']}").status_code == 200
    assert [stranger.get(each["path"]).status_code for each in (done, other)] == [404, 404]


def test_every_action_is_on_record_with_its_author_and_costs_nothing(shared: Any) -> None:
    done = published(shared)
    before = shared.spent()
    shared.client("owner").delete(f"/api/v1/publications/{done['page']}")
    actions = shared.client("auditor").get("/api/v1/publications").json()["publications"]
    mine = [(each["action"], each["who"]) for each in actions if each["page"] == done["page"]]
    assert mine == [("withdrawn", "owner"), ("published", "owner")]
    assert shared.spent() == before
    first = shared.client("auditor").get("/api/v1/publications?limit=1").json()
    assert len(first["publications"]) == 1
    assert first["next"] == first["publications"][0]["id"]


@pytest.mark.parametrize(
    "fields", [{"title": ""}, {"title": "two\nlines"}, {"title": "x" * 201}, {"notes": "x" * 5001}]
)
def test_a_title_of_no_or_many_lines_is_refused(shared: Any, fields: dict[str, str]) -> None:
    body = {"release": charged(shared), "title": "Visits", **fields}
    answer = shared.client("owner").post("/api/v1/publications", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "HB677")


def test_what_is_no_release_cannot_be_published(shared: Any) -> None:
    answer = shared.client("owner").post("/api/v1/publications", json={"release": 10**9, "title": "Visits"})
    assert answer.status_code in (404, 422)
    assert shared.client("owner").delete("/api/v1/publications/AAAAAAAAAAAAAAAA").status_code == 404


def test_texts_of_the_owner_are_shown_as_text(shared: Any) -> None:
    done = published(shared, title="<b>bold</b>", notes="<script>alert(1)</script>")
    page = shared.client(None).get(done["path"]).text
    assert "<b>bold</b>" not in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_one_address_cannot_flood_the_public_pages(start_app: Callable[..., Any]) -> None:
    world = start_app(per_minute=60)
    done = published(world)
    stranger = world.client(None)
    codes = [stranger.get(done["path"]).status_code for _ in range(15)]
    assert codes[0] == 200
    assert 429 in codes
    assert world.client(None, client=("198.51.100.7", 1)).get(done["path"]).status_code == 200


def test_forms_publish_and_withdraw_and_nobody_else_has_them(app: Any, visitor: Visitor) -> None:
    number = charged(app)
    owner = visitor("owner")
    page = owner.get(f"/releases/{number}")
    sent = owner.post(f"/releases/{number}/publish", data={"csrf": token(page), "title": "Visits", "notes": ""})
    assert "The release is public" in sent.text
    path = re.search(r"/published/[A-Za-z0-9_-]{16}", sent.text)
    assert path is not None
    assert app.client(None).get(path[0]).status_code == 200
    for who in ("auditor", "ana"):
        other = visitor(who)
        seen = other.get(f"/releases/{number}")
        assert f"/releases/{number}/publish" not in seen.text
        assert (path[0] in seen.text) == (who == "auditor")
        refused = other.post(f"/releases/{number}/publish", data={"csrf": token(seen), "title": "Mine"})
        assert refused.status_code == 403
    gone = owner.post(
        f"/releases/{number}/withdraw", data={"csrf": token(sent), "page": path[0].removeprefix("/published/")}
    )
    assert "was withdrawn" in gone.text
    assert app.client(None).get(path[0]).status_code == 404


@pytest.mark.browser
def test_an_owner_publishes_in_a_browser_and_a_stranger_reads_it(desk: Callable[..., Any], served: Any) -> None:
    number = charged(served)
    page = desk().sign_in("owner")
    page.goto(f"/releases/{number}")
    page.get_by_label("Title").fill("Visits by health")
    page.get_by_role("button", name="Publish", exact=True).click()
    link = page.locator('a[href^="/published/"]')
    expect(link).to_be_visible()
    address = link.get_attribute("href")
    stranger = desk().page
    stranger.goto(address)
    expect(stranger.get_by_role("heading", level=1)).to_have_text("Visits by health")
    expect(stranger.get_by_role("navigation")).to_have_count(0)
    with stranger.expect_download() as download:
        stranger.get_by_role("link", name="Download JSON with receipt").click()
    assert check_receipt(json.loads(download.value.path().read_text())).sound
    page.get_by_role("button", name="Withdraw page").click()
    expect(page.get_by_role("status")).to_contain_text("withdrawn")
    stranger.goto(address)
    expect(stranger.get_by_role("heading", level=1)).to_have_text("Not found")
