"""The operator's commands: verify, audit and admin (forfeit, refresh, failures)."""

import getpass
import sys
from argparse import Namespace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.accounting import sqlite_schema
from hubbub.accounting.failures import Failures, review
from hubbub.accounting.filters import Budget
from hubbub.accounting.forfeit import adopt, forfeit
from hubbub.accounting.ledger import Ledger, examine
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.status import history, write_csv, write_json
from hubbub.accounting.store import Filter, Store
from hubbub.accounting.verify import verify as verified
from hubbub.answers import terminal
from hubbub.audit import receipt as receipts
from hubbub.audit import receipt_format as receipt_form
from hubbub.audit.ledger_check import Comparison, compare
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
    return _verify_receipt(options, console)


def _verify_receipt(options: Namespace, console: Console) -> int:
    try:
        document = receipt_form.read(Path(options.what).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ParameterError(
            "HB134",
            f"{options.what} is not a receipt that can be read.",
            "Give the file that `hubbub query --receipt FILE` wrote, or the word ledger.",
        ) from None
    found = receipts.check(document)
    lines, problems, compared = list(found.lines), list(found.problems), False
    if found.sound:
        comparison = _compared(options, document)
        if comparison is not None:
            compared = True
            lines += comparison.lines
            problems += comparison.problems
    console.print(terminal.sentences(lines))
    for problem in problems:
        console.print(f"[bold red]problem[/] {escape(problem)}")
    if problems:
        console.print("[bold red]NOT SOUND[/]: this receipt does not show what it claims.")
        return 1
    whence = "and compared with the ledger" if compared else "alone"
    console.print(f"[bold green]sound[/]: derived from the receipt {whence}, it costs {escape(found.loss)}.")
    if not compared:
        console.print(
            "[yellow]Not compared with a ledger[/]: whoever changed the answer or a fact could have hashed it again. "
            "Compare with --ledger FILE, or --config hubbub.yaml."
        )
    return 0


def _compared(options: Namespace, document: object) -> Comparison | None:
    """Compare with the ledger that is at hand; None where there is none, or the reader wants none."""
    if options.alone:
        return None
    if options.ledger is not None:
        store, anchor = _named_store(options.ledger), None
    elif Path(options.config).exists():
        config = load(Path(options.config))
        if not is_postgres(config) and not config.database.exists():
            return None
        store, anchor = store_of(config, read_only=True), anchor_of(config)
    else:
        return None
    try:
        if anchor is not None:
            verification = examine(store, anchor)
        else:
            with store.snapshot() as snapshot:
                verification = verified(snapshot, None)
        if not (verification.sound or (anchor is None and verification.intact)):
            return Comparison(problems=["the ledger does not verify, so nothing can be compared: hubbub verify ledger"])
        with store.snapshot() as snapshot:
            return compare(document, snapshot)
    finally:
        store.close()


def _named_store(where: str) -> Store:
    if where.startswith(("postgresql://", "postgres://")):
        from hubbub.accounting.postgres import PostgresStore

        return PostgresStore(where, read_only=True)
    return SqliteStore(Path(where), read_only=True)


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
            "HB135",
            f"this writes off {what}, for good, under the name {options.by!r}. Nothing was done.",
            "Say --yes to go on. Before that, look for the newest ledger and anchor: with them nothing is lost.",
        )
    done = forfeit(
        lambda: store_of(config),
        lambda: _set_aside(config),
        policy=config.policy,
        anchor=anchor_of(config),
        by=options.by,
        reason=options.reason,
        amount=amount,
    )
    console.print(
        terminal.table(
            ("cap", "written off: ε", "δ"),
            [(label, brief(budget.epsilon), brief(budget.delta)) for label, budget in done.charged.items()],
            right=(1, 2),
        )
    )
    if done.set_aside:
        console.print(f"The database that could not be used lies in {escape(done.set_aside)}.")
    console.print(f"Entry {done.sequence} of the ledger says so. It can be used again.")
    return 0


def anchor(options: Namespace, console: Console) -> int:
    """Give a ledger that was moved a new anchor."""
    config = load(Path(options.config))
    place = anchor_of(config)
    if not options.yes:
        raise ParameterError(
            "HB135",
            f"this makes a new anchor at {place.where}: {options.by!r} vouches that this ledger is the newest. "
            "Nothing was done.",
            "Say --yes to go on. If an older copy was restored, charges are missing: hubbub admin forfeit.",
        )
    number = adopt(lambda: store_of(config), policy=config.policy, anchor=place, by=options.by, reason=options.reason)
    console.print(f"The anchor is {escape(place.where)}. Entry {number} of the ledger says who vouched for it.")
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


def failures(options: Namespace, console: Console) -> int:
    """List the queries that failed after their charge, or note that the owner looked at them."""
    config = load(Path(options.config))
    if options.clear:
        analyst, dataset = options.clear
        with Ledger.open(store_of(config), policy=config.policy, anchor=anchor_of(config)) as ledger:
            charges = review(ledger, analyst, dataset, by=options.by or getpass.getuser())
        console.print(escape(f"Noted: {analyst} may query {dataset} again. Reviewed: {_numbers(charges)}."))
        return 0
    store, counted = store_of(config, read_only=True), Failures()
    try:
        with store.snapshot() as snapshot:
            counted.take_in(snapshot)
    finally:
        store.close()
    rows = [
        (analyst, dataset, str(len(charges)), _allowed(config, dataset), _numbers(charges))
        for (analyst, dataset), charges in counted.every().items()
    ]
    if rows:
        console.print(terminal.table(("analyst", "dataset", "failed", "allowed", "charges"), rows, right=(2, 3)))
    else:
        console.print("No query failed after its charge since you last looked.")
    return 0


def _allowed(config: Config, dataset: str) -> str:
    return str(config.datasets[dataset].failures) if dataset in config.datasets else ""


def _numbers(charges: tuple[int, ...]) -> str:
    return f"charge{'' if len(charges) == 1 else 's'} {', '.join(map(str, charges))}"


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
