"""The command `hubbub attack`: list the attacks, explain one, or run it and show what it found."""

import secrets
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hubbub.answers import terminal
from hubbub.attacks.base import Progress as Told
from hubbub.attacks.base import Study
from hubbub.attacks.catalogue import ATTACKS, Attack, find
from hubbub.attacks.report import ALARM, COLUMNS, FORMS, Made, broken, facts, row, write
from hubbub.attacks.table import read
from hubbub.errors import AttackError


def attack(options: Namespace, console: Console) -> int:
    """Run the command; 1 where an attack did better than a promise allows."""
    if options.name is None:
        return _list(options, console)
    found = find(options.name)
    if options.about:
        return _about(found, console)
    settings = _settings(options)
    _writable(options.report)
    table = None if options.table is None else read(options.table)
    seed = secrets.randbits(63) if options.seed is None else abs(options.seed)
    with progress(found.name) as told:
        study = found.run(
            table,
            epsilons=options.epsilon.split(","),
            generator=np.random.default_rng(seed),
            settings=settings,
            progress=told,
        )
    if options.report:
        terms = {"Table": options.table or "made up for the attack", "Seed": str(seed), **settings}
        write(study, Path(options.report), Made(terms=terms))
    if options.json:
        sys.stdout.write(study.json() + "\n")
    else:
        _show(study, console)
        if options.report:
            console.print(f"\nThe report is in {escape(options.report)}.")
    return 1 if broken(study) else 0


def _list(options: Namespace, console: Console) -> int:
    if options.report or options.set or options.quasi or options.about or options.json:
        raise AttackError("HB640", "it is not said which attack.", "Name one: hubbub attack linkage table.csv")
    takes = {"no": "", "may": "[TABLE]", "must": "TABLE"}
    rows = [(each.name, takes[each.table], each.summary) for each in ATTACKS.values()]
    console.print(terminal.table(("attack", "takes", "what it does"), rows))
    console.print("\n[dim]hubbub attack NAME --about explains one, hubbub attack NAME runs it.[/]")
    return 0


def _about(found: Attack, console: Console) -> int:
    console.print(f"[bold]{escape(found.name)}[/]: {escape(found.summary)}\n")
    for paragraph in found.about.split("\n\n"):
        console.print(escape(" ".join(paragraph.split())) + "\n")
    if found.table != "no":
        console.print("It takes a table of yours: " + escape(f"hubbub attack {found.name} table.csv") + "\n")
    rows = [(name, _default(value)) for name, value in found.settings.items()]
    if rows:
        console.print(terminal.table(("setting", "default"), rows))
        console.print(f"\n[dim]Set one: hubbub attack {found.name} --set {escape(rows[-1][0])}=…[/]")
    return 0


def _default(value: object) -> str:
    return (",".join(value) if isinstance(value, tuple) else str(value)) or "chosen by the attack"


def _settings(options: Namespace) -> dict[str, str]:
    """Read --set and --quasi; the attack itself knows which settings it has, and of which kind."""
    found: dict[str, str] = {}
    for text in options.set:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise AttackError("HB643", f"{text[:60]!r} is not a setting.", "Write a name and a value: --set trials=500")
        found[name.strip()] = value
    if options.quasi is not None:
        if not options.quasi.strip(" ,"):
            raise AttackError("HB643", "--quasi names no column.", "Write such as --quasi zip,age,sex")
        found["quasi"] = options.quasi
    return found


def _writable(report: str | None) -> None:
    """Refuse a report that could not be written before anything is run."""
    if report is None:
        return
    path = Path(report)
    if path.suffix.lower().removeprefix(".") not in FORMS:
        listed = ", ".join(f".{form}" for form in FORMS)
        raise AttackError("HB646", f"a report cannot be written as {report[-60:]!r}.", f"End its name with: {listed}.")
    if not path.parent.is_dir() or path.is_dir():
        raise AttackError("HB646", f"there is no folder to write {report[-60:]!r} in.", "Make it first.")


@contextmanager
def progress(name: str) -> Iterator[Told]:
    """Show on standard error how far an attack is: a bar to people, a line for each step to a file."""
    if not sys.stderr.isatty():
        heard: list[str] = []

        def line(share: float, words: str) -> None:
            if words not in heard[-1:]:
                heard.append(words)
                sys.stderr.write(f"{name}: {share:4.0%} {words}\n")

        yield line
        return
    bar = Progress(
        TextColumn(name),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("begins", total=1.0)
        yield lambda share, words: bar.update(task, completed=share, description=escape(words))


def _show(study: Study, console: Console) -> None:
    console.print(f"[bold]{escape(study.title)}[/]\n")
    console.print(terminal.sentences(study.words))
    console.print()
    console.print(terminal.table(COLUMNS, [row(each) for each in study.findings], right=(1, 2)))
    further = [(each.label, escape(facts(each))) for each in study.findings if each.facts]
    if further:
        console.print()
        console.print(terminal.facts(further))
    if broken(study):
        console.print(f"\n[bold red]![/] {escape(ALARM)}")
