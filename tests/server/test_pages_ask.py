"""Asking on the pages: one charge for each form, estimates, refining, every kind of answer, exports."""

import csv
import html
import io
import json
import re
from fractions import Fraction
from typing import Any

import nbformat
import pytest
from tests.fixtures.page_visits import COUNT, Outline, Visitor, spend, token

from hubbub.curator.question import Question
from hubbub.server.pages.ask import scale
from hubbub.server.pages.dataset import FUNCTIONS


def test_the_same_form_is_charged_once_and_another_question_anew(app: Any, visitor: Visitor) -> None:
    client = visitor("ana")
    page = client.get("/ask")
    answers = [spend(client, page=page) for _ in range(3)]
    assert len({answer.url for answer in answers}) == 1
    assert app.spent() == {"health": "1/2"}
    spend(client, f"{COUNT} WHERE age > 40", page=page)
    assert app.spent() == {"health": "1"}


def test_the_same_form_gives_the_old_answer_after_the_data_changed(app: Any, visitor: Visitor) -> None:
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


def test_refining_draws_and_charges_once_and_shows_a_narrower_interval(app: Any, visitor: Visitor) -> None:
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
    assert "ε = 1.5" in answers[0].text
    numbers = answers[0].url.params["release"]
    combined = client.get(f"/releases/{numbers}.json").json()["answer"]["columns"][0]
    alone = client.get(f"/releases/{number}.json").json()["answer"]["columns"][0]
    assert combined["high"][0] - combined["low"][0] < alone["high"][0] - alone["low"][0]
    assert (
        "Two independent releases were combined with inverse-variance weights"
        in client.get(f"/releases/{numbers}").text
    )
    assert "Two independent releases" in client.get(f"/releases/{numbers}.ipynb").text
    assert client.get(f"/releases/{numbers}.csv").text.startswith("n,n_low,n_high\n")


def test_releases_are_private_to_their_analyst(visitor: Visitor) -> None:
    number = spend(visitor("ana")).url.params["release"]
    ben = visitor("ben")
    for path in (f"/releases/{number}", f"/releases/{number}.csv", f"/ask?release={number}"):
        assert ben.get(path).status_code == 404
    assert visitor("auditor").get(f"/releases/{number}").status_code == 200


def test_exports_hold_the_answer(visitor: Visitor) -> None:
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
    assert "The privacy unit is each person of health (data version 1-" in page
    assert client.get(f"/releases/{number}.exe").status_code == 404


def test_an_estimate_is_free_and_says_what_the_answer_would_be(app: Any, visitor: Visitor) -> None:
    client = visitor("ana")
    page = client.get("/ask")
    data = {"csrf": token(page), "key": "k" * 20, "sql": COUNT, "epsilon": "0.5", "groups": "", "rows": ""}
    answer = client.post("/ask/estimate", data=data)
    assert "Estimate" in answer.text
    assert "Within budget" in answer.text
    assert app.spent() == {"health": "0"}


def test_what_is_said_to_be_askable_can_be_asked(visitor: Visitor) -> None:
    """Each function on the page of a dataset, as an estimate."""
    client = visitor("ana")
    asked = (
        "COUNT(*)",
        "COUNT(visits)",
        "COUNT(DISTINCT person)",
        "SUM(visits)",
        "AVG(visits)",
        "VAR_POP(visits)",
        "STDDEV_POP(visits)",
        "COVAR_POP(visits, age)",
        "CORR(visits, age)",
        "REGR_SLOPE(visits, age)",
        "MEDIAN(visits)",
        "QUANTILE_CONT(visits, 0.9)",
        "MIN(visits)",
        "MAX(visits)",
    )
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


def test_every_example_can_be_asked(visitor: Visitor) -> None:
    client = visitor("ben")
    buttons = [each for each in Outline(client.get("/ask").text).all("button") if each.get("class") == "example"]
    assert len(buttons) >= 4
    for each in buttons:
        data = {
            "csrf": token(client.get("/ask")),
            "key": "k" * 20,
            "sql": each["data-sql"] or "",
            "epsilon": "0.5",
            "groups": each["data-groups"] or "",
            "rows": each["data-rows"] or "",
        }
        assert client.post("/ask/estimate", data=data).status_code == 200, each


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
    middle = app.service.queries.estimate(ana, Question(sql, epsilon="0.5"))
    for price in map(Fraction, ("0.15", "0.2", "0.3", "0.4", "0.7", "1", "1.5")):
        there = app.service.queries.estimate(ana, Question(sql, epsilon=price))
        for place, each in enumerate(there.expected):
            assert scale(middle, place, price) == pytest.approx(each.plus_minus, rel=0.3)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT MEDIAN(age) AS m FROM health", "Noise (selection)"),
        ("SELECT age, COUNT(*) AS n FROM health GROUP BY age ORDER BY n DESC LIMIT 3", "Noise ("),
        ("SELECT AVG(visits) AS a FROM health", "Each person counts with at most 5 rows."),
        ("SELECT spending, COUNT(*) AS n FROM health GROUP BY spending", "δ = "),
    ],
)
def test_every_kind_of_answer_has_a_page_and_a_methods_paragraph(visitor: Visitor, sql: str, words: str) -> None:
    client = visitor("ana")
    page = spend(client, sql, epsilon="2")
    assert page.status_code == 200, page.text
    number = page.url.params["release"]
    assert words in client.get(f"/releases/{number}").text
    for form in ("csv", "json", "ipynb"):
        assert client.get(f"/releases/{number}.{form}").status_code == 200


def test_data_that_cannot_be_reached_is_said_so_on_the_page(app: Any, visitor: Visitor) -> None:
    client = visitor("ana")
    page = client.get("/ask")
    (app.folder / "health.csv").unlink()
    answer = spend(client, page=page)
    assert answer.status_code == 503
    assert "HB318" in answer.text
    assert str(app.folder) not in answer.text
    assert app.spent() == {"health": "0"}


def test_a_failure_after_the_charge_is_the_one_constant(
    app: Any, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
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


def test_the_page_of_one_dataset_is_about_that_dataset(visitor: Visitor) -> None:
    client = visitor("ben")
    page = client.get("/ask?dataset=wards").text
    assert "<h1>Query wards</h1>" in page
    assert re.findall(r'<h2 id="schema-\d+"><a href="/datasets/(\w+)">', page) == ["wards"]
    assert {sql.split("FROM ")[1].split("\n")[0] for sql in re.findall(r'data-sql="([^"]+)"', page)} == {"wards"}
    everything = client.get("/ask").text
    assert re.findall(r'<h2 id="schema-\d+"><a href="/datasets/(\w+)">', everything) == ["health", "wards", "plans"]
    form = {"csrf": token(client.get("/ask")), "key": "k" * 20, "sql": "SELECT COUNT(*) AS n FROM wards"}
    form |= {"epsilon": "0.1", "groups": "", "rows": "", "dataset": "wards"}
    assert "<h1>Query wards</h1>" in client.post("/ask/estimate", data=form).text
    assert "<h1>Query</h1>" in client.get("/ask?dataset=nosuch").text
    assert "<h1>Query</h1>" in visitor("ana").get("/ask?dataset=wards").text  # wards is not hers


def test_the_question_stands_above_its_answer(visitor: Visitor) -> None:
    page = spend(visitor("ana")).text
    editor, answer = page.index('id="sql"'), page.index('id="answer"')
    question, table = page.index("SELECT COUNT(DISTINCT person)", answer), page.index("<table", answer)
    assert editor < answer < question < table


def test_an_answer_that_would_be_mostly_noise_is_no_green_one(visitor: Visitor) -> None:
    client = visitor("ana")
    many = "SELECT age, AVG(spending) AS dollars FROM health GROUP BY age"
    form = {"csrf": token(client.get("/ask")), "key": "k" * 20, "sql": many, "groups": "", "rows": ""}
    page = client.post("/ask/estimate", data=form | {"epsilon": "0.001"}).text
    assert "dollars: ±5,000 on values of 0 to 5,000 is mostly noise." in page
    assert '<span class="tag good">Within budget</span>' not in page
    fine = client.post("/ask/estimate", data=form | {"sql": COUNT, "epsilon": "1"}).text
    assert '<span class="tag good">Within budget</span>' in fine


def test_public_tables_are_asked_about_for_free(app: Any, visitor: Visitor) -> None:
    client = visitor("ana")
    assert "answered exactly and cost nothing" in client.get("/").text
    shown = client.get("/datasets/plans").text
    assert "epsilon" not in shown[shown.index("Query from code") :]
    page = client.get("/ask?dataset=plans")
    assert "Run (free)" in page.text
    assert 'id="epsilon"' not in page.text
    form = {"csrf": token(page), "key": "k" * 20, "sql": "SELECT * FROM plans", "dataset": "plans"}
    assert "costs nothing" in client.post("/ask/estimate", data=form).text
    answer = client.post("/ask/spend", data=form)
    assert answer.status_code == 200
    rows = (app.folder / "plans.csv").read_text().splitlines()[1:]
    assert all(f"<td>{row.split(',')[0]}</td>" in answer.text for row in rows)
    assert "free: the answer is exact" in answer.text
    assert app.spent() == {"health": "0"}
    assert client.get("/api/v1/releases", headers=app.client("ana").headers).json()["releases"] == []


def test_the_snippets_of_a_public_table_work(app: Any, visitor: Visitor) -> None:
    page = visitor("ana").get("/datasets/plans").text
    body = html.unescape(re.search(r"-d &#39;(.+?)&#39;", page)[1])  # type: ignore[index]
    answer = app.client("ana").post("/api/v1/query", json=json.loads(body), headers={"Idempotency-Key": "k" * 20})
    assert answer.status_code == 200, answer.text
    assert answer.json()["answer"]["columns"][0]["values"] == [
        len((app.folder / "plans.csv").read_text().splitlines()) - 1
    ]


def test_a_long_answer_scrolls_under_its_question_and_can_be_searched(visitor: Visitor) -> None:
    client = visitor("ana")
    form = {"csrf": token(client.get("/ask")), "key": "k" * 20, "groups": "", "rows": "", "epsilon": "0.5"}
    short = client.post("/ask/spend", data=form | {"sql": "SELECT COUNT(*) AS n FROM health"}).text
    long = client.post("/ask/spend", data=form | {"sql": "SELECT age, COUNT(*) AS n FROM health GROUP BY age"}).text
    assert 'class="results"' in short
    assert 'data-find="answer-rows"' not in short
    assert '<div class="results" tabindex="0" role="region" aria-label="Rows of the answer">' in long
    assert 'data-find="answer-rows"' in long
    assert long.index("GROUP BY age</pre>") < long.index('class="results"')
    assert "Gray numbers are not larger than their margin of error." in long
