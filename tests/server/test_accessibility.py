"""axe-core on every page, in both themes: the list of pages follows from the routes, so none can be forgotten."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext
from starlette.routing import Route
from tests.fixtures.axe import SIGHT, violations
from tests.fixtures.monthly_visits import SQL
from tests.fixtures.monthly_visits import YAML as MONTHLY
from tests.fixtures.page_visits import token
from tests.server.conftest import YAML, World, behind_a_port, lay_out

from hubbub.server.accounts import Principal

GROUPED = "SELECT health, COUNT(*) AS n FROM health GROUP BY health"
#: Routes that answer with a file, not with a page.
FILES = {
    "/releases/{numbers}.{form:str}",
    "/schedules/{analyst}/{name}/answers.csv",
    "/published/{page}.{form:str}",
    "/explain/lab/{number}.{form:str}",
    "/explain/lab/{number}/state",
    "/explain/crowd/{number}.svg",
    "/explain/crowd/{number}/state",
}
#: The pages of each role. In the address, {release} and the like are filled in with what the fixture made.
PAGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "/sign-in": {"": ("/sign-in",)},
    "/": {"ana": ("/",), "eve": ("/",), "owner": ("/",)},
    "/ask": {"ana": ("/ask", "/ask?release={release}", "/ask?dataset=health"), "eve": ("/ask",)},
    "/datasets/{name}": {"ana": ("/datasets/health", "/datasets/plans"), "owner": ("/datasets/health",)},
    "/docs": {"ana": ("/docs",)},
    "/releases": {"ana": ("/releases",), "eve": ("/releases",)},
    "/releases/{numbers}": {"ana": ("/releases/{release}",), "owner": ("/releases/{release}",)},
    "/saved": {"ana": ("/saved",), "eve": ("/saved",)},
    "/dashboards/{id}": {"ana": ("/dashboards/{dashboard}",)},
    "/schedules": {"ana": ("/schedules",), "eve": ("/schedules",)},
    "/schedules/{analyst}/{name}": {"ana": ("/schedules/ana/monthly",)},
    "/reviews": {"steward": ("/reviews",), "owner": ("/reviews",)},
    "/reviews/{number:int}": {"steward": ("/reviews/{review}",)},
    "/reviews/publications/{number:int}": {"steward": ("/reviews/publications/{release}",)},
    "/published/{page}": {"": ("{published}",)},
    "/curate": {"owner": ("/curate",), "auditor": ("/curate",)},
    "/oversight": {"owner": ("/oversight",), "auditor": ("/oversight",)},
    "/explain": {"ana": ("/explain",), "owner": ("/explain",)},
    "/explain/report": {"owner": ("/explain/report",)},
    "/explain/lab": {"ana": ("/explain/lab", "/explain/lab?attack=differencing")},
    "/explain/lab/{number}": {"ana": ("{lab}",)},
    "/explain/crowd": {"ana": ("/explain/crowd",)},
    "/explain/crowd/{number}": {"ana": ("{crowd}",)},
    "/explain/{name}": {"ana": ("/explain/{screen}",)},
    "/{rest:path}": {"": ("/no-such-page",)},
}


@dataclass
class Office:
    """A server with something on every page, and the cookies of everybody who is signed in."""

    world: World
    made: dict[str, str]
    cookies: dict[str, str]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    lay_out(folder)
    rows = [f"p{i},2026-0{1 + i % 3}-{1 + i % 28:02},{('North', 'South')[i % 2]}\n" for i in range(60)]
    (folder / "visits.csv").write_text("person,day,region\n" + "".join(rows))
    monthly = MONTHLY.partition("datasets:\n")[2].partition("analysts:")[0]
    text = YAML.replace("datasets:\n", f"datasets:\n{monthly}", 1)
    text = text.replace("    source: health.csv\n", "    source: health.csv\n    review: {above: 1}\n")
    text = text.replace("ana: {health: {epsilon: 10}}", "ana: {health: {epsilon: 10}, visits: {epsilon: 1}}")
    (folder / "hubbub.yaml").write_text(text)
    with behind_a_port(folder, quantum=0.0) as world:
        cookies = {who: sign_in(world, who) for who in ("ana", "eve", "owner", "auditor", "steward")}
        yield Office(world, furnish(world), cookies)


def sign_in(world: World, who: str) -> str:
    client = world.client(None, follow_redirects=True)
    client.post("/sign-in", data={"csrf": token(client.get("/sign-in")), "token": world.tokens[who], "next": "/"})
    return str(client.cookies["hubbub"])


def furnish(world: World) -> dict[str, str]:
    """Make one of everything that has a page of its own."""
    release = str(world.ask(sql=GROUPED, epsilon="0.5").json()["receipt"]["ledger"][0]["sequence"])
    assert world.ask(sql=GROUPED, epsilon="2").json()["code"] == "HB910"
    waiting = world.client("ana").get("/api/v1/releases").json()["releases"][0]
    assert world.service.comments.add(Principal("ana", "analyst", None, 0), int(release), "Fewer than last year.").id
    body = {"name": "monthly", "sql": SQL, "every": "month", "epsilon": "0.25", "first": "2026-01"}
    assert world.client("ana").post("/api/v1/schedules", json=body).status_code == 201
    world.service.scheduler.turn()
    monthly = world.client("ana").get("/api/v1/schedules/ana/monthly").json()["blocks"][0]["release"]
    owner = world.client("owner")
    # a release of health waits for its approval, one of visits needs none
    pages = [{"release": int(release), "title": "Health"}, {"release": monthly, "title": "Visits"}]
    asked, published = (owner.post("/api/v1/publications", json=page).json() for page in pages)
    assert (asked["action"], published["action"]) == ("requested", "published")
    ana = world.client(None, follow_redirects=True)
    ana.post("/sign-in", data={"csrf": token(ana.get("/sign-in")), "token": world.tokens["ana"], "next": "/"})
    word = {"csrf": token(ana.get("/ask"))}
    question = {"title": "By health", "sql": GROUPED, "epsilon": "0.5", "dashboard_title": "Board"}
    board = ana.post("/saved", data={**word, **question}).url.path
    lab = ana.post("/explain/lab", data={**word, "attack": "averaging", "table": "health", "epsilons": "1"})
    crowd = ana.post("/explain/crowd", data={**word, "study": "attributes"})
    screen = re.search(r'href="/explain/([a-z-]+)"', ana.get("/explain").text.replace("/explain/lab", ""))
    assert screen is not None
    more = {"lab": lab.url.path, "crowd": crowd.url.path, "screen": screen[1], "published": published["path"]}
    return {"release": release, "review": str(waiting["id"]), "dashboard": board.rpartition("/")[2], **more}


def test_no_page_is_forgotten(office: Office) -> None:
    routes = {
        route.path
        for route in office.world.app.routes
        if isinstance(route, Route) and route.name.startswith("page GET")
    }
    assert routes == FILES | PAGES.keys()


@pytest.fixture
def context_of(browser: Browser, office: Office) -> Iterator[Callable[..., BrowserContext]]:
    opened: list[BrowserContext] = []

    def make(who: str, **options: Any) -> BrowserContext:
        context = browser.new_context(base_url=office.world.url, **options)
        if who:
            context.add_cookies([{"name": "hubbub", "value": office.cookies[who], "url": office.world.url}])
        opened.append(context)
        return context

    yield make
    for each in opened:
        each.close()


def test_no_page_violates_a_rule_or_is_wider_than_the_window(
    office: Office, context_of: Callable[..., BrowserContext]
) -> None:
    """On a desk in the light, in half of its pixels, which is what a browser shows at 200%, and on a phone in the dark.

    It takes many seconds, because axe reads each of 35 pages twice.
    """
    problems = []
    for who in ("", "ana", "eve", "owner", "auditor", "steward"):
        page = context_of(who, color_scheme="light").new_page()
        for address in (address for pages in PAGES.values() for address in pages.get(who, ())):
            path = address.format(**office.made)
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": 1280, "height": 800})
            shown = page.goto(path)
            assert shown is not None
            assert shown.status == (404 if path == "/no-such-page" else 200), path
            problems += [f"{who} {path} light: {each}" for each in violations(page)]
            for across in (1280, 640, 320):
                page.set_viewport_size({"width": across, "height": 800})
                wide = page.evaluate("document.documentElement.scrollWidth")
                problems += [f"{who} {path}: {wide} pixels in {across}"] if wide > across else []
            page.emulate_media(color_scheme="dark")
            problems += [f"{who} {path} dark: {each}" for each in violations(page, SIGHT)]
    assert problems == []


def test_a_planted_violation_is_found(context_of: Callable[..., BrowserContext]) -> None:
    page = context_of("").new_page()
    page.goto("/sign-in")
    assert violations(page) == []
    page.evaluate("document.querySelector('label').remove()")
    page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    assert {each.partition(":")[0] for each in violations(page)} == {"label", "label-title-only", "color-contrast"}
    page.emulate_media(color_scheme="dark")
    page.evaluate("document.querySelector('h1').style.color = '#333'")
    assert {each.partition(":")[0] for each in violations(page, SIGHT)} == {"color-contrast"}
