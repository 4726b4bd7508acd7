"""plan, query and budget against a server: the address and the token come from the environment.

tests/demo runs them against a real server.
"""

from pathlib import Path

import pytest

from hubbub.cli import main

QUERY = ["query", "SELECT COUNT(*) FROM visits", "--epsilon", "0.1"]


@pytest.fixture(autouse=True)
def _address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a server that does not exist: port 9 is the discard port."""
    monkeypatch.setenv("HUBBUB_URL", "http://127.0.0.1:9")
    for name in ("HUBBUB_TOKEN", "HUBBUB_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("command", [QUERY, ["plan", *QUERY[1:]], ["budget"]])
def test_a_server_without_a_token_is_not_contacted(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 1
    assert "Set HUBBUB_TOKEN" in " ".join(capsys.readouterr().err.split())


def test_the_token_identifies_the_analyst_so_none_can_be_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUBBUB_TOKEN", "hub_x")
    assert main([*QUERY, "--analyst", "ana"]) == 1
    assert "the token identifies the analyst" in " ".join(capsys.readouterr().err.split())


def test_the_token_can_be_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUBBUB_TOKEN_FILE", str(tmp_path / "token"))
    assert main(QUERY) == 1
    assert "cannot be read" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "token").write_text("hub_0123456789ab_" + "x" * 43 + "\n")
    monkeypatch.setenv("HUBBUB_URL", "ftp://127.0.0.1")
    assert main(QUERY) == 1
    error = capsys.readouterr().err
    assert "HB149" not in error, "the token was read; the address is checked next"
    assert "hub_0123456789ab" not in error
