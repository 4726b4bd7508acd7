"""The commands over whole deployments, as a person types them."""

import re
from pathlib import Path

import pytest
from tests.fixtures.moved_deployment import make, put_data, spend

from hubbub.cli import main
from hubbub.config import load


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def test_a_deployment_moves_with_two_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    archive, who = str(tmp_path / "out.tar.gz"), ["--by", "olga", "--reason", "a new machine"]
    assert main(["admin", "export", archive, "--move", "-c", str(config)]) == 1
    assert "HB125" in said(capsys)
    assert main(["admin", "export", archive, "--move", *who, "-c", str(config)]) == 1
    assert "HB135" in said(capsys)
    assert main(["admin", "export", archive, "--move", *who, "--yes", "-c", str(config)]) == 0
    text = said(capsys)
    assert "Entry 4 closed the ledger here" in text
    assert "Not in the archive: the data" in text
    fingerprint = re.search(r"Fingerprint: ([0-9a-f]{64})", text)
    assert fingerprint is not None
    into = ["--into", str(tmp_path / "b"), *who]
    assert main(["admin", "import", archive, *into, "--fingerprint", "0" * 64]) == 1
    assert "HB882" in said(capsys)
    assert main(["admin", "import", archive, *into, "--fingerprint", fingerprint[1]]) == 0
    text = said(capsys)
    assert "3 entries of the ledger, verified" in text
    assert "Warning" not in text
    put_data(tmp_path / "b")
    assert main(["verify", "ledger", "-c", str(tmp_path / "b" / "hubbub.yaml")]) == 0


def test_keys_are_rotated_with_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    key = load(config).database.parent / "server.key"
    assert main(["admin", "rotate-key", "-c", str(config)]) == 0
    assert "nobody is signed out" in said(capsys)
    assert [len(line.split(" ")) for line in key.read_text().splitlines()] == [3, 2, 2]
    assert key.stat().st_mode & 0o077 == 0
    assert main(["admin", "rotate-key", "--leaked", "-c", str(config)]) == 0
    assert len(key.read_text().splitlines()) == 2
    config.write_text(config.read_text() + "server: {key_command: [/bin/echo, " + "k" * 40 + "]}\n")
    assert main(["admin", "rotate-key", "-c", str(config)]) == 1
    assert "HB893" in said(capsys)
    assert main(["admin", "rotate-key", "--audit", "-c", str(config)]) == 0
    assert len((key.parent / "audit.pub").read_text().splitlines()) == 2
