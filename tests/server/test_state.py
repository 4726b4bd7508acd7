"""What the server keeps, on both databases: each fact written once, decided once, seen by its owner alone."""

import itertools
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest
from tests.fixtures.postgres_server import Server

from hubbub.accounting.postgres import PostgresStore
from hubbub.errors import LedgerError, ParameterError
from hubbub.server.database import MIGRATIONS, PostgresDatabase, SqliteDatabase
from hubbub.server.saved import LastVisit, SavedQuestion
from hubbub.server.state import MAX_OPEN, Claim, Decision, JobRecord, State, TokenRecord

Open = Callable[[], State]


@pytest.fixture(params=["sqlite", "postgres"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same state once more, as another process would."""
    opened: list[State] = []
    dsn = request.getfixturevalue("postgres_dsn") if request.param == "postgres" else ""

    def open_() -> State:
        state = State(PostgresDatabase(dsn) if dsn else SqliteDatabase(tmp_path / "server.db"))
        opened.append(state)
        return state

    yield open_
    for state in opened:
        state.close()


@pytest.fixture
def state(another: Open) -> State:
    return another()


def token(id_: str = "0123456789ab", name: str = "ana", *, created: int = 100) -> TokenRecord:
    return TokenRecord(id_, name, "analyst", b"\x00digest\xff", created, 200)


def test_a_token_is_found_again_as_it_was_kept(state: State, another: Open) -> None:
    state.tokens.add(token())
    assert another().tokens.find("0123456789ab") == token()
    assert state.tokens.find("0123456789ac") is None


def test_tokens_are_listed_the_newest_first_and_by_name(state: State) -> None:
    for number, name in enumerate(("ana", "ben", "ana")):
        state.tokens.add(token(f"{number:012x}", name, created=100 + number))
    assert [each.id[-1] for each in state.tokens.list()] == ["2", "1", "0"]
    assert [each.id[-1] for each in state.tokens.list("ana")] == ["2", "0"]
    assert state.tokens.list("' OR 1=1 --") == []
    assert "digest" not in state.tokens.list()[0].to_json()


def test_a_revocation_is_seen_by_others_at_once_and_keeps_its_time(state: State, another: Open) -> None:
    other = another()
    state.tokens.add(token())
    assert other.tokens.find("0123456789ab") == token()
    state.tokens.revoke("0123456789ab", 150)
    state.tokens.revoke("0123456789ab", 160)
    found = other.tokens.find("0123456789ab")
    assert found is not None
    assert found.revoked == 150
    with pytest.raises(ParameterError, match="HB143"):
        state.tokens.revoke("ffffffffffff", 150)


def test_all_tokens_of_a_person_in_a_role_are_revoked_together(state: State) -> None:
    for number, name in enumerate(("ana", "ana", "ben")):
        state.tokens.add(token(f"{number:012x}", name))
    state.tokens.add(TokenRecord("f" * 12, "ana", "owner", b"x", 100, 200))
    assert state.tokens.revoke_all("ana", "analyst", 150) == 2
    assert state.tokens.shut_out(150) == {"ana"}
    assert {each.id for each in state.tokens.list() if each.revoked is None} == {"000000000002", "f" * 12}


def test_the_day_of_the_last_use_only_moves_forward(state: State) -> None:
    state.tokens.add(token())
    for day in ("2026-03-02", "2026-03-01"):
        state.tokens.note_use("0123456789ab", day)
    found = state.tokens.find("0123456789ab")
    assert found is not None
    assert found.used == "2026-03-02"


def test_a_request_keeps_its_epsilon_exactly(state: State) -> None:
    asked = state.requests.add("ana", "visits", Fraction(1, 3), "ε für mehr'; DROP TABLE requests; --", 100)
    assert state.requests.find(asked.id) == asked
    assert asked.epsilon == Fraction(1, 3)
    assert asked.to_json()["epsilon"] == "1/3"
    assert asked.state == "open"


def test_requests_are_listed_by_pages_and_by_analyst(state: State) -> None:
    numbers = [state.requests.add(name, "visits", Fraction(1), "", 1).id for name in ("ana", "ben", "ana", "ana")]
    assert [each.id for each in state.requests.list()] == numbers[::-1]
    assert [each.id for each in state.requests.list("ana", limit=2)] == [numbers[3], numbers[2]]
    assert [each.id for each in state.requests.list("ana", before=numbers[2])] == [numbers[0]]


def test_an_analyst_cannot_fill_the_table_with_requests(state: State) -> None:
    for _ in range(MAX_OPEN):
        first = state.requests.add("ana", "visits", Fraction(1), "", 1)
    with pytest.raises(ParameterError, match="HB142"):
        state.requests.add("ana", "visits", Fraction(1), "", 1)
    state.requests.add("ben", "visits", Fraction(1), "", 1)
    state.requests.decide(first.id, "refused", by="olga", note="", at=2)
    state.requests.add("ana", "visits", Fraction(1), "", 1)


def test_a_request_is_decided_once_however_many_decide_at_once(state: State, another: Open) -> None:
    """Sixteen deciders over four connections, ten rounds: one of them succeeds, and what it wrote stands."""
    states = [state, *(another() for _ in range(3))]
    for _ in range(10):
        asked = state.requests.add("ana", "visits", Fraction(1), "", 1)
        start = threading.Barrier(16)

        def decide(number: int, id_: int = asked.id, start: threading.Barrier = start) -> str | None:
            start.wait(30)
            verdict: Decision = "granted" if number % 2 else "refused"
            try:
                return states[number % 4].requests.decide(id_, verdict, by=f"o{number}", note="n", at=number).decider
            except ParameterError as error:
                return None if error.code == "HB141" else error.code

        with ThreadPoolExecutor(16) as pool:
            winners = [by for by in pool.map(decide, range(16)) if by is not None]
        assert len(winners) == 1
        found = state.requests.find(asked.id)
        assert found is not None
        assert found.decider == winners[0]
        assert found.state == ("granted" if int(winners[0][1:]) % 2 else "refused")


def test_an_unknown_request_is_not_decided(state: State) -> None:
    with pytest.raises(ParameterError, match="HB140"):
        state.requests.decide(7, "granted", by="olga", note="", at=1)


def test_only_a_grant_can_be_taken_back(state: State) -> None:
    granted, refused = (state.requests.add("ana", "visits", Fraction(1), "", 1).id for _ in range(2))
    state.requests.decide(granted, "granted", by="olga", note="", at=2)
    state.requests.decide(refused, "refused", by="olga", note="", at=2)
    for number in (granted, refused):
        state.requests.reopen(number)
    assert [each.state for each in state.requests.list()] == ["refused", "open"]
    state.requests.decide(granted, "granted", by="olga", note="again", at=3)


def test_a_claim_stands_for_what_it_was_first_made_for(state: State, another: Open) -> None:
    assert state.retries.find("ana", "header") is None
    assert state.retries.claim("ana", "header", "d1", "plan 1") == Claim("d1", "plan 1")
    assert another().retries.claim("ana", "header", "d2", "plan 2") == Claim("d1", "plan 1")
    assert state.retries.claim("ben", "header", "d2", "plan 2") == Claim("d2", "plan 2")
    assert state.retries.find("ana", "header") == Claim("d1", "plan 1")


def test_all_who_claim_at_once_hear_of_one_charge(state: State, another: Open) -> None:
    """Sixteen threads over four connections race for each of twenty headers, with sixteen different bodies."""
    states = [state, *(another() for _ in range(3))]
    start = threading.Barrier(16)

    def race(number: int) -> list[Claim]:
        found = []
        for header in range(20):
            start.wait(30)
            mine = (f"d{number}", f"key {number}")
            found.append(states[number % 4].retries.claim("ana", f"header {header}", *mine))
        return found

    with ThreadPoolExecutor(16) as pool:
        heard = list(pool.map(race, range(16)))
    for claims in zip(*heard, strict=True):
        assert len(set(claims)) == 1
        assert claims[0].digest[1:] == claims[0].ledger_key[4:]


def test_a_claim_survives_a_kill_right_after_it_returned(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            State(SqliteDatabase(tmp_path / "server.db")).retries.claim("ana", "h", "d", "k")
        finally:
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    state = State(SqliteDatabase(tmp_path / "server.db"))
    assert state.retries.find("ana", "h") == Claim("d", "k")
    state.close()


def test_a_job_is_seen_by_its_analyst_alone_and_ends_once(state: State) -> None:
    job = JobRecord("j1", "ana", "server-1", "running", 1, 1)
    state.jobs.put(job)
    assert state.jobs.get("ana", "j1") == job
    assert state.jobs.get("ben", "j1") is None
    state.jobs.put(JobRecord("j1", "ana", "server-1", "cancelled", 1, 2, "c"))
    state.jobs.put(JobRecord("j1", "ana", "server-1", "done", 1, 3, "too late"))
    found = state.jobs.get("ana", "j1")
    assert found is not None
    assert (found.state, found.result) == ("cancelled", "c")


def test_a_job_cannot_be_taken_over_by_another_analyst(state: State) -> None:
    state.jobs.put(JobRecord("j1", "ana", "server-1", "running", 1, 1))
    state.jobs.put(JobRecord("j1", "ben", "server-1", "done", 1, 2, "stolen"))
    assert state.jobs.get("ben", "j1") is None
    assert state.jobs.get("ana", "j1") == JobRecord("j1", "ana", "server-1", "running", 1, 1)


def test_jobs_that_no_server_works_on_fail_and_others_go_on(state: State) -> None:
    for id_, server, how in (("a", "dead", "running"), ("b", "alive", "queued"), ("c", "dead", "done")):
        state.jobs.put(JobRecord(id_, "ana", server, how, 1, 1))  # type: ignore[arg-type]
    state.jobs.touch("alive", 50)
    assert state.jobs.abandon(40, 60, "lost") == 1
    states = {id_: state.jobs.get("ana", id_) for id_ in "abc"}
    assert {id_: job and (job.state, job.result) for id_, job in states.items()} == {
        "a": ("failed", "lost"),
        "b": ("queued", None),
        "c": ("done", None),
    }


def test_an_ended_session_stays_ended_until_its_cookie_is_too_old(state: State, another: Open) -> None:
    state.ended.add("s1", until=100, at=10)
    state.ended.add("s1", until=100, at=10)
    assert another().ended.has("s1")
    assert not state.ended.has("s2")
    state.ended.add("s2", until=300, at=200)
    assert not state.ended.has("s1")


def test_reads_and_writes_from_many_threads_are_all_served(state: State) -> None:
    numbers = itertools.count()

    def work(_: int) -> None:
        for _ in range(10):
            number = next(numbers)
            state.tokens.add(token(f"{number:012x}"))
            assert state.tokens.find(f"{number:012x}") is not None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(state.tokens.list()) == 80


def test_it_says_when_it_cannot_be_written(state: State, tmp_path: Path) -> None:
    state.writable()
    state.close()
    with pytest.raises(LedgerError, match="HB323"):
        State(SqliteDatabase(tmp_path)).close()


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    State(SqliteDatabase(tmp_path / "new" / "server.db")).close()
    assert stat.S_IMODE((tmp_path / "new" / "server.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_database_of_something_else_and_a_newer_one_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(LedgerError, match="another application"):
        SqliteDatabase(tmp_path / "other.db")
    SqliteDatabase(tmp_path / "server.db").close()
    with sqlite3.connect(tmp_path / "server.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(LedgerError, match="upgrade"):
        SqliteDatabase(tmp_path / "server.db")


def test_it_lives_beside_a_ledger_without_changing_what_the_ledger_verifies(postgres_dsn: str) -> None:
    store = PostgresStore(postgres_dsn)
    state = State(PostgresDatabase(postgres_dsn))
    state.tokens.add(token())
    with store.snapshot() as snapshot:
        assert snapshot.problems() == []
    state.close()
    store.close()
    PostgresStore(postgres_dsn).close()


def test_a_restart_of_the_server_is_survived(tmp_path: Path) -> None:
    with Server() as server, server.database() as dsn:
        state = State(PostgresDatabase(dsn))
        state.tokens.add(token())
        server.stop()
        server.start()
        state.tokens.revoke("0123456789ab", 150)
        assert state.tokens.list()[0].revoked == 150
        with psycopg.connect(dsn) as connection:
            assert connection.execute("SELECT count(*) FROM hubbub_server.tokens").fetchone() == (1,)
        state.close()


def test_saved_questions_dashboards_and_visits_come_back_as_they_were(state: State, another: Open) -> None:
    dashboard = state.dashboards.add("ana", "Monthly", 7)
    assert dashboard is not None
    question = SavedQuestion(0, "ana", dashboard.id, "By year", "SELECT 1", "0.1", 2, None, 8)
    kept = state.questions.add(question)
    assert kept is not None
    assert kept == replace(question, id=kept.id)
    assert another().questions.list("ana", dashboard.id) == another().questions.list("ana") == [kept]
    assert (state.questions.list("ana", ""), state.questions.list("ben")) == ([], [])
    assert not state.dashboards.share("ben", dashboard.id, 9)
    assert state.dashboards.share("ana", dashboard.id, 9)
    assert another().dashboards.find(dashboard.id) == replace(dashboard, shared=9)
    state.questions.take_off("ana", dashboard.id)
    assert state.questions.list("ana", "") == [replace(kept, dashboard="")]
    assert [state.questions.remove(who, kept.id) for who in ("ben", "ana", "ana")] == [False, True, False]
    assert [state.dashboards.remove(who, dashboard.id) for who in ("ben", "ana", "ana")] == [False, True, False]
    assert state.visits.find("ana") is None
    for visit in (LastVisit(5, "{}", None, None), LastVisit(9, "{1}", 5, "{}")):
        state.visits.put("ana", visit)
        assert another().visits.find("ana") == visit
