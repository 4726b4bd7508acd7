"""`hubbub budget`: show the budget spent and remaining.

Tested in tests/cli/test_cli.py.
"""

import argparse
import json

from rich.console import Console

from hubbub.answers import render
from hubbub.cli import options
from hubbub.cli.session import session_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "example:\n  hubbub budget --analyst ana"
    options.add_session(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    with session_of(args) as session:
        budgets = session.budget()
    if args.json:
        print(json.dumps([budget.to_json() for budget in budgets], ensure_ascii=False))  # noqa: T201
        return 0
    for budget in budgets:
        render.budget(budget, console)
    return 0
