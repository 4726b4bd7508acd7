"""`hubbub profile`: estimate what bounds leave out, and recommend bounds."""

import argparse
import os
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers.profile import Profile
from hubbub.answers.profile_view import COLUMN_HEADINGS, column_facts, show
from hubbub.cli import options, output
from hubbub.cli.session import running, session_of
from hubbub.curator.exact_profile import exact_profile
from hubbub.errors import ParameterError

_WARNING = (
    "These figures are exact: they are not protected, and nothing was recorded or charged. Show them to nobody who may"
    " not see the data. Bounds chosen from them, and written to a hubbub.yaml that analysts can read, tell something"
    " about the people in it; bounds chosen from `--epsilon 0.2` do not."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub profile visits --epsilon 0.2          charge ε = 0.2 and publish the profile to all analysts
  hubbub profile visits                        show the published profile again (free)
  hubbub profile visits --exact                look at your own data; never recorded or sent"""
    parser.add_argument("dataset", metavar="DATASET", help="the dataset to profile")
    options.add_session(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-e", "--epsilon", metavar="ε", help="privacy cost; omit it to show the published profile")
    how.add_argument("--exact", action="store_true", help="count without noise, for the data owner only")
    parser.add_argument("--columns", metavar="A,B", help="columns to profile (default: all that queries can use)")
    parser.add_argument(
        "--max-rows", type=int, metavar="N", help="count privacy units with more than N rows together (default: 10,000)"
    )
    options.add_key(parser)
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    columns = None if args.columns is None else [name.strip() for name in args.columns.split(",")]
    if args.exact:
        if args.server or os.environ.get("HUBBUB_URL"):
            raise ParameterError(
                "HB149",
                "--exact reads the data itself, so it cannot be used with a server.",
                "Run it where the data is, without --server and HUBBUB_URL.",
            )
        profile = exact_profile(Path(args.config), args.dataset, columns=columns, max_rows=args.max_rows)
        Console(stderr=True, highlight=False).print(f"[yellow]Warning[/]  {_WARNING}\n")
        return _print(profile, args, console)
    with session_of(args) as session:
        if args.epsilon is not None:
            with running(session):
                release = session.profile(
                    args.dataset, columns=columns, max_rows=args.max_rows, epsilon=args.epsilon, key=args.key
                )
            _print(Profile.of(release), args, console)
            if output.format_of(args) == "table" and args.output is None:
                console.print(f"\nCost: {escape(release.cost())}")
            return 0
        published = session.published_profile(args.dataset)
    if published is None:
        raise ParameterError(
            "HB159",
            f"{args.dataset} has no published profile.",
            f"Run hubbub profile {args.dataset} --epsilon 0.2, which charges ε = 0.2.",
        )
    return _print(published, args, console)


def _print(profile: Profile, args: argparse.Namespace, console: Console) -> int:
    lines = [row.cells for row in column_facts(profile)]
    output.rows(COLUMN_HEADINGS, lines, profile.to_json(), args, console, lambda where: show(profile, where))
    return 0
