"""The sandbox of a server: HTTP, Python, the page, and what an attacker would try."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.fixtures.page_visits import token
from tests.server.conftest import COUNT, YAML, World, in_process, lay_out

from hubbub.answers.sandbox import MADE_UP
from hubbub.client.session import RemoteSession
from hubbub.errors import ParameterError

BY_SITE = "SELECT site, COUNT(*) AS n FROM health GROUP BY site"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("tried")
    lay_out(folder)
    with in_process(folder) as opened:
        yield opened


def spent(world: World) -> tuple[Any, list[Any]]:
    client = world.client("ana")
    return client.get("/api/v1/budget").json(), client.get("/api/v1/releases").json()["releases"]


def test_any_question_is_free_and_leaves_nothing(world: World) -> None:
    client, before = world.client("ana"), spent(world)
    answers = [
        client.post("/api/v1/sandbox/query", json={"sql": BY_SITE, "epsilon": "5"}).json() for _ in range(4)
    ]  # together more than the budget
    assert [each["receipt"]["sandbox"] for each in answers] == [MADE_UP] * 4
    assert answers[0]["notes"][0] == MADE_UP
    assert all("receipt" not in each["receipt"] and each["receipt"]["ledger"] == [] for each in answers)
    assert answers[0]["answer"] != answers[1]["answer"]
    assert spent(world) == before
    estimate = client.post("/api/v1/sandbox/estimate", json={"sql": BY_SITE, "epsilon": "5"}).json()
    assert estimate["sandbox"] == MADE_UP
    assert client.get("/api/v1/sandbox/datasets").json() == {"datasets": ["health", "plans"]}


def test_a_tried_question_tells_nothing_for_free(world: World) -> None:
    client = world.client("ana")
    client.post("/api/v1/sandbox/query", json={"sql": COUNT, "epsilon": "5"})
    refused = client.post(
        "/api/v1/query", json={"sql": COUNT, "epsilon": "5", "free": True}, headers={"Idempotency-Key": "free-1"}
    )
    assert refused.json()["code"] == "HB167"


@pytest.mark.parametrize(
    "body",
    [
        {"sql": COUNT, "epsilon": "1", "sandbox": True},
        {"sql": COUNT, "epsilon": "1", "sandbox": "false"},
    ],
)
def test_a_real_query_has_no_switch_that_could_be_misread(world: World, body: dict[str, Any]) -> None:
    before = spent(world)
    client = world.client("ana")
    assert client.post("/api/v1/query", json=body, headers={"Idempotency-Key": "switch"}).status_code == 422
    assert (
        client.post("/api/v1/sandbox/query", json={"sql": COUNT, "epsilon": "1", "sandbox": False}).status_code == 422
    )
    assert spent(world) == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM release(1)",
        "SELECT COUNT(*) FROM wards",  # ben's
        "SELECT * FROM read_csv('health.csv')",
        "SELECT COUNT(*) FROM 'health.csv'",
    ],
)
def test_nothing_outside_of_the_stand_in_is_read(world: World, sql: str) -> None:
    reply = world.client("ana").post("/api/v1/sandbox/query", json={"sql": sql, "epsilon": "1"})
    assert reply.status_code == 422
    assert reply.json()["code"].startswith("HB")


def test_the_engine_has_no_view_of_private_data(world: World) -> None:
    world.client("ana").post("/api/v1/sandbox/query", json={"sql": COUNT, "epsilon": "1"})
    folder = world.service.current.path.parent
    with world.service.sandbox._using() as made:
        for name, dataset in made.config.datasets.items():
            assert dataset.table.public or folder not in dataset.view.source.path.parents, name
        assert made.planner.engine is not world.service.current.curator.engine
        assert not hasattr(made.planner.open_blocks, "_ledger")


def test_a_changed_configuration_has_a_new_stand_in(tmp_path: Path) -> None:
    lay_out(tmp_path)
    with in_process(tmp_path) as opened:
        client = opened.client("ana")
        body = {"sql": COUNT, "epsilon": "5"}
        assert client.post("/api/v1/sandbox/query", json=body).status_code == 200
        with opened.service.sandbox._using() as first:
            rule = "    source: health.csv\n    sandbox: off\n"
            (tmp_path / "hubbub.yaml").write_text(YAML.replace("    source: health.csv\n", rule))
            opened.service.current.reload()
            assert client.post("/api/v1/sandbox/query", json=body).status_code == 422
            assert Path(first.folder.name).exists()  # somebody uses it
        assert not Path(first.folder.name).exists()
        assert client.get("/api/v1/sandbox/datasets").json() == {"datasets": ["plans"]}


def test_the_page_keeps_the_question_and_runs_it_for_real(world: World) -> None:
    client = world.client(None, follow_redirects=True)
    entered = client.get("/sign-in")
    client.post("/sign-in", data={"csrf": token(entered), "token": world.tokens["ana"], "next": "/"})
    page = client.get("/ask")
    before = spent(world)
    key = re.search(r'name="key" value="([^"]+)"', page.text)
    assert key is not None
    form = {
        "csrf": token(page),
        "key": key[1],
        "dataset": "",
        "sql": BY_SITE,
        "epsilon": "0.5",
        "groups": "",
        "rows": "",
    }
    tried = client.post("/ask/sandbox", data=form)
    assert tried.status_code == 200
    assert MADE_UP in tried.text
    assert "Sandbox: not the data" in tried.text
    assert not re.search(r"/releases/[^\"]*\.(csv|json|parquet)", tried.text)  # nothing to download or publish
    assert spent(world) == before
    fields = dict(
        re.findall(
            r'<input type="hidden" name="(\w+)" value="([^"]*)">',
            tried.text.split('<form method="post" action="/ask/spend"')[1],
        )
    )
    fields = {name: html.unescape(value) for name, value in fields.items()}
    assert (fields["sql"], fields["epsilon"]) == (BY_SITE, "0.5")
    real = client.post("/ask/spend", data=fields)
    assert "release=" in str(real.url)
    assert MADE_UP not in real.text
    assert len(spent(world)[1]) == len(before[1]) + 1


def test_python_asks_the_sandbox_of_a_server(world: World) -> None:
    before = spent(world)
    client = world.client("ana")
    client.base_url = httpx2.URL("http://testserver/api/v1/")
    with RemoteSession(client, retries=0) as h:
        tried = h.sandbox("health")
        assert tried.query(BY_SITE, epsilon=5).sandbox == MADE_UP
        assert tried.estimate(BY_SITE, epsilon=5).sandbox == MADE_UP
        assert tried.describe("health").name == "health"
        with pytest.raises(ParameterError, match="HB120"):
            h.sandbox("wards")
    assert spent(world) == before
