"""`hubbub budget`: show the budget spent and remaining.

Tested in tests/cli/test_cli.py.
"""

import argparse

from rich.console import Console

from hubbub.answers import render
from hubbub.answers.budget import BudgetOverview, CapState
from hubbub.cli import options, output
from hubbub.cli.session import session_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "example:\n  hubbub budget --analyst ana"
    options.add_session(parser)
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    with session_of(args) as session:
        budgets = session.budget()
    names = ("dataset", "cap", "spent", "epsilon", "remaining", "delta")
    lines = [
        (each.dataset, each.describe_cap(cap), "" if cap.spent is None else str(cap.spent), *_limits(cap))
        for each in budgets
        for cap in each.caps
    ]
    form = [budget.to_json() for budget in budgets]
    output.rows(names, lines, form, args, console, lambda where: _show(budgets, where))
    return 0


def _limits(cap: CapState) -> tuple[str, str, str]:
    return str(cap.epsilon), str(cap.left), str(cap.delta)


def _show(budgets: tuple[BudgetOverview, ...], console: Console) -> None:
    for budget in budgets:
        render.budget(budget, console)
