"""The command `hubbub`."""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from hubbub.cli import owner, show
from hubbub.demo import first
from hubbub.errors import HubbubError

_DESCRIPTION = "Answers about the crowd, never about the person."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a refusal with its reason on standard error, 2 a slip in the command."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False, soft_wrap=False)
    try:
        return int(options.run(options, console))
    except HubbubError as error:
        show.error(Console(stderr=True, highlight=False), error)
        return 1
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped.")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hubbub", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    demo = commands.add_parser("demo", help="a first private answer, over bundled data")
    demo.add_argument("--once", action="store_true", help="answer one question and end")
    demo.add_argument("--epsilon", default="0.1", help="the price of the first answer (default 0.1)")
    demo.set_defaults(run=_demo)

    init = commands.add_parser("init", help="write a hubbub.yaml for your files, with blanks to fill in")
    init.add_argument(
        "files", nargs="+", metavar="FILE", help="CSV or Parquet, or duckdb:file#table, sqlite:file#table"
    )
    init.add_argument("--output", default="hubbub.yaml", metavar="PATH", help="where to write (default hubbub.yaml)")
    init.add_argument("--force", action="store_true", help="replace an existing file")
    init.set_defaults(run=owner.init)

    check = commands.add_parser("check", help="say what hubbub.yaml promises to whom, or what is wrong with it")
    _config(check)
    check.add_argument("--schema", action="store_true", help="print the JSON Schema of hubbub.yaml, for editors")
    check.set_defaults(run=owner.check)
    return parser


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", default="hubbub.yaml", metavar="PATH", help="default: hubbub.yaml")


def _demo(options: argparse.Namespace, console: Console) -> int:
    return first.run(console, epsilon=options.epsilon, again=not options.once and sys.stdin.isatty())
