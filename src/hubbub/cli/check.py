"""`hubbub check`: validate hubbub.yaml and summarize its privacy guarantees.

Tested in tests/cli/test_cli.py.
"""

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.accounting.filters import Budget
from hubbub.answers import terminal
from hubbub.cli import options, output
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
from hubbub.core.schema import Column
from hubbub.curator import opening
from hubbub.errors import ConfigError, HubbubError, LedgerError
from hubbub.server import settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub check --config hubbub.yaml
  hubbub check --format json         problems and guarantees, for a program"""
    options.add_config(parser)
    output.add_output(parser)
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of hubbub.yaml, for editors")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if there are problems."""
    if args.schema:
        console.print_json(json.dumps(SCHEMA))
        return 0
    path = Path(args.config)
    remarks: list[str] = []
    with working("checking"):
        config, problems = examine(path)
    if path.exists():
        problems = [*problems, *settings.problems(path.read_text(encoding="utf-8", errors="replace"), path.parent)]
    if config is not None and not problems:
        try:
            problems = [*opening.policy_problems(config)]
        except LedgerError as error:
            remarks.append(f"Not compared with the ledger: {error.message}")
        with working("checking declared keys in the data"):
            problems += _key_problems(config)
    if config is not None and not problems:
        with working("reading values as declared"):
            unreadable = _unreadable(config)
        remarks += [*warnings(config), *unreadable, *opening.storage_warnings(config)]
    checked = Checked(args.config, config, tuple(problems), tuple(remarks))
    output.rows(("about", "item", "statement"), checked.lines(), checked.to_json(), args, console, checked.show)
    return 0 if checked.valid else 1


_CERTAINTY = "maximum certainty about one of them (starting from 50%)"

_USES = ("filter", "group by", "sum, average")


@dataclass(frozen=True)
class Checked:
    """What is said about one hubbub.yaml: its problems, or its guarantees."""

    name: str
    config: Config | None
    problems: tuple[HubbubError, ...]
    warnings: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether queries can run."""
        return self.config is not None and not self.problems

    def show(self, console: Console) -> None:
        """Print it for people."""
        for problem in self.problems:
            terminal.print_error(console, problem)
        if self.config is None or self.problems:
            count = f"[bold red]{len(self.problems)} problem(s)[/] in {escape(self.name)}."
            console.print(f"\n{count} Fix them before running queries.")
        else:
            for name in self.config.datasets:
                _show_dataset(self.config, name, console)
            for text in _engine(self.config):
                console.print(f"[bold]Engine[/]  {escape(text)}")
            _show_relations(self.config, console)
        for text in self.warnings:
            console.print(f"[yellow]Warning[/]  {escape(text)}")
        if self.valid:
            example = 'Run a query: hubbub query "SELECT …" --epsilon 0.1'
            console.print(f"[bold green]{escape(self.name)} is valid.[/] {example}")

    def lines(self) -> list[tuple[str, str, str]]:
        """List every statement: what it is about, its name, and itself."""
        found = [("problem", each.code, f"{each.message} {each.remedy}") for each in self.problems]
        if self.config is not None and self.valid:
            for name, dataset in self.config.datasets.items():
                found += [(name, item or "Blocks", text) for item, text in _facts(self.config, name)]
                if not dataset.table.public:
                    found += [
                        (name, f"budget of {who}", f"{_amount(budget)}; {_CERTAINTY}: {guarantee(budget)}")
                        for who, budget in caps(self.config.policy, name)
                    ]
                    found += [(name, f"column {column.name}", _uses(column)) for column in dataset.table.columns]
                found += [(name, f"disabled column {column}", reason) for column, reason in dataset.disabled]
            found += [("engine", "resources", text) for text in _engine(self.config)]
            found += [("relations", "joins", text) for text in joinable_tables(self.config)]
            shared = [
                text for name in self.config.policy.datasets for text in shares_in_words(self.config.policy, name)
            ]
            found += [("relations", "shares", text) for text in shared]
        return found + [("warning", "", text) for text in self.warnings]

    def to_json(self) -> dict[str, object]:
        """Return it for programs."""
        problems = [{"code": each.code, "message": each.message, "remedy": each.remedy} for each in self.problems]
        statements = [
            {"about": about, "item": item, "statement": text}
            for about, item, text in self.lines()
            if about not in ("problem", "warning")
        ]
        told = {"valid": self.valid, "problems": problems, "warnings": list(self.warnings)}
        return {"config": self.name, **told, "statements": statements}


def _amount(budget: Budget) -> str:
    delta = f", δ = {brief(budget.delta)}" if budget.delta else ""
    return f"ε = {readable(budget.epsilon)}{delta}"


def _uses(column: Column) -> str:
    uses = zip(_USES, column_uses(column), strict=True)
    return "; ".join([column.kind.value, *(f"{use}: {answer}" for use, answer in uses)])


def _show_relations(config: Config, console: Console) -> None:
    """Print which tables can be joined, how shared budgets are divided, and which answers are reviewed."""
    for text in joinable_tables(config):
        console.print(f"[bold]Joins[/]  {escape(text)}")
    for name in config.policy.datasets:
        for text in shares_in_words(config.policy, name):
            console.print(f"[bold]Shares[/]  {escape(text)}")
        if name in config.policy.reviews:
            console.print(f"[bold]Review[/]  {escape(name)}: {escape(config.policy.reviews[name].sentence())}")


def _engine(config: Config) -> list[str]:
    """Say what queries on files and copies may use of this machine."""
    entries = [dataset.place.engine for dataset in config.datasets.values()]
    if all(entry.is_server and not (entry.copy and config.limits.copy) for entry in entries):
        return []
    limits, spill = config.limits, Path(tempfile.gettempdir())
    resources = f"up to {limits.local_memory:,} MB of memory and {limits.local_disk(spill):,} MB of disk"
    return [f"{resources}, {limits.threads} threads, {limits.seconds} s for a query"]


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
        return f"could not be counted: {error.message}"


def _facts(config: Config, name: str) -> list[tuple[str, str]]:
    """Say whom a dataset protects, and how."""
    dataset = config.datasets[name]
    if dataset.table.public:
        return [("Protection", "public: not protected; queries on it are free")]
    facts = [("Privacy unit", protected_unit(dataset)), ("Guarantee", hidden_fact(dataset))]
    heads = ("Blocks", "", "Promise")
    facts += zip(heads, promises(dataset.table), strict=False)
    if dataset.table.public_rows:
        facts.append(("Rows", _rows(config, name)))
    if dataset.table.unit is not None and dataset.table.unit.column is not None and not dataset.table.others:
        facts.append(("Bounds", f"to see what they leave out: hubbub profile {name} --epsilon 0.2"))
    return facts


def _show_dataset(config: Config, name: str, console: Console) -> None:
    dataset = config.datasets[name]
    console.print(f"[bold]{escape(name)}[/]  [dim]{escape(dataset.place.shown)}[/]")
    if dataset.table.public:
        console.print(f"  {_facts(config, name)[0][1]}\n")
        return
    facts = [(head, escape(text)) for head, text in _facts(config, name)]
    console.print(terminal.facts(facts))
    console.print()
    console.print(
        terminal.table(
            ("budget of", "ε", "δ", _CERTAINTY),
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
            ("column", "type", *_USES),
            [(column.name, column.kind.value, *column_uses(column)) for column in dataset.table.columns],
        )
    )
    if dataset.disabled:
        disabled = ", ".join(f"{escape(column)} ({escape(reason)})" for column, reason in dataset.disabled)
        console.print(terminal.facts([("Disabled", disabled)]))
    console.print()
