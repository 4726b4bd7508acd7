"""The command `hubbub`."""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from hubbub.demo import first
from hubbub.errors import HubbubError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a refusal with its reason on standard error, 2 a slip in the command."""
    parser = argparse.ArgumentParser(prog="hubbub", description="Answers about the crowd, never about the person.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser("demo", help="a first private answer, over bundled data")
    demo.add_argument("--once", action="store_true", help="answer one question and end")
    demo.add_argument("--epsilon", default="0.1", help="the price of the first answer (default 0.1)")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        return first.run(console, epsilon=options.epsilon, again=not options.once and sys.stdin.isatty())
    except HubbubError as error:
        Console(stderr=True, highlight=False).print(f"[red]{error}[/]")
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return 130
