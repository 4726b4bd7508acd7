"""Settings of a connection."""

from fractions import Fraction

import pytest

from hubbub.errors import HubbubError
from hubbub.gateway.variables import REPORTED, Variables


def test_options_of_queries_are_set_shown_and_reset() -> None:
    variables = Variables("ana")
    variables.change("hubbub.epsilon", "0.1")
    assert variables.options == {"epsilon": Fraction(1, 10)}
    assert variables.get("hubbub.epsilon") == "0.1"
    variables.change("hubbub.within", "5%")
    assert variables.options == {"within": "5%"}
    variables.change("all", None)
    assert variables.options == {}


def test_what_clients_state_at_their_start_is_taken_or_ignored() -> None:
    variables = Variables("ana")
    for name, value in (("application_name", "Board"), ("nothing_known", "1"), ("server_version", "9")):
        variables.start(name, value)
    assert variables.application == "Board"
    assert variables.get("server_version") != "9"
    variables.change("all", None)
    assert variables.application == "Board"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server_version", "9"),
        ("client_encoding", "LATIN1"),
        ("nothing", "1"),
        ("hubbub.nothing", "1"),
        ("hubbub.epsilon", "-"),
        ("hubbub.key", "é"),
        ("hubbub.key", "x" * 201),
    ],
)
def test_a_setting_that_cannot_be_is_refused(name: str, value: str) -> None:
    with pytest.raises(HubbubError, match="HB"):
        Variables("ana").change(name, value)


def test_changes_that_clients_rely_on_are_announced() -> None:
    variables = Variables("ana")
    assert variables.change("application_name", "x") == ("application_name", "x")
    assert variables.change("statement_timeout", "5") is None
    assert dict(variables.announced()).keys() == set(REPORTED.values())
    assert variables.change("timezone", "Europe/Berlin") == ("TimeZone", "UTC")
