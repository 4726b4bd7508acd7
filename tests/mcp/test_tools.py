"""Every tool, prompt and resource, as a client sees it."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp.conftest import COUNT, MODES, Desk

from hubbub.mcp.prompts import PROMPTS
from hubbub.mcp.tools import TOOLS
from mcp import Client

Starter = Callable[..., Desk]


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_are_listed_with_what_they_cost(start: Starter, mode: str) -> None:
    listed = start().run(lambda client: client.list_tools(), mode).tools
    free = ["list_datasets", "describe", "estimate", "try_query"]
    names = [*free, "query", "call", "budget", "releases", "explain", "verify"]
    assert [tool.name for tool in listed] == names == list(TOOLS)
    spending = {tool.name for tool in listed if not tool.annotations.read_only_hint}
    assert spending == {"query", "call"}
    for tool in listed:
        assert tool.input_schema["additionalProperties"] is False
        assert "Free" in tool.description or tool.name in spending


def test_every_number_of_an_answer_has_its_interval_its_charge_and_its_receipt(start: Starter) -> None:
    desk = start("5")
    result = desk.run(lambda client: client.call_tool("query", {"sql": COUNT, "epsilon": "1"}))
    form = result.structured_content
    for label, number in form["rows"]:
        assert label["label"] in ("North", "South")
        assert number["low"] <= number["estimate"] <= number["high"]
        assert set(number) == {"estimate", "low", "high"}
    assert form["charge"]["epsilon"] == "1"
    assert form["receipt"]["charges"] == [each.id for each in desk.session.releases()]
    assert form["receipt"]["id"] == f"charge {form['receipt']['charges'][0]}"
    text = result.content[0].text
    assert "never as an exact figure" in text
    assert text.count("about") - 1 == text.count("95% interval") - 1 == 2


def test_a_model_learns_where_no_interval_is_stated(start: Starter) -> None:
    desk = start("5", "1e-6")
    arguments = {"name": "kmeans", "arguments": {"table": "visits", "columns": ["age"], "k": 2}, "epsilon": "2"}
    result = desk.run(lambda client: client.call_tool("call", arguments))
    assert not result.is_error, result.content
    assert result.structured_content["kind"] == "noisy answer"
    assert any("low" in cell for row in result.structured_content["rows"] for cell in row)
    assert "(no interval is stated)" in result.content[0].text


def test_the_free_tools_charge_nothing(start: Starter) -> None:
    desk = start()
    number = desk.session.query(COUNT, epsilon="0.5").receipt["ledger"][0]["sequence"]
    before = desk.spent()

    async def script(client: Client) -> dict[str, Any]:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("list_datasets", {}),
            ("describe", {"dataset": "visits"}),
            ("estimate", {"sql": COUNT, "epsilon": "0.5"}),
            ("try_query", {"sql": COUNT, "epsilon": "0.5"}),
            ("budget", {}),
            ("releases", {}),
            ("releases", {"number": number}),
            ("explain", {"epsilon": 0.5}),
            ("explain", {"sql": COUNT, "epsilon": "0.5"}),
            ("verify", {"number": number}),
        ]
        results = [await client.call_tool(name, arguments) for name, arguments in asked]
        assert not any(result.is_error for result in results)
        return {result.structured_content["kind"]: result for result in results}

    kinds = desk.run(script)
    assert desk.spent() == before
    assert kinds["estimate"].structured_content["cost"] == {"epsilon": "1/2", "delta": "0"}
    assert kinds["verification"].structured_content["verified"]
    assert "not compared with the ledger" in kinds["verification"].content[0].text
    assert "75%" not in kinds["meaning of ε"].content[0].text
    assert "62.3% sure" in kinds["meaning of ε"].content[0].text  # e^½ / (1 + e^½)
    assert kinds["releases"].structured_content["releases"][0]["number"] == number
    assert kinds["dataset"].structured_content["columns"][1]["values"] == ["North", "South"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("describe", {"dataset": "nothing"}, "HB120"),
        ("describe", {}, "Invalid arguments"),
        ("explain", {}, "HB168"),
        ("query", {"sql": "DROP TABLE visits", "epsilon": "1"}, "HB502"),
        ("releases", {"limit": 10**9}, "Invalid arguments"),
        ("verify", {"number": "1"}, "Invalid arguments"),
        ("nothing", {}, "no such tool"),
    ],
)
def test_a_mistake_is_told_to_the_model(start: Starter, name: str, arguments: dict[str, Any], said: str) -> None:
    result = start().run(lambda client: client.call_tool(name, arguments))
    assert result.is_error
    assert said in result.content[0].text


def test_an_unexpected_failure_is_one_constant(
    start: Starter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    desk = start()

    async def fail(*_: object, **__: object) -> Any:
        raise ValueError("CANARY-7431")

    for name in ("datasets", "query", "describe"):
        monkeypatch.setattr(desk.caller.backend, name, fail)

    async def script(client: Client) -> list[str]:
        results = [await client.call_tool("list_datasets"), await client.call_tool("query", {"sql": COUNT})]
        with pytest.raises(MCPError) as raised:
            await client.read_resource("hubbub://datasets/visits")
        return [str(results), str(raised.value)]

    with caplog.at_level(logging.DEBUG):
        assert "CANARY" not in str(desk.run(script))
    assert "CANARY" not in caplog.text
    assert "A tool failed: ValueError" in caplog.text


@pytest.mark.parametrize("mode", MODES)
def test_data_sheets_and_releases_are_resources(start: Starter, mode: str) -> None:
    desk = start()
    number = desk.session.query(COUNT, epsilon="0.5").receipt["ledger"][0]["sequence"]

    async def script(client: Any) -> Any:
        listed = {each.uri for each in (await client.list_resources()).resources}
        assert listed == {"hubbub://datasets/visits", "hubbub://datasets/regions", f"hubbub://releases/{number}"}
        assert len((await client.list_resource_templates()).resource_templates) == 2
        return [json.loads((await client.read_resource(uri)).contents[0].text) for uri in sorted(listed)]

    regions, visits, release = desk.run(script, mode)
    assert regions["public"]
    assert visits["privacy_unit"] == "patient"
    assert release["kind"] == "noisy answer"
    assert "95% interval" in release["in_words"]
    assert not release["charge"]["charged_by_this_call"]


@pytest.mark.parametrize("uri", ["hubbub://releases/99", "hubbub://datasets/none", "hubbub://x", "file:///etc/passwd"])
def test_other_resources_do_not_exist(start: Starter, uri: str) -> None:
    async def script(client: Client) -> None:
        with pytest.raises(MCPError, match=r"HB834|HB120|HB146"):
            await client.read_resource(uri)

    start().run(script)


def test_prompts_quote_what_is_filled_in(start: Starter) -> None:
    async def script(client: Any) -> list[str]:
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == list(PROMPTS)
        texts = []
        for prompt in prompts:
            given = {each.name: "a\nb{question}" for each in prompt.arguments or []}
            texts.append((await client.get_prompt(prompt.name, given)).messages[0].content.text)
        with pytest.raises(MCPError):
            await client.get_prompt("nothing")
        return texts

    for text in start().run(script):
        assert '"a\\nb{question}"' in text
