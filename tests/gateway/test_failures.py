"""Errors for clients: their state, position and code; what is not known is one constant."""

import pytest

from hubbub.errors import LedgerError, QueryError, RunError
from hubbub.gateway import failures
from hubbub.gateway.result import Notice


def fields(message: bytes) -> dict[str, str]:
    parts = message[5:].split(b"\0")
    return {part[:1].decode(): part[1:].decode() for part in parts if part}


@pytest.mark.parametrize("code", ["HB1", "HB201", "HB319", "HB500", "HB701", "HB805", "HB900", "HB999"])
def test_every_family_of_errors_has_a_state(code: str) -> None:
    assert len(failures.state_of(code.ljust(5, "0"))) == 5


def test_an_error_has_its_code_remedy_and_position() -> None:
    error = QueryError("HB503", "This is not supported.", "Remove it.", (2, 3))
    shown = fields(failures.error(error, sql="SELECT\n  x"))
    assert (shown["S"], shown["C"], shown["R"], shown["H"], shown["P"]) == (
        "ERROR",
        "0A000",
        "HB503",
        "Remove it.",
        "10",
    )
    assert shown["M"].startswith("HB503 ")


def test_an_error_that_nobody_thought_of_is_one_constant() -> None:
    shown = fields(failures.error(ValueError("secret value 17")))
    assert shown["C"] == "XX000"
    assert "17" not in "".join(shown[name] for name in "MH")
    assert fields(failures.error(RunError()))["M"].startswith("HB900 The query could not be completed.")


def test_an_error_that_names_files_is_replaced() -> None:
    shown = fields(failures.error(LedgerError("HB301", "/secret/ledger.db is full.", "Free /secret.")))
    assert "secret" not in "".join(shown.values())


def test_a_notice_is_no_error() -> None:
    shown = fields(failures.notice(Notice("Cost: free", "more")))
    assert (shown["S"], shown["M"], shown["D"]) == ("NOTICE", "Cost: free", "more")
