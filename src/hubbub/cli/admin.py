"""`hubbub admin`: handle changed data, failed queries, a lost or moved ledger, and whole deployments.

Tested in tests/cli/test_cli.py.
"""

import argparse
import getpass
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.accounting import sqlite_schema
from hubbub.accounting.blocks import close_block
from hubbub.accounting.failures import Failures, review
from hubbub.accounting.filters import Budget
from hubbub.accounting.forfeit import forfeit, reanchor
from hubbub.accounting.ledger import Ledger
from hubbub.answers import terminal
from hubbub.cli import admin_deployment, options, output
from hubbub.cli.progress import working
from hubbub.config import Config, load
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.core.schema import unknown_dataset
from hubbub.curator.opening import anchor_of, folder_of, is_postgres, key_problems, store_of
from hubbub.curator.versions import Versions
from hubbub.errors import ParameterError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub admin refresh visits
  hubbub admin failures --clear ana visits
  hubbub admin close-block visits 2025-01 --by olga --reason "retention ended"
  hubbub admin forfeit --by olga --reason "disk failure" --epsilon 1
  hubbub admin export hospital.tar.gz --move --by olga --reason "new machine" --yes
  hubbub admin import hospital.tar.gz --into /var/lib/hubbub --by olga --reason "new machine"
  hubbub admin migrate --dry-run
  hubbub admin rotate-key"""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    lost = actions.add_parser("forfeit", help="recover from a lost ledger by writing off the budget it may have spent")
    lost.add_argument("--by", required=True, help="who decided this; recorded in the ledger")
    lost.add_argument("--reason", required=True, help="why; recorded in the ledger")
    lost.add_argument("--epsilon", metavar="ε", help="amount to write off of each cap (default: all of it)")
    lost.add_argument("--delta", metavar="δ", help="δ to write off, with --epsilon")
    lost.add_argument("--yes", action="store_true", help="confirm")
    lost.set_defaults(act=_forfeit)
    moved = actions.add_parser("anchor", help="create a new anchor for a ledger that was moved (free)")
    moved.add_argument("--by", required=True, help="who vouches that it is the newest copy; recorded in the ledger")
    moved.add_argument("--reason", required=True, help="why; recorded in the ledger")
    moved.add_argument("--yes", action="store_true", help="confirm")
    moved.set_defaults(act=_reanchor)
    refresh = actions.add_parser("refresh", help="mark a dataset as changed, so that cached answers are not reused")
    refresh.add_argument("dataset", nargs="+", metavar="DATASET", help="name of a dataset")
    refresh.set_defaults(act=_refresh)
    failed = actions.add_parser("failures", help="list queries that failed after they were charged, or clear them")
    failed.add_argument(
        "--clear", nargs=2, metavar=("ANALYST", "DATASET"), help="mark the failures as reviewed, so queries may go on"
    )
    failed.add_argument("--by", metavar="NAME", help="reviewer, with --clear; recorded in the ledger (default: you)")
    output.add_output(failed)
    failed.set_defaults(act=_failures)
    closed = actions.add_parser("close-block", help="close a block of a dataset for good: nothing reads it again")
    closed.add_argument("dataset", metavar="DATASET", help="name of a dataset")
    closed.add_argument("block", metavar="BLOCK", help="name of a block, such as 2025-01")
    closed.add_argument("--by", required=True, help="who decided this; recorded in the ledger")
    closed.add_argument("--reason", required=True, help="why; recorded in the ledger")
    closed.add_argument("--yes", action="store_true", help="confirm")
    closed.set_defaults(act=_close_block)
    for action in (lost, moved, refresh, failed, closed):
        options.add_config(action)
    admin_deployment.add_actions(actions)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if args.act is admin_deployment.import_:
        admin_deployment.import_(args, console)
        return 0
    return args.act(args, load(Path(args.config)), console) or 0


def _forfeit(args: argparse.Namespace, config: Config, console: Console) -> None:
    amount = None
    if args.epsilon is not None:
        delta = Fraction(0) if args.delta is None else numbers.delta(args.delta)
        amount = Budget(numbers.epsilon(args.epsilon), delta)
    extent = "the whole budget of every cap" if amount is None else f"ε = {brief(amount.epsilon)} of every cap"
    if not args.yes:
        raise ParameterError(
            "HB135",
            f"This permanently writes off {extent}, in the name of {args.by!r}. Nothing was done.",
            "Look for the newest ledger and anchor first: with them nothing is lost. Then pass --yes to confirm.",
        )
    record = forfeit(
        lambda: store_of(config),
        lambda: _set_aside(config),
        policy=config.policy,
        anchor=anchor_of(config),
        by=args.by,
        reason=args.reason,
        amount=amount,
    )
    console.print(
        terminal.table(
            ("cap", "written off: ε", "δ"),
            [(label, brief(budget.epsilon), brief(budget.delta)) for label, budget in record.charged.items()],
            right=(1, 2),
        )
    )
    if record.set_aside:
        console.print(f"The unusable database was moved to {escape(record.set_aside)}.")
    console.print(f"Recorded as entry {record.sequence}. The ledger can be used again.")


def _set_aside(config: Config) -> str:
    """Move an unusable ledger out of the way and return its new location."""
    if is_postgres(config):
        from hubbub.accounting import postgres

        return postgres.set_aside(config.places.database or "")
    return sqlite_schema.set_aside(config.database)


def _reanchor(args: argparse.Namespace, config: Config, console: Console) -> None:
    anchor = anchor_of(config)
    if not args.yes:
        raise ParameterError(
            "HB135",
            f"This creates a new anchor at {anchor.where}: {args.by!r} vouches that this ledger is the newest copy. "
            "Nothing was done.",
            "Pass --yes to confirm. If an older copy was restored, charges are missing: use hubbub admin forfeit.",
        )
    number = reanchor(lambda: store_of(config), policy=config.policy, anchor=anchor, by=args.by, reason=args.reason)
    console.print(f"The anchor is {escape(anchor.where)}. Entry {number} of the ledger records who vouched for it.")


def _refresh(args: argparse.Namespace, config: Config, console: Console) -> None:
    for name in args.dataset:
        if name not in config.datasets:
            raise unknown_dataset(name, tuple(config.datasets))
    versions = Versions(folder_of(config) / "versions.json")
    for name in args.dataset:
        versions.refresh(name)
        console.print(f"{escape(name)} has a new version: cached answers are not reused.")
    with working("checking declared keys in the data"):
        problems = [*key_problems(config, args.dataset)]
    for problem in problems:
        raise problem


def _close_block(args: argparse.Namespace, config: Config, console: Console) -> None:
    if not args.yes:
        raise ParameterError(
            "HB135",
            f"This closes {args.block} of {args.dataset} for good, in the name of {args.by!r}. Nothing was done.",
            "Pass --yes to confirm. Released answers stay; no later query reads these rows.",
        )
    with Ledger.open(store_of(config), policy=config.policy, anchor=anchor_of(config)) as ledger:
        number = close_block(ledger, args.dataset, args.block, by=args.by, reason=args.reason)
    console.print(escape(f"{args.block} of {args.dataset} is closed for good. Recorded as entry {number}."))


def _failures(args: argparse.Namespace, config: Config, console: Console) -> None:
    if args.clear:
        analyst, dataset = args.clear
        with Ledger.open(store_of(config), policy=config.policy, anchor=anchor_of(config)) as ledger:
            charges = review(ledger, analyst, dataset, by=args.by or getpass.getuser())
        console.print(escape(f"Recorded: {analyst} may query {dataset} again. Reviewed: {_numbers(charges)}."))
        return
    store, failures = store_of(config, read_only=True), Failures()
    try:
        with store.snapshot() as snapshot:
            failures.take_in(snapshot)
    finally:
        store.close()
    rows = [
        (analyst, dataset, len(charges), _allowed(config, dataset), _numbers(charges))
        for (analyst, dataset), charges in failures.every().items()
    ]
    names = ("analyst", "dataset", "failed", "allowed", "charges")

    def show(where: Console) -> None:
        if not rows:
            where.print("No query failed after its charge since the last review.")
            return
        where.print(terminal.table(names, [(*row[:2], str(row[2]), *row[3:]) for row in rows], right=(2, 3)))

    output.rows(names, rows, [dict(zip(names, row, strict=True)) for row in rows], args, console, show)


def _allowed(config: Config, dataset: str) -> str:
    return str(config.datasets[dataset].failures) if dataset in config.datasets else ""


def _numbers(charges: tuple[int, ...]) -> str:
    return f"charge{'' if len(charges) == 1 else 's'} {', '.join(map(str, charges))}"
