"""The owner's commands: init and check."""

import getpass
import json
import os
from argparse import Namespace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.config import Config, examine
from hubbub.config.json_schema import SCHEMA
from hubbub.config.summary import caps, concerns, matched, neighbors, protected, reach, uses
from hubbub.config.template import BLANK, name_of, template
from hubbub.core.numbers import brief
from hubbub.curator.opening import broken
from hubbub.curator.opening import concerns as places
from hubbub.engines.base import SERVERS, locate
from hubbub.engines.duckdb.connection import guessed
from hubbub.engines.several import schema
from hubbub.errors import ConfigError, LedgerError
from hubbub.server import settings


def init(options: Namespace, console: Console) -> int:
    """Write a hubbub.yaml for some files."""
    target = Path(options.output)
    if target.exists() and not options.force:
        raise ConfigError("HB419", f"{target} exists.", "Write to another file (--output), or replace it (--force).")
    tables = []
    for source in options.files:
        place = locate(source, "FILE", base=Path(), name="")
        if place.form in ("duckdb", "sqlite") and not place.table:
            raise ConfigError("HB410", f"{source} is a database.", f"Say which table: {source}#table")
        fields = guessed(place) if place.form == "csv" and options.guess else schema(place)
        if place.form in SERVERS:
            tables.append((name_of(place), source, fields))
            continue
        # a path is read relative to the folder that hubbub.yaml is in
        shown = os.path.relpath(place.path, target.parent) if not place.path.is_absolute() else str(place.path)
        prefix, suffix = source.partition(":")[0] if ":" in source else "", f"#{place.table}" if place.table else ""
        tables.append((name_of(place), f"{prefix}:{shown}{suffix}" if prefix else f"{shown}{suffix}", fields))
    text = template(tables, analyst=getpass.getuser(), guessed=options.guess)
    target.write_text(text, encoding="utf-8")
    read = "types of CSV columns were guessed from values" if options.guess else "no value was read"
    console.print(f"Wrote [bold]{escape(str(target))}[/] from {len(tables)} file(s); {read}.")
    console.print(
        f"Fill in the {text.count(BLANK)} places marked “<- fill in”, and bounds and values for what may be summed"
        " and grouped. Then run: [bold]hubbub check[/]"
    )
    return 0


def check(options: Namespace, console: Console) -> int:
    """Say what hubbub.yaml promises, or everything that is wrong with it."""
    if options.schema:
        console.print_json(json.dumps(SCHEMA))
        return 0
    path = Path(options.config)
    config, problems = examine(path)
    if path.exists():
        problems = [*problems, *settings.problems(path.read_text(encoding="utf-8", errors="replace"), path.parent)]
    if config is not None and not problems:
        try:
            problems = [*broken(config)]
        except LedgerError as error:
            console.print(f"[yellow]Not compared with the ledger[/]  {escape(error.message)}")
    for problem in problems:
        terminal.error(console, problem)
    if config is None or problems:
        console.print(
            f"\n[bold red]{len(problems)} problem(s)[/] in {escape(options.config)}. Nothing can be asked yet."
        )
        return 1
    for name in config.datasets:
        _dataset(config, name, console)
    for text in matched(config):
        console.print(f"[bold]Joined[/]  {escape(text)}")
    for text in [*concerns(config), *places(config)]:
        console.print(f"[yellow]Consider[/]  {escape(text)}")
    console.print(
        f'[bold green]{escape(options.config)} is in order.[/] Ask with: hubbub query "SELECT …" --epsilon 0.1'
    )
    return 0


def _dataset(config: Config, name: str, console: Console) -> None:
    dataset = config.datasets[name]
    console.print(f"[bold]{escape(name)}[/]  [dim]{escape(dataset.place.shown)}[/]")
    if dataset.table.public:
        console.print("  public: anybody may see it, and it costs nothing\n")
        return
    console.print(terminal.facts([("Protected", escape(protected(dataset))), ("Hidden", escape(neighbors(dataset)))]))
    console.print()
    console.print(
        terminal.table(
            ("who may learn", "ε", "δ", "somebody 50/50 about one of them gets to at most"),
            [
                (who, brief(b.epsilon), brief(b.delta) if b.delta else "0", reach(b))
                for who, b in caps(config.policy, name)
            ],
            right=(1, 2),
        )
    )
    console.print()
    console.print(
        terminal.table(
            ("column", "type", "filter", "group by", "sum, average"),
            [(c.name, c.kind.value, *uses(c)) for c in dataset.table.columns],
        )
    )
    if dataset.disabled:
        console.print(
            terminal.facts([("Disabled", ", ".join(f"{escape(c)} ({escape(why)})" for c, why in dataset.disabled))])
        )
    console.print()
