"""`hubbub watch`: ask the question of a session again whenever the data has changed, until it is above.

Tested in tests/curator/test_thresholds.py.
"""

import argparse
import time
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from hubbub.cli import options, output
from hubbub.cli.session import session_of
from hubbub.errors import QueryError

#: The exit code of --once if the answer is not above.
_NOT_YET = 3

#: What each question gives.
_NAMES = ("data_version", "answer", "question")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
Open the session first; it is charged once. Each version of the data uses one of its questions.

examples:
  hubbub call above_threshold table=visits name=alarm threshold=100 --epsilon 0.5
  hubbub watch visits alarm "SELECT COUNT(*) FROM visits WHERE fever" --every 3600
  hubbub watch visits alarm "SELECT COUNT(*) FROM visits WHERE fever" --once     (exit code 3: not yet)
  hubbub watch visits alarm "SELECT COUNT(*) FROM visits WHERE fever" -o alarm.csv

Each answer is printed when it comes. Another --format is printed at the end; a file has all answers so far."""
    parser.add_argument("table", help="dataset of the session")
    parser.add_argument("name", help="name of the session")
    parser.add_argument("query", help="SQL that returns one COUNT or SUM")
    parser.add_argument("--threshold", metavar="T", help="another threshold than that of the session")
    parser.add_argument("--every", type=float, default=60.0, metavar="SECONDS", help="pause (default: %(default)s)")
    parser.add_argument("--once", action="store_true", help="ask once and exit, for a scheduler such as cron")
    options.add_session(parser)
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if not args.every > 0:
        raise QueryError("HB530", "--every is not positive.", "Pass the pause in seconds, such as --every 60.")
    lines: list[tuple[output.Cell, ...]] = []
    streamed = output.format_of(args) == "table" and args.output is None
    while True:
        with session_of(args) as session:
            release = session.compare(args.table, args.name, args.query, threshold=args.threshold)
        version, above = str(release.receipt["data"][0]["version"]), bool(release.model["above"])
        ended = above or args.once
        is_new = not lines or version != lines[-1][0]
        if is_new:
            lines.append((version, "above" if above else "not above", release.model["question"]))
        if streamed and is_new:
            _print(lines[-1:], console)
        elif not streamed and (ended or (is_new and args.output is not None)):
            form = [dict(zip(_NAMES, line, strict=True)) for line in lines]
            output.rows(_NAMES, lines, form, args, console, lambda where: _print(lines, where))
        if ended:
            return 0 if above else _NOT_YET
        time.sleep(args.every)


def _print(lines: Sequence[Sequence[output.Cell]], console: Console) -> None:
    for version, answer, question in lines:
        console.print(f"data version {escape(str(version))}: {answer} (question {question})")
