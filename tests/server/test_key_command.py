"""The command that gives the server's key, and where else a key can come from."""

import os
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import ConfigError, DeploymentError
from hubbub.server import key_command
from hubbub.server.settings import CREDENTIAL, read

KEY = "k" * 43
SH = "/bin/sh"


def ask(script: str, seconds: float = 10) -> bytes:
    return key_command.ask([SH, "-c", script], os.environ, seconds=seconds)


def test_the_output_is_the_key() -> None:
    assert ask(f"echo {KEY}; echo secret >&2") == KEY.encode()


def test_nothing_passes_through_a_shell() -> None:
    assert key_command.ask(["/bin/echo", "$HOME;", "`id`"], os.environ) == b"$HOME; `id`"


def test_the_command_does_not_get_hubbubs_own_secrets() -> None:
    environment = {"PATH": "/bin:/usr/bin", "HUBBUB_SECRET": KEY, "KMS": "yes"}
    assert key_command.ask([SH, "-c", "echo $KMS$HUBBUB_SECRET"], environment) == b"yes"


@pytest.mark.parametrize(
    ("script", "seconds", "why"),
    [
        ("exit 3", 10.0, "exit code 3"),
        ("sleep 60 & sleep 60", 0.1, "did not end"),
        ("exec 1>&-; sleep 60", 0.1, "did not end"),
        ("while true; do echo 0123456789012345678901234567890123456789; done", 10.0, "more than"),
    ],
)
def test_a_command_that_fails_hangs_or_floods_is_ended(script: str, seconds: float, why: str) -> None:
    with pytest.raises(DeploymentError, match=f"HB891.*{why}"):
        ask(script, seconds)


@pytest.mark.parametrize("command", [[], ["echo", "x"], ["/nonexistent/kms"]])
def test_a_command_that_cannot_be_started_is_refused(command: list[str]) -> None:
    with pytest.raises(DeploymentError, match="HB891"):
        key_command.ask(command, os.environ)


def settings(folder: Path, server: dict[str, Any], environment: dict[str, str]) -> Any:
    return read({"server": server}, base=folder, folder=folder / "ledger", environment=environment)


def test_a_key_comes_from_the_first_source_that_is_set(tmp_path: Path) -> None:
    for name, letter in (("file", "f"), (CREDENTIAL, "c")):
        (tmp_path / name).write_text(letter * 40)
        (tmp_path / name).chmod(0o600)
    credentials = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    command = {"key_command": ["/bin/echo", KEY]}
    assert settings(tmp_path, {}, {"HUBBUB_SECRET": "e" * 40} | credentials).secret == b"e" * 40
    assert settings(tmp_path, {"secret_file": "file"}, credentials).secret == b"f" * 40
    assert settings(tmp_path, command, credentials).secret == KEY.encode()
    found = settings(tmp_path, {}, credentials)
    assert (found.secret, found.secret_path) == (b"c" * 40, tmp_path / CREDENTIAL)
    created = settings(tmp_path, {}, {"CREDENTIALS_DIRECTORY": str(tmp_path / "none")})
    assert created.secret_path == tmp_path / "ledger" / "server.key"
    with pytest.raises(ConfigError, match="HB422"):
        settings(tmp_path, command | {"secret_file": "file"}, {})


def test_a_credential_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / CREDENTIAL).write_text("c" * 40)
    (tmp_path / CREDENTIAL).chmod(0o644)
    with pytest.raises(ConfigError, match="HB423"):
        settings(tmp_path, {}, {"CREDENTIALS_DIRECTORY": str(tmp_path)})
