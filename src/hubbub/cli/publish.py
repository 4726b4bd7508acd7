"""`hubbub publish`: write a result to files, with its data sheet and receipt."""

import argparse
import json
import re

from rich.console import Console

from hubbub.answers.publish import FORMATS
from hubbub.cli import options
from hubbub.cli.session import elapsed_time, query_options, read_sql, read_text, session_of
from hubbub.errors import ParameterError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub publish "SELECT region, COUNT(*) FROM visits GROUP BY region" --epsilon 1 --to out
  hubbub publish 12 --to out        publish an earlier release, by its number in hubbub audit ledger"""
    options.add_query(parser)
    parser.add_argument("--to", required=True, metavar="FOLDER", help="folder to write to")
    parser.add_argument("--name", help="base name of the files (default: the name of the analysis)")
    parser.add_argument("--title", help="title of the data sheet")
    parser.add_argument("--notes", metavar="TEXT", help="introduction of the data sheet; @file reads it from a file")
    parser.add_argument(
        "--format", action="append", choices=["csv", "parquet"], help="data format; repeatable (default: both)"
    )
    options.add_key(parser)
    parser.add_argument("--force", action="store_true", help="replace existing files")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command: publish a new result, or an earlier release by its number."""
    text = read_sql(args)
    number = re.fullmatch(r"\s*\d{1,18}\s*", text, re.ASCII)
    if (args.epsilon is None and args.within is None) != bool(number):
        raise ParameterError(
            "HB172",
            "A query needs a privacy cost; an earlier release has none.",
            "Pass --epsilon with a query, or the number of a release alone (hubbub audit ledger lists them).",
        )
    with session_of(args) as session:
        subject = session.release(int(text)) if number else text
        with elapsed_time():
            paths = session.publish(
                subject,
                args.to,
                name=args.name,
                title=args.title,
                notes=read_text(args.notes),
                formats=args.format or FORMATS,
                force=args.force,
                key=args.key,
                **query_options(args),
            )
    if args.json:
        print(json.dumps([str(path) for path in paths]))  # noqa: T201
    else:
        for path in paths:
            console.print(str(path), markup=False, soft_wrap=True)
    return 0
