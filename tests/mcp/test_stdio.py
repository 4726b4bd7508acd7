"""`hubbub mcp`: a real process, spoken to over its standard input and output."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.mcp.conftest import COUNT, Person, lay_out
from tests.server.conftest import Starter, start_served  # noqa: F401 - a fixture

from hubbub.cli import main
from hubbub.errors import HubbubError
from mcp import Client, StdioServerParameters


def run(arguments: list[str], script: Any, person: Person | None = None, **environment: str) -> Any:
    """Start the command and run a script with a client of it."""
    command = StdioServerParameters(command=sys.executable, args=["-m", "hubbub", "mcp", *arguments], env=environment)

    async def connected() -> Any:
        with anyio.fail_after(60):
            async with Client(command, elicitation_callback=None if person is None else person.reply) as client:
                return await script(client)

    return anyio.run(connected)


def test_an_assistant_on_this_machine_asks_and_a_person_pays(tmp_path: Path) -> None:
    config, person = str(lay_out(tmp_path)), Person(lambda _: {"approve": True})

    async def script(client: Client) -> list[Any]:
        assert "never as exact" in (client.instructions or "")
        small = await client.call_tool("query", {"sql": COUNT, "epsilon": "0.2"})  # within the allowance
        large = await client.call_tool("query", {"sql": COUNT, "epsilon": "1"})  # the person is asked
        sheet = await client.read_resource("hubbub://datasets/visits")
        return [small, large, sheet]

    small, large, sheet = run(["--config", config, "--allow", "0.3"], script, person)
    assert small.structured_content["allowance_left"]["epsilon"] == "1/10"
    assert large.structured_content["charge"]["epsilon"] == "1"
    assert len(person.asked) == 1
    assert '"privacy_unit": "patient"' in sheet.contents[0].text


def test_the_same_over_a_server_with_a_token(start_served: Starter) -> None:  # noqa: F811
    world = start_served()
    sql = "SELECT year, COUNT(*) AS n FROM health GROUP BY year"

    async def script(client: Client) -> list[Any]:
        calls = [{"sql": sql, "epsilon": "0.2"}, {"sql": sql, "epsilon": "0.2"}, {"sql": sql, "epsilon": "0.3"}]
        return [await client.call_tool("query", call) for call in calls]

    first, again, refused = run(["--server", world.url, "--allow", "0.3"], script, HUBBUB_TOKEN=world.tokens["ana"])
    assert first.structured_content["charge"]["charged_by_this_call"]
    assert not again.structured_content["charge"]["charged_by_this_call"]
    assert "HB830" in refused.content[0].text
    assert world.spent()["health"] == "1/5"


@pytest.mark.parametrize("amount", ["-1", "nan", "much", "1e9"])
def test_an_allowance_is_a_number(tmp_path: Path, amount: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--config", str(lay_out(tmp_path)), f"--allow={amount}"]) == 1
    assert "--allow" in capsys.readouterr().err


def test_without_the_library_the_remedy_is_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import argparse

    from rich.console import Console

    from hubbub.cli import mcp as command

    monkeypatch.setitem(sys.modules, "mcp_types", None)
    for name in [name for name in sys.modules if name.startswith("hubbub.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(HubbubError, match=r"HB431 .*\n.*hubbub\[mcp\]"):
        command.run(argparse.Namespace(allow="0", allow_delta="0"), Console())
