"""Scheduled queries over HTTP and on their pages: who may add, read and remove them, and what they show."""

import csv
import io
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.fixtures.monthly_visits import MONTHS, SQL, serving
from tests.fixtures.page_visits import Outline, token
from tests.server.conftest import World

from hubbub.core.blocks import Blocks, block_number
from hubbub.curator.schedule_list import Schedule
from hubbub.server.schedule_service import next_run

BODY = {"name": "monthly", "sql": SQL, "every": "month", "epsilon": "0.25", "first": "2026-01"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server, whose scheduled queries of ana have run."""
    with serving(tmp_path_factory.mktemp("scheduled")) as opened:
        assert opened.client("ana").post("/api/v1/schedules", json=BODY).status_code == 201
        opened.service.scheduler.turn()
        yield opened


def signed_in(world: World, who: str) -> httpx2.Client:
    client = world.client(None, follow_redirects=True)
    client.post("/sign-in", data={"csrf": token(client.get("/sign-in")), "token": world.tokens[who], "next": "/"})
    return client


def test_an_analyst_schedules_a_query_and_reads_its_answers(world: World) -> None:
    (listed,) = world.client("ana").get("/api/v1/schedules").json()["schedules"]
    assert (listed["analyst"], listed["dataset"], listed["every"], listed["wait"]) == ("ana", "visits", "month", 1)
    assert listed["last"]["block"] == "2026-03"
    found = world.client("ana").get("/api/v1/schedules/ana/monthly").json()
    assert [(each["block"], each["state"]) for each in found["blocks"]] == [(m, "answered") for m in MONTHS]
    rows = list(csv.DictReader(io.StringIO(found["table"])))
    assert [(row["block"], row["region"]) for row in rows] == [(m, r) for m in MONTHS for r in ("North", "South")]
    release = world.client("ana").get(f"/api/v1/releases/{found['blocks'][1]['release']}").json()
    columns = {each["name"]: each for each in release["answer"]["columns"]}
    assert [float(row["n"]) for row in rows[2:4]] == columns["n"]["values"]
    assert all(float(row["n_low"]) <= float(row["n"]) <= float(row["n_high"]) for row in rows)


def test_what_others_scheduled_is_like_nothing(world: World) -> None:
    ben = world.client("ben")
    assert ben.get("/api/v1/schedules").json()["schedules"] == []
    never = ben.get("/api/v1/schedules/ana/never")
    for method in ("GET", "DELETE"):
        answer = ben.request(method, "/api/v1/schedules/ana/monthly")
        assert (answer.status_code, answer.json()["detail"]) == (404, never.json()["detail"])
    assert ben.post("/api/v1/schedules", json=BODY | {"analyst": "ana"}).json()["code"] == "HB710"
    # the name is ana's, and ben may use it too
    assert ben.post("/api/v1/schedules", json=BODY | {"first": "2026-03"}).status_code == 201
    assert ben.delete("/api/v1/schedules/ben/monthly").status_code == 204
    assert len(world.client("auditor").get("/api/v1/schedules").json()["schedules"]) == 1


def test_an_owner_schedules_for_an_analyst(world: World) -> None:
    owner = world.client("owner")
    assert owner.post("/api/v1/schedules", json=BODY).json()["code"] == "HB799"
    assert owner.post("/api/v1/schedules", json=BODY | {"analyst": "nobody"}).status_code in (403, 404, 422)
    made = owner.post("/api/v1/schedules", json=BODY | {"analyst": "ben", "name": "of.ben"})
    assert made.json()["analyst"] == "ben"
    assert owner.delete("/api/v1/schedules/ben/of.ben").status_code == 204


@pytest.mark.parametrize(
    "change",
    [
        {"sql": "SELECT COUNT(*) FROM visits"},
        {"sql": "SELECT COUNT(*) FROM visits WHERE day >= $1"},
        {"every": "day"},
        {"every": "hour"},
        {"epsilon": "0"},
        {"first": "January"},
        {"wait": 367},
        {"name": "a/b"},
        {"name": "monthly"},
    ],
)
def test_what_cannot_be_scheduled_is_refused(world: World, change: dict[str, Any]) -> None:
    answer = world.client("ana").post("/api/v1/schedules", json=BODY | {"name": "other"} | change)
    assert answer.status_code == 422, answer.text
    assert len(world.client("ana").get("/api/v1/schedules").json()["schedules"]) == 1


def test_the_pages_list_draw_and_export(world: World) -> None:
    for who in ("ana", "owner", "auditor"):
        client = signed_in(world, who)
        page = client.get("/schedules")
        assert 'href="/schedules/ana/monthly"' in page.text
        assert ("Schedule query" in page.text) is (who != "auditor")
        shown = client.get("/schedules/ana/monthly")
        outline = Outline(shown.text)
        assert len(outline.all("h1")) == 1
        (chart,) = (each for each in outline.all("svg") if each.get("class") == "chart")
        assert chart["aria-label"] == "n over time"
        for month in MONTHS:
            assert f">{month}</text>" in shown.text
        assert len(re.findall('r="3.5"', shown.text)) == 6  # two regions in three months
        exported = client.get("/schedules/ana/monthly/answers.csv")
        assert exported.text == world.client("ana").get("/api/v1/schedules/ana/monthly").json()["table"]
        assert exported.headers["content-type"].startswith("text/csv")
    assert signed_in(world, "ben").get("/schedules/ana/monthly").status_code == 404


def test_a_query_is_added_and_removed_on_the_page(world: World) -> None:
    ana = signed_in(world, "ana")
    form = {**BODY, "name": "weekly", "epsilon": "0.125", "wait": "2", "csrf": token(ana.get("/schedules"))}
    wrong = ana.post("/schedules", data=form | {"every": "week"})
    assert wrong.status_code == 422
    assert "HB799" in wrong.text
    assert 'value="weekly"' in wrong.text  # the form is as it was
    assert ana.post("/schedules", data=form | {"wait": "two"}).status_code == 422
    added = ana.post("/schedules", data=form)
    assert added.url.path == "/schedules/ana/weekly"
    assert "was scheduled" in added.text
    assert "There are no answers yet" in added.text
    removed = ana.post("/schedules/ana/weekly/remove", data={"csrf": token(added)})
    assert removed.url.path == "/schedules"
    assert "weekly" not in removed.text
    auditor = signed_in(world, "auditor")
    word = token(auditor.get("/schedules"))
    assert auditor.post("/schedules/ana/monthly/remove", data={"csrf": word}).status_code == 403


@pytest.mark.parametrize(
    ("first", "wait", "last", "today", "expected"),
    [
        ("2026-01", 0, None, "2026-03-15", "2026-04-01"),
        ("2026-01", 20, None, "2026-03-15", "2026-03-21"),  # February waits
        ("2026-01", 50, None, "2026-03-15", "2026-03-23"),  # so does January, which comes first
        ("2026-06", 0, None, "2026-03-15", "2026-07-01"),
        ("2026-01", 0, "2026-02", "2026-03-15", None),
        ("2026-01", 20, "2026-02", "2026-03-15", "2026-03-21"),
    ],
)
def test_the_next_run_is_the_first_day_of_a_block_to_come(
    first: str, wait: int, last: str | None, today: str, expected: str | None
) -> None:
    blocks = Blocks("day", "month", block_number("month", "2025-12"), last and block_number("month", last))  # type: ignore[arg-type]
    found = next_run(Schedule("q", "ana", "visits", SQL, "1", first, wait), blocks, date.fromisoformat(today))
    assert (found and found.isoformat()) == expected


def test_why_a_block_has_no_answer_is_shown(tmp_path: Path) -> None:
    with serving(tmp_path) as world:
        world.client("ana").post("/api/v1/schedules", json=BODY | {"epsilon": "2"})
        world.service.scheduler.turn()
        found = world.client("ana").get("/api/v1/schedules/ana/monthly").json()
        assert {each["state"] for each in found["blocks"]} == {"refused"}
        page = signed_in(world, "ana").get("/schedules/ana/monthly").text
        assert page.count("HB2") == 3


def test_pages_and_answers_say_that_a_query_is_paused(tmp_path: Path) -> None:
    with serving(tmp_path) as opened:
        assert opened.client("ana").post("/api/v1/schedules", json=BODY).status_code == 201
        owner = signed_in(opened, "owner")
        assert "paused" not in owner.get("/schedules").text.lower()
        for each in opened.service.state.tokens.list("ana"):
            opened.service.accounts.revoke(each.id)
        assert ">paused<" in owner.get("/schedules").text
        assert "Paused: the tokens of ana are revoked." in owner.get("/schedules/ana/monthly").text
        (listed,) = opened.client("owner").get("/api/v1/schedules").json()["schedules"]
        assert (listed["paused"], listed["next_run"]) == (True, None)
