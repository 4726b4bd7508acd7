"""The shell: what it does with each line, what it completes, and how it looks on a terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tests.mcp.conftest import COUNT, lay_out

from hubbub.cli.shell import statements
from hubbub.cli.shell_commands import HELP, SETTINGS, ShellEndError, ShellInterpreter
from hubbub.cli.shell_words import ShellWords, word_start
from hubbub.curator.session import Session, open_session


class Desk:
    """A shell whose output is a text."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asked: list[str] = []
        self.yes = False
        self.shell = ShellInterpreter(session, Console(file=StringIO(), width=110), self._ask)

    def _ask(self, text: str) -> bool:
        self.asked.append(text)
        return self.yes

    def say(self, *lines: str) -> str:
        file = StringIO()
        self.shell.console = Console(file=file, width=110)
        for line in lines:
            self.shell.run(line)
        return file.getvalue()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_session(lay_out(tmp_path), analyst="ana") as session:
        yield Desk(session)


def test_a_query_is_charged_only_once_a_cost_is_set(desk: Desk) -> None:
    assert "HB132" in desk.say(COUNT + ";")
    assert desk.session.releases() == ()
    out = desk.say("\\set epsilon 1", COUNT + ";")
    assert "North" in out
    assert "±" in out
    assert "free, from the ledger" in desk.say(COUNT + ";")
    assert len(desk.session.releases()) == 1
    assert "North" in desk.say("SELECT region FROM regions;")


def test_confirm_asks_before_each_charge(desk: Desk) -> None:
    desk.say("\\set epsilon 1", "\\set confirm on")
    assert "Nothing was run or charged." in desk.say(COUNT + ";")
    assert desk.session.releases() == ()
    desk.yes = True
    assert "Cost" in desk.say(COUNT + ";")
    assert len(desk.asked) == 2
    assert len(desk.session.releases()) == 1
    desk.say(COUNT + ";")  # recorded, so nobody is asked
    assert len(desk.asked) == 2


def test_the_commands_show_what_is_free(desk: Desk) -> None:
    assert "patient" in desk.say("\\d")
    assert "0 to 100" in desk.say("\\d visits")
    assert "Remaining" in desk.say("\\budget")
    assert "Margin of error" in desk.say("\\set epsilon 1", f"\\plan {COUNT}")
    assert "Margin of error" in desk.say("\\plan")
    assert desk.session.releases() == ()
    desk.say(COUNT + ";")
    assert "●" in desk.say("\\chart")
    assert "<2 " in desk.say("\\releases")
    assert "North" in desk.say("\\release 2")
    out = desk.say("\\?", "\\set")
    assert all(name.split()[0] in out for name in HELP)
    assert all(name in out for name in SETTINGS)


def test_settings_change_queries_and_can_be_taken_back(desk: Desk, tmp_path: Path) -> None:
    desk.say("\\set within 5%", "\\set rows 1", "\\set format csv", "\\set chart on")
    assert desk.shell.options() == {"within": "5%", "rows": 1}
    desk.say("\\set epsilon 1", "\\unset rows")
    assert desk.shell.options() == {"epsilon": "1"}
    desk.say("\\set format markdown", COUNT + ";", f"\\o {tmp_path}/a.parquet")
    assert (tmp_path / "a.parquet").read_bytes().startswith(b"PAR1")


@pytest.mark.parametrize(
    "line",
    [
        "\\nope",
        "\\set nope 1",
        "\\set chart maybe",
        "\\set rows x",
        "\\set format xlsx",
        "\\release x",
        "\\plan",
        "\\o",
    ],
)
def test_a_mistake_is_told_and_the_shell_goes_on(desk: Desk, line: str) -> None:
    assert "HB835" in desk.say(line)
    assert "HB835" in desk.say("\\chart")
    with pytest.raises(ShellEndError):
        desk.say("\\q")


def test_the_editor_gives_the_next_query(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text(
        f'#!/bin/sh\ncat "$1" >> {tmp_path}/seen\necho "SELECT region FROM regions ORDER BY region;" > "$1"\n'
    )
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    desk.say("\\set epsilon 1", f"\\plan {COUNT}")
    assert "North" in desk.say("\\e")
    assert (tmp_path / "seen").read_text() == COUNT + "\n"
    monkeypatch.setenv("VISUAL", "/nowhere/editor")
    assert "HB835" in desk.say("\\e")


def test_statements_end_with_semicolons_and_commands_with_lines() -> None:
    lines = ["\\set epsilon 1\n", "SELECT 1\n", "FROM t;\n", "\n", "\\d\n", "SELECT ';'\n", "FROM u"]
    found = [each.strip() for each in statements(lines)]
    assert [each for each in found if each] == ["\\set epsilon 1", "SELECT 1\nFROM t;", "\\d", "SELECT ';'\nFROM u"]


def test_words_follow_from_where_the_cursor_is() -> None:
    words = ShellWords({"visits": ("region", "age"), "labs": ("result",)}, ("lower",))

    def offered(before: str) -> list[str]:
        return [word for word, _ in words.complete(before)]

    assert offered("SELECT * FROM vi") == ["visits"]
    assert offered("SELECT re") == ["region", "result"]
    assert offered("SELECT COUNT(*) FROM visits WHERE re") == ["region"]
    assert "lower" in offered("SELECT lo")
    assert offered("SEL") == ["SELECT"]
    assert offered("\\bu") == ["\\budget"]
    assert offered("\\set eps") == ["epsilon"]
    assert offered("\\set epsilon 0") == []
    assert offered("\\d vi") == ["visits"]
    assert (word_start("SELECT re"), word_start("\\bu"), word_start("a ")) == (-2, -3, 0)


def test_an_estimate_in_one_line(desk: Desk) -> None:
    desk.say("\\set epsilon 1")
    assert desk.shell.brief_estimate(COUNT + ";").startswith("ε = 1: n ±")
    assert desk.shell.brief_estimate("SELECT region FROM regions") == "free"
    assert (
        desk.shell.brief_estimate("SELEC")
        == "HB501 line 1, column 1: A query starts with SELECT or WITH. Nothing was run or charged."
    )
    assert desk.shell.brief_estimate("\\d") == desk.shell.brief_estimate(" ") == ""


def test_a_file_of_queries_runs_without_a_terminal(tmp_path: Path) -> None:
    config = lay_out(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "hubbub", "shell", "--config", str(config), "-e", "1"],
        input=f"\\set format csv\n{COUNT};\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("region,n,n_low,n_high\nNorth,")


def test_the_shell_on_a_terminal_completes_and_answers(tmp_path: Path) -> None:
    """A real terminal: a word is completed with the tabulator, a query of two lines is answered, and \\q leaves."""
    config = lay_out(tmp_path)
    main, inner = pty.openpty()
    environment = os.environ | {"HUBBUB_HISTORY": str(tmp_path / "own" / "history"), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "hubbub", "shell", "--config", str(config), "-e", "1"],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=environment,
        close_fds=True,
    )
    os.close(inner)
    heard = ""

    def until(text: str) -> None:
        nonlocal heard
        end = time.monotonic() + 60
        while text not in heard:
            assert time.monotonic() < end, heard
            if select.select([main], [], [], 0.1)[0]:
                part = os.read(main, 65536).decode(errors="replace")
                heard += part
                if "\x1b[6n" in part:  # a terminal is asked where its cursor is
                    os.write(main, b"\x1b[1;1R")

    try:
        until("hubbub>")
        os.write(main, b"\\budg")
        until("spent and left")  # the menu of completions
        os.write(main, b"\t\r")
        until("Remaining")
        os.write(main, b"SELECT region, COUNT(*) AS n\rFROM visits GROUP BY region;\r")
        until("North")
        os.write(main, b"\\q\r")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(main)
    history = tmp_path / "own" / "history"
    assert "FROM visits" in history.read_text()
    assert history.parent.stat().st_mode & 0o077 == 0
