"""The arguments of `hubbub sanitize`, apart from what it does, so that help is quick."""

import argparse
from argparse import Namespace
from collections.abc import Callable

from rich.console import Console

_DESCRIPTION = """\
Publish a table by a crowd sanitizer of 2005: NOT differentially private, never charged to a budget,
and there to be compared and attacked. For data to publish, use hubbub publish.
"""
_GUIDE = """\
sanitizers:
  histogram   cut space in half in every direction where 2t rows are together; publish exact counts
  ball        move each row to a random place within its crowd of t
  sphere      move each row by the radius of its crowd, in a random direction
  gaussian    add normal noise as wide as the crowd
  cross       a histogram of one half of the rows; the other half with noise as wide as its cells

examples:
  hubbub sanitize people.csv --columns age,income --with ball
                                       what it would be worth: who is singled out; nothing is written
  hubbub sanitize people.csv --columns age,income --bounds age=0:110 --step age=1 --with histogram --to out.csv
  hubbub sanitize people.csv --columns age,income --with ball --compare 0.1,1
                                       beside differentially private tables of the same rows
  hubbub sanitize --curves plots       how often adversaries succeed, over d, t and c, as SVG files
"""

Command = Callable[[str, str], Callable[[Namespace, Console], int]]


def arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Say what `hubbub sanitize` takes."""
    parser.description, parser.epilog = _DESCRIPTION, _GUIDE
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("table", nargs="?", metavar="TABLE", help="a .csv or .parquet file")
    parser.add_argument("--columns", metavar="A,B,…", help="the numeric columns to publish")
    parser.add_argument("--with", dest="kind", metavar="SANITIZER", help="one of those below")
    parser.add_argument("--t", type=int, default=10, metavar="N", help="the crowd to blend in with (default 10)")
    parser.add_argument("--c", type=float, default=4.0, metavar="X", help="how much nearer singles out (default 4)")
    parser.add_argument(
        "--bounds",
        action="append",
        default=[],
        metavar="COLUMN=LOW:HIGH",
        help="what the column is scaled by; without it, the least and the greatest value, which publishes both",
    )
    parser.add_argument(
        "--step", action="append", default=[], metavar="COLUMN=STEP", help="spread values within their step (1: whole)"
    )
    parser.add_argument("--to", metavar="FILE", help="write it as CSV here, with a note of what it does not promise")
    parser.add_argument("--compare", metavar="ε,…", help="set private tables of the same rows beside it")
    parser.add_argument("--curves", metavar="FOLDER", help="write plots of success over d, t and c; takes no table")
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.set_defaults(run=command("hubbub.cli.sanitizing", "command"))
