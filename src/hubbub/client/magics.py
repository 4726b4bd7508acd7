"""Notebook magics: `%load_ext hubbub`, `%hubbub open hubbub.yaml`, and `%%hubbub --epsilon 0.1` before a query.

A cell that costs something shows its estimate first, and spends when it is run a second time, unchanged, or with
`--yes`. So there is no button that a browser could lose.

Tested in tests/client/test_magics.py.
"""

import argparse
import os
import shlex
from typing import Any, NoReturn

from hubbub.answers.options import Options
from hubbub.client.session import connect
from hubbub.errors import ParameterError, engine_missing


class MagicParser(argparse.ArgumentParser):
    """A parser that raises instead of leaving Python."""

    def error(self, message: str) -> NoReturn:
        """Raise."""
        example = "For example: %%hubbub --epsilon 0.1 --into answer"
        raise ParameterError("HB837", f"The line is wrong: {message}.", example)


def _parser() -> MagicParser:
    parser = MagicParser(prog="%%hubbub", add_help=False)
    cost = parser.add_mutually_exclusive_group()
    cost.add_argument("-e", "--epsilon")
    cost.add_argument("-w", "--within")
    parser.add_argument("--delta")
    parser.add_argument("--groups", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--dialect")
    parser.add_argument("--key")
    parser.add_argument("--into", metavar="NAME")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("--chart", action="store_true")
    return parser


class NotebookMagics:
    """The session of a notebook, and the cell that was estimated last."""

    def __init__(self, shell: Any) -> None:
        """Belong to an IPython shell."""
        self._shell = shell
        self._session: Any = None
        self._estimated: tuple[str, str] | None = None

    def line(self, text: str) -> Any:
        """Run `%hubbub open PATH [ANALYST]`, `%hubbub connect URL`, `%hubbub budget` or `%hubbub datasets`."""
        words = shlex.split(text)
        match words:
            case ["open", path, *rest] if len(rest) < 2:
                self._begin(_open(path, rest[0] if rest else None))
            case ["connect", url]:
                token = os.environ.get("HUBBUB_TOKEN", "")
                if not token:
                    raise ParameterError("HB837", "There is no token.", "Set HUBBUB_TOKEN; a notebook keeps its text.")
                self._begin(connect(url, token))
            case ["budget"]:
                return self.session().budget()
            case ["datasets"]:
                return self.session().datasets()
            case _:
                raise ParameterError(
                    "HB837",
                    "There is no such command of %hubbub.",
                    "Use %hubbub open hubbub.yaml, connect URL, budget or datasets; %%hubbub begins a query.",
                )
        return None

    def cell(self, line: str, text: str) -> Any:
        """Answer the query of a cell, or show its estimate first."""
        args = _parser().parse_args(shlex.split(line))
        sql = text.strip().rstrip(";").strip()
        given = {name: getattr(args, name) for name in ("epsilon", "within", "delta", "groups", "rows", "dialect")}
        options: Options = {name: value for name, value in given.items() if value is not None}  # type: ignore[assignment]
        if args.estimate:
            return self.session().estimate(sql, **options)
        answer = self._free(sql, options, args.key)
        if answer is None:
            asked = (line.strip(), sql)
            if not args.yes and self._estimated != asked:
                estimate = self.session().estimate(sql, **options)
                self._estimated = asked
                print(f"{estimate!r}\nRun this cell again to spend it, or add --yes.")  # noqa: T201
                return None
            self._estimated = None
            answer = self.session().query(sql, key=args.key, **options)
        if args.into:
            self._shell.user_ns[args.into] = answer
        return VegaChart(answer) if args.chart else answer

    def session(self) -> Any:
        """Return the session; without one, open hubbub.yaml here."""
        if self._session is None:
            self._begin(_open("hubbub.yaml", None))
        return self._session

    def _begin(self, session: Any) -> None:
        if self._session is not None:
            self._session.close()
        self._session = session
        print(f"hubbub: {session.analyst} can query {', '.join(session.datasets())}.")  # noqa: T201

    def _free(self, sql: str, options: Options, key: str | None) -> Any:
        try:
            return self.session().query(sql, key=key, free=True, **options)
        except ParameterError as error:
            if error.code != "HB167":
                raise
            return None


def _open(path: str, analyst: str | None) -> Any:
    try:
        from hubbub.curator.session import open_session
    except ModuleNotFoundError as missing:  # the light client
        if missing.name != "hubbub.curator":
            raise
        raise engine_missing() from None
    return open_session(path, analyst=analyst)


class VegaChart:
    """A chart that notebooks draw, as Altair would hand it over."""

    def __init__(self, release: Any) -> None:
        """Draw the first noisy column of a release."""
        self.release = release

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the chart for notebooks that draw Vega-Lite, and the table for the others."""
        return {
            "application/vnd.vegalite.v5+json": self.release.vega_lite(),
            "text/html": self.release._repr_html_(),
            "text/plain": repr(self.release),
        }

    def __repr__(self) -> str:
        return repr(self.release)


def load(shell: Any) -> None:
    """Register %hubbub and %%hubbub with an IPython shell."""
    magics = NotebookMagics(shell)
    shell.register_magic_function(magics.line, magic_kind="line", magic_name="hubbub")
    shell.register_magic_function(magics.cell, magic_kind="cell", magic_name="hubbub")
