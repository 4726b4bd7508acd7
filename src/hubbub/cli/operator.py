"""The operator's commands: verify, audit and admin (forfeit, refresh)."""

import json
import sys
from argparse import Namespace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub import show
from hubbub.accounting import sqlite_schema
from hubbub.accounting.filters import Budget
from hubbub.accounting.forfeit import forfeit
from hubbub.accounting.inspection import history, write_csv, write_json
from hubbub.accounting.ledger import examine
from hubbub.accounting.store import Filter
from hubbub.audit import receipt as receipts
from hubbub.config import Config, load
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.core.schema import unknown
from hubbub.curator.opening import anchor_of, folder_of, is_postgres, store_of
from hubbub.curator.versions import Versions
from hubbub.errors import ParameterError


def verify(options: Namespace, console: Console) -> int:
    """Derive again what a ledger or a receipt claims."""
    if options.what == "ledger":
        config = load(Path(options.config))
        store = store_of(config, read_only=True)
        try:
            verification = examine(store, anchor_of(config))
        finally:
            store.close()
        console.print(escape(verification.report()))
        return 0 if verification.sound else 1
    try:
        document = json.loads(Path(options.what).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ParameterError(
            "HB134", f"{options.what} is not a receipt that can be read.",
            "Give the file that `hubbub query --receipt FILE` wrote, or the word ledger.",
        ) from None  # fmt: skip
    found = receipts.check(document)
    console.print(show.sentences(found.lines))
    for problem in found.problems:
        console.print(f"[bold red]problem[/] {escape(problem)}")
    if not found.sound:
        console.print("[bold red]NOT SOUND[/]: this receipt does not show what it claims.")
        return 1
    console.print(f"[bold green]sound[/]: derived from the receipt alone, it costs {escape(found.loss)}.")
    return 0


def audit(options: Namespace, console: Console) -> int:
    """Read the ledger's history."""
    config = load(Path(options.config))
    which = Filter(options.kind, options.analyst, options.dataset, _time(options.since), _time(options.until))
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            lines = history(
                snapshot, which, unreleased=options.unreleased, newest_first=options.newest, limit=options.limit
            )
            if options.json:
                write_json(lines, sys.stdout)
            elif options.csv:
                write_csv(lines, sys.stdout)
            else:
                for line in lines:
                    console.print(line.text(), markup=False, soft_wrap=True)
    finally:
        store.close()
    return 0


def admin(options: Namespace, console: Console) -> int:
    """Write off what a lost ledger may have recorded, and go on."""
    config = load(Path(options.config))
    amount = None
    if options.epsilon is not None:
        delta = Fraction(0) if options.delta is None else numbers.delta(options.delta)
        amount = Budget(numbers.epsilon(options.epsilon), delta)
    what = "the whole budget of every cap" if amount is None else f"ε = {brief(amount.epsilon)} of every cap"
    if not options.yes:
        raise ParameterError(
            "HB135", f"this writes off {what}, for good, under the name {options.by!r}. Nothing was done.",
            "Say --yes to go on. Before that, look for the newest ledger and anchor: with them nothing is lost.",
        )  # fmt: skip
    done = forfeit(
        lambda: store_of(config), lambda: _set_aside(config), policy=config.policy, anchor=anchor_of(config),
        by=options.by, reason=options.reason, amount=amount,
    )  # fmt: skip
    console.print(show.table(
        ("cap", "written off: ε", "δ"),
        [(label, brief(budget.epsilon), brief(budget.delta)) for label, budget in done.charged.items()], right=(1, 2),
    ))  # fmt: skip
    if done.set_aside:
        console.print(f"The database that could not be used lies in {escape(done.set_aside)}.")
    console.print(f"Entry {done.sequence} of the ledger says so. It can be used again.")
    return 0


def refresh(options: Namespace, console: Console) -> int:
    """Take data for changed, where its source does not tell by itself."""
    config = load(Path(options.config))
    for name in options.dataset:
        if name not in config.datasets:
            raise unknown(name, tuple(config.datasets))
    versions = Versions(folder_of(config) / "versions.json")
    for name in options.dataset:
        versions.refresh(name)
        console.print(f"{escape(name)} has a new version: answers from before are not given again.")
    return 0


def _set_aside(config: Config) -> str:
    """Move a ledger that is beyond use out of the way, and say where it lies."""
    if is_postgres(config):
        from hubbub.accounting import postgres

        return postgres.set_aside(config.places.database or "")
    return sqlite_schema.set_aside(config.database)


def _time(text: str | None) -> int | None:
    """Read a day or a moment, in UTC, as microseconds."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError("HB136", f"{text!r} is not a time.", "Write 2026-01-31 or 2026-01-31T12:00.") from None
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1_000_000)
