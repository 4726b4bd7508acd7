"""`hubbub demo`: take a guided tour on sample data, then try a server."""

import argparse
from io import StringIO
from pathlib import Path

from rich.console import Console

from hubbub import demo
from hubbub.cli import output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub demo                       take the tour
  hubbub demo --into my-demo        copy the sample data and its hubbub.yaml, to run your own queries
  hubbub demo -o tour.txt           write the tour to a file, without a server
  hubbub demo --format json         the answers of the tour, for a program"""
    parser.add_argument("--once", action="store_true", help="exit after the tour instead of serving until Ctrl-C")
    parser.add_argument("--into", metavar="FOLDER", help="only copy the demo's files to this folder")
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if args.into is not None:
        demo.copy_files(Path(args.into), console)
    elif args.format or args.output:
        told = StringIO()
        answers = demo.tour(Console(file=told, highlight=False, width=100))
        output.answers(answers, args, console, lambda where: where.out(told.getvalue(), end=""))
    else:
        demo.run(console, once=args.once)
    return 0
