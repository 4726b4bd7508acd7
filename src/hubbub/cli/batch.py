"""`hubbub batch`: run many queries together, at one privacy cost.

Tested in tests/curator/test_batch.py.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from hubbub.answers import render
from hubbub.answers.batch import batch_answers, batch_text, split_queries
from hubbub.answers.options import Options, request_key
from hubbub.cli import options, output, plan
from hubbub.cli.session import read_text, running, session_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub batch questions.sql --epsilon 1 --plan    what each question gets, and with the price split evenly (free)
  hubbub batch questions.sql --epsilon 1           charge once, run once, and show all answers"""
    parser.add_argument("file", metavar="FILE", help="a file of queries, separated by ;, or - for standard input")
    options.add_session(parser)
    parser.add_argument("-e", "--epsilon", required=True, metavar="ε", help="privacy cost of the whole batch")
    parser.add_argument("--delta", metavar="δ", help="default: the δ of the budget; 0 requires pure DP")
    parser.add_argument("--plan", action="store_true", help="only show the privacy cost and expected accuracy (free)")
    parser.add_argument("--receipt", metavar="FILE", help="write the results and their receipt here, for hubbub verify")
    output.add_output(parser)
    options.add_key(parser)
    parser.add_argument("--fresh", action="store_true", help="run again with fresh noise and pay again")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    text = sys.stdin.read() if args.file == "-" else read_text(f"@{args.file}") or ""
    queries = split_queries(text)
    if args.plan:
        args.sql, args.raw, args.show_sql = batch_text(queries), False, False
        args.within, args.groups, args.rows = None, None, None
        args.weight, args.parameter, args.intervals, args.dialect = [], [], "each", "duckdb"
        return plan.run(args, console)
    given: Options = {"epsilon": args.epsilon, "delta": args.delta}
    with session_of(args) as session, running(session):
        release = session.query(batch_text(queries), key=request_key(args.key, fresh=args.fresh), **given)
    if args.receipt:
        Path(args.receipt).write_text(json.dumps(release.document(), indent=1, ensure_ascii=False) + "\n")
    answers = batch_answers(release)

    def show(where: Console) -> None:
        for query, answer in zip(queries, answers, strict=True):
            where.print(query, markup=False, style="bold")
            where.print(render.rows(answer))
            where.print()
        where.print(f"Cost of the batch: {release.cost()}", markup=False)

    output.answers(list(zip(queries, answers, strict=True)), args, console, show)
    return 0
