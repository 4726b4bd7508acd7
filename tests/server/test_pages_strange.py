"""The pages and what is hostile or strange: texts, addresses, forms, cells of a spreadsheet."""

import re
from fractions import Fraction
from typing import Any

import pytest
from tests.fixtures.page_visits import COUNT, Visitor, spend, token

from hubbub.answers.release import Output, Release
from hubbub.server.pages.releases import without_formulas


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "'; DROP TABLE health; --", "{{ 7 * 7 }}", "\u202e\x00"])
def test_hostile_text_is_shown_and_never_run(app: Any, visitor: Visitor, text: str) -> None:
    client = visitor("ana")
    page = spend(client, text)
    assert page.status_code == 422
    assert "<script>alert" not in page.text
    assert "49" not in page.text.partition("<textarea")[2].partition("</textarea>")[0]
    assert app.spent() == {"health": "0"}
    data = {"csrf": token(page), "dataset": "health", "epsilon": "1", "reason": text.replace("\x00", "")}
    client.post("/requests", data=data)
    assert "<script>alert" not in visitor("owner").get("/curate").text


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
def test_nonsense_about_epsilon_is_refused_in_words(visitor: Visitor, query: str) -> None:
    answer = visitor("ana").get(f"/explain?{query}")
    assert answer.status_code == 422
    assert "HB1" in answer.text


def test_unknown_addresses_of_the_api_stay_problems(app: Any) -> None:
    answer = app.client("ana").get("/api/v1/nowhere")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


WEIRD = (
    "/releases/0",
    "/releases/-1",
    "/releases/9999999999999999999999",
    "/releases/1-",
    "/releases/2-2",
    "/releases/٣",
    "/releases/x.csv",
    "/releases/1.2.3",
    "/releases?before=x",
    "/releases?before=-1",
    "/releases?before=٣",
    "/ask?release=",
    "/ask?release=1-2-3",
    "/ask?release=0",
    "/ask?dataset=nowhere",
    "/datasets/nowhere",
    "/datasets/%00",
    "/datasets/%2e%2e%2fetc",
    "/static/../app.py",
    "/static/",
    "/static/nothing.css",
    "/explain?epsilon=1e400",
    "/explain?prior=%F0%9F%98%80",
    "/curate/requests/999999999999999999999",
    "/%ff%fe",
    "/ask/spend",
)


@pytest.mark.parametrize("who", ["ana", "owner"])
def test_strange_addresses_are_refused_and_never_break(visitor: Visitor, who: str) -> None:
    client = visitor(who)
    for path in WEIRD:
        answer = client.get(path)
        assert answer.status_code < 500, path
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


STRANGE = (
    {"epsilon": ""},
    {"epsilon": "nan"},
    {"epsilon": "1e999"},
    {"epsilon": "-1"},
    {"epsilon": "٣"},
    {"sql": ""},
    {"groups": "x"},
    {"groups": "0"},
    {"groups": "٣"},
    {"rows": "99999999999"},
    {"key": ""},
    {"key": "é" * 20},
    {"sql": "SELECT COUNT(*) AS n FROM plans"},
    {"sql": "(" * 5000},
    {"sql": "\ud800"},
    {"sql": "\x00"},
)


def test_strange_forms_are_refused_and_never_break_or_charge(app: Any, visitor: Visitor) -> None:
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
def test_what_is_no_form_is_refused(visitor: Visitor, kind: str) -> None:
    answer = visitor("ana").post("/ask/spend", content=b'{"csrf": "x"}', headers={"Content-Type": kind})
    assert 400 <= answer.status_code < 500


def test_formulas_in_a_spreadsheet_are_text() -> None:
    outputs = (Output("k", "text", ["=cmd()", "fine", "-1"]), Output("n", "integer", [-1, 2, 3], [-2.0] * 3, [4.0] * 3))
    found = without_formulas(Release(outputs, [None] * 3, Fraction(1), Fraction(0), {}))
    assert found.outputs[0].values == ["'=cmd()", "fine", "'-1"]
    assert found.outputs[1] == outputs[1]


def test_names_in_a_spreadsheet_are_text_too() -> None:
    outputs = (Output("=HYPERLINK(1)", "integer", [1], [0.0], [2.0]),)
    found = without_formulas(Release(outputs, [None], Fraction(1), Fraction(0), {})).to_csv()
    assert found.splitlines()[0] == "'=HYPERLINK(1),'=HYPERLINK(1)_low,'=HYPERLINK(1)_high"


def test_what_was_asked_becomes_no_link_in_a_notebook(visitor: Visitor) -> None:
    client = visitor("ana")
    trap = "SELECT COUNT(*) AS n FROM health WHERE health = '```\n\n![](https://thief.example/x) <img src=x> <b>'"
    number = spend(client, trap).url.params["release"]
    cells = client.get(f"/releases/{number}.ipynb").json()["cells"]
    for text in (cell["source"] for cell in cells if cell["cell_type"] == "markdown"):
        assert "thief" in text
        assert not re.search(r"(?<!\\)[`<\[!]", text)


def test_a_page_says_nothing_of_where_the_ledger_is(app: Any, visitor: Visitor) -> None:
    client = visitor("ana")
    (app.folder / "hubbub-ledger" / "versions.json").write_text("[]")
    page = spend(client)
    assert page.status_code == 503
    assert "HB317" in page.text
    assert str(app.folder) not in page.text
