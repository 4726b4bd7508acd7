"""`hubbub publish`: write a result to files, with its data sheet and receipt."""

import argparse
import json
import re

from rich.console import Console

from hubbub.answers.publish import FORMATS
from hubbub.answers.release import Release
from hubbub.cli import options, output
from hubbub.cli.session import query_options, read_sql, read_text, running, session_of
from hubbub.core.call import AnalysisCall
from hubbub.errors import ParameterError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub publish "SELECT region, COUNT(*) FROM visits GROUP BY region" --epsilon 1 --to out
  hubbub publish cube visits --columns region,age,sex --measures 'count,sum(cost)' --order 2 --epsilon 1
                                    buy all marginals of up to two columns; --to also writes files
  hubbub publish 12 --to out        publish an earlier release, by its number in hubbub audit ledger
  hubbub publish 12 -o visits.csv   write its data alone"""
    options.add_query(parser)
    parser.add_argument("dataset", nargs="?", metavar="DATASET", help="of a cube: publish cube DATASET")
    parser.add_argument("--columns", metavar="A,B", help="columns of a cube")
    parser.add_argument("--measures", default="count", metavar="M,N", help="of a cube: count, sum(x) (default: count)")
    parser.add_argument("--order", type=int, default=2, metavar="N", help="most columns of one marginal (default: 2)")
    parser.add_argument("--to", metavar="FOLDER", help="folder to write to; optional for a cube")
    parser.add_argument("--name", help="base name of the files (default: the name of the analysis)")
    parser.add_argument("--title", help="title of the data sheet")
    parser.add_argument("--notes", metavar="TEXT", help="introduction of the data sheet; @file reads it from a file")
    parser.add_argument(
        "--format",
        action="append",
        choices=output.FORMATS,
        help="data format; repeatable with --to (default: csv and parquet; a table without --to)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the data alone to one file, without a data sheet")
    options.add_key(parser)
    parser.add_argument("--force", action="store_true", help="replace existing files")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command: publish a new result, or an earlier release by its number."""
    text = read_sql(args)
    if text == "cube" or args.dataset or args.columns:
        text = _cube(args)
    if args.to is None and args.output is None and not text.startswith("CALL cube("):
        raise ParameterError("HB172", "No folder was given.", "Pass --to FOLDER, or -o FILE.")
    if args.to is not None and args.output is not None:
        raise ParameterError("HB172", "--to and -o were both given.", "Pass one of them.")
    number = re.fullmatch(r"\s*\d{1,18}\s*", text, re.ASCII)
    if (args.epsilon is None and args.within is None) != bool(number):
        raise ParameterError(
            "HB172",
            "A query needs a privacy cost; an earlier release has none.",
            "Pass --epsilon with a query, or the number of a release alone (hubbub audit ledger lists them).",
        )
    with session_of(args) as session:
        subject = session.release(int(text)) if number else text
        if args.to is None:
            if not isinstance(subject, Release):
                with running(session):
                    subject = session.query(subject, key=args.key, **query_options(args))
            output.release(subject, args, console)
            return 0
        with running(session):
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


def _cube(args: argparse.Namespace) -> str:
    """Write the call of a cube."""
    if args.sql != "cube" or not args.dataset or not args.columns:
        raise ParameterError(
            "HB172",
            "A cube needs a dataset and columns.",
            "Write hubbub publish cube visits --columns region,age -e 1.",
        )
    arguments = {
        "table": args.dataset,
        "columns": [each.strip() for each in args.columns.split(",")],
        "measures": [each.strip() for each in args.measures.split(",")],
        "order": args.order,
    }
    return AnalysisCall("cube", arguments).text()
