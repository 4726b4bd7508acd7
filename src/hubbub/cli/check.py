"""`hubbub check`: validate hubbub.yaml and summarize its privacy guarantees.

Tested in tests/cli/test_cli.py.
"""

import argparse
import json
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.cli import options
from hubbub.cli.progress import working
from hubbub.config import Config, examine
from hubbub.config.blocks import promises
from hubbub.config.json_schema import SCHEMA
from hubbub.config.summary import (
    caps,
    column_uses,
    guarantee,
    hidden_fact,
    joinable_tables,
    protected_unit,
    shares_in_words,
    warnings,
)
from hubbub.core.numbers import brief, readable
from hubbub.curator import opening
from hubbub.errors import ConfigError, HubbubError, LedgerError
from hubbub.server import settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "example:\n  hubbub check --config hubbub.yaml"
    options.add_config(parser)
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of hubbub.yaml, for editors")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if there are problems."""
    if args.schema:
        console.print_json(json.dumps(SCHEMA))
        return 0
    path = Path(args.config)
    with working("checking"):
        config, problems = examine(path)
    if path.exists():
        problems = [*problems, *settings.problems(path.read_text(encoding="utf-8", errors="replace"), path.parent)]
    if config is not None and not problems:
        try:
            problems = [*opening.policy_problems(config)]
        except LedgerError as error:
            console.print(f"[yellow]Not compared with the ledger[/]  {escape(error.message)}")
        with working("checking declared keys in the data"):
            problems += _key_problems(config)
    for problem in problems:
        terminal.print_error(console, problem)
    if config is None or problems:
        console.print(
            f"\n[bold red]{len(problems)} problem(s)[/] in {escape(args.config)}. Fix them before running queries."
        )
        return 1
    for name in config.datasets:
        _show_dataset(config, name, console)
    _show_engine(config, console)
    _show_relations(config, console)
    with working("reading values as declared"):
        unreadable = _unreadable(config)
    for text in [*warnings(config), *unreadable, *opening.storage_warnings(config)]:
        console.print(f"[yellow]Warning[/]  {escape(text)}")
    console.print(f'[bold green]{escape(args.config)} is valid.[/] Run a query: hubbub query "SELECT …" --epsilon 0.1')
    return 0


def _show_relations(config: Config, console: Console) -> None:
    """Print which tables can be joined, and how shared budgets are divided."""
    for text in joinable_tables(config):
        console.print(f"[bold]Joins[/]  {escape(text)}")
    for name in config.policy.datasets:
        for text in shares_in_words(config.policy, name):
            console.print(f"[bold]Shares[/]  {escape(text)}")


def _show_engine(config: Config, console: Console) -> None:
    """Show what queries on files and copies may use of this machine."""
    entries = [dataset.place.engine for dataset in config.datasets.values()]
    if all(entry.is_server and not (entry.copy and config.limits.copy) for entry in entries):
        return
    limits, spill = config.limits, Path(tempfile.gettempdir())
    resources = f"up to {limits.local_memory:,} MB of memory and {limits.local_disk(spill):,} MB of disk"
    console.print(f"[bold]Engine[/]  {resources}, {limits.threads} threads, {limits.seconds} s for a query")


def _unreadable(config: Config) -> list[str]:
    try:
        return opening.unreadable_values(config)
    except (HubbubError, OSError):
        return ["Whether values can be read as declared could not be checked: the data cannot be read."]


def _key_problems(config: Config) -> list[HubbubError]:
    try:
        return [*opening.key_problems(config, config.datasets)]
    except (HubbubError, OSError):
        message = "The declared keys could not be checked: the data cannot be read."
        return [ConfigError("HB411", message, "Check that every `source` is reachable, then run hubbub check again.")]


def _rows(config: Config, name: str) -> str:
    """Count the rows of a dataset whose number of rows is public."""
    try:
        return f"{opening.count_public_rows(config, name):,}; their number is public"
    except HubbubError as error:
        return f"[yellow]could not be counted[/]: {escape(error.message)}"


def _show_dataset(config: Config, name: str, console: Console) -> None:
    dataset = config.datasets[name]
    console.print(f"[bold]{escape(name)}[/]  [dim]{escape(dataset.place.shown)}[/]")
    if dataset.table.public:
        console.print("  public: not protected; queries on it are free\n")
        return
    facts = [("Privacy unit", escape(protected_unit(dataset))), ("Guarantee", escape(hidden_fact(dataset)))]
    heads = ("Blocks", "", "Promise")
    facts += [(head, escape(text)) for head, text in zip(heads, promises(dataset.table), strict=False)]
    if dataset.table.public_rows:
        facts.append(("Rows", _rows(config, name)))
    if dataset.table.unit is not None and dataset.table.unit.column is not None and not dataset.table.others:
        facts.append(("Bounds", f"to see what they leave out: hubbub profile {escape(name)} --epsilon 0.2"))
    console.print(terminal.facts(facts))
    console.print()
    console.print(
        terminal.table(
            ("budget of", "ε", "δ", "maximum certainty about one of them (starting from 50%)"),
            [
                (who, readable(budget.epsilon), brief(budget.delta) if budget.delta else "0", guarantee(budget))
                for who, budget in caps(config.policy, name)
            ],
            right=(1, 2),
        )
    )
    console.print()
    console.print(
        terminal.table(
            ("column", "type", "filter", "group by", "sum, average"),
            [(column.name, column.kind.value, *column_uses(column)) for column in dataset.table.columns],
        )
    )
    if dataset.disabled:
        disabled = ", ".join(f"{escape(column)} ({escape(reason)})" for column, reason in dataset.disabled)
        console.print(terminal.facts([("Disabled", disabled)]))
    console.print()
