"""`hubbub plan`: show a query's privacy cost and expected accuracy."""

import argparse
import json

from rich.console import Console

from hubbub.answers import render
from hubbub.cli import options
from hubbub.cli.session import query_options, read_sql, session_of
from hubbub.semantics.odds import EVEN, certainty


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = 'example:\n  hubbub plan "SELECT COUNT(*) FROM visits" --epsilon 0.1'
    options.add_query(parser)
    parser.add_argument("--sql", dest="show_sql", action="store_true", help="also show the SQL that the engine runs")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if the query would be refused."""
    with session_of(args) as session:
        estimate = session.estimate(read_sql(args), **query_options(args))
    if args.json:
        print(json.dumps(estimate.to_json()))  # noqa: T201
    else:
        sure = certainty(EVEN, epsilon=estimate.epsilon, delta=estimate.delta, word=" sure")
        render.estimate(estimate, console, certainty=sure, sql=args.show_sql)
    return 0 if estimate.admitted else 1
