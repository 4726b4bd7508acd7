"""`hubbub explain`: explain an ε, one fact about privacy as a screen, or everything released so far."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.attacks.screens import SCREENS
from hubbub.cli import options, output
from hubbub.cli.progress import working
from hubbub.config import load
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.curator.opening import store_of
from hubbub.errors import ParameterError
from hubbub.semantics.explanation import Explanation, explain
from hubbub.semantics.history import QueryHistory, query_history
from hubbub.semantics.reference_points import REFERENCE_POINTS
from hubbub.semantics.screens import figures, svg
from hubbub.semantics.screens.base import Reading, Screen
from hubbub.semantics.screens.ledger_game import ledger_game

_DESCRIPTION = """\
Explain what ε means for one person, what has been released so far, or one fact about privacy as a
screen: sentences, a table and a figure, for parameters that you choose.
"""
_EXAMPLES = """\
examples:
  hubbub explain --epsilon 1                    what anyone can learn about one person at ε = 1
  hubbub explain --epsilon 1 --delta 1e-6 --n 50000
  hubbub explain smoking                        a screen; its parameters are listed below it
  hubbub explain smoking --epsilon 2 --set rate=20 --plot smoking.svg
  hubbub explain --dataset visits               all queries so far on visits, from the ledger
  hubbub explain --dataset visits --analyst ana (or --group interns)
  hubbub explain game --set mechanism=laplace --set prior=00=1,10=1,11=2 --set known='1*,00' --set secret=11
  hubbub explain game --dataset visits          the game against all queries so far

screens (hubbub explain NAME):
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES + "\n".join(f"  {name:<19} {screen.title}" for name, screen in SCREENS.items())
    parser.add_argument("name", nargs="?", choices=list(SCREENS), metavar="NAME", help="show a screen (listed below)")
    parser.add_argument("-e", "--epsilon", metavar="ε", help="the ε to explain")
    parser.add_argument("--delta", metavar="δ", help="its δ (default: 0, or that of the screen)")
    parser.add_argument("--n", type=int, metavar="N", help="number of people in the data")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="another parameter of a screen; repeatable"
    )
    parser.add_argument("--plot", metavar="FILE", help="write the figure of a screen to this .svg file")
    parser.add_argument("--belief", metavar="%", default="50", help="prior belief in percent (default: %(default)s)")
    parser.add_argument(
        "--family", type=int, metavar="K", default=4, help="size of a group to protect (default: %(default)s)"
    )
    parser.add_argument("--dataset", metavar="NAME", help="explain all queries so far on this dataset, from the ledger")
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("-a", "--analyst", metavar="NAME", help="with --dataset: only queries of this analyst")
    scope.add_argument("--group", metavar="NAME", help="with --dataset: only queries of the members of this group")
    options.add_config(parser)
    options.add_json(parser)
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if args.name == "game" or (args.name is not None and args.dataset is None):
        _screen(SCREENS[args.name], args, console)
        return 0
    topics = [name for name in ("name", "epsilon", "dataset") if getattr(args, name) is not None]
    if len(topics) != 1 or args.set or args.plot or ((args.analyst or args.group) and topics != ["dataset"]):
        raise _unclear()
    if topics == ["epsilon"]:
        belief = numbers.exact(args.belief, "the belief") / 100
        delta = "0" if args.delta is None else args.delta
        with working("computing"):
            explanation = explain(epsilon=args.epsilon, delta=delta, prior=belief, people=args.n, size=args.family)
        groups = {"meaning": explanation.sentences, "warning": explanation.warnings}
        form = explanation.to_json()
        output.statements(groups, form, args, console, lambda where: _explanation(explanation, where))
    else:
        total = _history(args)
        sentences = terminal.sentences(total.sentences)
        groups = {"meaning": total.sentences}
        output.statements(groups, total.to_json(), args, console, lambda where: where.print(sentences))
    return 0


def _unclear() -> ParameterError:
    return ParameterError(
        "HB174",
        "It is not clear what to explain.",
        "Pass --epsilon ε, or the name of a screen (hubbub explain --help lists them) with its parameters, or"
        " --dataset NAME, optionally with --analyst or --group.",
    )


def _screen(screen: Screen, args: argparse.Namespace, console: Console) -> None:
    given = _parameters(args)
    if (args.analyst or args.group) and args.dataset is None:
        raise _unclear()
    with working("computing"):
        reading = screen.read(given) if args.dataset is None else ledger_game(given, _history(args))
    if args.plot:
        _plot(reading, args.plot)
    form = screen.to_json(given, reading)
    if reading.rows and output.format_of(args) != "table":
        output.rows(reading.headings, reading.rows, form, args, console, lambda _: None)
        return
    groups = {"meaning": reading.sentences, "warning": reading.warnings}
    output.statements(groups, form, args, console, lambda where: _show_screen(screen, reading, given, where))
    if args.plot and output.format_of(args) == "table":
        console.print(f"[dim]Wrote the figure to {escape(args.plot)}.[/]")


def _show_screen(screen: Screen, reading: Reading, given: dict[str, str], console: Console) -> None:
    console.print(f"[bold]{escape(screen.title)}[/]")
    console.print(f"[dim]{escape(screen.about)}[/]\n")
    console.print(terminal.sentences(reading.sentences))
    for warning in reading.warnings:
        console.print(f"[bold yellow]![/] {escape(warning)}")
    if reading.rows:
        console.print()
        console.print(terminal.table(reading.headings, reading.rows, right=reading.numeric))
    if reading.figure is not None:
        console.print()
        for line in figures.draw(reading.figure):
            console.print(escape(line), no_wrap=True, crop=False)
    if screen.controls:
        values = screen.values(given)
        shown = ", ".join(f"{control.name}={values[control.name]}" for control in screen.controls)
        console.print(f"\n[dim]{escape(f'Parameters: {shown}. Change one with --set NAME=VALUE.')}[/]")


def _parameters(args: argparse.Namespace) -> dict[str, str]:
    """Read --set, and --epsilon, --delta and --n, which many screens have."""
    given = {name: str(getattr(args, name)) for name in ("epsilon", "delta", "n") if getattr(args, name) is not None}
    for text in args.set:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise ParameterError(
                "HB692", f"{text[:60]!r} is not a parameter.", "Write a name and a value: --set epsilon=1"
            )
        given[name.strip()] = value
    return given


def _plot(reading: Reading, plot: str) -> None:
    path = Path(plot)
    if path.suffix.lower() != ".svg" or not path.parent.is_dir() or path.is_dir():
        raise ParameterError(
            "HB693", f"{plot[-60:]!r} cannot be written as an SVG file.", "Pass a name that ends in .svg."
        )
    if reading.figure is None:
        raise ParameterError("HB693", "This screen has no figure.", "Remove --plot.")
    path.write_text(svg.draw(reading.figure, alone=True), encoding="utf-8")


def _explanation(explanation: Explanation, console: Console) -> None:
    console.print(f"[bold]{escape(explanation.heading)}[/]")
    for line in explanation.icons():
        console.print(f"  {line}")
    console.print("  [dim]of 100 guesses: ● right by chance, ◉ right because of the answers (maximum), ○ wrong[/]\n")
    console.print(terminal.sentences(explanation.sentences))
    for warning in explanation.warnings:
        console.print(f"[bold yellow]![/] {escape(warning)}")
    console.print()
    rows = [(brief(known.epsilon), known.guesses, known.name, known.unit, known.source) for known in REFERENCE_POINTS]
    console.print(terminal.table(("ε", "of 100", "deployment", "privacy unit", "source"), rows, right=(0, 1)))


def _history(args: argparse.Namespace) -> QueryHistory:
    config = load(Path(args.config))
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            return query_history(snapshot, config.policy, args.dataset, analyst=args.analyst, group=args.group)
    finally:
        store.close()
