"""The arguments of `hubbub attack`, apart from what it does, so that help is quick."""

import argparse
from argparse import Namespace
from collections.abc import Callable

from rich.console import Console

_DESCRIPTION = """\
Do what a hostile analyst does, to see what a protection is worth: against no protection,
against naive ones, and against hubbub at several ε. Every attack counts its right guesses,
with an interval, beside what blind guessing gets and what the promise allows at most
(for one fair secret, e^ε/(1+e^ε): 52.5 % at ε = 0.1, 73.1 % at 1, 99.3 % at 5).
"""
_GUIDE = """\
examples:
  hubbub attack                                     all attacks, a line each
  hubbub attack linkage --about                     what one does, and what can be set
  hubbub attack linkage                             run it on a table that it makes up
  hubbub attack linkage people.csv --quasi PUMA,AGEP,SEX
                                                    who in your table is alone in these columns
  hubbub attack homogeneity people.csv --quasi zip,age --set sensitive=diagnosis --set k=10
  hubbub attack differencing --epsilon 0.1,1,10 --report differencing.html

Your table stays on this machine. Where an attack meets hubbub, it asks a real hubbub with a ledger
that is thrown away afterwards: nothing is charged to a budget of yours.
An attack that fails proves nothing, for a better one may come; the ceiling is what is proved.
"""

Command = Callable[[str, str], Callable[[Namespace, Console], int]]


def arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Say what `hubbub attack` takes."""
    parser.description, parser.epilog = _DESCRIPTION, _GUIDE
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", metavar="NAME", help="which attack; without it, all are listed")
    parser.add_argument("table", nargs="?", metavar="TABLE", help="a .csv or .parquet file of yours to attack")
    parser.add_argument(
        "-e", "--epsilon", default="0.1,1,5", metavar="ε,…", help="prices to attack hubbub at (default %(default)s)"
    )
    parser.add_argument("--quasi", metavar="A,B,…", help="the columns that an outsider may know of a person")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the attack")
    parser.add_argument("--seed", type=int, metavar="N", help="make the attacker's own coins the same again")
    parser.add_argument("--report", metavar="FILE", help="write a report to show: .html, .pdf, .svg or .json")
    parser.add_argument("--about", action="store_true", help="only say what the attack does and what can be set")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=command("hubbub.cli.attacking", "attack"))
