"""What the shell does with each line: SQL that ends with a semicolon, or a command that begins with a backslash.

Tested in tests/cli/test_shell.py.
"""

import argparse
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.markup import escape

from hubbub.answers import render, terminal
from hubbub.answers.estimate import Estimate, margin
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.answers.text_bars import text_bars
from hubbub.cli import output, tables
from hubbub.cli.session import running
from hubbub.core.numbers import brief
from hubbub.errors import HubbubError, ParameterError
from hubbub.semantics.odds import EVEN, certainty

if TYPE_CHECKING:
    from hubbub.client.session import RemoteSession
    from hubbub.curator.session import Session

#: What can be set, with what it means.
SETTINGS: Mapping[str, str] = {
    "epsilon": "privacy cost of each query, such as 0.1",
    "within": "target margin of error instead: 50, or 5%",
    "delta": "maximum δ; 0 requires pure differential privacy",
    "groups": "count each unit in at most so many groups",
    "rows": "count at most so many rows of a unit in each group",
    "dialect": "SQL dialect of the queries",
    "intervals": "each, or joint",
    "format": "how results are printed: table, csv, json or markdown",
    "chart": "on: draw a chart below each table",
    "confirm": "on: show the cost and ask before each charge",
    "estimate": "on: show the cost and the error while you type (free)",
}
_QUERY_OPTIONS = ("epsilon", "within", "delta", "groups", "rows", "dialect", "intervals")
_SWITCHES = ("chart", "confirm", "estimate")
_NUMBERS = ("groups", "rows")
HELP: Mapping[str, str] = {
    r"\d [name]": "list the datasets, or describe one",
    r"\budget": "what is spent and left",
    r"\plan [sql]": "cost and error of a query, or of the last one (free)",
    r"\chart [column]": "draw the last answer",
    r"\releases": "earlier answers",
    r"\release n": "show an earlier answer again (free)",
    r"\e": "write the last query in your editor",
    r"\set [name value]": "set an option, or list them",
    r"\unset name": "take an option back",
    r"\o [file]": "write the last answer to a file",
    r"\?": "this help",
    r"\q": "leave",
}


class ShellEndError(Exception):
    """The user wants to leave."""


class ShellInterpreter:
    """The state of a shell: its session, options, and last query and answer. It knows no terminal but a console."""

    def __init__(
        self,
        session: "Session | RemoteSession",
        console: Console,
        ask: Callable[[str], bool],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.session = session
        self.console = console
        self.settings: dict[str, str] = dict(settings or {})
        self.last = ""
        self.answer: Release | None = None
        self._ask = ask

    def run(self, text: str) -> None:
        """Run one line, or one statement of several lines; errors are printed."""
        text = text.strip()
        try:
            if text.startswith("\\"):
                self._command(text)
            elif statement := text.rstrip(";").strip():
                self._query(statement)
        except HubbubError as error:
            terminal.print_error(self.console, error)

    def on(self, name: str) -> bool:
        """Return whether a switch is on."""
        return self.settings.get(name) == "on"

    def options(self) -> Options:
        """Return the options of queries."""
        given: dict[str, Any] = {name: self.settings[name] for name in _QUERY_OPTIONS if name in self.settings}
        return cast("Options", given | {name: int(given[name]) for name in _NUMBERS if name in given})

    def brief_estimate(self, text: str) -> str:
        """Return an estimate of a text in one line, for the line below the prompt; empty if it is not a query yet."""
        statement = text.strip().rstrip(";").strip()
        if not statement or statement.startswith("\\"):
            return ""
        try:
            found = self.session.estimate(statement, **self.options())
        except HubbubError as error:
            return f"{error.code} {error.message}".split("\n")[0][:160]
        if not found.epsilon:
            return "free"
        errors = ", ".join(f"{each.name} {margin(each)}" for each in found.expected[:4])
        return f"ε = {brief(found.epsilon)}: {errors}; {'within budget' if found.admitted else 'OVER BUDGET'}"

    def _query(self, statement: str) -> None:
        self.last = statement
        options = self.options()
        with running(self.session):
            answer = self._free(statement, options)
        if answer is None:
            if "epsilon" not in options and "within" not in options:
                raise ParameterError(
                    "HB132",
                    "This query costs something, and neither epsilon nor within is set. Nothing was charged.",
                    r"For example: \set epsilon 0.1, and see the cost with \plan.",
                )
            if self.on("confirm") and not self._confirmed(statement, options):
                self.console.print("Nothing was run or charged.")
                return
            with running(self.session):
                answer = self.session.query(statement, **options)
        self.answer = answer
        output.write_release(answer, self.settings.get("format", "table"), None, self.console)
        if self.on("chart"):
            self._chart(None)

    def _free(self, statement: str, options: Options) -> Release | None:
        """Answer from what is recorded or public; None if that is not possible."""
        try:
            return self.session.query(statement, free=True, **options)
        except ParameterError as error:
            if error.code in ("HB132", "HB167"):  # without a cost, only public tables and releases are answered
                return None
            raise

    def _confirmed(self, statement: str, options: Options) -> bool:
        self._show_estimate(self.session.estimate(statement, **options))
        return self._ask("Spend this? [y/N] ")

    def _show_estimate(self, found: Estimate) -> None:
        sure = certainty(EVEN, epsilon=found.epsilon, delta=found.delta, word=" sure")
        render.estimate(found, self.console, certainty=sure)

    def _command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        rest = rest.strip().rstrip(";").strip()
        actions: dict[str, Callable[[str], None]] = {
            "\\d": self._describe,
            "\\dt": self._describe,
            "\\budget": self._budget,
            "\\plan": self._plan,
            "\\chart": lambda column: self._chart(column or None),
            "\\releases": self._releases,
            "\\release": self._release,
            "\\e": self._edit,
            "\\set": self._set,
            "\\unset": self._unset,
            "\\o": self._write,
            "\\?": self._help,
            "\\h": self._help,
            "\\q": self._quit,
        }
        if name not in actions:
            raise ParameterError("HB835", f"There is no command {name[:40]}.", r"\? lists them.")
        actions[name](rest)

    def _describe(self, name: str) -> None:
        if name:
            table = self.session.describe(name)
            self.console.print(f"[bold]{escape(name)}[/] {escape(tables.protection(table))}\n")
            self.console.print(terminal.table(*tables.columns(table)))
        else:
            found = [self.session.describe(each) for each in self.session.datasets()]
            self.console.print(terminal.table(*tables.overview(found)))

    def _budget(self, _: str) -> None:
        for overview in self.session.budget():
            render.budget(overview, self.console)

    def _plan(self, statement: str) -> None:
        statement = statement or self.last
        if not statement:
            raise ParameterError("HB835", "There is no query yet.", r"Write \plan SELECT …")
        self.last = statement
        self._show_estimate(self.session.estimate(statement, **self.options()))

    def _chart(self, column: str | None) -> None:
        lines = [] if self.answer is None else text_bars(self.answer, column, width=self.console.width)
        if not lines:
            raise ParameterError("HB835", "There is no answer with intervals to draw.", "Ask a query first.")
        self.console.print("\n".join(map(escape, lines)), no_wrap=True, overflow="crop")

    def _releases(self, _: str) -> None:
        for each in self.session.releases(limit=20):
            self.console.print(escape(repr(each)), no_wrap=True, overflow="ellipsis")

    def _release(self, number: str) -> None:
        if not number.isdecimal():
            raise ParameterError("HB835", r"Write the number of a charge after \release.", r"\releases lists them.")
        self.answer = self.session.release(int(number))
        output.write_release(self.answer, self.settings.get("format", "table"), None, self.console)

    def _edit(self, _: str) -> None:
        """Write the last query in an editor; it runs when the editor is left, unless it is empty."""
        editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "query.sql"
            file.write_text(self.last + "\n", encoding="utf-8")
            try:
                left = subprocess.run([*editor, str(file)], check=False).returncode  # noqa: S603 - the user's editor
            except OSError:
                raise ParameterError("HB835", f"{editor[0]} cannot be started.", "Set EDITOR.") from None
            text = file.read_text(encoding="utf-8").strip()
        if left == 0 and text:
            self.console.print(escape(text))
            self._query(text.rstrip(";").strip())

    def _set(self, rest: str) -> None:
        name, _, value = rest.partition(" ")
        value = value.strip()
        if not name:
            rows = [(each, self.settings.get(each, ""), about) for each, about in SETTINGS.items()]
            self.console.print(terminal.table(("option", "value", "meaning"), rows))
            return
        if name not in SETTINGS:
            raise ParameterError("HB835", f"There is no option {name[:40]}.", f"Choose one of: {', '.join(SETTINGS)}.")
        allowed = ("on", "off") if name in _SWITCHES else (*output.FORMATS[:3], "markdown") if name == "format" else ()
        if not value or (allowed and value not in allowed) or (name in _NUMBERS and not value.isdecimal()):
            raise ParameterError("HB835", f"{value[:40] or 'Nothing'} is no value of {name}.", SETTINGS[name] + ".")
        if name in ("epsilon", "within"):  # one replaces the other
            self.settings.pop("within" if name == "epsilon" else "epsilon", None)
        self.settings[name] = value

    def _unset(self, name: str) -> None:
        self.settings.pop(name, None)

    def _write(self, path: str) -> None:
        if self.answer is None or not path:
            raise ParameterError("HB835", "There is no answer to write, or no file.", r"Ask first, then \o result.csv")
        form = output.format_of(argparse.Namespace(format=None, output=path))
        output.write_release(self.answer, form, path, self.console)

    def _help(self, _: str) -> None:
        self.console.print("A query ends with a semicolon and may take several lines.\n")
        self.console.print(terminal.facts([(escape(name), about) for name, about in HELP.items()]))

    def _quit(self, _: str) -> None:
        raise ShellEndError
