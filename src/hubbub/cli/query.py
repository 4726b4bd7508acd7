"""`hubbub query`: run a query, show its result, and keep its receipt.

Tested in tests/cli/test_cli.py.
"""

import argparse
import json
import secrets
from pathlib import Path

from rich.console import Console

from hubbub.answers import render
from hubbub.cli import options, plan
from hubbub.cli.session import elapsed_time, query_options, read_sql, session_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub query "SELECT region, COUNT(*) FROM visits GROUP BY region" --epsilon 0.1
  hubbub query "SELECT AVG(age) FROM visits" --within 2 --receipt receipt.json"""
    options.add_query(parser)
    options.add_result(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    sql = read_sql(args)
    words = sql.split(None, 1)
    if words and words[0].upper() == "EXPLAIN":
        args.sql, args.show_sql = words[1] if len(words) > 1 else "", False
        return plan.run(args, console)
    with session_of(args) as session:
        key = secrets.token_hex(16) if args.fresh else args.key
        try:
            with elapsed_time():
                release = session.query(sql, key=key, **query_options(args))
        except KeyboardInterrupt:
            Console(stderr=True, highlight=False).print(
                "Stopped. If the query was already charged, run the same query again: it reuses the charge."
            )
            return 130
    if args.receipt:
        Path(args.receipt).write_text(json.dumps(release.document(), indent=1, ensure_ascii=False) + "\n")
    if args.json:
        print(json.dumps(release.to_dict(), ensure_ascii=False))  # noqa: T201
    elif args.csv:
        print(release.to_csv(), end="")  # noqa: T201
    else:
        render.release(release, console)
    return 0
