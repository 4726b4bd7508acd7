"""What `hubbub explain` says: an ε in words, a worked example, or everything asked so far."""

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.attacks.separations import table as separation
from hubbub.config import load
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.curator.opening import store_of
from hubbub.errors import ParameterError
from hubbub.semantics.asked import Asked, asked
from hubbub.semantics.examples import tell
from hubbub.semantics.explained import Explanation
from hubbub.semantics.explained import explain as explained
from hubbub.semantics.familiar import FAMILIAR


def explain(options: Namespace, console: Console) -> int:
    """Say what was asked for."""
    if options.example == "separation" and options.dataset is None:
        _separation(options, console)
        return 0
    wanted = [name for name in ("example", "epsilon", "dataset") if getattr(options, name) is not None]
    if len(wanted) != 1 or ((options.analyst or options.group) and wanted != ["dataset"]):
        raise ParameterError(
            "HB174",
            "it is not clear what to explain.",
            "Give one of --epsilon ε, a worked example (smoking, dalenius, height, separation), or --dataset NAME, to"
            " which --analyst or --group can be added.",
        )
    match wanted[0]:
        case "example":
            _story(options, console)
        case "epsilon":
            belief = numbers.exact(options.belief, "the belief") / 100
            found = explained(
                epsilon=options.epsilon, delta=options.delta, prior=belief, people=options.n, size=options.family
            )
            _form(found.form()) if options.json else _explanation(found, console)
        case _:
            total = _asked(options)
            _form(total.form()) if options.json else console.print(terminal.sentences(total.sentences))
    return 0


def _form(form: dict[str, object]) -> None:
    print(json.dumps(form, ensure_ascii=False))  # noqa: T201


def _story(options: Namespace, console: Console) -> None:
    story = tell(options.example)
    if options.json:
        _form(asdict(story))
        return
    console.print(f"[bold]{escape(story.title)}[/]")
    console.print(terminal.sentences(story.lines))


def _separation(options: Namespace, console: Console) -> None:
    epsilon = "1" if options.epsilon is None else options.epsilon
    people = (1, 100, 10_000) if options.n is None else (options.n,)
    found = separation.rows(epsilon=epsilon, people=people)
    if options.json:
        _form({"epsilon": str(numbers.epsilon(epsilon)), "rows": [each.form() for each in found]})
        return
    console.print("[bold]Publishing once against asking: who can tell whether everybody satisfies a parity?[/]")
    console.print(terminal.sentences(separation.sentences(epsilon=epsilon)))
    console.print()
    names = ("bits", "people", "response", "subset", "histogram", "bound", "corrected", "printed", "asked")
    rows = [tuple(_brief(getattr(each, name)) for name in names) for each in found]
    heads = ("d", "n", "resp.", "subset", "hist.", "bound", "2006", "printed", "asked")
    console.print(terminal.table(heads, rows, right=tuple(range(len(names)))))
    console.print(
        "[dim]Statistical differences with d bits and n people: 0 tells nothing, 1 everything. Published: randomized"
        " response, its best form, a noisy histogram; what no view exceeds for 2/3 of all questions: bound, that of"
        " 2006 set right, as printed. Asked: one private answer.[/]"
    )


def _brief(figure: float | None) -> str:
    if figure is None or isinstance(figure, int):
        return "" if figure is None else f"{figure:,}"
    return f"{figure:.2g}" if figure >= 0.001 else f"{figure:.1e}".replace("e-0", "e-")


def _explanation(found: Explanation, console: Console) -> None:
    console.print(f"[bold]{escape(found.heading)}[/]")
    for line in found.icons():
        console.print(f"  {line}")
    console.print("  [dim]of 100 guesses: ● right by chance, ◉ right by the answers at most, ○ wrong[/]\n")
    console.print(terminal.sentences(found.sentences))
    for warning in found.warnings:
        console.print(f"[bold yellow]![/] {escape(warning)}")
    console.print()
    rows = [(brief(each.epsilon), each.guesses, each.name, each.unit, each.source) for each in FAMILIAR]
    console.print(terminal.table(("ε", "of 100", "promise", "protects", "source"), rows, right=(0, 1)))


def _asked(options: Namespace) -> Asked:
    config = load(Path(options.config))
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            return asked(snapshot, config.policy, options.dataset, analyst=options.analyst, group=options.group)
    finally:
        store.close()
