"""`hubbub query`: run a query, show its result, and keep its receipt.

Tested in tests/cli/test_cli.py.
"""

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from hubbub.answers.options import request_key
from hubbub.answers.release import Release
from hubbub.answers.stepwise import StepOptions
from hubbub.cli import options, output, plan
from hubbub.cli.progress import working
from hubbub.cli.session import query_options, read_sql, running, sandbox_of, session_of
from hubbub.core.numbers import brief
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.client.session import RemoteSession
    from hubbub.curator.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub query "SELECT region, COUNT(*) FROM visits GROUP BY region" --epsilon 0.1
  hubbub query "SELECT AVG(age) FROM visits" --within 2 --receipt receipt.json
  hubbub query "SELECT AVG(age) FROM visits" --within 2 --sandbox      # on made-up rows, free"""
    options.add_query(parser)
    options.add_result(parser)
    parser.add_argument(
        "--at-most",
        metavar="ε",
        help="with --within: buy cheap answers first, and at most for this ε together; --within 5%% is then 5%% of"
        " each number itself",
    )


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    sql = read_sql(args)
    words = sql.split(None, 1)
    if words and words[0].upper() == "EXPLAIN":
        args.sql, args.show_sql = words[1] if len(words) > 1 else "", False
        return plan.run(args, console)
    if args.sandbox:
        return _try(sql, args, console)
    with session_of(args) as session:
        key = request_key(args.key, fresh=args.fresh)
        try:
            with running(session):
                release = _stepwise(session, sql, key, args, console) or session.query(
                    sql, key=key, free=args.free, **query_options(args)
                )
        except KeyboardInterrupt:
            Console(stderr=True, highlight=False).print(
                "Stopped. If the query was already charged, run the same query again: it reuses the charge."
            )
            return 130
    if args.receipt:
        Path(args.receipt).write_text(json.dumps(release.document(), indent=1, ensure_ascii=False) + "\n")
    if args.export:
        release.export(args.export)
    output.release(release, args, console)
    return 0


def _try(sql: str, args: argparse.Namespace, console: Console) -> int:
    """Answer on made-up rows, and say how to ask the data."""
    if args.receipt or args.at_most is not None:
        option = "--receipt" if args.receipt else "--at-most"
        raise ParameterError(
            "HB864", f"{option} does not go with --sandbox: nothing is charged, so there is no receipt.", "Remove it."
        )
    with sandbox_of(args) as sandbox, working("running"):
        release = sandbox.query(sql, **query_options(args))
    if args.export:
        release.export(args.export)
    output.release(release, args, console)
    if output.format_of(args) == "table" and release.epsilon:
        price = f"--within {args.within}" if args.within else f"--epsilon {brief(release.epsilon)}"
        console.print(f"Run it for real: hubbub query {shlex.quote(sql)} {price}", markup=False)
    return 0


def _stepwise(
    session: "Session | RemoteSession", sql: str, key: str | None, args: argparse.Namespace, console: Console
) -> Release | None:
    """Buy answers until one is exact enough, if a limit was given."""
    if args.at_most is None:
        return None
    if args.within is None or args.epsilon is not None:
        raise ParameterError("HB132", "--at-most needs --within.", "Pass --within 5% --at-most 1, without --epsilon.")
    asked = query_options(args)
    given: StepOptions = {"delta": asked["delta"], "groups": asked["groups"], "rows": asked["rows"]}
    given |= {"parameters": asked["parameters"], "raw": asked["raw"], "dialect": asked["dialect"]}
    reached = session.query_within(sql, within=args.within, at_most=args.at_most, key=key, **given)
    if output.format_of(args) == "table":
        verdict = "as exact as asked" if reached.met else "less exact than asked"
        console.print(
            f"{verdict}; {len(reached.bought)} answers cost ε = {brief(reached.spent)} together", markup=False
        )
    return reached.release
