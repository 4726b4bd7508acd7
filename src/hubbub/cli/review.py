"""`hubbub review`: read answers that wait for review, and approve or decline them.

Tested in tests/cli/test_review.py.
"""

import argparse
import getpass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.accounting.reviews import Reviewed
from hubbub.answers import render, terminal
from hubbub.answers.budget import printable
from hubbub.cli import options, output
from hubbub.config import load
from hubbub.curator import Curator
from hubbub.curator.opening import open_curator
from hubbub.errors import ParameterError, ReviewError

_NAMES = ("number", "state", "analyst", "dataset", "query", "decisions")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
hubbub.yaml says which answers of a dataset are reviewed before their analyst can read them:
  review: true                                   every answer
  review: {above: 0.5, calls: true, people: 2}   those that cost more than 0.5, and analyses; two people approve

examples:
  hubbub review                                  list the answers that wait
  hubbub review 12                               read the noisy answer
  hubbub review 12 --approve
  hubbub review 12 --decline "outside of the agreed purpose" """
    parser.add_argument("number", nargs="?", type=int, metavar="NUMBER", help="number of the answer")
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument("--approve", action="store_true", help="let the analyst read the answer")
    decision.add_argument("--decline", metavar="REASON", help="keep the answer for good; the analyst reads the reason")
    parser.add_argument("--by", metavar="NAME", help="who decides; recorded in the ledger (default: you)")
    parser.add_argument("--all", action="store_true", help="list answers that were decided before, too")
    output.add_output(parser)
    options.add_config(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    decides = args.approve or args.decline is not None
    if args.number is None and decides:
        raise ParameterError("HB132", "No answer was named.", "Pass its number: `hubbub review 12 --approve`.")
    with open_curator(load(Path(args.config))) as curator:
        if args.number is None:
            _list(curator, args, console)
        elif decides:
            by, reason = args.by or getpass.getuser(), args.decline or ""
            done = curator.decide(args.number, approve=args.approve, by=by, reason=reason)
            console.print(escape(f"Recorded. {_outcome(done)}"))
        else:
            _show(curator, args, console)
    return 0


def _list(curator: Curator, args: argparse.Namespace, console: Console) -> None:
    reviews = [each for each in curator.reviews() if args.all or each.state == "waiting"]
    rows = [
        (each.number, each.state, each.analyst, ", ".join(each.datasets), printable(each.query), _decisions(each))
        for each in reviews
    ]

    def show(where: Console) -> None:
        if not rows:
            where.print("No answer waits for review.")
            return
        where.print(terminal.table(_NAMES, [tuple(map(str, row)) for row in rows], right=(0,)))

    output.rows(_NAMES, rows, [each.to_json() for each in reviews], args, console, show)


def _show(curator: Curator, args: argparse.Namespace, console: Console) -> None:
    review = next((each for each in curator.reviews() if each.number == args.number), None)
    if review is None:
        raise ReviewError(
            "HB912", f"Answer {args.number} needs no review.", "List the answers that wait: `hubbub review`."
        )
    release = curator.release(args.number, analyst=None)
    if output.format_of(args) == "table":
        console.print(escape(f"{review.analyst}: {printable(review.query)}"))
        render.release(release, console)
        console.print(escape(_outcome(review)))
        for decision in review.decisions:
            console.print(escape(f"  {_decision(review, decision.by)}"))
    else:
        output.release(release, args, console)


def _outcome(review: Reviewed) -> str:
    if review.state == "waiting":
        return f"Answer {review.number} waits: {review.approvals} of {review.people} people approved it."
    can = "can read it now" if review.state == "approved" else "reads the reason and never the answer"
    return f"Answer {review.number} was {review.state}: {review.analyst} {can}."


def _decisions(review: Reviewed) -> str:
    return "; ".join(_decision(review, each.by) for each in review.decisions)


def _decision(review: Reviewed, by: str) -> str:
    decision = next(each for each in review.decisions if each.by == by)
    when = datetime.fromtimestamp(decision.time / 1_000_000, UTC)
    verb = "approved" if decision.approved else "declined"
    reason = f": {printable(decision.reason)}" if decision.reason else ""
    return f"{verb} by {printable(by)} on {when:%Y-%m-%d}{reason}"
