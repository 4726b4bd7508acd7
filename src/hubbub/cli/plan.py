"""`hubbub plan`: show a query's privacy cost and expected accuracy."""

import argparse

from rich.console import Console

from hubbub.answers import render
from hubbub.answers.estimate import Estimate
from hubbub.cli import options, output
from hubbub.cli.session import query_options, read_sql, session_of
from hubbub.semantics.odds import EVEN, certainty


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = 'example:\n  hubbub plan "SELECT COUNT(*) FROM visits" --epsilon 0.1'
    options.add_query(parser)
    output.add_output(parser)
    parser.add_argument("--sql", dest="show_sql", action="store_true", help="also show the SQL that the engine runs")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if the query would be refused."""
    with session_of(args) as session:
        estimate = session.estimate(read_sql(args), **query_options(args))
    sure = certainty(EVEN, epsilon=estimate.epsilon, delta=estimate.delta, word=" sure")
    output.rows(
        _COLUMNS,
        _lines(estimate),
        estimate.to_json(),
        args,
        console,
        lambda where: render.estimate(estimate, where, certainty=sure, sql=args.show_sql),
    )
    return 0 if estimate.admitted else 1


#: The columns of the margins of error: `group_rows` is the size of the group that an average is of, if it matters.
_COLUMNS = ("output", "epsilon", "plus_minus", "unit", "group_rows")


def _lines(estimate: Estimate) -> list[tuple[output.Cell, ...]]:
    """List the margin of error of each output, at the price that was asked about and at others."""
    prices = estimate.scaling or ((estimate.epsilon, estimate.expected),)
    return [
        (each.name, float(epsilon), float(each.plus_minus), each.unit, each.rows)
        for epsilon, expected in prices
        for each in expected
    ]
