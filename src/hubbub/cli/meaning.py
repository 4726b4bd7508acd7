"""What `hubbub explain` says: an ε in words, a worked example, or everything asked so far."""

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from hubbub import show
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
    wanted = [name for name in ("example", "epsilon", "dataset") if getattr(options, name) is not None]
    if len(wanted) != 1 or ((options.analyst or options.group) and wanted != ["dataset"]):
        raise ParameterError(
            "HB174", "it is not clear what to explain.",
            "Give one of --epsilon ε, a worked example (smoking, dalenius, height), or --dataset NAME, to which"
            " --analyst or --group can be added.",
        )  # fmt: skip
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
            _form(total.form()) if options.json else _lines(total.sentences, console)
    return 0


def _form(form: dict[str, object]) -> None:
    print(json.dumps(form, ensure_ascii=False))  # noqa: T201


def _lines(sentences: tuple[str, ...], console: Console) -> None:
    for sentence in sentences:
        console.print(Padding(f"· {escape(sentence)}", (0, 0, 0, 1)))


def _story(options: Namespace, console: Console) -> None:
    story = tell(options.example)
    if options.json:
        _form(asdict(story))
        return
    console.print(f"[bold]{escape(story.title)}[/]")
    _lines(story.lines, console)


def _explanation(found: Explanation, console: Console) -> None:
    console.print(f"[bold]{escape(found.heading)}[/]")
    for line in found.icons():
        console.print(f"  {line}")
    console.print("  [dim]of 100 guesses: ● right by chance, ◉ right by the answers at most, ○ wrong[/]\n")
    _lines(found.sentences, console)
    for warning in found.warnings:
        console.print(f"[bold yellow]![/] {escape(warning)}")
    console.print()
    rows = [(brief(each.epsilon), each.guesses, each.name, each.unit, each.source) for each in FAMILIAR]
    console.print(show.table(("ε", "of 100", "promise", "protects", "source"), rows, right=(0, 1)))


def _asked(options: Namespace) -> Asked:
    config = load(Path(options.config))
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            return asked(snapshot, config.policy, options.dataset, analyst=options.analyst, group=options.group)
    finally:
        store.close()
