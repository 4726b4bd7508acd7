"""Review over HTTP, the PostgreSQL port's service and the pages: who may decide, and what an analyst sees before."""

from collections.abc import Iterator

import httpx2
import pytest
from tests.fixtures.page_visits import token
from tests.server.conftest import YAML, World, in_process, lay_out

from hubbub.server.pages import reviews as pages

COUNT = "SELECT site, COUNT(*) AS n FROM health GROUP BY site"
TOTAL = "SELECT COUNT(*) AS n FROM health WHERE site IN (1, 2)"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("reviewed")
    lay_out(folder)
    rule = "    source: health.csv\n    review: {above: 0.2}\n    reuse: asked\n"
    (folder / "hubbub.yaml").write_text(YAML.replace("    source: health.csv\n", rule))
    with in_process(folder) as opened:
        for name in ("stella", "otto"):
            opened.tokens[name] = opened.service.accounts.issue(name, "steward", 1)[1]
        yield opened


def hold(world: World, epsilon: str, header: str | None = None) -> int:
    """Ask a question whose answer waits, and return its number."""
    answer = world.ask(sql=COUNT, epsilon=epsilon, header=header)
    assert (answer.status_code, answer.json()["code"]) == (409, "HB910")
    newest = world.client("ana").get("/api/v1/releases").json()["releases"][0]
    assert (newest["released"], newest["review"]) == (False, "waiting")
    return int(newest["id"])


def test_an_answer_waits_until_a_steward_approves_it(world: World) -> None:
    number = hold(world, "0.5", header="approve-me")
    ana, stella = world.client("ana"), world.client("stella")
    assert ana.get(f"/api/v1/releases/{number}").json()["code"] == "HB910"
    assert world.ask(sql=COUNT, epsilon="0.5", header="approve-me").json()["code"] == "HB910"
    assert world.ask(sql=TOTAL, epsilon="0.2", free=True).json()["code"] == "HB167"
    read = stella.get(f"/api/v1/reviews/{number}").json()
    assert (read["review"]["state"], read["review"]["analyst"]) == ("waiting", "ana")
    assert stella.post(f"/api/v1/reviews/{number}", json={"approve": True}).json()["state"] == "approved"
    shown = world.ask(sql=COUNT, epsilon="0.5", header="approve-me").json()
    assert shown["answer"] == read["release"]["answer"]
    assert stella.post(f"/api/v1/reviews/{number}", json={"approve": True}).json()["code"] == "HB913"


def test_a_job_that_waits_for_review_says_so(world: World) -> None:
    ana = world.client("ana")
    body = {"sql": COUNT, "epsilon": "0.6"}
    headers = {"Idempotency-Key": "job-1", "Prefer": "respond-async"}
    job = ana.post("/api/v1/query", json=body, headers=headers).json()["id"]
    begun = world.service.pool.find(job)
    assert begun is not None
    assert begun.future.exception()  # waits
    ended = ana.get(f"/api/v1/jobs/{job}").json()
    assert (ended["state"], ended["problem"]["code"], ended.get("release")) == ("failed", "HB910", None)


def test_a_declined_answer_gives_its_reason(world: World) -> None:
    number = hold(world, "0.7")
    stella = world.client("stella")
    assert stella.post(f"/api/v1/reviews/{number}", json={"approve": False}).json()["code"] == "HB914"
    done = stella.post(f"/api/v1/reviews/{number}", json={"approve": False, "reason": "not the agreed purpose"})
    assert done.json()["state"] == "declined"
    refused = world.ask(sql=COUNT, epsilon="0.7").json()
    assert (refused["code"], "not the agreed purpose" in refused["detail"]) == ("HB911", True)


def test_the_page_lists_all_that_wait_the_oldest_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_NEWEST", 1)
    first, second, declined = (hold(world, epsilon) for epsilon in ("0.41", "0.42", "0.43"))
    stella = world.client("stella")
    stella.post(f"/api/v1/reviews/{declined}", json={"approve": False, "reason": "no"})
    listed = [each["number"] for each in stella.get("/api/v1/reviews?waiting=true").json()["reviews"]]
    assert (listed.index(second) < listed.index(first), declined in listed) == (True, False)
    text = signed_in(world, "stella").get("/reviews").text
    places = [text.index(f'"/reviews/{number}"') for number in (first, second, declined)]
    assert places == sorted(places)


def test_a_cheap_answer_needs_no_review(world: World) -> None:
    assert world.ask(sql=COUNT, epsilon="0.2").status_code == 200
    estimate = world.client("ana").post("/api/v1/estimate", json={"sql": COUNT, "epsilon": "0.21"}).json()
    assert "must approve" in estimate["review"]


def test_nobody_publishes_what_was_not_approved(world: World) -> None:
    number = hold(world, "0.8")
    body = {"release": number, "title": "Visits"}
    assert world.client("owner").post("/api/v1/publications", json=body).json()["code"] == "HB910"


@pytest.mark.parametrize(
    ("who", "allowed"),
    [("owner", (200, 200)), ("stella", (200, 200)), ("auditor", (200, 403)), ("ana", (403, 403)), ("ben", (403, 403))],
)
def test_who_may_read_and_decide(world: World, who: str, allowed: tuple[int, int]) -> None:
    number = hold(world, f"0.3{world.keys:03}")
    client = world.client(who)
    assert client.get("/api/v1/reviews").status_code == allowed[0]
    assert client.get(f"/api/v1/reviews/{number}").status_code == allowed[1]
    if allowed[1] == 403:
        assert client.post(f"/api/v1/reviews/{number}", json={"approve": True}).status_code == 403


@pytest.mark.parametrize("path", ["datasets", "releases", "budget", "analysts", "ledger", "config", "schedules"])
def test_a_steward_does_nothing_else(world: World, path: str) -> None:
    assert world.client("stella").get(f"/api/v1/{path}").status_code in (403, 404)
    body = {"sql": COUNT, "epsilon": "0.1"}
    answer = world.client("stella").post("/api/v1/query", json=body, headers={"Idempotency-Key": "s"})
    assert answer.status_code == 403


def signed_in(world: World, who: str) -> httpx2.Client:
    client = world.client(None, follow_redirects=True)
    client.post("/sign-in", data={"csrf": token(client.get("/sign-in")), "token": world.tokens[who], "next": "/"})
    return client


def test_a_steward_decides_on_a_page(world: World) -> None:
    number = hold(world, "0.9")
    page = signed_in(world, "otto")
    home = page.get("/")
    assert home.url.path == "/reviews"
    assert COUNT in home.text
    form = page.get(f"/reviews/{number}")
    assert "ε=0.9" in form.text.replace(" = ", "=")
    empty = page.post(f"/reviews/{number}", data={"csrf": token(form), "decision": "decline", "reason": ""})
    assert (empty.status_code, "HB914" in empty.text) == (422, True)
    done = page.post(f"/reviews/{number}", data={"csrf": token(form), "decision": "approve", "reason": "fine"})
    assert "approved by otto: fine" in done.text
    assert world.ask(sql=COUNT, epsilon="0.9").status_code == 200
