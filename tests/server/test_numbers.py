"""The public number of rows and joint intervals over HTTP and on pages."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.fixtures.page_visits import Visitor, token

YAML = """\
version: 1
datasets:
  people:
    source: people.csv
    unit: row
    relation: replace
    columns: {age: {type: integer, bounds: [0, 100], required: true}, sex: {values: [f, m]}}
    budget: {epsilon: 9}
analysts: {ana: {people: {epsilon: 9}}, ben: {}, eve: {}}
"""
SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture
def app(tmp_path: Path, start_app: Any) -> Any:
    rows = [f"{20 + i % 60},{'fm'[i % 2]}" for i in range(700)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex", *rows]) + "\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    return start_app()


def ask(browser: httpx2.Client, sql: str) -> httpx2.Response:
    page = browser.get("/ask")
    return browser.post("/ask/spend", data={"csrf": token(page), "sql": sql, "epsilon": "0.5", "key": "k" * 20})


@pytest.mark.row(95)
def test_the_public_number_of_rows_is_on_every_page_of_the_dataset(app: Any, visitor: Visitor) -> None:
    ana = visitor("ana")
    assert ana.get("/").status_code == 200
    assert "700. Their number is public" in ana.get("/datasets/people").text
    assert ">700<" in ask(ana, "SELECT COUNT(*) AS n FROM people").text
    described = app.client().get("/api/v1/datasets/people").json()
    assert described["rows"] == 700


@pytest.mark.row(100)
def test_a_release_page_shows_joint_intervals_on_request(app: Any, visitor: Visitor) -> None:
    ana = visitor("ana")
    assert ask(ana, SQL).status_code == 200
    number = ana.get("/releases").text.partition('href="/releases/')[2].partition('"')[0]
    each = ana.get(f"/releases/{number}").text
    assert "Show intervals that hold for all cells at once" in each
    joint = ana.get(f"/releases/{number}?intervals=joint").text
    assert "all 2 intervals hold at once in at least 95% of answers (95.06%" in joint
    assert "all 2 intervals" not in each
    body = {"sql": SQL, "epsilon": "0.5", "intervals": "joint"}
    replayed = app.client().post("/api/v1/query", json=body, headers={"Idempotency-Key": "numbers-1"}).json()
    assert replayed["intervals"] == "joint"
    assert replayed["replayed"]
