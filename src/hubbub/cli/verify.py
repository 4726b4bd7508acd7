"""`hubbub verify`: verify a ledger or a receipt."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.accounting.ledger import examine
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import Store
from hubbub.accounting.verify import Verification, verify
from hubbub.accounting.witness import open_witness
from hubbub.answers import terminal
from hubbub.audit import receipt, receipt_fields
from hubbub.audit.ledger_check import LedgerComparison, compare_with_ledger
from hubbub.cli import options, output
from hubbub.cli.progress import working
from hubbub.config import load
from hubbub.curator.opening import anchor_of, is_postgres, store_of
from hubbub.errors import ParameterError

_NOT_COMPARED = (
    "without one, a forged receipt with recomputed hashes cannot be detected."
    " Use --ledger FILE or --config hubbub.yaml."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub verify ledger
  hubbub verify ledger --against file:/mnt/officer/witness.log
  hubbub verify receipt.json
  hubbub verify receipt.json --ledger copy/ledger.db"""
    parser.add_argument("subject", metavar="ledger|FILE", help="the word ledger, or a receipt file")
    options.add_config(parser)
    parser.add_argument(
        "--ledger", metavar="FILE", help="compare the receipt with this ledger (default: the ledger of hubbub.yaml)"
    )
    parser.add_argument(
        "--against", metavar="WITNESS", help="compare the ledger with this witness: file:PATH, or postgresql://…"
    )
    options.add_json(parser)
    output.add_output(parser)
    parser.add_argument("--alone", action="store_true", help="check the receipt without comparing it with any ledger")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if the verification fails."""
    return _verify_ledger(args, console) if args.subject == "ledger" else _verify_receipt(args, console)


def _verify_ledger(args: argparse.Namespace, console: Console) -> int:
    config = load(Path(args.config))
    store = store_of(config, read_only=True)
    try:
        with working("verifying the ledger"):
            verification = examine(store, anchor_of(config)) if args.against is None else _against(store, args)
    finally:
        store.close()
    report = verification.report()
    form = {
        "sound": verification.sound,
        "ledger": verification.ledger,
        "entries": verification.entries,
        "charges": verification.charges,
        "releases": verification.releases,
        "hash": verification.head.hash.hex(),
        "problems": [f"{problem.part}: {problem.text}" for problem in verification.problems],
    }
    groups = {"statement": report.splitlines()}
    output.statements(groups, form, args, console, lambda where: where.print(escape(report)))
    return 0 if verification.sound else 1


def _against(store: Store, args: argparse.Namespace) -> Verification:
    """Verify against a witness instead of the anchor."""
    witness = open_witness(args.against, Path())
    mark = witness.read()
    if mark is None:
        raise ParameterError(
            "HB134", f"The witness {witness.where} has no mark.", "Check its place: nothing was compared with it."
        )
    with store.snapshot() as snapshot:
        return verify(snapshot, mark)


def _verify_receipt(args: argparse.Namespace, console: Console) -> int:
    try:
        document = receipt_fields.parse_json(Path(args.subject).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ParameterError(
            "HB134",
            f"{args.subject} is not a readable receipt.",
            "Pass a file written by `hubbub query --receipt FILE`, or the word ledger.",
        ) from None
    if isinstance(document, dict) and (document.get("receipt") or {}).get("public") is True:
        text = "Nothing to verify: this claims to be an answer from public tables, without a charge."
        form: dict[str, object] = {"sound": False, "loss": None, "checked": [], "left_out": [text], "problems": []}
        output.statements({"not checked": [text]}, form, args, console, lambda where: where.print(f"[yellow]{text}[/]"))
        return 1
    with working("verifying the receipt"):
        verdict = receipt.check_receipt(document)
        comparison = _compare(args, document) if verdict.sound else None
    lines, problems = list(verdict.lines), list(verdict.problems)
    if comparison is not None:
        lines += comparison.lines
        problems += comparison.problems
    left_out = [] if problems or comparison is not None else [_NOT_COMPARED]
    basis = "the receipt alone" if comparison is None else "the receipt and the ledger"

    def show(where: Console) -> None:
        where.print(terminal.sentences(lines))
        for problem in problems:
            where.print(f"[bold red]problem[/] {escape(problem)}")
        if problems:
            where.print("[bold red]NOT VERIFIED[/]: this receipt does not support its claims.")
            return
        where.print(f"[bold green]verified[/]: according to {basis}, this answer costs {escape(verdict.loss)}.")
        for text in left_out:
            where.print(f"[yellow]Not compared with a ledger[/]: {text}")

    form = {"sound": not problems, "loss": verdict.loss, "checked": lines, "left_out": left_out, "problems": problems}
    groups = {"checked": lines, "not checked": left_out, "problem": problems}
    output.statements(groups, form, args, console, show)
    return 1 if problems else 0


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
