"""The page of a privacy officer: promise, spending, unusual behavior, self-audit and requests."""

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from tests.fixtures.page_visits import Visitor
from tests.server.conftest import World

from hubbub.answers.budget import PastCharge
from hubbub.audit.report import load_private_key, sign_report
from hubbub.curator.opening import folder_of
from hubbub.server.audit_service import SELF_AUDIT
from hubbub.server.unusual_behavior import MANY, one_condition_apart, shape, unusual

NOW = datetime(2026, 11, 19, tzinfo=UTC)


def charge(number: int, query: str, analyst: str = "ana") -> PastCharge:
    return PastCharge(number, NOW, analyst, "health", query, Fraction(1, 10), Fraction(0), released=True)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("SELECT COUNT(*) FROM v", "SELECT COUNT(*) FROM v WHERE id <> 7", True),
        ("SELECT COUNT(*) FROM v WHERE a = 1", "SELECT COUNT(*) FROM v WHERE a = 1 AND b = 2", True),
        ("SELECT COUNT(*) FROM v WHERE a = 1", "SELECT COUNT(*) FROM v WHERE a = 1 and b = 2 AND c = 3", True),
        ("SELECT s, COUNT(*) FROM v GROUP BY s", "SELECT s, COUNT(*) FROM v WHERE a = 1 GROUP BY s", True),
        ("SELECT COUNT(*) FROM v WHERE b = 1", "SELECT COUNT(*) FROM v WHERE a = 1 AND b = 1", False),
        ("SELECT COUNT(*) FROM v", "SELECT COUNT(*) FROM v", False),
        ("SELECT COUNT(*) FROM v", "SELECT COUNT(*) FROM v GROUP BY a", False),
        ("SELECT COUNT(*) FROM v", "SELECT COUNT(*) FROM w WHERE a = 1", False),
    ],
)
def test_pairs_differ_by_one_condition(one: str, other: str, *, apart: bool) -> None:
    assert one_condition_apart(one, other) is one_condition_apart(other, one) is apart


def test_constants_are_no_part_of_a_shape() -> None:
    assert shape("SELECT 1 FROM v1 WHERE a = 'it''s' AND b = 2.5") == "select ? from v1 where a = ? and b = ?"


def test_a_series_is_told_from_its_least_number_on_and_for_one_analyst_alone() -> None:
    series = [charge(n, f"SELECT COUNT(*) FROM v WHERE id = {n}") for n in range(MANY)]
    (told,) = unusual(series, {})
    assert told.what == f"{MANY} queries differ in their constants alone."
    assert told.charges == tuple(range(MANY))
    assert unusual(series[1:], {}) == ()
    assert unusual([*series[1:], charge(99, series[0].query, "ben")], {}) == ()


def test_failures_after_a_charge_are_told() -> None:
    (told,) = unusual([], {("ana", "health"): (4, 9)})
    assert (told.analyst, told.charges) == ("ana", (4, 9))
    assert told.what.startswith("2 queries failed after the charge")


def report(world: World, made: datetime, problems: list[str]) -> str:
    key = load_private_key(folder_of(world.service.current.config) / "audit.key", make=True)
    part = {"name": "samplers", "what": "noise", "cases": 1200, "seconds": 1.0, "problems": problems}
    facts = {"hubbub": "0.1.0", "time": made.isoformat(), "seconds": 1.0, "sound": not problems, "parts": [part]}
    text = sign_report(facts, key)
    signed = json.loads(text)
    assert signed["report"]["time"] == made.isoformat()
    return text


def test_the_page_has_the_promise_the_spending_and_what_is_open(app: World, visitor: Visitor) -> None:
    assert app.ask(sql="SELECT COUNT(*) AS n FROM health").status_code == 200
    assert app.ask(sql="SELECT COUNT(*) AS n FROM health WHERE year = 2").status_code == 200
    assert app.ask(sql="SELECT nothing FROM nowhere").status_code == 422
    body = {"dataset": "health", "epsilon": "1", "reason": "a second wave"}
    assert app.client("ana").post("/api/v1/requests", json=body).status_code < 300
    text = visitor("auditor").get("/oversight").text
    assert "ε = 0.2 was spent in the last 30 days" in text
    assert "1 pair of queries differs by one condition" in text
    assert "What it cannot mean: that more was learned about a person than the ε" in text
    assert "1 of 3 queries were refused" in text
    assert "a second wave" in text
    assert "No report. Run" in text
    assert visitor("ana").get("/oversight").status_code == 403


@pytest.mark.parametrize(
    ("age", "problems", "said"),
    [
        (1, [], "1,200 cases in 1 parts, signature verified"),
        (40, [], "There is no newer report"),
        (1, ["a planted error"], "a planted error"),
    ],
)
def test_the_state_of_the_self_audit(app: World, visitor: Visitor, age: int, problems: list[str], said: str) -> None:
    text = report(app, datetime.now(UTC) - timedelta(hours=age), problems)
    (app.folder / SELF_AUDIT).write_text(text)
    shown = visitor("auditor").get("/oversight").text
    assert said in shown
    assert ("FAILED" in shown) is bool(problems)
    (app.folder / SELF_AUDIT).write_text(text.replace("1200", "1300"))
    assert "The report was changed" in visitor("auditor").get("/oversight").text
