"""Options that several commands share.

Tested in tests/cli/test_cli.py.
"""

import argparse
import os

from hubbub.cli.output import add_output


class Help(argparse.RawDescriptionHelpFormatter):
    """Prints text of several lines as it is written, and wraps a paragraph."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)  # noqa: SLF001 - the next in line


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config."""
    default = os.environ.get("HUBBUB_CONFIG") or "hubbub.yaml"
    parser.add_argument("-c", "--config", default=default, metavar="PATH", help="configuration (default: %(default)s)")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_session(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    """Add the options that choose a local hubbub.yaml or a server, and --json."""
    add_config(parser)
    parser.add_argument(
        "-a", "--analyst", metavar="NAME", help="analyst to charge (default: the only one in hubbub.yaml)"
    )
    parser.add_argument(
        "--server",
        metavar="URL",
        help="send the query to a server (default: HUBBUB_URL); set HUBBUB_TOKEN to your token,"
        " or HUBBUB_TOKEN_FILE to a file that contains it",
    )
    if json:
        add_json(parser)


def add_query(parser: argparse.ArgumentParser) -> None:
    """Add a query and everything that sets its privacy cost and accuracy."""
    parser.add_argument("sql", metavar="SQL", help="the query; @file.sql reads it from a file, - from standard input")
    add_session(parser)
    cost = parser.add_mutually_exclusive_group()
    cost.add_argument("-e", "--epsilon", metavar="ε", help="privacy cost, such as 0.1; not needed for public tables")
    cost.add_argument(
        "-w",
        "--within",
        metavar="±",
        help="target margin of error, instead of ε: 50, in the units of the result; or 5%%, of a group of 1,000 rows"
        " for counts, sums and ranks, and of the scale that the column bounds give for averages",
    )
    add_bounds(parser)
    parser.add_argument(
        "--weight", action="append", default=[], metavar="NAME=W", help="make output NAME W times as accurate as others"
    )
    parser.add_argument(
        "--intervals",
        choices=("each", "joint"),
        default="each",
        help="whether each interval holds with 95%%, or all intervals of the result at once (free: the same noise)",
    )
    parser.add_argument(
        "--dialect",
        choices=("duckdb", "postgres", "spark", "bigquery", "snowflake", "tsql"),
        default="duckdb",
        help="SQL dialect in which the query is written (default: %(default)s), whatever the engine",
    )
    parser.add_argument(
        "--noise",
        choices=("laplace", "gaussian"),
        help="default: the one with the smaller error at this ε; with --within, the one that takes less of the budget",
    )
    parser.add_argument("--raw", action="store_true", help="return unadjusted estimates, including negative counts")
    parser.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="VALUE", help="value for $1, $2, …; repeatable"
    )


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Add δ and the contribution bounds of a query."""
    parser.add_argument(
        "--delta",
        metavar="δ",
        help="default: the δ of the budget, a thousandth of it for groups that are not declared; 0 requires pure DP",
    )
    parser.add_argument(
        "--groups", type=int, metavar="N", help="count each privacy unit in at most N groups (reduces noise)"
    )
    parser.add_argument("--rows", type=int, metavar="N", help="count at most N rows per privacy unit in each group")


def add_result(parser: argparse.ArgumentParser) -> None:
    """Add the options for the result of a query."""
    add_output(parser)
    parser.add_argument("--csv", action="store_true", help="print CSV, with name_low and name_high for each interval")
    parser.add_argument("--export", metavar="FILE", help="write all rows to a file: .csv, .parquet or .arrow")
    parser.add_argument("--receipt", metavar="FILE", help="write the result and its receipt here, for hubbub verify")
    add_key(parser)
    parser.add_argument("--fresh", action="store_true", help="run again with fresh noise and pay again")
    parser.add_argument(
        "--combine", action="store_true", help="pay less where earlier releases and a new one are as exact together"
    )
    parser.add_argument("--sandbox", action="store_true", help="answer on made-up rows; nothing is charged or recorded")
    parser.add_argument("--free", action="store_true", help="answer only if nothing has to be charged")


def add_key(parser: argparse.ArgumentParser) -> None:
    """Add --key."""
    parser.add_argument("--key", help="idempotency key: the same key returns the same result at no further cost")
