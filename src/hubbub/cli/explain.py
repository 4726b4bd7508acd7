"""`hubbub explain`: explain an ε, a worked example, or everything released so far."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.attacks.separations import table as separation
from hubbub.cli import options
from hubbub.config import load
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.curator.opening import store_of
from hubbub.errors import ParameterError
from hubbub.semantics.examples import tell_story
from hubbub.semantics.explanation import Explanation, explain
from hubbub.semantics.history import QueryHistory, query_history
from hubbub.semantics.reference_points import REFERENCE_POINTS

_EXAMPLES = """\
examples:
  hubbub explain --epsilon 1                    what anyone can learn about one person at ε = 1
  hubbub explain --epsilon 1 --delta 1e-6 --n 50000
  hubbub explain smoking                        a worked example: smoking, dalenius or height
  hubbub explain separation --epsilon 1         non-interactive against interactive release of a parity
  hubbub explain --dataset visits               all queries so far on visits, from the ledger
  hubbub explain --dataset visits --analyst ana (or --group interns)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "example", nargs="?", choices=["smoking", "dalenius", "height", "separation"], help="show a worked example"
    )
    parser.add_argument("-e", "--epsilon", metavar="ε", help="the ε to explain")
    parser.add_argument("--delta", metavar="δ", default="0", help="its δ (default: %(default)s)")
    parser.add_argument("--n", type=int, metavar="N", help="number of people in the data")
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


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if args.example == "separation" and args.dataset is None:
        _separation(args, console)
        return 0
    topics = [name for name in ("example", "epsilon", "dataset") if getattr(args, name) is not None]
    if len(topics) != 1 or ((args.analyst or args.group) and topics != ["dataset"]):
        raise ParameterError(
            "HB174",
            "It is not clear what to explain.",
            "Pass exactly one of: --epsilon ε, a worked example (smoking, dalenius, height, separation), or --dataset"
            " NAME, optionally with --analyst or --group.",
        )
    match topics[0]:
        case "example":
            _story(args, console)
        case "epsilon":
            belief = numbers.exact(args.belief, "the belief") / 100
            explanation = explain(epsilon=args.epsilon, delta=args.delta, prior=belief, people=args.n, size=args.family)
            _print_json(explanation.to_json()) if args.json else _explanation(explanation, console)
        case _:
            total = _history(args)
            _print_json(total.to_json()) if args.json else console.print(terminal.sentences(total.sentences))
    return 0


def _print_json(form: dict[str, object]) -> None:
    print(json.dumps(form, ensure_ascii=False))  # noqa: T201


def _story(args: argparse.Namespace, console: Console) -> None:
    story = tell_story(args.example)
    if args.json:
        _print_json(asdict(story))
        return
    console.print(f"[bold]{escape(story.title)}[/]")
    console.print(terminal.sentences(story.lines))


def _separation(args: argparse.Namespace, console: Console) -> None:
    epsilon = "1" if args.epsilon is None else args.epsilon
    people = (1, 100, 10_000) if args.n is None else (args.n,)
    results = separation.rows(epsilon=epsilon, people=people)
    if args.json:
        _print_json({"epsilon": str(numbers.epsilon(epsilon)), "rows": [result.to_json() for result in results]})
        return
    console.print("[bold]Non-interactive against interactive release: does everybody satisfy a parity?[/]")
    console.print(terminal.sentences(separation.sentences(epsilon=epsilon)))
    console.print()
    names = ("bits", "people", "response", "subset", "histogram", "bound", "corrected", "printed", "asked")
    rows = [tuple(_brief(getattr(result, name)) for name in names) for result in results]
    headings = ("d", "n", "resp.", "subset", "hist.", "bound", "2006", "printed", "query")
    console.print(terminal.table(headings, rows, right=tuple(range(len(names)))))
    console.print(
        "[dim]Statistical distances for d bits and n people: 0 reveals nothing, 1 everything. Non-interactive:"
        " randomized response (resp.), its best form (subset), a noisy histogram (hist.); upper bounds for 2/3 of all"
        " parities: ours (bound), that of 2006 corrected (2006) and as printed. Interactive: one private answer"
        " (query).[/]"
    )


def _brief(figure: float | None) -> str:
    if figure is None or isinstance(figure, int):
        return "" if figure is None else f"{figure:,}"
    return f"{figure:.2g}" if figure >= 0.001 else f"{figure:.1e}".replace("e-0", "e-")


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
