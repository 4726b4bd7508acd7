"""The `hubbub` command: one module per subcommand, each with `add_arguments` and `run`."""

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module

from hubbub.errors import HubbubError

_DESCRIPTION = """\
Run SQL queries on sensitive data with differential privacy. hubbub adds calibrated noise to
every result and enforces a privacy budget across all analysts.
"""
_GUIDE = """\
data owner:  hubbub init visits.parquet      write a hubbub.yaml; fill in its blanks
             hubbub check                    validate it and summarize its privacy guarantees
             hubbub profile visits -e 0.2    estimate what the bounds leave out, and recommend bounds
             hubbub serve                    serve analysts over HTTP; hubbub analyst token ana
analyst:     hubbub plan  "SELECT region, COUNT(*) FROM visits GROUP BY region" --epsilon 0.1
             hubbub query "SELECT region, COUNT(*) FROM visits GROUP BY region" --epsilon 0.1
             hubbub query "SELECT AVG(age) FROM visits" --within 2
             hubbub batch questions.sql --epsilon 1      many queries, split at ;, planned together
             hubbub study run study.yaml --to report.html  queries and analyses of a file, as one document
             hubbub publish "CALL tabulate(table => 'visits', columns => ['region', 'age'])" --epsilon 1 --to out
             hubbub budget                   show the budget spent and remaining
auditor:     hubbub audit ledger             list all charges: analyst, query, time, privacy cost
             hubbub verify ledger            verify the ledger
             hubbub verify receipt.json      verify one answer from its receipt
             hubbub audit release 12         verify one release and replay its plan on simulated data
             hubbub audit self --out r.json  audit hubbub on simulated data and sign a report
             hubbub attack linkage visits.csv --quasi zip,age    run a privacy attack against a table

exit codes:  0 success, 1 an error or a failed check, 2 wrong arguments, 3 watch --once: not yet, 130 Ctrl-C

Start here: hubbub demo
"""

#: Each command and its line in the help. A command's module has its name and is imported only when the command runs.
COMMANDS = {
    "demo": "take a guided tour on sample data, then try a server",
    "init": "write a hubbub.yaml for your data, with blanks to fill in",
    "check": "validate hubbub.yaml and summarize its privacy guarantees",
    "profile": "estimate what bounds leave out, and recommend bounds",
    "tables": "list the datasets, or describe one (free)",
    "shell": "ask in SQL, interactively, with completion and free estimates",
    "plan": "show a query's privacy cost and expected accuracy (free)",
    "query": "run a query and charge its privacy cost to your budget",
    "batch": "run many queries together, at one privacy cost",
    "study": "run the queries and analyses of a plan file at one cost, and write one document",
    "call": "run an analysis by name: k-means, regression, tables, synthetic data …",
    "watch": "wait until a count or sum reaches a threshold, at one privacy cost",
    "publish": "run a query and write its result to files, with a data sheet",
    "suggest": "propose a cube from the questions of the past (free)",
    "budget": "show the budget spent and remaining",
    "schedule": "run a query once for each new month, week or day of a growing dataset",
    "serve": "serve analysts over HTTP, with web pages",
    "mcp": "let an AI assistant ask, at a cost that you decide",
    "analyst": "manage analysts and their access tokens",
    "stream": "release private counts over a stream as events arrive",
    "survey": "run a survey with randomized response",
    "sanitize": "apply a crowd sanitizer, to compare and attack: NOT private",
    "attack": "run known privacy attacks against a table and against hubbub",
    "explain": "explain what ε means, in words, games and figures",
    "audit": "list the ledger; audit a release, or hubbub itself",
    "review": "read answers that wait for review, and approve or decline them",
    "report": "write documents about this deployment for registries, auditors and readers",
    "completion": "print a script that completes commands in bash, zsh or fish",
    "verify": "verify a ledger or a receipt",
    "admin": "operate hubbub: changed data, failed queries, a lost ledger",
}


#: An argument of an analysis, name=value.
_NAMED = re.compile(r"[A-Za-z_]\w*=")


#: The exit codes of all commands.
EXIT_CODES = {
    0: "success",
    1: "an error, with its code and a remedy on standard error; or a refusal, a problem, or a check that failed",
    2: "the command was called with wrong arguments",
    3: "hubbub watch --once: the answer is not above the threshold",
    130: "stopped by Ctrl-C; a charge that was made stands",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return one of `EXIT_CODES`; a usage error exits with 2."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    command = next((word for word in words if not word.startswith("-")), None)
    parser = build_parser([command] if command in COMMANDS else [])
    args, rest = parser.parse_known_args(words)
    if rest and not (command == "call" and all(_NAMED.match(word) for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:  # arguments of the analysis may follow options
        args.arguments = [*args.arguments, *rest]
    from rich.console import Console  # after the help was shown, which needs no console

    try:
        if hasattr(args, "format"):  # it has options of `hubbub.cli.output`
            from hubbub.cli import output

            output.check(args)
        return int(import_module(f"hubbub.cli.{args.command}").run(args, Console(highlight=False)))
    except HubbubError as error:
        from hubbub.answers import terminal

        terminal.print_error(Console(stderr=True, highlight=False), error)
        return 1
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped.")
        return 130
    except BrokenPipeError:  # the reader closed the pipe
        sys.stderr.close()
        return 0


class VersionAction(argparse.Action):
    """Print the version, which is looked up only then."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and exit."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("hubbub")
        except PackageNotFoundError:  # the light client
            found = version("hubbub-client")
        sys.stdout.write(f"hubbub {found}\n")
        parser.exit(0)


def build_parser(commands: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Build the parser, with the arguments of the given commands only: `hubbub --help` imports no command."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="hubbub", description=_DESCRIPTION, epilog=_GUIDE, formatter_class=layout)
    parser.add_argument("--version", action=VersionAction)
    parts = parser.add_subparsers(dest="command", required=True, metavar="command", title="commands")
    for name, summary in COMMANDS.items():
        part = parts.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        part.formatter_class = layout
        if name in commands:
            import_module(f"hubbub.cli.{name}").add_arguments(part)
    return parser
