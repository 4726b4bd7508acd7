"""The words of `hubbub explain`; what it does is in `meaning`."""

import argparse
from collections.abc import Callable
from typing import Any

_GUIDE = """\
hubbub explain --epsilon 1                    what ε = 1 lets anybody learn about one person
hubbub explain --epsilon 1 --delta 1e-6 --n 50000
hubbub explain smoking                        a worked example that runs: smoking, dalenius or height
hubbub explain separation --epsilon 1         publishing once against asking: what each tells of a parity
hubbub explain --dataset visits               everything asked so far by everybody, from the ledger
hubbub explain --dataset visits --analyst ana (or --group interns)
"""


def arguments(
    parser: argparse.ArgumentParser,
    command: Callable[[str, str], Any],
    config: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add the words."""
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, _GUIDE
    parser.add_argument(
        "example", nargs="?", choices=["smoking", "dalenius", "height", "separation"], help="tell a worked example"
    )
    parser.add_argument("-e", "--epsilon", metavar="ε", help="the promise to explain")
    parser.add_argument("--delta", metavar="δ", default="0", help="its δ (default none)")
    parser.add_argument("--n", type=int, metavar="N", help="how many people are in the data")
    parser.add_argument("--belief", metavar="%", default="50", help="how sure somebody is beforehand (default 50)")
    parser.add_argument("--family", type=int, metavar="K", default=4, help="how many people together (default 4)")
    parser.add_argument("--dataset", metavar="NAME", help="explain what was asked so far, from the ledger")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("-a", "--analyst", metavar="NAME", help="with --dataset: by this one alone")
    who.add_argument("--group", metavar="NAME", help="with --dataset: by the members of this group")
    config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=command("hubbub.cli.meaning", "explain"))
