"""`hubbub analyst`: manage analysts and their access tokens.

Tested in tests/cli/test_serve.py.
"""

import argparse
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.accounting.filters import Budget
from hubbub.answers import terminal
from hubbub.cli import options, output
from hubbub.config import Config, load
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.curator.opening import policy_problems
from hubbub.errors import ParameterError
from hubbub.server.accounts import Accounts, seconds
from hubbub.server.state import State, TokenRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub analyst add ana --cap visits=1
  hubbub analyst token ana --days 30"""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    add = actions.add_parser("add", help="add an analyst to hubbub.yaml, or change their budget caps")
    add.add_argument("name", help="name of the analyst")
    add.add_argument("--cap", action="append", default=[], metavar="DATASET=ε", help="budget on a dataset; repeatable")
    remove = actions.add_parser("remove", help="remove an analyst from hubbub.yaml and revoke their tokens")
    remove.add_argument("name", help="name of the analyst")
    listing = actions.add_parser("list", help="list analysts and tokens")
    output.add_output(listing)
    token = actions.add_parser("token", help="create a token; it is shown only once")
    token.add_argument("name", help="name of the analyst, owner, auditor, steward or feeder")
    token.add_argument(
        "--role",
        default="analyst",
        choices=["analyst", "owner", "auditor", "steward", "feeder"],
        help="role (default: %(default)s)",
    )
    token.add_argument(
        "--stream",
        action="append",
        default=[],
        metavar="ANALYST/NAME",
        help="stream that a feeder may feed; repeatable",
    )
    token.add_argument("--days", type=int, default=90, metavar="N", help="lifetime in days (default: %(default)s)")
    revoke = actions.add_parser("revoke", help="revoke a token permanently")
    revoke.add_argument("name", metavar="ID", help="the token's ID, as in hubbub analyst list")
    for action in (add, remove, listing, token, revoke):
        options.add_config(action)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    path = Path(args.config)
    config = load(path)
    state = State.open(config)
    try:
        accounts = Accounts(state, analysts=lambda: load(path).policy.analysts)
        accounts.withdraw()
        match args.action:
            case "list":
                _list(args, config, state, console)
            case "add":
                _add(args, path, console)
            case "remove":
                _remove(args, path, state, console)
            case "token":
                _token(args, accounts)
            case _:
                accounts.revoke(args.name)
                console.print(f"Revoked the token {escape(args.name)} and every session that was started with it.")
    finally:
        state.close()
    return 0


def _add(args: argparse.Namespace, path: Path, console: Console) -> None:
    from hubbub.server import config_editor

    caps = {}
    for text in args.cap:
        dataset, equals, epsilon = text.rpartition("=")
        if not equals:
            raise ParameterError("HB145", f"{text!r} is not a cap.", "Write a dataset and an ε: --cap visits=0.5")
        caps[dataset] = Budget(numbers.epsilon(epsilon, f"--cap {dataset}"), Fraction(0))
    config_editor.edit(path, config_editor.put_analyst(args.name, caps), accept=_check_ledger)
    name = escape(args.name)
    console.print(f"{name} is in {escape(str(path))}. Create a token: hubbub analyst token {name}")


def _check_ledger(config: Config) -> None:
    """Reject a hubbub.yaml that contradicts the ledger."""
    for problem in policy_problems(config):
        raise problem


def _remove(args: argparse.Namespace, path: Path, state: State, console: Console) -> None:
    from hubbub.server import config_editor

    # tokens first: if the edit fails, the analyst is still locked out
    revoked = state.tokens.revoke_all(args.name, "analyst", seconds())
    config_editor.edit(path, config_editor.remove_analyst(args.name))
    console.print(
        f"Removed {escape(args.name)} and revoked {revoked} of their tokens. Their past charges stay in the ledger."
    )


def _token(args: argparse.Namespace, accounts: Accounts) -> None:
    issued = accounts.issue(args.name, args.role, args.days, args.stream)
    print(issued.text)  # noqa: T201 - alone on standard output, so that it can be piped
    note = (
        f"Token for the {args.role} {args.name}, valid until {_day(issued.token.expires)}. It is shown only once:"
        " copy it now."
    )
    Console(stderr=True, highlight=False).print(escape(note))


def _list(args: argparse.Namespace, config: Config, state: State, console: Console) -> None:
    with_caps = [
        (name, dataset, brief(cap.budget.epsilon))
        for name, caps in config.policy.analysts.items()
        for dataset, cap in caps.items()
    ]
    without_caps = [(name, "", "") for name, caps in config.policy.analysts.items() if not caps]
    tokens = [
        (token.id, token.name, token.role, _day(token.created), _validity(token), token.used or "never")
        for token in state.tokens.list()
    ]

    def show(where: Console) -> None:
        where.print(terminal.table(("analyst", "dataset", "ε"), [*with_caps, *without_caps], right=(2,)))
        where.print()
        where.print(terminal.table(("token", "of", "role", "created", "valid until", "last used"), tokens))

    names = ("analyst", "dataset", "epsilon", "token", "role", "created", "valid_until", "last_used")
    lines: list[tuple[str, ...]] = [(*line, "", "", "", "", "") for line in (*with_caps, *without_caps)]
    lines += [(of, "", "", number, *rest) for number, of, *rest in tokens]
    output.rows(names, lines, [dict(zip(names, line, strict=True)) for line in lines], args, console, show)


def _validity(token: TokenRecord) -> str:
    if token.revoked is not None:
        return f"revoked {_day(token.revoked)}"
    return _day(token.expires) if token.expires > seconds() else "expired"


def _day(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).date().isoformat()
