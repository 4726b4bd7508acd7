"""The arguments of `hubbub audit`."""

import argparse
from collections.abc import Callable
from typing import get_args

from rich.console import Console

from hubbub.accounting.chain import Kind

Command = Callable[[argparse.Namespace, Console], int]


def arguments(
    parser: argparse.ArgumentParser, command: Callable[[str, str], Command], config: Callable[..., None]
) -> None:
    """Add the parts of the command."""
    parts = parser.add_subparsers(dest="what", required=True, metavar="what")
    ledger = parts.add_parser("ledger", help="who asked what, when, at which price")
    config(ledger)
    ledger.add_argument("--analyst", help="only this one's entries")
    ledger.add_argument("--dataset", help="only entries on this dataset")
    ledger.add_argument("--kind", choices=get_args(Kind))
    ledger.add_argument("--since", metavar="TIME", help="such as 2026-01-31 (UTC)")
    ledger.add_argument("--until", metavar="TIME", help="up to before this time")
    ledger.add_argument("--unreleased", action="store_true", help="only charges that never got an answer")
    ledger.add_argument("--newest", action="store_true", help="newest first")
    ledger.add_argument("--limit", type=int, metavar="N", help="at most so many")
    ledger.add_argument("--json", action="store_true")
    ledger.add_argument("--csv", action="store_true")
    ledger.set_defaults(run=command("hubbub.cli.operator", "audit"))

    release = parts.add_parser("release", help="derive one release again, and replay its plan on made-up neighbors")
    release.add_argument("number", type=int, metavar="NUMBER", help="of its charge, as in hubbub audit ledger")
    config(release)
    release.add_argument("--worlds", type=int, default=10, metavar="N", help="made-up datasets to replay it on")
    release.add_argument("--json", action="store_true", help="print JSON")
    release.set_defaults(run=command("hubbub.cli.auditing", "release"))

    own = parts.add_parser("self", help="audit the product itself on made-up data, and sign a report: for every night")
    config(own)
    own.add_argument("--seconds", type=float, default=60.0, metavar="S", help="how long at most (default 60)")
    own.add_argument("--out", metavar="FILE", help="where to write the report (default: print it)")
    own.add_argument("--key", metavar="FILE", help="what signs it (default: audit.key beside the ledger)")
    own.set_defaults(run=command("hubbub.cli.auditing", "own"))

    report = parts.add_parser("check-report", help="say whether a report is as it was signed, and what it says")
    report.add_argument("file", metavar="FILE")
    config(report)
    report.add_argument("--public", metavar="FILE", help="the public half (default: audit.pub beside the ledger)")
    report.set_defaults(run=command("hubbub.cli.auditing", "check_report"))
