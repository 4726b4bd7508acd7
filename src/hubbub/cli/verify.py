"""`hubbub verify`: verify a ledger or a receipt."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.accounting.ledger import examine
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import Store
from hubbub.accounting.verify import verify
from hubbub.answers import terminal
from hubbub.audit import receipt, receipt_format
from hubbub.audit.ledger_check import LedgerComparison, compare_with_ledger
from hubbub.cli import options
from hubbub.config import load
from hubbub.curator.opening import anchor_of, is_postgres, store_of
from hubbub.errors import ParameterError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub verify ledger
  hubbub verify receipt.json
  hubbub verify receipt.json --ledger copy/ledger.db"""
    parser.add_argument("subject", metavar="ledger|FILE", help="the word ledger, or a receipt file")
    options.add_config(parser)
    parser.add_argument(
        "--ledger", metavar="FILE", help="compare the receipt with this ledger (default: the ledger of hubbub.yaml)"
    )
    parser.add_argument("--alone", action="store_true", help="check the receipt without comparing it with any ledger")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if the verification fails."""
    return _verify_ledger(args, console) if args.subject == "ledger" else _verify_receipt(args, console)


def _verify_ledger(args: argparse.Namespace, console: Console) -> int:
    config = load(Path(args.config))
    store = store_of(config, read_only=True)
    try:
        verification = examine(store, anchor_of(config))
    finally:
        store.close()
    console.print(escape(verification.report()))
    return 0 if verification.sound else 1


def _verify_receipt(args: argparse.Namespace, console: Console) -> int:
    try:
        document = receipt_format.parse_json(Path(args.subject).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ParameterError(
            "HB134",
            f"{args.subject} is not a readable receipt.",
            "Pass a file written by `hubbub query --receipt FILE`, or the word ledger.",
        ) from None
    if isinstance(document, dict) and (document.get("receipt") or {}).get("public") is True:
        console.print("[yellow]Nothing to verify[/]: this claims to be an answer from public tables, without a charge.")
        return 1
    verdict = receipt.check_receipt(document)
    comparison = _compare(args, document) if verdict.sound else None
    lines, problems = list(verdict.lines), list(verdict.problems)
    if comparison is not None:
        lines += comparison.lines
        problems += comparison.problems
    console.print(terminal.sentences(lines))
    for problem in problems:
        console.print(f"[bold red]problem[/] {escape(problem)}")
    if problems:
        console.print("[bold red]NOT VERIFIED[/]: this receipt does not support its claims.")
        return 1
    basis = "the receipt alone" if comparison is None else "the receipt and the ledger"
    console.print(f"[bold green]verified[/]: according to {basis}, this answer costs {escape(verdict.loss)}.")
    if comparison is None:
        console.print(
            "[yellow]Not compared with a ledger[/]: without one, a forged receipt with recomputed hashes cannot be"
            " detected. Use --ledger FILE or --config hubbub.yaml."
        )
    return 0


def _compare(args: argparse.Namespace, document: object) -> LedgerComparison | None:
    """Compare with the ledger, if there is one and --alone was not given."""
    if args.alone:
        return None
    if args.ledger is not None:
        store, anchor = _open_store(args.ledger), None
    elif Path(args.config).exists():
        config = load(Path(args.config))
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
                verification = verify(snapshot, None)
        if not (verification.sound or (anchor is None and verification.intact)):
            return LedgerComparison(
                problems=["The ledger does not verify, so nothing can be compared. Run: hubbub verify ledger"]
            )
        with store.snapshot() as snapshot:
            return compare_with_ledger(document, snapshot)
    finally:
        store.close()


def _open_store(where: str) -> Store:
    if where.startswith(("postgresql://", "postgres://")):
        from hubbub.accounting.postgres import PostgresStore

        return PostgresStore(where, read_only=True)
    return SqliteStore(Path(where), read_only=True)
