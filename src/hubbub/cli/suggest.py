"""`hubbub suggest`: propose a cube from the questions of the past.

Tested in tests/curator/test_suggest.py.
"""

import argparse

from rich.console import Console

from hubbub.cli import options, output
from hubbub.cli.session import session_of
from hubbub.curator.suggest import suggest_cube

_PAGE = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "example:\n  hubbub suggest cube visits     which columns your past queries read together"
    parser.add_argument("what", choices=["cube"], help="what to propose")
    parser.add_argument("dataset", metavar="DATASET", help="the dataset that the queries read")
    options.add_session(parser)
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command. It is free: questions and declarations are all that is read."""
    with session_of(args) as session:
        texts, before = list[str](), None
        while page := session.releases(limit=_PAGE, before=before):
            texts += [charge.query for charge in page if charge.dataset == args.dataset]
            before = page[-1].id
        found = suggest_cube(texts, session.describe(args.dataset))

    def show(where: Console) -> None:
        for line in found.lines():
            where.print(line, markup=False, soft_wrap=True)

    output.statements({"suggestion": list(found.lines())}, found.to_json(), args, console, show)
    return 0
