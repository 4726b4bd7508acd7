"""Scheduled queries: once for each block, however often a run is killed."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.curator.test_blocks import ALL, Place, charged, data, place

from hubbub.accounting.blocks import close_block
from hubbub.accounting.store import EntryFilter
from hubbub.answers.over_time import growing_rows
from hubbub.cli import main
from hubbub.curator import Curator
from hubbub.curator.opening import folder_of
from hubbub.curator.question import Question
from hubbub.curator.schedule import ScheduledRun, answers, checked, run_due
from hubbub.curator.schedule_list import MAX_SCHEDULES, Schedule, Schedules
from hubbub.errors import LedgerError, ParameterError

__all__ = ["data", "place"]

GOLDEN = Path(__file__).parents[1] / "formats" / "golden"
SQL = "SELECT region, COUNT(*) AS n FROM visits WHERE day >= $1 AND day < $2 GROUP BY region"


class Killed(BaseException):
    """The end of a process at a chosen place."""


def schedules(curator: Curator) -> Schedules:
    return Schedules(folder_of(curator.config))


def add(curator: Curator, sql: str = SQL, name: str = "monthly", first: str | None = "2026-01") -> Schedule:
    schedule = checked(curator, "ana", sql, name=name, every="month", epsilon="0.25", first=first)
    schedules(curator).add(schedule)
    return schedule


def ran(curator: Curator) -> list[ScheduledRun]:
    return list(run_due(curator, schedules(curator)))


def test_a_query_runs_for_each_block_that_has_ended(place: Place) -> None:
    with place.curator() as curator:
        schedule = add(curator)
        assert [(run.block, run.refused) for run in ran(curator)] == [("2026-01", "")]
        assert ran(curator) == []
    place.today = date(2026, 4, 2)
    with place.curator() as curator:
        assert [run.block for run in ran(curator)] == ["2026-02", "2026-03"]
        assert charged(curator) == ["2026-01", "2026-02", "2026-03"]
        found = answers(curator, schedule)
        names, lines = growing_rows(found)
        assert names == ["block", "region", "n", "n_low", "n_high"]
        assert [line[0] for line in lines] == [f"2026-0{m}" for m in (1, 1, 2, 2, 3, 3)]
        assert curator.ledger.verify().sound
        # without the list, the same query finds its answers again
        schedules(curator).remove("monthly")
        assert answers(curator, add(curator, name="again")).keys() == found.keys()
        assert ran(curator) == []


PLACES: dict[str, Callable[[Curator], tuple[Any, str]]] = {
    "before the charge": lambda curator: (curator.ledger, "charge_all"),
    "before the run": lambda curator: (curator.engine, "run"),
    "before the record": lambda curator: (curator.ledger, "record"),
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("where", PLACES)
def test_a_query_runs_once_for_each_block_however_often_it_is_killed(
    place: Place, monkeypatch: pytest.MonkeyPatch, where: str, *, after: bool
) -> None:
    """A process ends before or after each step; two more are started, and one of them finds nothing to do."""
    with place.curator() as curator:
        add(curator)
    for _ in range(2):
        with place.curator() as curator, monkeypatch.context() as patched:
            owner, method = PLACES[where](curator)
            step = getattr(owner, method)

            def kill(*given: Any, step: Any = step, **options: Any) -> None:
                if after:
                    step(*given, **options)
                raise Killed

            patched.setattr(owner, method, kill)
            with suppress(Killed):
                ran(curator)
    with place.curator() as curator:
        ran(curator)
        # between the charge and its seed, the charge is spent: there is no answer, and no second charge
        spent = where == "before the charge" and after
        assert [run.refused[:5] for run in ran(curator)] == (["HB901"] if spent else [])
        assert charged(curator) == ["2026-01"]
        with curator.ledger.snapshot() as snapshot:
            assert len(list(snapshot.entries(EntryFilter(kind="release")))) == (0 if spent else 1)
        assert curator.ledger.verify().sound


@pytest.mark.parametrize(
    ("sql", "every"),
    [
        (ALL, "month"),
        (f"{ALL} WHERE day >= $1 AND day <= $2", "month"),
        (f"{ALL} WHERE day < $1 AND day < $2", "month"),
        (SQL, "day"),
    ],
)
def test_only_queries_about_one_block_are_scheduled(place: Place, sql: str, every: str) -> None:
    place.today = date(2026, 4, 2)
    with place.curator() as curator:
        with pytest.raises(ParameterError) as refusal:
            checked(curator, "ana", sql, name="q", every=every, epsilon="0.1", first="2026-02")
        assert refusal.value.code == "HB799"
        with pytest.raises(ParameterError) as refusal:
            checked(curator, "ana", SQL, name="q", every="month", epsilon="0.1", first="2026")
        assert refusal.value.code == "HB799"
        assert charged(curator) == []


def test_names_are_used_once(place: Place) -> None:
    with place.curator() as curator:
        schedule = add(curator)
        for again in (schedule, Schedule("no name", *("",) * 5, 0)):
            with pytest.raises(ParameterError) as refusal:
                schedules(curator).add(again)
            assert refusal.value.code == "HB797"
        with pytest.raises(ParameterError):
            schedules(curator).remove("other")


def test_a_list_that_cannot_be_read_is_refused(place: Place) -> None:
    with place.curator() as curator:
        add(curator)
        path = folder_of(curator.config) / "schedules.json"
        for text in ("{", '{"format": 3, "queries": []}', '{"format": 1, "queries": [{"name": "a"}]}'):
            path.write_text(text)
            with pytest.raises(LedgerError) as refusal:
                schedules(curator).list()
            assert refusal.value.code == "HB798"


def test_what_is_refused_for_one_block_is_told_and_the_others_go_on(place: Place) -> None:
    place.today = date(2026, 4, 2)
    with place.curator() as curator:
        add(curator)
        close_block(curator.ledger, "visits", "2026-01", by="olga", reason="retired")
        found = {run.block: run.refused[:5] for run in ran(curator)}
        assert found == {"2026-02": "", "2026-03": ""}


def test_a_query_waits_for_late_rows(place: Place) -> None:
    """January ended on 1 February; with ten days to wait, it runs from 11 February."""
    with place.curator() as curator:
        waiting = checked(curator, "ana", SQL, name="q", every="month", epsilon="0.25", first="2026-01", wait=10)
        schedules(curator).add(waiting)
        assert ran(curator) == []
    place.today = date(2026, 2, 11)
    with place.curator() as curator:
        assert [run.block for run in ran(curator)] == ["2026-01"]


def test_names_belong_to_analysts(place: Place) -> None:
    with place.curator() as curator:
        mine = add(curator)
        hers = replace(mine, analyst="ben")
        schedules(curator).add(hers)
        assert schedules(curator).list("ben") == (hers,)
        assert schedules(curator).find("monthly", "ana") == mine
        with pytest.raises(ParameterError, match="Several analysts"):
            schedules(curator).find("monthly")
        schedules(curator).remove("monthly", "ben")
        assert schedules(curator).list() == (mine,)
        for number in range(1, MAX_SCHEDULES):
            schedules(curator).add(replace(mine, name=f"q{number}"))
        with pytest.raises(ParameterError, match="the maximum"):
            schedules(curator).add(replace(mine, name="one-more"))


def test_a_list_of_format_1_is_still_read(place: Place) -> None:
    """Its queries do not wait, and it is rewritten only when it changes."""
    old = (GOLDEN / "schedules-1.json").read_text()
    with place.curator() as curator:
        path = folder_of(curator.config) / "schedules.json"
        path.write_text(old)
        assert [each.wait for each in schedules(curator).list()] == [0]
        assert path.read_text() == old
        assert [run.block for run in ran(curator)] == ["2026-01"]
        add(curator, name="another")
        assert json.loads(path.read_text())["format"] == 2
        assert [each.name for each in schedules(curator).list()] == ["another", "monthly"]


def test_the_command(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Today is after the first block of this deployment, whatever the clock says."""
    config = ["--config", str(place.folder / "hubbub.yaml")]
    options = ["--every", "month", "--epsilon", "0.25", "--analyst", "ana", "--from", "2026-01", "--name", "monthly"]
    assert main(["schedule", "add", SQL, *options, *config]) == 0
    assert main(["schedule", "list", *config]) == 0
    assert "monthly" in capsys.readouterr().out
    assert main(["analyst", "token", "ana", *config]) == 0
    token = re.search(r"hub_([0-9a-f]{12})_", capsys.readouterr().out)
    assert token is not None
    assert main(["analyst", "revoke", token[1], *config]) == 0
    assert main(["schedule", "list", "--format", "csv", *config]) == 0
    assert ",paused," in capsys.readouterr().out
    assert main(["schedule", "run", *config]) == 1
    assert "monthly: paused: the tokens of ana are revoked" in capsys.readouterr().out
    assert main(["analyst", "token", "ana", *config]) == 0
    assert main(["schedule", "run", *config]) == 0
    assert "monthly 2026-01: answered" in capsys.readouterr().out
    assert main(["schedule", "show", "monthly", *config]) == 0
    assert capsys.readouterr().out.startswith("block,region,n,n_low,n_high\n2026-01,")
    assert main(["schedule", "remove", "monthly", *config]) == 0


@pytest.mark.parametrize(
    ("sql", "epsilon"), [(SQL.replace("region, COUNT", "region, 7 * COUNT"), "0.25"), (SQL, "0.125")]
)
def test_an_answer_to_another_question_under_the_same_key_is_not_shown(place: Place, sql: str, epsilon: str) -> None:
    """Keys are names that analysts choose, and the key of a block can be worked out."""
    with place.curator() as curator:
        schedule = add(curator)
        days = (date(2026, 1, 1), date(2026, 2, 1))
        curator.query("ana", Question(sql, epsilon=epsilon, parameters=days), key=schedule.key("2026-01"))
        assert answers(curator, schedule) == {}
        (run,) = ran(curator)
        assert run.refused.startswith("HB")
        assert charged(curator) == ["2026-01"]
