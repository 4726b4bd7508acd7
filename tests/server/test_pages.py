"""The pages without a browser: who may see what, forms against forgery, signing in, what the owner changes."""

import html
import math
import re
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Route
from tests.fixtures.page_visits import Outline, Visitor, spend, token

from hubbub.accounting.filters import Budget
from hubbub.answers.budget import COMPOSED
from hubbub.server.pages import mount
from hubbub.server.pages.frame import HERE, NAVIGATION, shortcuts
from hubbub.server.service import Service
from hubbub.server.settings import Settings

PAGES = (
    "/",
    "/ask",
    "/datasets/health",
    "/releases",
    "/saved",
    "/curate",
    "/explain",
    "/explain/report",
    "/explain/lab",
    "/explain/crowd",
    "/explain/game",
    "/explain/beliefs",
    "/sign-in",
    "/nowhere",
)


@pytest.mark.parametrize("who", ["owner", "auditor", "ana"])
def test_every_page_has_a_title_one_heading_and_labels(visitor: Visitor, who: str) -> None:
    client = visitor(who)
    for path in PAGES:
        outline = Outline(client.get(path).text)
        assert outline.title.endswith("· hubbub"), path
        assert len(outline.title) > len(" · hubbub")
        assert len(outline.all("h1")) == 1, path
        labelled = {label["for"] for label in outline.all("label")}
        for field in outline.all("input", "select", "textarea"):
            assert field.get("type") == "hidden" or field.get("id") in labelled, (path, field)
        ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
        assert len(ids) == len(set(ids)), path


def test_no_page_has_inline_script_or_style_or_anything_from_elsewhere(visitor: Visitor) -> None:
    client = visitor("ana")
    spend(client)
    for path in (*PAGES, "/ask?release=2"):
        outline = Outline(client.get(path).text)
        assert outline.all("style") == []
        for tag, attributes in outline.tags:
            assert not [name for name in attributes if name == "style" or name.startswith("on")], (
                path,
                tag,
                attributes,
            )
            for name in ("src", "href", "action", "formaction"):
                assert (attributes.get(name) or "/").startswith(("/", "#")), (path, tag, attributes)
        for script in outline.all("script"):
            assert script["src"] == "/static/pages.js"


def test_pages_are_for_their_roles(visitor: Visitor) -> None:
    expected = {
        "/": (200, 200, 200),
        "/ask": (403, 403, 200),
        "/datasets/health": (200, 200, 200),
        "/releases": (200, 200, 200),
        "/curate": (200, 200, 403),
        "/explain": (200, 200, 200),
        "/explain/report": (200, 200, 403),
        "/explain/lab": (200, 200, 200),
        "/explain/crowd": (200, 200, 200),
        "/explain/game": (200, 200, 200),
        "/explain/nothing": (404, 404, 404),
        "/nowhere": (404, 404, 404),
    }
    clients = [visitor(who) for who in ("owner", "auditor", "ana")]
    for path, statuses in expected.items():
        assert tuple(client.get(path).status_code for client in clients) == statuses, path


FORMS = (
    "/sign-out",
    "/theme",
    "/requests",
    "/ask/estimate",
    "/ask/sandbox",
    "/ask/spend",
    "/ask/refine",
    "/saved",
    "/saved/1/remove",
    f"/dashboards/{'x' * 16}/share",
    f"/dashboards/{'x' * 16}/remove",
    "/releases/1/publish",
    "/releases/1/withdraw",
    "/releases/1/comments",
    "/releases/1/uncomment",
    "/schedules",
    "/schedules/ana/monthly/remove",
    "/reviews/1",
    "/reviews/publications/1",
    "/curate/requests/1",
    "/curate/analysts",
    "/curate/analysts/remove",
    "/curate/analysts/restore",
    "/curate/tokens",
    "/curate/tokens/revoke",
    "/curate/config/check",
    "/curate/config/apply",
    "/explain/verify",
    "/explain/lab",
    f"/explain/lab/{'0' * 32}/cancel",
    "/explain/crowd",
    f"/explain/crowd/{'0' * 32}/cancel",
)


def test_a_form_without_its_word_is_refused(visitor: Visitor) -> None:
    ana, owner = visitor("ana"), visitor("owner")
    for path in FORMS:
        for given in ({}, {"csrf": ""}, {"csrf": token(owner.get("/"))}):
            answer = ana.post(path, data=given)
            assert answer.status_code == 403, path
            assert "HB711" in answer.text


def test_no_form_is_forgotten() -> None:
    """Every route that takes a form is in the list of these tests."""
    app = FastAPI()
    mount(app, Service.__new__(_Settled))
    posts = {route.path for route in app.routes if isinstance(route, Route) and "POST" in (route.methods or ())}
    parts = {"/1": "/{number:int}", "0" * 32: "{number}", "x" * 16: "{id}"}
    forms = {reduce(lambda path, part: path.replace(part, parts[part]), parts, path) for path in FORMS}
    assert posts - {"/sign-in"} == {path.replace("/ana/monthly/", "/{analyst}/{name}/") for path in forms}


class _Settled(Service):
    """A service with settings and nothing behind them: enough to list its routes."""

    settings = Settings(secret=b"s" * 32)
    accounts = None  # type: ignore[assignment]


OWNERS = tuple(path for path in FORMS if path.startswith("/curate"))


@pytest.mark.parametrize("who", ["ana", "auditor"])
def test_the_owners_forms_are_the_owners(visitor: Visitor, who: str) -> None:
    client = visitor(who)
    data = {
        "csrf": token(client.get("/")),
        "name": "zoe",
        "dataset": "health",
        "epsilon": "1",
        "days": "9",
        "id": "0" * 12,
        "text": "version: 1",
        "hash": "",
        "role": "owner",
        "verdict": "grant",
    }
    for path in OWNERS:
        assert client.post(path, data=data).status_code == 403, path


def test_strangers_are_asked_to_sign_in_and_come_back(app: Any) -> None:
    client = app.client(None)
    for path in ("/", "/ask", "/releases/1", "/curate"):
        answer = client.get(path)
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/sign-in?next={path}"
    assert client.post("/ask/spend", data={}).headers["location"].startswith("/sign-in")


@pytest.mark.parametrize("where", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"])
def test_signing_in_leads_nowhere_else(app: Any, where: str) -> None:
    client = app.client(None)
    page = client.get("/sign-in", params={"next": where})
    data = {"csrf": token(page), "token": app.tokens["ana"], "next": where}
    assert client.post("/sign-in", data=data).headers["location"] == "/"


def test_the_session_cookie_is_strict_and_dies_when_signed_out(app: Any) -> None:
    client = app.client(None)
    page = client.get("/sign-in")
    answer = client.post("/sign-in", data={"csrf": token(page), "token": app.tokens["ana"], "next": "/"})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    kept = client.cookies.get("hubbub")
    client.post("/sign-out", data={"csrf": token(client.get("/"))})
    client.cookies.set("hubbub", kept)
    assert client.get("/").status_code == 303


def test_wrong_tokens_are_slowed_down(app: Any) -> None:
    client = app.client(None)
    page = client.get("/sign-in")
    data = {"csrf": token(page), "token": "hub_000000000000_" + "x" * 43, "next": "/"}
    statuses = [client.post("/sign-in", data=data).status_code for _ in range(30)]
    assert statuses[0] == 401
    assert statuses[-1] == 429


def test_the_owner_applies_a_checked_change_and_a_stale_one_is_refused(app: Any, visitor: Visitor) -> None:
    client = visitor("owner")
    page = client.get("/curate")
    found = re.search(r'name="hash" value="([^"]+)"', page.text)
    assert found is not None
    text = (
        (app.folder / "hubbub.yaml").read_text().replace("ana: {health: {epsilon: 10}}", "ana: {health: {epsilon: 12}}")
    )
    data = {"csrf": token(page), "hash": found[1], "text": text.replace("\n", "\r\n")}
    checked = client.post("/curate/config/check", data=data)
    assert "The configuration is valid" in checked.text
    assert '<span class="plus">+  ana: {health: {epsilon: 12}}</span>' in checked.text
    assert "{epsilon: 12}" not in (app.folder / "hubbub.yaml").read_text()
    seen = re.search(r'name="checked" value="([^"]+)"', checked.text)
    assert seen is not None
    # what was edited after its changes were shown is shown again, and not applied
    for unseen in (data, {**data, "checked": seen[1], "text": text + "\n# later\n"}):
        shown = client.post("/curate/config/apply", data=unseen)
        assert '<span class="plus">+  ana: {health: {epsilon: 12}}</span>' in shown.text
    assert "{epsilon: 12}" not in (app.folder / "hubbub.yaml").read_text()
    data["checked"] = seen[1]
    assert (
        "hubbub.yaml was updated. The previous version is kept" in client.post("/curate/config/apply", data=data).text
    )
    assert "{epsilon: 12}" in (app.folder / "hubbub.yaml").read_text()
    stale = client.post("/curate/config/apply", data=data)
    assert stale.status_code in (409, 412, 422)
    wrong = client.post("/curate/config/check", data={**data, "text": "version: 1\nnonsense: 2\n"})
    assert "HB4" in wrong.text


def test_a_new_analyst_gets_a_token_that_is_shown_once(app: Any, visitor: Visitor) -> None:
    client = visitor("owner")
    data = {"csrf": token(client.get("/curate")), "name": "zoe", "dataset": "health", "epsilon": "2", "days": "30"}
    page = client.post("/curate/analysts", data=data)
    found = re.search(r"hub_[0-9a-f]{12}_[\w-]{43}", page.text)
    assert found is not None
    assert found[0] not in client.get("/curate").text
    app.tokens["zoe"] = found[0]
    assert "0 of ε = 2 spent" in visitor("zoe").get("/").text
    assert "HB144" in client.post("/curate/analysts", data=data).text
    word = token(client.get("/curate"))
    client.post("/curate/analysts/remove", data={"csrf": word, "name": "zoe", "confirm": "yes"})
    assert app.client(None).get("/", headers={"Cookie": ""}).status_code == 303
    assert app.client("zoe").get("/api/v1/me").status_code == 401


def test_removing_an_analyst_asks_first_and_can_be_undone(app: Any, visitor: Visitor) -> None:
    """ben has caps of his own and is in a group with eve."""
    client, path = visitor("owner"), app.folder / "hubbub.yaml"
    before = path.read_text()
    ben = app.service.current.config.policy.analysts["ben"]
    form = {"csrf": token(client.get("/curate")), "name": "ben"}
    asked = client.post("/curate/analysts/remove", data=form)
    assert "Remove <strong>ben</strong>?" in asked.text
    assert path.read_text() == before
    assert app.client("ben").get("/api/v1/me").status_code == 200
    gone = client.post("/curate/analysts/remove", data=form | {"confirm": "yes"})
    assert "Undo: restore ben" in gone.text
    assert "ben" not in app.service.current.config.policy.analysts
    assert app.client("ben").get("/api/v1/me").status_code == 401
    back = client.post("/curate/analysts/restore", data=form)
    assert "was restored" in back.text
    assert "Undo: restore" not in back.text
    policy = app.service.current.config.policy
    assert policy.analysts["ben"] == ben
    assert policy.groups["guests"][0] == ("eve", "ben")
    assert policy.returning == ("ben",)
    assert app.client("ben").get("/api/v1/me").status_code == 401  # old tokens stay revoked
    assert "# ben's alone" in path.read_text()
    assert "HB164" in client.post("/curate/analysts/restore", data=form).text
    assert "HB164" in client.post("/curate/analysts/remove", data=form | {"name": "nobody"}).text


def test_an_analyst_who_was_the_last_of_a_group_is_restored_with_it(app: Any, visitor: Visitor) -> None:
    client = visitor("owner")
    form = {"csrf": token(client.get("/curate")), "name": "ben", "confirm": "yes"}
    app.service.administration.set_group(_owner(app), "alone", ["eve"], {"health": Budget(Fraction(2), Fraction(0))})
    before = app.service.current.config.policy.groups
    client.post("/curate/analysts/remove", data=form | {"name": "eve"})
    assert "alone" not in app.service.current.config.policy.groups
    client.post("/curate/analysts/restore", data=form | {"name": "eve"})
    now = app.service.current.config.policy.groups
    assert (now["alone"], set(now["guests"][0])) == (before["alone"], {"ben", "eve"})
    assert now["guests"][1] == before["guests"][1]


def _owner(app: Any) -> Any:
    return app.service.accounts.identify(app.tokens["owner"])


def test_one_page_shows_one_figure_for_what_was_spent(app: Any, visitor: Visitor) -> None:
    """With Gaussian noise the sum of the charges, 1.6, is not what they cost together."""
    many = "SELECT coinsurance, year, COUNT(*) AS n, AVG(visits) AS v, SUM(spending) AS s FROM health WHERE age > {}"
    for number in range(3):
        answer = app.ask("ana", f"{many.format(number)} GROUP BY coinsurance, year", epsilon="0.5", delta="1e-7")
        assert Fraction(answer.json()["delta"]) > 0, answer.text
    app.ask("ana", epsilon="0.1")
    (spent,) = app.spent("ana").values()
    assert Fraction(spent) < Fraction("1.6")
    page = visitor("owner").get("/curate").text
    legend = re.search(r"ana: ([\d.]+) of ε = 10 spent", page)
    table = re.search(r'<span class="muted">([\d.]+) of ε = 10 spent', page)
    assert legend is not None
    assert table is not None
    assert legend[1] == table[1]
    assert 0 <= float(legend[1]) - float(Fraction(spent)) < 0.01
    assert "1.6 of" not in page
    assert html.escape(COMPOSED) in page
    points = app.service.catalog.spending(_owner(app), "health", limit=500)["ana"]
    assert [amount for _, amount in points][-1] == Fraction(spent)
    assert [amount for _, amount in points] == sorted(amount for _, amount in points)
    few = app.service.catalog.spending(_owner(app), "health", limit=2)["ana"]
    assert few == points[-2:]


def test_the_explanation_warns_of_a_large_delta(visitor: Visitor) -> None:
    page = visitor("ana").get("/explain?epsilon=1&delta=0.001&people=5000").text
    assert "it would allow publishing a person&#39;s row" in page


def test_the_bar_names_pages_that_exist(visitor: Visitor) -> None:
    for role, who in (("analyst", "ana"), ("owner", "owner"), ("auditor", "auditor")):
        client = visitor(who)
        for address, _ in NAVIGATION[role]:
            assert client.get(address).status_code == 200


@pytest.mark.parametrize("role", NAVIGATION)
def test_each_page_of_the_bar_has_a_key_of_its_own(role: str) -> None:
    keys = [key for key, *_ in shortcuts(role)]
    assert len(keys) == len(set(keys)) == len(NAVIGATION[role])
    assert all(key.isalpha() and key.islower() for key in keys)


def test_home_says_what_the_rest_is_good_for(visitor: Visitor) -> None:
    """N is what is left divided by the price of one count, rounded down; ± follows from the bounds of the dataset.

    In health a person counts with five rows, so Laplace noise of scale 50 is within 50·ln 20 = 149.8 at 95%. In wards
    each row counts once.
    """
    client = visitor("ana")
    spend(client, epsilon="4.75")
    pattern = r"about ([\d,]+) counts of rows with a margin of error of ±(\d+) \(ε = 0.1 each\)"
    assert re.findall(pattern, client.get("/").text) == [("52", "150")]  # (10 - 4.75) / 0.1 = 52.5
    assert re.findall(pattern, visitor("ben").get("/").text) == [("10", "150"), ("10", "30")]


def test_the_promise_of_each_cap_is_its_formula(visitor: Visitor) -> None:
    page = visitor("ben").get("/datasets/wards").text
    shown = {
        cap: float(sure)
        for cap, sure in re.findall(r"ε = (\d+): someone who is 50% sure [a-z ]+ at most ([\d.]+)% sure", page)
    }
    assert set(shown) == {"1", "2"}
    for epsilon, sure in shown.items():
        exact = 100 / (1 + math.exp(-int(epsilon)))
        assert exact <= sure < exact + 0.1


@pytest.mark.parametrize("who", ["ben", "eve"])
def test_those_with_group_caps_see_them_too(visitor: Visitor, who: str) -> None:
    client = visitor(who)
    assert "Group guests" in client.get("/").text
    for path in ("/", "/ask", "/datasets/health", "/releases", "/explain"):
        assert client.get(path).status_code == 200


def _luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_from_its_ground_in_light_and_dark() -> None:
    """The contrast of the accessibility guidelines (WCAG 2, level AA): 4.5 to 1."""
    style = (HERE / "static" / "style.css").read_text()
    both = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", style)
    schemes = [{name: colors[place] for name, *colors in both} for place in (0, 1)]
    pairs = [
        ("ink", "paper"),
        ("ink", "card"),
        ("soft", "paper"),
        ("soft", "card"),
        ("soft", "faint"),
        ("accent", "card"),
        ("accent", "accent-soft"),
        ("accent-ink", "accent"),
        ("warm", "warm-soft"),
        ("bad", "bad-soft"),
        ("bad", "card"),
        ("good", "good-soft"),
        ("ink", "good-soft"),
        ("ink", "bad-soft"),
        ("ink", "warm-soft"),
        ("soft", "bad-soft"),
    ]
    for scheme in schemes:
        for text, ground in pairs:
            low, high = sorted((_luminance(scheme[text]), _luminance(scheme[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)
