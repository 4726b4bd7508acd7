"""The sandbox as an assistant uses it: free, marked as made up everywhere, and never about the data."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.mcp.conftest import COUNT, MODES, Desk
from tests.mcp.test_http import new_token, run
from tests.server.conftest import World, behind_a_port

from mcp import Client


def attempt(sql: str) -> Callable[[Client], Any]:
    return lambda client: client.call_tool("try_query", {"sql": sql, "epsilon": "5"})


@pytest.mark.parametrize("mode", MODES)
def test_an_assistant_tries_a_query_without_an_allowance(start: Callable[..., Desk], mode: str) -> None:
    desk = start()
    result = desk.run(attempt(COUNT), mode)
    assert not result.is_error, result.content
    form, text = result.structured_content, result.content[0].text
    assert (form["kind"], form["made_up"]) == ("MADE UP, not about the data", True)
    assert form["would_cost"] == {"epsilon": "5", "delta": "0"}
    assert {"receipt", "charge"}.isdisjoint(form)
    assert text.startswith("Sandbox: these numbers are about made-up rows")
    assert text.splitlines()[-1].startswith("All numbers above are MADE UP.")
    assert "never as an exact figure" not in text  # nobody is to report them at all
    for label, number in form["rows"]:
        assert label["label"] in ("North", "South")
        assert number["low"] <= number["estimate"] <= number["high"]
    assert desk.spent() == 0
    assert list(desk.session.releases()) == []


def test_what_is_tried_is_not_about_the_data(start: Callable[..., Desk]) -> None:
    # the clinic has 400 rows, its stand-in 10,000: at ε = 5, noise of 2,000 has a chance below 1e-100
    (row,) = start().run(attempt("SELECT COUNT(*) AS n FROM visits")).structured_content["rows"]
    assert row[0]["estimate"] > 2400


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM visits WHERE",
        "SELECT age FROM visits",
        "SELECT n FROM release(1)",
        "DROP TABLE visits",
    ],
)
def test_a_query_that_the_sandbox_cannot_answer_is_refused(start: Callable[..., Desk], sql: str) -> None:
    result = start().run(attempt(sql))
    assert result.is_error
    assert result.structured_content["kind"] == "refused"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        yield stack.enter_context(behind_a_port(tmp_path_factory.mktemp("tried")))


def test_the_server_has_the_same_tool_and_charges_nothing(world: World) -> None:
    before = world.spent()
    result = run(world, new_token(world), attempt("SELECT COUNT(*) AS n FROM health"))
    assert not result.is_error, result.content
    assert result.structured_content["made_up"] is True
    assert world.spent() == before
