"""POST /mcp on a server: the same tokens, roles and limits, and an allowance that no connection renews."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from tests.mcp.conftest import MODES, Person
from tests.server.conftest import World, behind_a_port

from mcp import Client

COUNT = "SELECT COUNT(*) AS n FROM health"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for all tests of this file; each uses a token of its own."""
    with ExitStack() as stack:
        yield stack.enter_context(behind_a_port(tmp_path_factory.mktemp("mcp")))


def new_token(world: World, name: str = "ana", role: Any = "analyst") -> str:
    return world.service.accounts.issue(name, role, 1).text


def run(
    world: World, token: str, script: Any, *, mode: str = "auto", person: Person | None = None, allow: str | None = None
) -> Any:
    """Connect a client with a token, and run a script."""

    async def connected() -> Any:
        given = {"Authorization": f"Bearer {token}"} | ({} if allow is None else {"Hubbub-Allow": allow})
        async with httpx2.AsyncClient(headers=given, timeout=30) as http:
            transport = streamable_http_client(f"{world.url}/mcp", http_client=http)
            with anyio.fail_after(60):
                async with Client(
                    transport, mode=mode, elicitation_callback=None if person is None else person.reply
                ) as client:
                    return await script(client)

    return anyio.run(connected)


def ask(sql: str, epsilon: str, **more: Any) -> Any:
    return lambda client: client.call_tool("query", {"sql": sql, "epsilon": epsilon, **more})


def post(world: World, body: Any, token: str | None, **headers: str) -> Any:
    given = {"Accept": "application/json, text/event-stream", **headers}
    given |= {} if token is None else {"Authorization": f"Bearer {token}"}
    return world.client(None).post("/mcp", json=body, headers=given)


def calls(sql: str, epsilon: str, number: int = 1) -> dict[str, Any]:
    """A call as an earlier client writes it."""
    arguments = {"name": "query", "arguments": {"sql": sql, "epsilon": epsilon}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": arguments}


@pytest.mark.parametrize("mode", MODES)
def test_the_allowance_of_a_token_is_shared_by_its_connections(world: World, mode: str) -> None:
    token, sql = new_token(world), f"SELECT COUNT(*) AS n FROM health WHERE year = {1 + (mode == 'auto')}"
    first = run(world, token, ask(sql, "0.2"), mode=mode, allow="0.3")
    assert first.structured_content["charge"]["charged_by_this_call"]
    refused = run(world, token, ask(sql, "0.25"), mode=mode, allow="0.3")
    assert "HB830" in refused.content[0].text
    assert "has ε = 0.1 left" in refused.content[0].text
    again = run(world, token, ask(sql, "0.2"), mode=mode)
    assert not again.structured_content["charge"]["charged_by_this_call"]
    raised = run(world, token, ask(sql, "0.25"), mode=mode, allow="0.45")
    assert not raised.is_error
    assert "HB830" in run(world, new_token(world), ask(sql, "0.4"), mode=mode).content[0].text


def test_a_person_is_asked_over_http(world: World) -> None:
    before = world.spent()["health"]
    declined = Person(lambda _: None)
    assert "HB831" in run(world, new_token(world), ask(COUNT, "0.7"), person=declined).content[0].text
    assert world.spent()["health"] == before
    person = Person(lambda _: {"approve": True})
    result = run(world, new_token(world), ask(COUNT, "0.7"), person=person)
    assert result.structured_content["charge"]["charged_by_this_call"]
    assert person.asked[0].startswith("An AI assistant wants to spend ε = 0.7")


def test_nobody_asks_without_a_token(world: World) -> None:
    body = calls(COUNT, "0.1")
    for token in (None, "hub_000000000000_" + "x" * 43, "x"):
        response = post(world, body, token, **{"Hubbub-Allow": "5"})
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.json()["code"] in ("HB700", "HB701")


def test_roles_are_those_of_the_api(world: World) -> None:
    async def script(client: Client) -> list[Any]:
        return [
            await client.call_tool("list_datasets"),
            await client.call_tool("query", {"sql": COUNT, "epsilon": "0.1"}),
            await client.call_tool("estimate", {"sql": COUNT, "epsilon": "0.1"}),
        ]

    for role in ("owner", "auditor"):
        listed, *refused = run(world, new_token(world, role, role), script, allow="5")
        assert listed.structured_content["datasets"] == ["health", "wards", "plans"]
        assert all("HB710" in each.content[0].text for each in refused)
    wards = ask("SELECT COUNT(*) AS n FROM wards", "0.1")
    assert "HB5" in run(world, new_token(world), wards, allow="5").content[0].text
    assert not run(world, new_token(world, "ben"), wards, allow="5").is_error


def test_an_analyst_reads_only_releases_of_their_own(world: World) -> None:
    number = world.ask("ana").json()["receipt"]["ledger"][0]["sequence"]

    async def script(client: Client) -> Any:
        return await client.call_tool("releases", {"number": number})

    assert not run(world, new_token(world), script).is_error
    assert "HB146" in run(world, new_token(world, "ben"), script).content[0].text


@pytest.mark.parametrize("value", ["-1", "nan", "0.1, 5", "much"])
def test_a_malformed_allowance_is_refused(world: World, value: str) -> None:
    response = post(world, calls(COUNT, "0.1"), new_token(world), **{"Hubbub-Allow": value})
    assert response.status_code == 422


def test_two_allowances_are_refused(world: World) -> None:
    token = new_token(world)
    headers = [("Authorization", f"Bearer {token}"), ("Hubbub-Allow", "0"), ("Hubbub-Allow", "5")]
    response = world.client(None).post("/mcp", json=calls(COUNT, "0.1"), headers=headers)
    assert response.json()["code"] == "HB169"


def test_a_batch_is_refused_and_charges_nothing(world: World) -> None:
    before, token = world.spent()["health"], new_token(world)
    batch = [calls(f"SELECT COUNT(*) AS n{each} FROM health", "0.1", each) for each in range(3)]
    for version in ("2025-03-26", "2025-11-25", "2026-07-28"):
        response = post(world, batch, token, **{"Hubbub-Allow": "5", "MCP-Protocol-Version": version})
        assert response.status_code == 400
    assert world.spent()["health"] == before


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_posts_are_answered(world: World, method: str) -> None:
    response = world.client("ana").request(method, "/mcp")
    assert response.status_code == 405


def test_the_length_of_a_response_tells_little(world: World) -> None:
    token = new_token(world)
    response = post(world, calls(COUNT, "0.3"), token, **{"Hubbub-Allow": "1", "MCP-Protocol-Version": "2025-11-25"})
    assert len(response.content) % 4096 == 0
    assert not json.loads(response.content)["result"]["isError"]
    assert response.headers["cache-control"] == "no-store"


def test_a_body_that_is_too_large_is_refused(world: World) -> None:
    response = post(world, calls("x" * (1 << 20), "0.1"), new_token(world))
    assert response.status_code == 413


def test_a_revoked_token_is_worth_nothing_at_once(world: World) -> None:
    issued = world.service.accounts.issue("ana", "analyst", 1)
    assert not run(world, issued.text, lambda client: client.call_tool("list_datasets")).is_error
    world.service.accounts.revoke(issued.token.id)
    assert post(world, calls(COUNT, "0.1"), issued.text).status_code == 401


def test_the_server_runs_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from tests.server.conftest import lay_out

    from hubbub.server.app import create_app
    from hubbub.server.service import Service

    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "hubbub.server.mcp_endpoint", raising=False)
    for name in [name for name in sys.modules if name.startswith("hubbub.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    service = Service.open(lay_out(tmp_path))
    try:
        assert "McpEndpoint" not in str(create_app(service).user_middleware)
    finally:
        service.close()
