"""`hubbub schedule`: run a query once for each block that has ended.

Tested in tests/curator/test_schedule.py.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hubbub.answers import terminal
from hubbub.answers.over_time import growing_rows
from hubbub.cli import options, output
from hubbub.cli.progress import working
from hubbub.config import Config, load
from hubbub.curator.opening import folder_of, is_postgres, open_curator
from hubbub.curator.schedule import ScheduledRun, answers, checked, run_due
from hubbub.curator.schedule_list import Schedules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub schedule add "SELECT COUNT(*) FROM visits WHERE day >= $1 AND day < $2" --every month --epsilon 0.1
      --name visits --analyst ana
  hubbub schedule run                        run what is due, without a server (`hubbub serve` does it by itself)
  hubbub schedule show visits > visits.csv   all answers, one block after the other (free)"""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    added = actions.add_parser("add", help="add a query; $1 is the first day of a block, $2 the day after its last")
    added.add_argument("sql", metavar="SQL", help="the query, restricted to one block by $1 and $2")
    added.add_argument("--name", required=True, help="a name for the query")
    added.add_argument("--every", required=True, choices=("day", "week", "month", "year"), help="length of the blocks")
    added.add_argument("-e", "--epsilon", required=True, metavar="ε", help="privacy cost for each block")
    added.add_argument("-a", "--analyst", required=True, metavar="NAME", help="analyst to charge")
    added.add_argument("--from", dest="first", metavar="BLOCK", help="the first block (default: the current one)")
    added.add_argument(
        "--wait", type=int, default=1, metavar="DAYS", help="days to wait for late rows after a block (default 1)"
    )
    added.set_defaults(act=_add)
    listed = actions.add_parser("list", help="list scheduled queries")
    output.add_output(listed)
    listed.set_defaults(act=_list)
    removed = actions.add_parser("remove", help="remove a query; its answers stay in the ledger")
    removed.add_argument("name", help="name of a scheduled query")
    removed.add_argument("-a", "--analyst", metavar="NAME", help="whose query, if several have the name")
    removed.set_defaults(act=_remove)
    ran = actions.add_parser("run", help="run each query for each block that has ended, once")
    ran.set_defaults(act=_run)
    shown = actions.add_parser("show", help="show all answers of a query, with intervals: CSV unless --format (free)")
    output.add_output(shown)
    shown.add_argument("name", help="name of a scheduled query")
    shown.add_argument("-a", "--analyst", metavar="NAME", help="whose query, if several have the name")
    shown.set_defaults(act=_show)
    for action in (added, listed, removed, ran, shown):
        options.add_config(action)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if a query was refused for some block."""
    code: int = args.act(args, console)
    return code


def _schedules(args: argparse.Namespace) -> Schedules:
    return Schedules(folder_of(load(Path(args.config))))


def _add(args: argparse.Namespace, console: Console) -> int:
    config = load(Path(args.config))
    with open_curator(config) as curator:
        schedule = checked(
            curator,
            args.analyst,
            args.sql,
            name=args.name,
            every=args.every,
            epsilon=args.epsilon,
            first=args.first,
            wait=args.wait,
        )
    _schedules(args).add(schedule)
    console.print(
        escape(f"{schedule.name} runs once for each {args.every} of {schedule.dataset}, from {schedule.first}")
    )
    days = f"{args.wait} {'day' if args.wait == 1 else 'days'} after its end" if args.wait else "when it has ended"
    console.print(f"{days}. `hubbub serve` runs it; without a server, call `hubbub schedule run` from cron.")
    return 0


def _list(args: argparse.Namespace, console: Console) -> int:
    config = load(Path(args.config))
    paused = _shut_out(config)
    rows = [
        (
            each.name,
            each.analyst,
            each.dataset,
            each.first,
            each.epsilon,
            "paused" if each.analyst in paused else "runs",
            each.sql,
        )
        for each in Schedules(folder_of(config)).list()
    ]
    headings = ("name", "analyst", "dataset", "from", "ε", "state", "query")
    names = ("name", "analyst", "dataset", "from", "epsilon", "state", "query")
    form = [dict(zip(names, row, strict=True)) for row in rows]
    output.rows(names, rows, form, args, console, lambda where: where.print(terminal.table(headings, rows, right=(4,))))
    return 0


def _remove(args: argparse.Namespace, console: Console) -> int:
    _schedules(args).remove(args.name, args.analyst)
    console.print(escape(f"{args.name} was removed."))
    return 0


def _run(args: argparse.Namespace, console: Console) -> int:
    refused, config = 0, load(Path(args.config))
    with open_curator(config) as curator:
        runs = run_due(curator, Schedules(folder_of(config)), lambda analyst: analyst in _shut_out(config))
        while (result := _next(runs)) is not None:
            refused += bool(result.refused)
            console.print(escape(f"{result.name} {result.block}".rstrip() + f": {result.refused or 'answered'}"))
    return 1 if refused else 0


def _shut_out(config: Config) -> frozenset[str]:
    """Return the analysts whose tokens were revoked, if there is a server that gave them some."""
    from hubbub.server.accounts import Accounts
    from hubbub.server.service import read_settings
    from hubbub.server.state import State

    if not is_postgres(config) and not (folder_of(config) / "server.db").exists():
        return frozenset()
    if read_settings(config.path).oidc is not None:
        return frozenset()
    state = State.open(config)
    try:
        return Accounts(state, analysts=lambda: config.policy.analysts).shut_out()
    finally:
        state.close()


def _next(runs: Iterator[ScheduledRun]) -> ScheduledRun | None:
    with working("running"):
        return next(runs, None)


def _show(args: argparse.Namespace, console: Console) -> int:
    schedule = _schedules(args).find(args.name, args.analyst)
    with open_curator(load(Path(args.config))) as curator:
        names, lines = growing_rows(answers(curator, schedule))
    if args.format is None and args.output is None:
        args.format = "csv"
    form = [dict(zip(names, line, strict=True)) for line in lines]
    output.rows(names, lines, form, args, console, lambda where: where.print(_table(names, lines)))
    return 0


def _table(names: Sequence[str], lines: Sequence[Sequence[output.Cell]]) -> Table:
    return terminal.table(names, [["" if cell is None else str(cell) for cell in line] for line in lines])
