"""`hubbub demo`: take a guided tour on sample data, then try a server."""

import argparse
from pathlib import Path

from rich.console import Console

from hubbub import demo


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub demo                       take the tour
  hubbub demo --into my-demo        copy the sample data and its hubbub.yaml, to run your own queries"""
    parser.add_argument("--once", action="store_true", help="exit after the tour instead of serving until Ctrl-C")
    parser.add_argument("--into", metavar="FOLDER", help="only copy the demo's files to this folder")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if args.into is not None:
        demo.copy_files(Path(args.into), console)
    else:
        demo.run(console, once=args.once)
    return 0
