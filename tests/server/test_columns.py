"""Columns that the owner did not list, or hid: an analyst can neither use them nor learn that they are there."""

from typing import Any

import httpx2
import pytest
from tests.fixtures.page_visits import COUNT, token

#: In the file, and not for analysts: the last one is declared hidden, the others are not declared.
UNSEEN = ("income", "education", "admissions", "frailty")

QUERIES = (
    "SELECT COUNT({}) FROM health",
    "SELECT {} FROM health GROUP BY {}",
    "SELECT COUNT(*) FROM health WHERE {} > 1",
    "SELECT AVG(h.{}) FROM health h",
    "SELECT COUNT(*) FROM (SELECT person, {} FROM health)",
    "SELECT COUNT(*) FROM health h JOIN plans p ON h.{} = p.coinsurance",
    "SELECT * FROM health ORDER BY {}",
    *(
        f"CALL {name}(table => 'health', columns => ['{{}}'])"
        for name in ("tabulate", "moments", "pca", "synthetic", "mwem", "small_database")
    ),
    "CALL ranges(table => 'health', column => '{}')",
    "CALL kmeans(table => 'health', columns => ['{}'], k => 2)",
    "CALL decision_tree(table => 'health', columns => ['age'], target => '{}')",
    "CALL linear_regression(table => 'health', columns => ['age'], target => '{}')",
)


@pytest.fixture(scope="module")
def hiding(shared: Any) -> Any:
    """The service with one more column in the file, declared hidden."""
    path = shared.folder / "hubbub.yaml"
    data = (shared.folder / "health.csv").read_text().splitlines()
    lines = [data[0] + ",frailty", *(line + ",3" for line in data[1:])]
    (shared.folder / "health.csv").write_text("\n".join(lines) + "\n")
    path.write_text(
        path.read_text().replace("      age: ", "      frailty: {type: integer, hidden: true}\n      age: ")
    )
    assert shared.service.current.reload()
    return shared


def test_nothing_that_an_analyst_reads_names_an_unlisted_column(hiding: Any) -> None:
    client = hiding.client("ana")
    texts = [client.get(f"/api/v1/{part}").text for part in ("datasets", "datasets/health", "openapi.json", "budget")]
    assert client.get("/api/v1/datasets/health").json()["disabled"] == []
    for sql in ("SELECT * FROM health", "SELECT COUNT(h.*) FROM health h", "SELECT nosuch FROM health", COUNT):
        texts.append(client.post("/api/v1/estimate", json={"sql": sql, "epsilon": "0.1"}).text)
    page: httpx2.Client = hiding.client(None, follow_redirects=True)
    form = {"csrf": token(page.get("/sign-in")), "token": hiding.tokens["ana"], "next": "/"}
    assert page.post("/sign-in", data=form).status_code == 200
    shown = [page.get(address).text for address in ("/", "/datasets/health", "/ask", "/releases", "/explain")]
    assert "coinsurance" in shown[1]
    for text in [*texts, *shown]:
        assert not [name for name in UNSEEN if name in text]


def test_the_owner_sees_what_is_left_out_and_why(hiding: Any) -> None:
    for who in ("owner", "auditor"):
        left = hiding.client(who).get("/api/v1/datasets/health").json()["disabled"]
        assert {each["column"] for each in left} == set(UNSEEN)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("name", UNSEEN)
def test_an_unlisted_column_is_refused_in_the_words_of_one_that_does_not_exist(
    hiding: Any, query: str, name: str
) -> None:
    """The same answer, but for the name that was typed: near to no name, as a made-up one is."""
    client = hiding.client("ana")

    def asked(column: str) -> tuple[int, str]:
        body = {"sql": query.replace("{}", column), "epsilon": "0.1"}
        answer = client.post("/api/v1/estimate", json=body)
        problem = answer.json()
        return answer.status_code, f"{problem['code']} {problem['detail']} {problem['remedy']}".replace(column, "…")

    assert asked(name) == asked("q" * len(name))
    assert asked(name)[0] == 422
    assert name not in asked("q" * len(name))[1]
