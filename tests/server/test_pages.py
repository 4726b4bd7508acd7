"""The pages without a browser: who may see what, forms against forgery, one charge for each form, safe exports."""

import csv
import io
import math
import re
from collections.abc import Callable
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import httpx
import nbformat
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from hubbub.core.release import Output, Release
from hubbub.curator.question import Question
from hubbub.server.pages import mount
from hubbub.server.pages.ask import scale
from hubbub.server.pages.dataset import FUNCTIONS
from hubbub.server.pages.frame import HERE, PLACES
from hubbub.server.pages.releases import _tame
from hubbub.server.service import Service
from hubbub.server.settings import Settings

COUNT = "SELECT COUNT(DISTINCT person) AS n FROM health"
PAGES = ("/", "/ask", "/datasets/health", "/releases", "/curate", "/explain", "/explain/report", "/explain/lab",
         "/sign-in", "/nowhere")  # fmt: skip


class Outline(HTMLParser):
    """What a screen reader and a strict policy care about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.title = ""
        self._in_title = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_title = tag == "title"

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
            self._in_title = False

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in tags]


def token(page: httpx.Response) -> str:
    """The word that the page's forms carry."""
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert found is not None
    return found[1]


@pytest.fixture
def visitor(app: Any) -> Callable[[str], httpx.Client]:
    """Browsers without a script: each remembers its cookies, and follows redirects."""

    def make(who: str) -> httpx.Client:
        client: httpx.Client = app.client(None, follow_redirects=True)
        page = client.get("/sign-in")
        entered = client.post("/sign-in", data={"csrf": token(page), "token": app.tokens[who], "next": "/"})
        assert entered.status_code == 200
        return client

    return make


def spend(
    client: httpx.Client, sql: str = COUNT, *, page: httpx.Response | None = None, **fields: str
) -> httpx.Response:
    page = page or client.get("/ask")
    key = re.search(r'name="key" value="([^"]+)"', page.text)
    assert key is not None
    data = {"csrf": token(page), "key": key[1], "sql": sql, "epsilon": "0.5", "groups": "", "rows": "", **fields}
    return client.post("/ask/spend", data=data)


@pytest.mark.parametrize("who", ["owner", "auditor", "ana"])
def test_every_page_has_a_title_one_heading_and_labels(visitor: Callable[[str], httpx.Client], who: str) -> None:
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


def test_no_page_has_inline_script_or_style_or_anything_from_elsewhere(visitor: Callable[[str], httpx.Client]) -> None:
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


def test_pages_are_for_their_roles(visitor: Callable[[str], httpx.Client]) -> None:
    expected = {
        "/": (200, 200, 200), "/ask": (403, 403, 200), "/datasets/health": (200, 200, 200),
        "/releases": (200, 200, 200), "/curate": (200, 200, 403), "/explain": (200, 200, 200),
        "/explain/report": (200, 200, 403), "/explain/lab": (200, 200, 200), "/nowhere": (404, 404, 404),
    }  # fmt: skip
    clients = [visitor(who) for who in ("owner", "auditor", "ana")]
    for path, statuses in expected.items():
        assert tuple(client.get(path).status_code for client in clients) == statuses, path


FORMS = (
    "/sign-out", "/theme", "/requests", "/ask/estimate", "/ask/spend", "/ask/refine", "/curate/requests/1",
    "/curate/analysts", "/curate/analysts/remove", "/curate/tokens", "/curate/tokens/revoke", "/curate/config/check",
    "/curate/config/apply", "/explain/verify", "/explain/lab", f"/explain/lab/{'0' * 32}/cancel",
)  # fmt: skip


def test_a_form_without_its_word_is_refused(visitor: Callable[[str], httpx.Client]) -> None:
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
    assert posts - {"/sign-in"} == {path.replace("/1", "/{number:int}").replace("0" * 32, "{number}") for path in FORMS}


class _Settled(Service):
    """A service with settings and nothing behind them: enough to list its routes."""

    settings = Settings(secret=b"s" * 32)
    accounts = None  # type: ignore[assignment]


OWNERS = tuple(path for path in FORMS if path.startswith("/curate"))


@pytest.mark.parametrize("who", ["ana", "auditor"])
def test_the_owners_forms_are_the_owners(visitor: Callable[[str], httpx.Client], who: str) -> None:
    client = visitor(who)
    data = {"csrf": token(client.get("/")), "name": "zoe", "dataset": "health", "epsilon": "1", "days": "9",
            "id": "0" * 12, "text": "version: 1", "hash": "", "role": "owner", "verdict": "grant"}  # fmt: skip
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


def test_the_same_form_is_charged_once_and_another_question_anew(
    app: Any, visitor: Callable[[str], httpx.Client]
) -> None:
    client = visitor("ana")
    page = client.get("/ask")
    answers = [spend(client, page=page) for _ in range(3)]
    assert len({answer.url for answer in answers}) == 1
    assert app.spent() == {"health": "1/2"}
    spend(client, f"{COUNT} WHERE age > 40", page=page)
    assert app.spent() == {"health": "1"}


def test_the_same_form_gives_the_old_answer_after_the_data_changed(
    app: Any, visitor: Callable[[str], httpx.Client]
) -> None:
    """Here the same question alone would be a new one: it is the form's key that makes it the same request."""
    client = visitor("ana")
    page = client.get("/ask")
    before = spend(client, page=page)
    data = app.folder / "health.csv"
    lines = data.read_text().splitlines()
    data.write_text("\n".join([*lines, lines[-1]]) + "\n")
    assert spend(client, page=page).url == before.url
    assert app.spent() == {"health": "1/2"}
    assert spend(client).url != before.url
    assert app.spent() == {"health": "1"}


def test_refining_draws_and_charges_once_and_shows_a_narrower_interval(
    app: Any, visitor: Callable[[str], httpx.Client]
) -> None:
    client = visitor("ana")
    first = spend(client)
    number = first.url.params["release"]
    key = re.search(r'name="key" value="([^"]+)"', first.text)
    assert key is not None
    data = {"csrf": token(first), "key": key[1], "release": number, "epsilon": "1"}
    answers = [client.post("/ask/refine", data=data) for _ in range(2)]
    assert app.spent() == {"health": "3/2"}
    assert answers[0].url == answers[1].url
    assert "Combined answer" in answers[0].text
    assert "cost ε = 1.5" in answers[0].text
    numbers = answers[0].url.params["release"]
    combined = client.get(f"/releases/{numbers}.json").json()["answer"]["columns"][0]
    alone = client.get(f"/releases/{number}.json").json()["answer"]["columns"][0]
    assert combined["high"][0] - combined["low"][0] < alone["high"][0] - alone["low"][0]
    assert "Two independent draws were combined by inverse variance" in client.get(f"/releases/{numbers}").text
    assert "Two independent draws" in client.get(f"/releases/{numbers}.ipynb").text
    assert client.get(f"/releases/{numbers}.csv").text.startswith("n,n_low,n_high\n")


def test_releases_are_private_to_their_analyst(visitor: Callable[[str], httpx.Client]) -> None:
    number = spend(visitor("ana")).url.params["release"]
    ben = visitor("ben")
    for path in (f"/releases/{number}", f"/releases/{number}.csv", f"/ask?release={number}"):
        assert ben.get(path).status_code == 404
    assert visitor("auditor").get(f"/releases/{number}").status_code == 200


def test_exports_hold_the_answer(visitor: Callable[[str], httpx.Client]) -> None:
    client = visitor("ana")
    sql = "SELECT health, COUNT(DISTINCT person) AS n FROM health GROUP BY health"
    number = spend(client, sql, groups="1").url.params["release"]
    rows = list(csv.DictReader(io.StringIO(client.get(f"/releases/{number}.csv").text)))
    assert [row["health"] for row in rows] == ["excellent", "good", "fair", "poor"]
    document = client.get(f"/releases/{number}.json").json()
    assert [int(row["n"]) for row in rows] == document["answer"]["columns"][1]["values"]
    notebook = nbformat.from_dict(client.get(f"/releases/{number}.ipynb").json())  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    names: dict[str, Any] = {}
    exec(notebook.cells[1].source.removesuffix("\nframe"), names)
    assert list(names["frame"]["n"]) == document["answer"]["columns"][1]["values"]
    page = client.get(f"/releases/{number}").text
    assert "under the protection of each person of health (data version 1)" in page
    assert client.get(f"/releases/{number}.exe").status_code == 404


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "'; DROP TABLE health; --", "{{ 7 * 7 }}", "\u202e\x00"])
def test_hostile_text_is_shown_and_never_run(app: Any, visitor: Callable[[str], httpx.Client], text: str) -> None:
    client = visitor("ana")
    page = spend(client, text)
    assert page.status_code == 422
    assert "<script>alert" not in page.text
    assert "49" not in page.text.partition("<textarea")[2].partition("</textarea>")[0]
    assert app.spent() == {"health": "0"}
    data = {"csrf": token(page), "dataset": "health", "epsilon": "1", "reason": text.replace("\x00", "")}
    client.post("/requests", data=data)
    assert "<script>alert" not in visitor("owner").get("/curate").text


def test_an_estimate_is_free_and_says_what_the_answer_would_be(
    app: Any, visitor: Callable[[str], httpx.Client]
) -> None:
    client = visitor("ana")
    page = client.get("/ask")
    data = {"csrf": token(page), "key": "k" * 20, "sql": COUNT, "epsilon": "0.5", "groups": "", "rows": ""}
    answer = client.post("/ask/estimate", data=data)
    assert "Before you spend" in answer.text
    assert "your budget admits it" in answer.text
    assert app.spent() == {"health": "0"}


def test_what_is_said_to_be_askable_can_be_asked(visitor: Callable[[str], httpx.Client]) -> None:
    """Each function on the page of a data set, as an estimate."""
    client = visitor("ana")
    asked = (
        "COUNT(*)", "COUNT(visits)", "COUNT(DISTINCT person)", "SUM(visits)", "AVG(visits)", "VAR_POP(visits)",
        "STDDEV_POP(visits)", "COVAR_POP(visits, age)", "CORR(visits, age)", "REGR_SLOPE(visits, age)",
        "MEDIAN(visits)", "QUANTILE_CONT(visits, 0.9)", "MIN(visits)", "MAX(visits)",
    )  # fmt: skip
    named = " ".join(name for name, _ in FUNCTIONS)
    for each in asked:
        assert each.partition("(")[0] in named
        page = client.get("/ask")
        data = {"csrf": token(page), "key": "k" * 20, "sql": f"SELECT {each} AS x FROM health", "epsilon": "1"}
        assert client.post("/ask/estimate", data=data).status_code == 200, each
    rest = (
        "SELECT health, COUNT(*) AS n FROM health WHERE age > 3 GROUP BY health HAVING COUNT(*) > 9 ORDER BY n LIMIT 2",
        "SELECT word, COUNT(*) AS n FROM health JOIN plans ON CAST(health.coinsurance AS VARCHAR) = plans.coinsurance"
        " GROUP BY word",
    )
    for sql in rest:
        data = {"csrf": token(client.get("/ask")), "key": "k" * 20, "sql": sql, "epsilon": "1"}
        assert client.post("/ask/estimate", data=data).status_code == 200, sql


def test_every_example_can_be_asked(visitor: Callable[[str], httpx.Client]) -> None:
    client = visitor("ben")
    buttons = [each for each in Outline(client.get("/ask").text).all("button") if each.get("class") == "example"]
    assert len(buttons) >= 4
    for each in buttons:
        data = {"csrf": token(client.get("/ask")), "key": "k" * 20, "sql": each["data-sql"] or "", "epsilon": "0.5",
                "groups": each["data-groups"] or "", "rows": each["data-rows"] or ""}  # fmt: skip
        assert client.post("/ask/estimate", data=data).status_code == 200, each


def test_the_owner_applies_a_checked_change_and_a_stale_one_is_refused(
    app: Any, visitor: Callable[[str], httpx.Client]
) -> None:
    client = visitor("owner")
    page = client.get("/curate")
    found = re.search(r'name="hash" value="([^"]+)"', page.text)
    assert found is not None
    text = (
        (app.folder / "hubbub.yaml").read_text().replace("ana: {health: {epsilon: 10}}", "ana: {health: {epsilon: 12}}")
    )
    data = {"csrf": token(page), "hash": found[1], "text": text.replace("\n", "\r\n")}
    checked = client.post("/curate/config/check", data=data)
    assert "This can be applied" in checked.text
    assert '<span class="plus">+  ana: {health: {epsilon: 12}}</span>' in checked.text
    assert "12" not in (app.folder / "hubbub.yaml").read_text().partition("analysts:")[2]
    assert "hubbub.yaml was changed; the text before is kept" in client.post("/curate/config/apply", data=data).text
    assert "{epsilon: 12}" in (app.folder / "hubbub.yaml").read_text()
    stale = client.post("/curate/config/apply", data={**data, "text": text + "\n# later\n"})
    assert stale.status_code in (409, 412, 422)
    wrong = client.post("/curate/config/check", data={**data, "text": "version: 1\nnonsense: 2\n"})
    assert "HB4" in wrong.text


def test_a_new_analyst_gets_a_token_that_is_shown_once(app: Any, visitor: Callable[[str], httpx.Client]) -> None:
    client = visitor("owner")
    data = {"csrf": token(client.get("/curate")), "name": "zoe", "dataset": "health", "epsilon": "2", "days": "30"}
    page = client.post("/curate/analysts", data=data)
    found = re.search(r"hub_[0-9a-f]{12}_[\w-]{43}", page.text)
    assert found is not None
    assert found[0] not in client.get("/curate").text
    app.tokens["zoe"] = found[0]
    assert "0 of ε = 2 spent" in visitor("zoe").get("/").text
    assert "HB144" in client.post("/curate/analysts", data=data).text
    client.post("/curate/analysts/remove", data={"csrf": token(client.get("/curate")), "name": "zoe"})
    assert app.client(None).get("/", headers={"Cookie": ""}).status_code == 303
    assert app.client("zoe").get("/api/v1/me").status_code == 401


@pytest.mark.parametrize(
    "query",
    [
        "epsilon=0",
        "epsilon=nan",
        "epsilon=1&delta=2",
        "epsilon=1&prior=900",
        "epsilon=1&people=-3",
        "epsilon=1&people=x",
    ],
)
def test_nonsense_about_epsilon_is_refused_in_words(visitor: Callable[[str], httpx.Client], query: str) -> None:
    answer = visitor("ana").get(f"/explain?{query}")
    assert answer.status_code == 422
    assert "HB1" in answer.text


def test_the_explanation_warns_of_a_large_delta(visitor: Callable[[str], httpx.Client]) -> None:
    page = visitor("ana").get("/explain?epsilon=1&delta=0.001&people=5000").text
    assert "publishing somebody&#39;s row would be allowed" in page


def test_the_bar_names_pages_that_exist(visitor: Callable[[str], httpx.Client]) -> None:
    for role, who in (("analyst", "ana"), ("owner", "owner"), ("auditor", "auditor")):
        client = visitor(who)
        for address, _ in PLACES[role]:
            assert client.get(address).status_code == 200


def test_unknown_addresses_of_the_api_stay_problems(app: Any) -> None:
    answer = app.client("ana").get("/api/v1/nowhere")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


WEIRD = (
    "/releases/0", "/releases/-1", "/releases/9999999999999999999999", "/releases/1-", "/releases/2-2", "/releases/٣",
    "/releases/x.csv", "/releases/1.2.3", "/releases?before=x", "/releases?before=-1", "/releases?before=٣",
    "/ask?release=", "/ask?release=1-2-3", "/ask?release=0", "/ask?dataset=nowhere", "/datasets/nowhere",
    "/datasets/%00", "/datasets/%2e%2e%2fetc", "/static/../app.py", "/static/", "/static/nothing.css",
    "/explain?epsilon=1e400", "/explain?prior=%F0%9F%98%80", "/curate/requests/999999999999999999999",
    "/%ff%fe", "/ask/spend",
)  # fmt: skip


@pytest.mark.parametrize("who", ["ana", "owner"])
def test_strange_addresses_are_refused_and_never_break(visitor: Callable[[str], httpx.Client], who: str) -> None:
    client = visitor(who)
    for path in WEIRD:
        answer = client.get(path)
        assert answer.status_code < 500, path
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


STRANGE = (
    {"epsilon": ""}, {"epsilon": "nan"}, {"epsilon": "1e999"}, {"epsilon": "-1"}, {"epsilon": "٣"}, {"sql": ""},
    {"groups": "x"}, {"groups": "0"}, {"groups": "٣"}, {"rows": "99999999999"}, {"key": ""}, {"key": "é" * 20},
    {"sql": "SELECT COUNT(*) AS n FROM plans"}, {"sql": "(" * 5000}, {"sql": "\ud800"}, {"sql": "\x00"},
)  # fmt: skip


def test_strange_forms_are_refused_and_never_break_or_charge(app: Any, visitor: Callable[[str], httpx.Client]) -> None:
    client = visitor("ana")
    csrf = token(client.get("/ask"))
    whole = {"csrf": csrf, "key": "k" * 20, "sql": COUNT, "epsilon": "0.5", "groups": "", "rows": ""}
    for fields in STRANGE:
        body = {name: value.encode("utf-8", "surrogatepass") for name, value in (whole | fields).items()}
        for path in ("/ask/estimate", "/ask/spend"):
            answer = client.post(path, data=body)
            assert answer.status_code < 500, fields
            assert "HB999" not in answer.text
    assert app.spent() == {"health": "0"}


@pytest.mark.parametrize(
    "kind", ["application/json", "text/plain", "multipart/form-data", "multipart/form-data; boundary=x"]
)
def test_what_is_no_form_is_refused(visitor: Callable[[str], httpx.Client], kind: str) -> None:
    answer = visitor("ana").post("/ask/spend", content=b'{"csrf": "x"}', headers={"Content-Type": kind})
    assert 400 <= answer.status_code < 500


def test_formulas_in_a_spreadsheet_are_text() -> None:
    outputs = (Output("k", "text", ["=cmd()", "fine", "-1"]), Output("n", "integer", [-1, 2, 3], [-2.0] * 3, [4.0] * 3))
    found = _tame(Release(outputs, [None] * 3, Fraction(1), Fraction(0), {}))
    assert found.outputs[0].values == ["'=cmd()", "fine", "'-1"]
    assert found.outputs[1] == outputs[1]


@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT MEDIAN(age) AS m FROM health",
        "SELECT coinsurance, COUNT(*) AS n, AVG(visits) AS a, SUM(spending) AS s FROM health GROUP BY coinsurance",
    ],
)
def test_the_error_beside_the_slider_is_near_the_planned_one(app: Any, sql: str) -> None:
    """Between the prices that were planned, what is read off is within 30 % of what an estimate there says."""
    ana = app.service.accounts.identify(app.tokens["ana"])
    middle = app.service.estimate(ana, Question(sql, epsilon="0.5"))
    for price in map(Fraction, ("0.15", "0.2", "0.3", "0.4", "0.7", "1", "1.5")):
        there = app.service.estimate(ana, Question(sql, epsilon=price))
        for place, each in enumerate(there.expected):
            assert scale(middle, place, price) == pytest.approx(each.plus_minus, rel=0.3)


def test_home_says_what_the_rest_is_good_for(app: Any, visitor: Callable[[str], httpx.Client]) -> None:
    """N is what is left divided by the price of one count, rounded down; ± is the estimate's."""
    client = visitor("ana")
    spend(client, epsilon="4.75")
    found = re.search(r"About ([\d,]+) more counts at ±(\d+) \(ε = 0.1 each\)", client.get("/").text)
    assert found is not None
    assert int(found[1]) == 52  # (10 - 4.75) / 0.1 = 52.5
    ana = app.service.accounts.identify(app.tokens["ana"])
    assert int(found[2]) == round(app.service.estimate(ana, Question(COUNT, epsilon="0.1")).expected[0].plus_minus)


def test_the_promise_of_each_cap_is_its_formula(visitor: Callable[[str], httpx.Client]) -> None:
    page = visitor("ben").get("/datasets/wards").text
    shown = {
        cap: float(sure)
        for cap, sure in re.findall(r"ε = (\d+): from 50/50 about one person to at most ([\d.]+) %", page)
    }
    assert set(shown) == {"1", "2"}
    for epsilon, sure in shown.items():
        exact = 100 / (1 + math.exp(-int(epsilon)))
        assert exact <= sure < exact + 0.1


@pytest.mark.parametrize("who", ["ben", "eve"])
def test_those_with_group_caps_see_them_too(visitor: Callable[[str], httpx.Client], who: str) -> None:
    client = visitor(who)
    assert "Group guests" in client.get("/").text
    for path in ("/", "/ask", "/datasets/health", "/releases", "/explain"):
        assert client.get(path).status_code == 200


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_from_its_ground_in_light_and_dark() -> None:
    """The contrast of the accessibility guidelines (WCAG 2, level AA): 4.5 to 1."""
    style = (HERE / "static" / "style.css").read_text()
    schemes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r"\{([^{}]*--paper:[^{}]*)\}", style)
    ]
    assert len(schemes) == 3
    assert schemes[1] == schemes[2]
    pairs = [
        ("ink", "paper"), ("ink", "card"), ("soft", "paper"), ("soft", "card"), ("soft", "faint"), ("accent", "card"),
        ("accent", "accent-soft"), ("accent-ink", "accent"), ("warm", "warm-soft"), ("bad", "bad-soft"),
        ("bad", "card"), ("good", "good-soft"), ("ink", "good-soft"), ("ink", "bad-soft"), ("ink", "warm-soft"),
        ("soft", "bad-soft"),
    ]  # fmt: skip
    for scheme in schemes:
        for text, ground in pairs:
            low, high = sorted((_luminance(scheme[text]), _luminance(scheme[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT MEDIAN(age) AS m FROM health", "Noise (Laplace and selection)"),
        ("SELECT age, COUNT(*) AS n FROM health GROUP BY age ORDER BY n DESC LIMIT 3", "Noise ("),
        ("SELECT AVG(visits) AS a FROM health", "Each contributes at most 5 rows to each of at most 5 groups"),
        ("SELECT spending, COUNT(*) AS n FROM health GROUP BY spending", "δ = "),
    ],
)
def test_every_kind_of_answer_has_a_page_and_a_methods_paragraph(
    visitor: Callable[[str], httpx.Client], sql: str, words: str
) -> None:
    client = visitor("ana")
    page = spend(client, sql, epsilon="2")
    assert page.status_code == 200, page.text
    number = page.url.params["release"]
    assert words in client.get(f"/releases/{number}").text
    for form in ("csv", "json", "ipynb"):
        assert client.get(f"/releases/{number}.{form}").status_code == 200


def test_data_that_cannot_be_reached_is_said_so_on_the_page(app: Any, visitor: Callable[[str], httpx.Client]) -> None:
    client = visitor("ana")
    page = client.get("/ask")
    (app.folder / "health.csv").unlink()
    answer = spend(client, page=page)
    assert answer.status_code == 503
    assert "HB318" in answer.text
    assert str(app.folder) not in answer.text
    assert app.spent() == {"health": "0"}


def test_a_failure_after_the_charge_is_the_one_constant(
    app: Any, visitor: Callable[[str], httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = visitor("ana")

    def broken(_: str) -> None:
        raise RuntimeError("a cell of the data: 4711")

    monkeypatch.setattr(app.service.current.curator.engine, "run", broken)
    answer = spend(client)
    assert answer.status_code == 424
    assert "HB900" in answer.text
    assert "4711" not in answer.text
    assert app.spent() == {"health": "1/2"}


def test_names_in_a_spreadsheet_are_text_too() -> None:
    outputs = (Output("=HYPERLINK(1)", "integer", [1], [0.0], [2.0]),)
    found = _tame(Release(outputs, [None], Fraction(1), Fraction(0), {})).to_csv()
    assert found.splitlines()[0] == "'=HYPERLINK(1),'=HYPERLINK(1)_low,'=HYPERLINK(1)_high"


def test_what_was_asked_becomes_no_link_in_a_notebook(visitor: Callable[[str], httpx.Client]) -> None:
    client = visitor("ana")
    trap = "SELECT COUNT(*) AS n FROM health WHERE health = '```\n\n![](https://thief.example/x) <img src=x> <b>'"
    number = spend(client, trap).url.params["release"]
    cells = client.get(f"/releases/{number}.ipynb").json()["cells"]
    for text in (cell["source"] for cell in cells if cell["cell_type"] == "markdown"):
        assert "thief" in text
        assert not re.search(r"(?<!\\)[`<\[!]", text)


def test_a_page_says_nothing_of_where_the_ledger_is(app: Any, visitor: Callable[[str], httpx.Client]) -> None:
    client = visitor("ana")
    (app.folder / "hubbub-ledger" / "versions.json").write_text("[]")
    page = spend(client)
    assert page.status_code == 503
    assert "HB317" in page.text
    assert str(app.folder) not in page.text
