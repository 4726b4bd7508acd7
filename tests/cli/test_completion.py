"""Completion scripts: each shell that is here completes what the parsers know."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hubbub.cli import COMMANDS, build_parser
from hubbub.cli import completion as scripts


@pytest.fixture(scope="module")
def tree() -> scripts.CommandWords:
    return scripts.read(build_parser())


def test_every_command_and_option_is_known(tree: scripts.CommandWords) -> None:
    assert list(tree.subcommands) == list(COMMANDS)
    assert {"--epsilon", "--format", "-o", "--free"} <= set(tree.subcommands["query"].options)
    assert "ledger" in tree.subcommands["audit"].subcommands
    assert tree.subcommands["completion"].choices == ("bash", "zsh", "fish")
    assert "%%" not in str(tree)


def complete(script: str, folder: Path, *words: str) -> list[str]:
    """Complete the last word in bash."""
    (folder / "script").write_text(script)
    given = " ".join(f"'{word}'" for word in words)
    code = f"source {folder}/script; COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _hubbub; echo ${{COMPREPLY[*]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not done.stderr
    return done.stdout.split()


def test_bash_completes(tree: scripts.CommandWords, tmp_path: Path) -> None:
    script = scripts.bash(tree)
    assert complete(script, tmp_path, "hubbub", "que") == ["query"]
    assert complete(script, tmp_path, "hubbub", "query", "--eps") == ["--epsilon"]
    assert complete(script, tmp_path, "hubbub", "audit", "led") == ["ledger"]
    assert "--csv" in complete(script, tmp_path, "hubbub", "audit", "ledger", "--c")
    assert complete(script, tmp_path, "hubbub", "completion", "z") == ["zsh"]
    assert complete(script, tmp_path, "hubbub", "query", "SELECT audit", "--eps") == ["--epsilon"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(tree: scripts.CommandWords, tmp_path: Path, shell: str) -> None:
    script = {"zsh": scripts.zsh, "fish": scripts.fish}[shell](tree)
    assert "epsilon" in script
    assert "query" in script
    assert script.count("'") % 2 == 0
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, timeout=60)
