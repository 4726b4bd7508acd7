"""The table of PostgreSQL clients in docs/postgres.md is what the campaign has stored."""

import json
from typing import Any

import pytest
from tests.campaigns.clients import steps
from tests.campaigns.pg_clients import NAMES, PAGE, RESULTS, page, tables


@pytest.fixture(scope="module")
def stored() -> Any:
    return json.loads(RESULTS.read_text())


def test_the_table_is_written_from_the_stored_results(stored: Any) -> None:
    text = PAGE.read_text()
    assert page(text, stored) == text


def test_every_client_was_tried_or_is_named(stored: Any) -> None:
    assert set(NAMES) == set(stored["clients"]) | (set(NAMES) & set(stored["not tried"]))
    for result in stored["clients"].values():
        assert list(result["steps"]) == list(steps.STEPS)
        assert result["version"]


def test_a_step_that_did_not_work_shows(stored: Any) -> None:
    broken = {name: {**result, "steps": dict(result["steps"])} for name, result in stored["clients"].items()}
    broken["psql"]["steps"]["again"] = "East|3 (3 charges)"
    text = tables({**stored, "clients": broken})
    assert "- psql, again, free: `East/3 (3 charges)`" in text
    assert next(line for line in text.splitlines() if line.startswith("| psql ")).count("| no ") == 1


LINES = {
    "sign in": "1",
    "tables": "kinds;visits",
    "columns": "region;age;day;cost",
    "explain": "cost|0.1",
    "priced": "East|90;North|100;South|110;West|120",
    "again": "East|90;North|100;South|110;West|120",
    "refused": "HB503 no",
    "after": "1",
    "types": "a|1|2.5|2026-01-31;b|2|-0.25|1999-12-31",
    "prepared": "260",
}


@pytest.mark.parametrize("name", LINES)
def test_a_step_that_gives_something_else_is_seen(name: str) -> None:
    assert set(steps.verdicts(LINES, 2).values()) == {"yes"}
    assert steps.verdicts({**LINES, name: "error: lost"}, 2)[name] != "yes"
    assert steps.verdicts(LINES, 3)["again"] != "yes"
