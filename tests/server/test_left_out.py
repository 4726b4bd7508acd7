"""What bounds leave out, over HTTP and on the pages: stated on every answer, and the profile on the dataset's page."""

from typing import Any

from tests.fixtures.page_visits import Visitor, spend

import hubbub
from hubbub.curator.session import Session

COUNT = "SELECT COUNT(*) AS n FROM health"


def publish(app: Any, **options: Any) -> int:
    """Publish a profile as the owner's own process does; give the number of its charge."""
    with app.service.catalog._current.using() as curator:
        release = Session(curator, "ana").profile("health", epsilon=4, **options)
    return int(release.receipt["ledger"][0]["sequence"])


def test_an_answer_and_an_estimate_state_their_bounds(app: Any) -> None:
    body = {"sql": COUNT, "epsilon": "0.5", "rows": 1}
    before = app.client("ana").post("/api/v1/estimate", json=body).json()["left_out"]
    assert (before["unit"], before["rows"], before.get("share")) == ("person", 1, None)
    assert "`hubbub profile health`" in before["text"]
    number = publish(app)
    estimate = app.client("ana").post("/api/v1/estimate", json=body).json()["left_out"]
    answer = app.ask("ben", rows=1).json()
    assert estimate["evidence"]["charge"] == answer["left_out"]["evidence"]["charge"] == number
    # 20,190 rows of 5,912 people; an interval of 95% that is nine times as wide misses with probability below 1e-9
    share = answer["left_out"]["share"]
    wide = share["high"] - share["low"]
    assert share["low"] - 4 * wide <= 1 - 5912 / 20190 <= share["high"] + 4 * wide
    assert wide < 0.05
    assert answer["left_out"]["text"].startswith("Each person counts with at most 1 row.")
    assert answer["receipt"]["left_out"]["share"] == answer["left_out"]["share"]
    assert "text" not in answer["receipt"]["left_out"]


def test_openapi_documents_the_statement(app: Any) -> None:
    schemas = app.client("ana").get("/api/v1/openapi.json").json()["components"]["schemas"]
    for name in ("EstimateForm", "ReleaseForm"):
        assert "LeftOutForm" in str(schemas[name]["properties"]["left_out"])
    assert {"unit", "groups", "rows", "clamped", "share", "text"} <= set(schemas["LeftOutForm"]["properties"])


def test_a_call_over_http_does_not_publish_a_profile(app: Any) -> None:
    answer = app.ask("ben", "CALL profile(table => 'health')", epsilon="0.001")
    assert answer.status_code == 200, answer.text
    assert app.client("ana").get("/api/v1/datasets/health").json()["profile"] is None
    assert app.ask("ana").json()["left_out"].get("evidence") is None


def test_the_page_of_a_dataset_shows_its_profile_to_everyone(app: Any, visitor: Visitor) -> None:
    assert "hubbub profile health --epsilon 0.2" in visitor("ana").get("/datasets/health").text
    number = publish(app, columns=["year", "age"])
    for who in ("ana", "owner", "auditor"):
        page = visitor(who).get("/datasets/health").text
        for part in ("Rows of each person", "Bounds on rows", "recommended", f"charge {number}", 'class="hub-bars"'):
            assert part in page, (who, part)
    form = app.client("ana").get("/api/v1/datasets/health").json()["profile"]
    assert form["charge"] == number
    assert "Profile</h2>" not in visitor("ana").get("/datasets/plans").text


def test_pages_of_estimates_and_releases_state_the_bounds(app: Any, visitor: Visitor) -> None:
    publish(app, columns=["year"])
    client = visitor("ana")
    page = spend(client, COUNT, rows="1")
    assert "Each person counts with at most 1 row." in page.text
    (latest, *_) = app.client("ana").get("/api/v1/releases").json()["releases"]
    shown = client.get(f"/releases/{latest['id']}").text
    assert shown.count("Each person counts with at most 1 row.") == 2  # the answer, and the methods paragraph
    notebook = client.get(f"/releases/{latest['id']}.ipynb").text
    assert "Each person counts with at most 1 row" in notebook


def test_the_page_of_a_profile_and_of_any_analysis_can_be_read(app: Any, visitor: Visitor) -> None:
    number = publish(app, columns=["year"])
    page = visitor("ana").get(f"/releases/{number}")
    assert page.status_code == 200
    assert "Each person counts once." in page.text


def test_a_remote_session_reads_the_published_profile(served: Any) -> None:
    with hubbub.connect(served.url, served.tokens["ana"]) as session:
        assert session.published_profile("health") is None
        number = publish(served, columns=["year"])
        profile = session.published_profile("health")
        assert profile is not None
        assert profile.charge == number
        stated = session.query(COUNT, epsilon="0.1").left_out
        assert stated is not None
        assert stated.evidence is not None
        assert stated.evidence.charge == number
