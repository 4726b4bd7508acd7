"""`hubbub watch`: ask the question of a session again whenever the data has changed, until it is above.

Tested in tests/curator/test_thresholds.py.
"""

import argparse
import time

from rich.console import Console
from rich.markup import escape

from hubbub.cli import options
from hubbub.cli.session import session_of
from hubbub.errors import QueryError

#: The exit code of --once if the answer is not above.
_NOT_YET = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
Open the session first; it is charged once. Each version of the data uses one of its questions.

examples:
  hubbub call above_threshold table=visits name=alarm threshold=100 --epsilon 0.5
  hubbub watch visits alarm "SELECT COUNT(*) FROM visits WHERE fever" --every 3600
  hubbub watch visits alarm "SELECT COUNT(*) FROM visits WHERE fever" --once     (exit code 3: not yet)"""
    parser.add_argument("table", help="dataset of the session")
    parser.add_argument("name", help="name of the session")
    parser.add_argument("query", help="SQL that returns one COUNT or SUM")
    parser.add_argument("--threshold", metavar="T", help="another threshold than that of the session")
    parser.add_argument("--every", type=float, default=60.0, metavar="SECONDS", help="pause (default: %(default)s)")
    parser.add_argument("--once", action="store_true", help="ask once and exit, for a scheduler such as cron")
    options.add_session(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if not args.every > 0:
        raise QueryError("HB530", "--every is not positive.", "Pass the pause in seconds, such as --every 60.")
    version = ""
    while True:
        with session_of(args) as session:
            release = session.compare(args.table, args.name, args.query, threshold=args.threshold)
        seen = str(release.receipt["data"][0]["version"])
        if seen != version:
            word = "above" if release.model["above"] else "not above"
            console.print(f"data version {escape(seen)}: {word} (question {release.model['question']})")
        version = seen
        if release.model["above"]:
            return 0
        if args.once:
            return _NOT_YET
        time.sleep(args.every)
