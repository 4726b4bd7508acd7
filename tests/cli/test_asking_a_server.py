"""plan, query and budget against a server: the address and the token come from the environment. (That they then get
answers is tried by tests/demo, with a real server.)"""

from pathlib import Path

import pytest

from hubbub.cli import main

ASK = ["query", "SELECT COUNT(*) FROM visits", "--epsilon", "0.1"]


@pytest.fixture(autouse=True)
def _address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a server that nobody answers for: port 9 is for discarding."""
    monkeypatch.setenv("HUBBUB_URL", "http://127.0.0.1:9")
    for name in ("HUBBUB_TOKEN", "HUBBUB_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("command", [ASK, ["plan", *ASK[1:]], ["budget"]])
def test_a_server_without_a_token_is_not_asked(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 1
    assert "Set HUBBUB_TOKEN" in " ".join(capsys.readouterr().err.split())


def test_who_asks_is_known_by_the_token_and_cannot_be_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUBBUB_TOKEN", "hub_x")
    assert main([*ASK, "--analyst", "ana"]) == 1
    assert "knows who asks by the token" in " ".join(capsys.readouterr().err.split())


def test_the_token_can_be_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUBBUB_TOKEN_FILE", str(tmp_path / "token"))
    assert main(ASK) == 1
    assert "cannot be read" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "token").write_text("hub_0123456789ab_" + "x" * 43 + "\n")
    monkeypatch.setenv("HUBBUB_URL", "ftp://127.0.0.1")
    assert main(ASK) == 1
    said = capsys.readouterr().err
    assert "HB149" not in said, "the token was found; now the address is looked at"
    assert "hub_0123456789ab" not in said
