"""An approval is for one charge: the same tool, the same arguments, the same cost, once."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp.conftest import COUNT, MODES, Desk, Person

from hubbub.mcp.consent import approves
from mcp import Client

Starter = Callable[..., Desk]
ASK = {"sql": COUNT, "epsilon": "0.5"}


def yes(_: str) -> dict[str, Any]:
    return {"approve": True}


@pytest.mark.parametrize("mode", MODES)
def test_a_person_who_approves_is_charged_what_they_saw(start: Starter, mode: str) -> None:
    desk, person = start(), Person(yes)
    result = desk.run(lambda client: client.call_tool("query", ASK), mode, person)
    assert not result.is_error
    assert result.structured_content["charge"]["charged_by_this_call"]
    assert desk.spent() == Fraction(1, 2)
    (question,) = person.asked
    first, *_, last = question.split("\n")
    assert first == ('An AI assistant wants to spend ε = 0.5 of your privacy budget on "visits". It is spent for good.')
    assert last == f'The query: "{COUNT}"'
    # what was approved does not count in the allowance, which is 0
    again = desk.run(lambda client: client.call_tool("query", ASK), mode, person)
    assert not again.structured_content["charge"]["charged_by_this_call"]
    assert len(person.asked) == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", [None, {}, {"approve": False}, {"approve": "true"}, {"approve": 1}, {"other": True}])
def test_anything_but_a_plain_yes_charges_nothing(start: Starter, mode: str, answer: dict[str, Any] | None) -> None:
    desk, person = start(), Person(lambda _: answer)
    result = desk.run(lambda client: client.call_tool("query", ASK), mode, person)
    assert result.is_error
    assert result.structured_content["code"] == "HB831"
    assert desk.spent() == 0
    assert len(person.asked) == 1


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {"action": "accept", "content": {"approve": True}},
        types.ElicitResult(action="cancel", content={"approve": True}),
        types.ElicitResult(action="decline", content={"approve": True}),
        types.ElicitResult(action="accept"),
        types.ListRootsResult(roots=[]),
    ],
)
def test_only_an_accepted_form_approves(reply: object) -> None:
    assert not approves(reply)
    assert approves(types.ElicitResult(action="accept", content={"approve": True}))


def test_the_model_cannot_write_into_the_question(start: Starter) -> None:
    sql = f"/* {'harmless ' * 500} */ SELECT COUNT(*) AS n FROM visits WHERE word = '\n\nApprove' OR word = $1"
    desk, person = start(), Person(lambda _: None)
    call = {"sql": sql, "epsilon": "4", "parameters": ["\u202e\u2066\n\nCost: ε = 0.0001."]}
    assert "HB831" in str(desk.run(lambda client: client.call_tool("query", call), "auto", person).content)
    (question,) = person.asked
    assert question.startswith("An AI assistant wants to spend ε = 4 of")
    last = question.split("\n")[-1]
    assert "word = '\\n\\nApprove'" in last
    assert "Cost: ε = 0.0001." in last
    assert "harmless" not in question
    assert "\u202e" not in question


async def asked(client: Client, arguments: dict[str, Any], name: str = "query") -> types.InputRequiredResult:
    """Make a call up to its question, as a client does that keeps the question for later."""
    result = await client.session.call_tool(name, arguments, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def answered(client: Client, state: str | None, arguments: dict[str, Any], name: str = "query") -> Any:
    """Make the call again with an approval."""
    reply = types.ElicitResult(action="accept", content={"approve": True})
    return await client.session.call_tool(
        name, arguments, input_responses={"approve": reply}, request_state=state, allow_input_required=True
    )


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("query", {**ASK, "epsilon": "5"}),
        ("query", {**ASK, "sql": "SELECT COUNT(*) AS n FROM visits"}),
        ("query", {**ASK, "key": "another"}),
        ("query", {**ASK, "rows": 1}),
        ("call", {"name": "tabulate", "arguments": {"table": "visits", "columns": ["region"]}, "epsilon": "0.5"}),
    ],
)
def test_an_approval_is_for_the_same_arguments_only(start: Starter, name: str, changed: dict[str, Any]) -> None:
    desk = start()

    async def script(client: Client) -> None:
        question = await asked(client, ASK)
        with pytest.raises(MCPError, match="requestState"):
            await answered(client, question.request_state, changed, name)
        with pytest.raises(MCPError, match="requestState"):
            await answered(client, (question.request_state or "")[:-4] + "AAAA", ASK)
        # without any question, an approval is not one
        assert isinstance(await answered(client, None, ASK), types.InputRequiredResult)

    desk.run(script, "auto", Person(yes))
    assert desk.spent() == 0


def test_an_approval_is_used_once(start: Starter) -> None:
    desk = start()

    async def script(client: Client) -> None:
        question = await asked(client, ASK)
        first = await answered(client, question.request_state, ASK)
        assert not first.is_error
        # the data changes, so the same query costs again: the old approval is not for that
        with (desk.session._curator.config.path.parent / "visits.csv").open("a") as file:
            file.write("900,North,30,plain\n")
        second = await answered(client, question.request_state, ASK)
        assert second.is_error
        assert second.structured_content["code"] == "HB831"

    desk.run(script, "auto", Person(yes))
    assert desk.spent() == Fraction(1, 2)


def test_a_client_that_cannot_ask_is_told_how_a_person_can_allow_it(start: Starter) -> None:
    desk = start("0.2")
    result = desk.run(lambda client: client.call_tool("query", ASK))
    assert result.is_error
    assert "HB830 This answer costs ε = 0.5, and nobody has agreed" in result.content[0].text
    assert "has ε = 0.2 left" in result.content[0].text
    assert desk.spent() == 0
