"""Several servers on one PostgreSQL ledger: one budget, one release for each request, jobs that any of them knows."""

import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from hubbub.errors import AccessError
from hubbub.server.sessions import Sessions
from hubbub.server.state import JobRecord

COUNT = {"sql": "SELECT COUNT(*) AS n FROM health", "epsilon": "0.1"}


@pytest.fixture
def both(start_app: Any, postgres_dsn: str) -> tuple[Any, Any]:
    """Two servers over one hubbub.yaml, one dataset and one ledger."""
    parts = conninfo_to_dict(postgres_dsn)
    place = f"postgresql://{parts['user']}@/{parts['dbname']}?host={quote(str(parts['host']), safe='')}"
    first = start_app(ledger=f"ledger: {{database: '{place}', anchor: anchors/ledger.anchor}}\n")
    second = start_app(first.folder)
    return first, second


def enqueue(world: Any, header: str) -> str:
    headers = {"Idempotency-Key": header, "Prefer": "respond-async"}
    answer = world.client().post("/api/v1/query", json={**COUNT, "key": header}, headers=headers)
    assert answer.status_code == 202, answer.text
    place: str = answer.headers["Location"]
    return place


def poll(world: Any, place: str) -> dict[str, Any]:
    found: dict[str, Any] = world.client().get(place, headers={"Prefer": "wait=20"}).json()
    return found


def test_the_same_request_at_both_is_charged_once(both: tuple[Any, Any]) -> None:
    def ask(number: int) -> Any:
        return both[number % 2].ask(header="one", key="k").json()

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(6)))
    assert len({str((answer["answer"], answer["receipt"])) for answer in answers}) == 1
    assert both[0].spent() == both[1].spent() == {"health": "1/10"}


def test_both_together_never_overspend(both: tuple[Any, Any]) -> None:
    def ask(number: int) -> int:
        status: int = both[number % 2].ask("ben", header=f"{number}", key=f"{number}", epsilon="0.15").status_code
        return status

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(12)))
    assert answers.count(200) == 6
    assert Fraction(both[1].spent("ben")["health"]) == Fraction(9, 10)
    assert both[0].client("owner").post("/api/v1/ledger/verify").json()["sound"]


def test_a_job_of_one_is_known_to_the_other(both: tuple[Any, Any]) -> None:
    place = enqueue(both[0], "one")
    there, here = poll(both[1], place), poll(both[0], place)
    assert there["state"] == here["state"] == "done"
    assert there["release"]["answer"] == here["release"]["answer"]
    assert both[1].client("ben").get(place).status_code == 404
    assert both[1].client().delete(place).json()["state"] == "done"


def test_a_job_that_failed_shows_its_error_everywhere(both: tuple[Any, Any]) -> None:
    headers = {"Idempotency-Key": "one", "Prefer": "respond-async"}
    body = {"sql": "SELECT nothing FROM health", "epsilon": "0.1"}
    place = both[0].client().post("/api/v1/query", json=body, headers=headers).headers["Location"]
    there, here = poll(both[1], place), poll(both[0], place)
    assert there["state"] == here["state"] == "failed"
    assert there["problem"]["detail"] == here["problem"]["detail"]
    assert there["problem"]["status"] == here["problem"]["status"] == 422


def test_a_job_of_a_server_that_has_gone_has_failed_and_its_request_can_be_sent_again(both: tuple[Any, Any]) -> None:
    first, second = both
    now = second.service.accounts.clock()
    second.service.state.jobs.put(JobRecord("a" * 32, "ana", "gone", "running", now - 100, now - 100))
    assert second.client().get(f"/api/v1/jobs/{'a' * 32}").json()["state"] == "running"
    second.service.registry.beat()
    found = poll(first, f"/api/v1/jobs/{'a' * 32}")
    assert found["state"] == "failed"
    assert found["problem"]["code"] == "HB324"


def test_a_job_can_be_cancelled_at_the_other(both: tuple[Any, Any]) -> None:
    now = both[0].service.accounts.clock()
    both[0].service.state.jobs.put(JobRecord("b" * 32, "ana", "busy", "queued", now, now))
    assert both[1].client().delete(f"/api/v1/jobs/{'b' * 32}").json()["state"] == "cancelled"
    assert poll(both[0], f"/api/v1/jobs/{'b' * 32}")["state"] == "cancelled"


def test_a_policy_that_one_applies_holds_at_the_other(both: tuple[Any, Any]) -> None:
    first, second = both
    owner = first.client("owner")
    found = owner.get("/api/v1/config").json()
    text = found["text"].replace("ben: {health: {epsilon: 1}", "ben: {health: {epsilon: 2}")
    assert owner.put("/api/v1/config", json={"text": text}, headers={"If-Match": found["hash"]}).status_code == 200
    second.service.current._checked = time.monotonic() + 1000  # not by looking at the file: by the ledger's word
    answer = second.ask("ben", header="there", epsilon="1.5")
    assert answer.status_code == 200, answer.text
    other = "SELECT COUNT(*) AS n FROM health WHERE age > 20"  # earlier answers do not determine it
    assert first.ask("ben", other, header="here", epsilon="1").status_code == 409


def test_a_session_of_one_holds_at_the_other_and_ends_at_both(both: tuple[Any, Any]) -> None:
    sessions = [Sessions(each.service.settings.keyring, each.service.accounts) for each in both]
    cookie = sessions[0].sign(both[0].service.accounts.identify(both[0].tokens["ana"]))
    assert sessions[1].open(cookie).name == "ana"
    sessions[1].check(cookie, sessions[0].csrf(cookie))
    sessions[1].end(cookie)
    for each in sessions:
        with pytest.raises(AccessError):
            each.open(cookie)
