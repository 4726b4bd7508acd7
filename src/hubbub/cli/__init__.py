"""The command `hubbub`."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from rich.console import Console

from hubbub.answers import terminal
from hubbub.cli import attacks, audits, collecting, explaining, sanitizers
from hubbub.errors import HubbubError

_DESCRIPTION = """\
Answers about the crowd, never about the person: SQL over sensitive tables, with noise
that hides every single person, under a budget that cannot be overspent.
"""
_GUIDE = """\
owner:     hubbub init visits.parquet      write a hubbub.yaml; fill in its blanks
           hubbub check                    what it promises to whom
           hubbub serve                    let many analysts ask over HTTP; hubbub analyst token ana
analyst:   hubbub plan  "SELECT region, COUNT(*) FROM visits GROUP BY region" --epsilon 0.1
           hubbub query "SELECT region, COUNT(*) FROM visits GROUP BY region" --epsilon 0.1
           hubbub query "SELECT AVG(age) FROM visits" --within 2
           hubbub publish "CALL tabulate(table => 'visits', columns => ['region', 'age'])" --epsilon 1 --to out
           hubbub budget                   what is spent and left
officer:   hubbub audit ledger             who asked what, when, at which price
           hubbub verify ledger            derive everything in it again
           hubbub verify receipt.json      derive the loss of one answer, from its receipt alone
           hubbub audit release 12         the same from the ledger, and its plan on made-up neighbors
           hubbub audit self --out r.json  audit hubbub on made-up data, and sign a report
           hubbub attack linkage visits.csv --quasi zip,age    what a hostile analyst gets out of a table
           hubbub sanitize visits.csv --columns age,cost --with ball --compare 1   the crowd, beside a promise
no table:  hubbub stream make seen --kind density --universe 0:99999 --epsilon 2 --dataset visits
           hubbub survey init              answers that are randomized by who gives them

Start here: hubbub demo
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a refusal with its reason on standard error, 2 a slip in the command."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options, Console(highlight=False)))
    except HubbubError as error:
        terminal.error(Console(stderr=True, highlight=False), error)
        return 1
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped.")
        return 130
    except BrokenPipeError:  # the reader of a pipe has had enough
        sys.stderr.close()
        return 0


def _command(module: str, name: str) -> Callable[[argparse.Namespace, Console], int]:
    """Name a command's function; its module is loaded when it is called, so that help is quick."""

    def run(options: argparse.Namespace, console: Console) -> int:
        found: Callable[[argparse.Namespace, Console], int] = getattr(import_module(module), name)
        return found(options, console)

    return run


def _parser() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="hubbub", description=_DESCRIPTION, epilog=_GUIDE, formatter_class=layout)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", title="commands")

    demo = commands.add_parser("demo", help="a first private answer over bundled data, then a server to try")
    demo.add_argument("--once", action="store_true", help="end after the tour instead of serving until Ctrl-C")
    demo.add_argument("--into", metavar="FOLDER", help="only put the demo's files there, to go on with by yourself")
    demo.set_defaults(run=_command("hubbub.demo", "command"))

    init = commands.add_parser("init", help="write a hubbub.yaml for your files, with blanks to fill in")
    init.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="CSV or Parquet; duckdb:file#table; sqlite:file#table; postgresql://…/schema.table",
    )
    init.add_argument("--output", default="hubbub.yaml", metavar="PATH", help="where to write (default hubbub.yaml)")
    init.add_argument("--guess", action="store_true", help="guess types of CSV columns from values (reads them)")
    init.add_argument("--force", action="store_true", help="replace an existing file")
    init.set_defaults(run=_command("hubbub.cli.owner", "init"))

    check = commands.add_parser("check", help="say what hubbub.yaml promises to whom, or what is wrong with it")
    _config(check)
    check.add_argument("--schema", action="store_true", help="print the JSON Schema of hubbub.yaml, for editors")
    check.set_defaults(run=_command("hubbub.cli.owner", "check"))

    plan = commands.add_parser("plan", help="what a query would cost and how exact it would be (free)")
    _question(plan)
    plan.add_argument("--sql", dest="sql_text", action="store_true", help="also show what the engine would run")
    plan.set_defaults(run=_command("hubbub.cli.analyst", "plan"))

    query = commands.add_parser("query", help="ask; the charge is made before the data is touched")
    _question(query)
    _answer(query)
    query.set_defaults(run=_command("hubbub.cli.analyst", "query"))

    call = commands.add_parser("call", help="analyses beyond one query: k-means, regression, tables, synthetic data …")
    call.add_argument("name", nargs="?", metavar="NAME", help="which one; without it, all are listed")
    call.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="such as table=visits columns=age,cost k=8")
    _config(call)
    _analyst(call)
    call.add_argument("-e", "--epsilon", metavar="ε", help="what to spend; without it, the arguments are explained")
    _bounds(call)
    _answer(call)
    call.add_argument("--plan", action="store_true", help="only say what it would cost (free)")
    call.set_defaults(run=_command("hubbub.cli.calling", "call"))

    publish = commands.add_parser("publish", help="ask, and write files to publish, with a data sheet")
    _question(publish, paid=False)
    _publishing(publish)
    publish.set_defaults(run=_command("hubbub.cli.analyst", "publish"))

    budget = commands.add_parser("budget", help="what is spent and what is left")
    _config(budget)
    _analyst(budget)
    budget.set_defaults(run=_command("hubbub.cli.analyst", "budget"))

    verify = commands.add_parser("verify", help="derive again what a ledger or a receipt claims")
    verify.add_argument("what", metavar="ledger|FILE", help="the word ledger, or a receipt")
    _config(verify)
    verify.add_argument("--ledger", metavar="FILE", help="compare a receipt with this ledger (default: hubbub.yaml's)")
    verify.add_argument("--alone", action="store_true", help="check a receipt by itself, whatever ledger is at hand")
    verify.set_defaults(run=_command("hubbub.cli.operator", "verify"))

    audits.arguments(
        commands.add_parser("audit", help="read the ledger's history; audit a release, or hubbub itself"),
        _command,
        _config,
    )

    explaining.arguments(commands.add_parser("explain", help="what ε means, in words and examples"), _command, _config)

    attacks.arguments(
        commands.add_parser("attack", help="what a hostile analyst gets, and what hubbub allows"), _command
    )
    sanitizers.arguments(
        commands.add_parser("sanitize", help="crowd sanitizers, to compare and attack: NOT private"), _command
    )

    serve = commands.add_parser("serve", help="serve many analysts over HTTP, with pages")
    _config(serve)
    serve.add_argument("--host", metavar="ADDRESS", help="where to listen (default 127.0.0.1)")
    serve.add_argument("--port", type=int, metavar="N", help="default 8321")
    serve.set_defaults(run=_command("hubbub.cli.service", "serve"))

    streams = commands.add_parser("stream", help="count arrivals as they come, in a state that is itself private")
    collecting.streams(streams, _command, _config)
    collecting.surveys(commands.add_parser("survey", help="randomized answers to a questionnaire"), _command)

    _analysts(commands.add_parser("analyst", help="say who may use the service: analysts and tokens"))

    _admin(commands.add_parser("admin", help="for the operator: data that changed, failed queries, a lost ledger"))
    return parser


def _admin(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="what", required=True, metavar="what")
    lost = parts.add_parser("forfeit", help="go on after a ledger was lost: write off what it may have recorded")
    _config(lost)
    lost.add_argument("--by", required=True, help="who decides; kept in the ledger")
    lost.add_argument("--reason", required=True, help="why; kept in the ledger")
    lost.add_argument("--epsilon", help="write off only so much of each cap (default: all of it)")
    lost.add_argument("--delta", help="with --epsilon")
    lost.add_argument("--yes", action="store_true", help="really do it")
    lost.set_defaults(run=_command("hubbub.cli.operator", "admin"))
    moved = parts.add_parser("anchor", help="give a ledger that was moved a new anchor; nothing is charged")
    _config(moved)
    moved.add_argument("--by", required=True, help="who vouches that it is the newest; kept in the ledger")
    moved.add_argument("--reason", required=True, help="why; kept in the ledger")
    moved.add_argument("--yes", action="store_true", help="really do it")
    moved.set_defaults(run=_command("hubbub.cli.operator", "anchor"))
    refresh = parts.add_parser("refresh", help="take data for changed: answers from before are not given again")
    refresh.add_argument("dataset", nargs="+", metavar="DATASET")
    _config(refresh)
    refresh.set_defaults(run=_command("hubbub.cli.operator", "refresh"))
    failed = parts.add_parser("failures", help="list queries that failed after their charge; let an analyst go on")
    _config(failed)
    failed.add_argument("--clear", nargs=2, metavar=("ANALYST", "DATASET"), help="count anew: you have looked at them")
    failed.add_argument("--by", metavar="NAME", help="who looked, with --clear; kept in the ledger (default: you)")
    failed.set_defaults(run=_command("hubbub.cli.operator", "failures"))


def _analysts(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="what", required=True, metavar="what")
    add = parts.add_parser("add", help="add somebody to hubbub.yaml, or change their caps")
    add.add_argument("name")
    add.add_argument("--cap", action="append", default=[], metavar="DATASET=ε", help="what they may spend, for each")
    remove = parts.add_parser("remove", help="remove somebody from hubbub.yaml and revoke their tokens")
    remove.add_argument("name")
    listing = parts.add_parser("list", help="show analysts and tokens")
    token = parts.add_parser("token", help="make a token; it is shown once")
    token.add_argument("name")
    token.add_argument("--role", default="analyst", choices=["analyst", "owner", "auditor", "feeder"])
    token.add_argument(
        "--stream",
        action="append",
        default=[],
        metavar="ANALYST/NAME",
        help="of a feeder: what it may feed; repeatable",
    )
    token.add_argument("--days", type=int, default=90, metavar="N", help="how long it is good (default 90)")
    revoke = parts.add_parser("revoke", help="close a token for good")
    revoke.add_argument("name", metavar="ID", help="the token's id, as in hubbub analyst list")
    for part in (add, remove, listing, token, revoke):
        _config(part)
        part.set_defaults(run=_command("hubbub.cli.service", "analyst"))


def _config(parser: argparse.ArgumentParser) -> None:
    default = os.environ.get("HUBBUB_CONFIG") or "hubbub.yaml"
    parser.add_argument("-c", "--config", default=default, metavar="PATH", help="default: %(default)s")


def _analyst(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-a", "--analyst", metavar="NAME", help="who asks (default: the only one in hubbub.yaml)")
    parser.add_argument(
        "--server",
        metavar="URL",
        help="ask a server (default: HUBBUB_URL); the token is in HUBBUB_TOKEN, or in a file"
        " that HUBBUB_TOKEN_FILE names",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _publishing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="FOLDER", help="where to write")
    parser.add_argument("--name", help="what the files are called (default: the analysis)")
    parser.add_argument("--title", help="of the data sheet")
    parser.add_argument("--notes", metavar="TEXT", help="what opens the data sheet; @file reads it from a file")
    parser.add_argument("--format", action="append", choices=["csv", "parquet"], help="of the numbers (default: both)")
    parser.add_argument("--key", help="name this answer: the same key gives the same answer, at no further cost")
    parser.add_argument("--force", action="store_true", help="replace files that are there")


def _question(parser: argparse.ArgumentParser, *, paid: bool = True) -> None:
    parser.add_argument("sql", metavar="SQL", help="the question; @file.sql or - reads it from a file or from input")
    _config(parser)
    _analyst(parser)
    price = parser.add_mutually_exclusive_group(required=paid)
    price.add_argument("-e", "--epsilon", metavar="ε", help="what to spend, such as 0.1")
    price.add_argument("-w", "--within", metavar="±", help="how exact to be instead: 50, or 5%%")
    _bounds(parser)
    parser.add_argument(
        "--weight", action="append", default=[], metavar="NAME=W", help="want one output W times as exact as the others"
    )
    parser.add_argument("--raw", action="store_true", help="leave estimates as they fall, negative ones too")
    parser.add_argument("-p", "--parameter", action="append", default=[], metavar="VALUE", help="for $1, $2, …")


def _bounds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--delta", metavar="δ", help="default: that of the dataset's budget; 0 insists on none")
    parser.add_argument("--groups", type=int, metavar="N", help="let each unit count in at most N groups (less noise)")
    parser.add_argument("--rows", type=int, metavar="N", help="let at most N rows of a unit count in each group")


def _answer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--csv", action="store_true", help="print CSV, with name_low and name_high for each interval")
    parser.add_argument("--receipt", metavar="FILE", help="keep answer and receipt here, for hubbub verify")
    parser.add_argument("--key", help="name this answer: the same key gives the same answer, at no further cost")
    parser.add_argument("--fresh", action="store_true", help="draw anew, and pay, even if this was answered before")
