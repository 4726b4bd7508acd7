"""`hubbub shell`: ask in SQL, interactively.

Tested in tests/cli/test_shell.py.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from hubbub.cli import options
from hubbub.cli.session import session_of
from hubbub.cli.shell_commands import ShellEndError, ShellInterpreter
from hubbub.cli.shell_words import ShellWords, word_start
from hubbub.errors import ConfigError, HubbubError
from hubbub.private_files import create_folder

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

#: Where the history of queries is kept; they are the user's own, and readable by nobody else.
_HISTORY = Path("~/.local/state/hubbub/history")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub shell                                  over hubbub.yaml; \\? lists the commands
  hubbub shell --server https://data.example    over a server
  hubbub shell -e 0.1 < queries.sql             run a file, each query for ε = 0.1"""
    options.add_session(parser, json=False)
    parser.add_argument("-e", "--epsilon", metavar="ε", help="privacy cost of each query (\\set epsilon changes it)")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command: read lines until the end of the input, or until the user leaves."""
    settings = {} if args.epsilon is None else {"epsilon": args.epsilon}
    with session_of(args) as session:
        shell = ShellInterpreter(session, console, _ask, settings)
        try:
            for statement in _typed(shell) if sys.stdin.isatty() else statements(sys.stdin):
                shell.run(statement)
        except ShellEndError:
            pass
    return 0


def statements(lines: Iterable[str]) -> Iterator[str]:
    """Split lines into statements: a command is one line, and a query ends with a semicolon at the end of a line."""
    parts: list[str] = []
    for line in lines:
        if not parts and line.lstrip().startswith("\\"):
            yield line
            continue
        if not parts and not line.strip():
            continue
        parts.append(line)
        if line.rstrip().endswith(";"):
            yield "".join(parts)
            parts = []
    if "".join(parts).strip():
        yield "".join(parts)


def _ask(text: str) -> bool:
    """Ask for a yes. Without a terminal nobody can say it."""
    return sys.stdin.isatty() and input(text).strip().lower() in ("y", "yes")


def _typed(shell: ShellInterpreter) -> Iterator[str]:
    """Yield what is typed at a prompt."""
    prompt = _prompt(shell)
    shell.console.print(f"hubbub, as {shell.session.analyst}. A query ends with ; and \\? helps.")
    while True:
        try:
            yield prompt.prompt("hubbub> ")
        except KeyboardInterrupt:
            continue  # drops the line, as in other shells
        except EOFError:
            return


def _prompt(shell: ShellInterpreter) -> "PromptSession[str]":
    """Build a prompt with history, completion, several lines, and an estimate below."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.history import FileHistory
    except ModuleNotFoundError as error:
        raise ConfigError(
            "HB431",
            f"The shell needs the library {error.name}, which is not installed.",
            "Run: pip install 'hubbub[shell]'",
        ) from error
    words = _words(shell)

    class ShellCompleter(Completer):
        """Completes words."""

        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Completion]:
            """Yield what can follow the text before the cursor."""
            del complete_event
            before = document.text_before_cursor
            if before.strip():
                for word, about in words.complete(before):
                    yield Completion(word, start_position=word_start(before), display_meta=about)

    @Condition
    def unfinished() -> bool:
        """Return whether a line end continues the statement."""
        text = session.default_buffer.text.strip()
        return bool(text) and not text.startswith("\\") and not text.endswith(";")

    history = Path(os.environ.get("HUBBUB_HISTORY") or _HISTORY).expanduser()
    create_folder(history.parent)
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)),
        completer=ShellCompleter(),
        complete_while_typing=True,
        multiline=unfinished,
        prompt_continuation=lambda width, *_: "...> ".rjust(width),
    )
    below = EstimateLine(shell)
    session.bottom_toolbar = lambda: below.text(session.default_buffer.text) if shell.on("estimate") else None
    session.refresh_interval = 0.3
    return session


def _words(shell: ShellInterpreter) -> ShellWords:
    from hubbub.sql.functions import FUNCTIONS

    columns: dict[str, tuple[str, ...]] = {}
    for name in shell.session.datasets():
        table = shell.session.describe(name)
        columns[name] = tuple(column.name for column in table.columns if not column.hidden)
    return ShellWords(columns, tuple(sorted(name for name in FUNCTIONS if name.isidentifier())))


class EstimateLine:
    """The line below the prompt: an estimate of what is typed, computed beside the prompt, one at a time."""

    def __init__(self, shell: ShellInterpreter) -> None:
        """Estimate with the options of a shell."""
        self._shell = shell
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hubbub-estimate")
        self._asked = ""
        self._running: Future[str] | None = None
        self._shown = ""

    def text(self, typed: str) -> str:
        """Return the newest estimate; begin another one if the text has changed."""
        if self._running is not None and self._running.done():
            self._shown = self._running.result()
            self._running = None
        if self._running is None and typed != self._asked:
            self._asked = typed
            self._running = self._pool.submit(self._estimate, typed)
        return self._shown

    def _estimate(self, typed: str) -> str:
        try:
            return self._shell.brief_estimate(typed)
        except HubbubError:
            return ""
