"""Saved questions and dashboards: opening them charges nothing, and shows nobody more than they may see anyway."""

import html
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect
from tests.fixtures.page_visits import spend, token
from tests.server.conftest import World, in_process

from hubbub.curator.question import Question
from hubbub.errors import ParameterError
from hubbub.server.accounts import Principal
from hubbub.server.saved import MAX_DASHBOARDS, MAX_QUESTIONS
from hubbub.server.saved_service import MAX_SQL, MAX_TILES, MAX_TITLE

BY_HEALTH = "SELECT health, COUNT(DISTINCT person) AS n FROM health GROUP BY health"
ANA, BEN = (Principal(name, "analyst", None, 0) for name in ("ana", "ben"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with in_process(tmp_path_factory.mktemp("saved")) as made:
        yield made


@pytest.fixture
def enter(world: World) -> Callable[[str], httpx2.Client]:
    def sign_in(who: str) -> httpx2.Client:
        client = world.client(None, follow_redirects=True)
        client.post("/sign-in", data={"csrf": token(client.get("/sign-in")), "token": world.tokens[who], "next": "/"})
        return client

    return sign_in


def save(client: httpx2.Client, sql: str, title: str, dashboard: str = "", **fields: str) -> httpx2.Response:
    """Send the form of the query page by its button that saves."""
    data = {"csrf": token(client.get("/ask")), "sql": sql, "epsilon": "0.25", "groups": "1", "rows": "", **fields}
    return client.post("/saved", data={**data, "title": title, "dashboard_title": dashboard})


def words(page: httpx2.Response) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page.text))


def test_a_saved_question_comes_back_as_it_was(world: World, enter: Callable[[str], httpx2.Client]) -> None:
    ana, title = enter("ana"), '<b>"Health" & so on'
    before = world.spent()
    assert title in words(save(ana, f"{BY_HEALTH} -- own", title))
    (saved,) = (each for each in world.service.saved.questions(ANA) if each.title == title)
    form = ana.get(f"/ask?saved={saved.id}").text
    assert f"{BY_HEALTH} -- own" in html.unescape(form)
    for name, value in (("epsilon", "0.25"), ("groups", "1"), ("rows", "")):
        assert re.search(rf'name="{name}"[^>]* value="{value}"', form)
    assert "<b>" not in ana.get("/saved").text
    assert enter("ben").get(f"/ask?saved={saved.id}").status_code == 404
    ana.post(f"/saved/{saved.id}/remove", data={"csrf": token(ana.get("/saved"))})
    assert title not in words(ana.get("/saved"))
    assert world.spent() == before


def test_a_dashboard_shows_what_is_free_and_charges_nothing(
    world: World, enter: Callable[[str], httpx2.Client]
) -> None:
    ana = enter("ana")
    start = Fraction(world.spent()["health"])
    page = save(ana, BY_HEALTH, "By health", "Monthly")
    assert page.url.path.startswith("/dashboards/")
    for sql, title in (("SELECT word FROM plans WHERE coinsurance = 25", "A public one"), ("SELECT oops", "Wrong")):
        save(ana, sql, title, "Monthly")
    for _ in range(2):
        page = ana.get(page.url.path)
        assert "not answered yet" in page.text
        assert "some" in words(page), "the public table says so"
        assert "HB5" in page.text, "the wrong one says why"
    assert Fraction(world.spent()["health"]) == start
    answer = spend(ana, BY_HEALTH, epsilon="0.25", groups="1")
    assert Fraction(world.spent()["health"]) == start + Fraction(1, 4)
    page = ana.get(page.url.path)
    assert "not answered yet" not in page.text
    pattern = r'<td class="num[^"]*">([\d,]+ ±\d+)'
    numbers = re.findall(pattern, page.text)
    assert len(numbers) == 4
    assert numbers == re.findall(pattern, answer.text)
    assert Fraction(world.spent()["health"]) == start + Fraction(1, 4)


def test_a_shared_dashboard_gives_away_its_questions_alone(world: World, enter: Callable[[str], httpx2.Client]) -> None:
    ana, ben = enter("ana"), enter("ben")
    sql = BY_HEALTH.replace("DISTINCT person", "*")
    page = save(ana, sql, "Rows by health", "For ben")
    path, (number,) = page.url.path, re.findall(r"/ask\?saved=(\d+)", page.text)[:1]
    spend(ana, sql, epsilon="0.25", groups="1")
    never = ben.get(f"/dashboards/{'x' * 16}")
    assert (ben.get(path).status_code, words(ben.get(path))) == (404, words(never))
    assert ben.get(f"/ask?saved={number}").status_code == 404
    ana.post(f"{path}/share", data={"csrf": token(ana.get(path)), "shared": "yes"})
    before = world.spent("ben"), world.spent("ana")
    shown = ben.get(path)
    assert "Rows by health" in shown.text
    assert "not answered yet" in shown.text
    assert "±" not in shown.text, "what ana paid for is not ben's: the owner shares no answers"
    assert "Remove dashboard" not in shown.text
    assert sql in html.unescape(ben.get(f"/ask?saved={number}").text)
    for action in ("share", "remove"):
        assert ben.post(f"{path}/{action}", data={"csrf": token(shown), "shared": "no"}).status_code == 404
    assert ben.post(f"/saved/{number}/remove", data={"csrf": token(shown)}).status_code == 404
    assert (world.spent("ben"), world.spent("ana")) == before
    ana.post(f"{path}/share", data={"csrf": token(ana.get(path)), "shared": "no"})
    assert ben.get(path).status_code == 404
    ana.post(f"{path}/remove", data={"csrf": token(ana.get(path))})
    assert ana.get(path).status_code == 404
    assert "Rows by health" in ana.get("/saved").text, "its questions stay"
    assert enter("owner").get(path).status_code == 403


def test_titles_and_queries_have_bounds(world: World) -> None:
    saved = world.service.saved
    for sql, title, dashboard in (
        ("", "x", ""),
        ("x" * (MAX_SQL + 1), "x", ""),
        ("SELECT 1", "x" * (MAX_TITLE + 1), ""),
        ("SELECT 1", "a\nb", ""),
        ("SELECT 1", "x", "a\x00b"),
    ):
        with pytest.raises(ParameterError, match="HB127"):
            saved.save(BEN, Question(sql, epsilon="1"), title, dashboard)
    assert saved.save(BEN, Question("SELECT  1\nFROM t"), "").title == "SELECT 1 FROM t"
    for _ in range(MAX_TILES):
        saved.save(BEN, Question("SELECT 1"), "x", "full")
    with pytest.raises(ParameterError, match="HB128"):
        saved.save(BEN, Question("SELECT 1"), "x", "full")
    for number in range(MAX_DASHBOARDS - 1):
        saved.save(BEN, Question("SELECT 1"), "x", f"d{number}")
    with pytest.raises(ParameterError, match="HB128"):
        saved.save(BEN, Question("SELECT 1"), "x", "one more")
    for _ in range(MAX_QUESTIONS - len(saved.questions(BEN))):
        saved.save(BEN, Question("SELECT 1"), "x")
    with pytest.raises(ParameterError, match="HB128"):
        saved.save(BEN, Question("SELECT 1"), "x")


def test_a_question_is_saved_run_and_shared_in_a_browser(desk: Callable[..., Any], served: Any) -> None:
    page: Page = desk().sign_in("ana")
    page.goto("/ask")
    page.get_by_label("SQL query").fill(BY_HEALTH)
    page.get_by_label("Privacy cost (ε)").fill("0.5")
    page.get_by_text("Save this question").click()
    page.get_by_label("Title").fill("People by health")
    page.get_by_label("Dashboard (optional)").fill("Overview")
    page.get_by_role("button", name="Save question").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    address = page.url
    expect(page.get_by_text("not answered yet")).to_be_visible()
    page.get_by_role("button", name="Run for ε = 0.5").click()
    expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    page.goto(address)
    expect(page.locator("article tbody tr")).to_have_count(4)
    page.get_by_role("button", name="Share by link").click()
    expect(page.locator("#address")).to_have_text(address)
    other: Page = desk().sign_in("ben")
    other.goto(address)
    expect(other.get_by_text("A dashboard of ana")).to_be_visible()
    assert served.spent() == {"health": "1/2"}
    assert served.spent("ben") == {"health": "0", "wards": "0"}
