"""`hubbub audit`: list the ledger; audit a release, or hubbub itself."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import astuple, fields
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.markup import escape

from hubbub.accounting.chain import Kind
from hubbub.accounting.status import HistoryLine, history, write_csv, write_json
from hubbub.accounting.store import EntryFilter
from hubbub.answers import terminal
from hubbub.audit import nightly, report
from hubbub.audit import release as releases
from hubbub.cli import options, output
from hubbub.cli.progress import progress, working
from hubbub.config import Config, load
from hubbub.core import numbers
from hubbub.curator.opening import folder_of, store_of
from hubbub.errors import AuditError, ParameterError

_MAX_WORLDS = 10_000
_MAX_SECONDS = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub audit ledger --analyst ana --since 2026-01-31
  hubbub audit release 12
  hubbub audit self --seconds 300 --out report.json
  hubbub audit check-report report.json"""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    ledger = actions.add_parser("ledger", help="list all charges: analyst, query, time, privacy cost")
    ledger.add_argument("--analyst", metavar="NAME", help="only entries of this analyst")
    ledger.add_argument("--dataset", metavar="NAME", help="only entries on this dataset")
    ledger.add_argument("--kind", choices=get_args(Kind), help="only entries of this kind")
    ledger.add_argument("--since", metavar="TIME", help="only entries from this time on, such as 2026-01-31 (UTC)")
    ledger.add_argument("--until", metavar="TIME", help="only entries before this time")
    ledger.add_argument("--unreleased", action="store_true", help="only charges without a release")
    ledger.add_argument("--newest", action="store_true", help="newest first")
    ledger.add_argument("--limit", type=int, metavar="N", help="maximum number of entries")
    options.add_json(ledger)
    ledger.add_argument("--csv", action="store_true", help="print CSV")
    output.add_output(ledger)
    ledger.set_defaults(act=_ledger)

    release = actions.add_parser("release", help="verify one release and replay its plan on simulated neighboring data")
    release.add_argument("number", type=int, metavar="NUMBER", help="number of its charge, as in hubbub audit ledger")
    release.add_argument(
        "--worlds", type=int, default=10, metavar="N", help="number of simulated datasets (default: %(default)s)"
    )
    options.add_json(release)
    output.add_output(release)
    release.set_defaults(act=_release)

    product = actions.add_parser("self", help="audit hubbub itself on simulated data and sign a report; run it nightly")
    product.add_argument("--seconds", type=float, default=60.0, metavar="S", help="time limit (default: 60)")
    product.add_argument("-o", "--out", metavar="FILE", help="file to write the report to (default: print it)")
    product.add_argument("--key", metavar="FILE", help="key that signs it (default: audit.key next to the ledger)")
    product.set_defaults(act=_self)

    check = actions.add_parser("check-report", help="check the signature of a report and show its findings")
    check.add_argument("file", metavar="FILE", help="a report written by hubbub audit self")
    check.add_argument("--public", metavar="FILE", help="public key (default: audit.pub next to the ledger)")
    options.add_json(check)
    output.add_output(check)
    check.set_defaults(act=_check_report)
    for action in (ledger, release, product, check):
        options.add_config(action)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if an audit finds a problem."""
    return 0 if args.act(args, console) else 1


def _ledger(args: argparse.Namespace, console: Console) -> bool:
    which = EntryFilter(args.kind, args.analyst, args.dataset, _time(args.since), _time(args.until))
    store = store_of(load(Path(args.config)), read_only=True)
    try:
        with store.snapshot() as snapshot:
            lines = history(snapshot, which, unreleased=args.unreleased, newest_first=args.newest, limit=args.limit)
            form = output.format_of(args)
            if form in ("json", "csv"):  # a ledger may be long
                with output.text_file(args.output) as file:
                    (write_json if form == "json" else write_csv)(lines, file)
            elif form == "table":
                with output.text_file(args.output) as file:
                    file.writelines(f"{line.text()}\n" for line in lines)
            else:
                names = [field.name for field in fields(HistoryLine)]
                output.rows(names, [astuple(line) for line in lines], None, args, console, lambda _: None)
    finally:
        store.close()
    return True


def _time(text: str | None) -> int | None:
    """Read a date or a time, in UTC, as microseconds."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError("HB136", f"{text!r} is not a time.", "Write 2026-01-31 or 2026-01-31T12:00.") from None
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1_000_000)


def _release(args: argparse.Namespace, console: Console) -> bool:
    worlds = numbers.integer(args.worlds, "worlds", 1, _MAX_WORLDS)
    with working(f"replaying on {worlds:,} simulated datasets"):
        audited = releases.audit(load(Path(args.config)), args.number, worlds=worlds)
    groups = {"checked": audited.lines, "not checked": audited.left_out, "problem": audited.problems}

    def show(where: Console) -> None:
        where.print(terminal.sentences(audited.lines))
        for line in audited.left_out:
            where.print(f"[yellow]not checked[/] {escape(line)}")
        for problem in audited.problems:
            where.print(f"[bold red]problem[/] {escape(problem)}")
        if audited.sound:
            where.print(f"[bold green]verified[/]: release {args.number} costs {escape(audited.loss)}.")
        else:
            where.print(f"[bold red]NOT VERIFIED[/]: release {args.number} does not match its claims.")

    output.statements(groups, audited.to_json(), args, console, show)
    return audited.sound


def _self(args: argparse.Namespace, console: Console) -> bool:
    seconds = float(numbers.in_range(args.seconds, "seconds", Fraction(1), Fraction(_MAX_SECONDS)))
    config = load(Path(args.config))
    key = report.load_private_key(_key(args.key, config), make=args.key is None)
    with progress("audit") as say:
        result = nightly.audit(config, seconds=seconds, say=say)
    text = report.sign_report({"hubbub": version("hubbub"), **result}, key)
    if args.out is None:
        console.print(text, markup=False, soft_wrap=True, end="")
    else:
        _replace(Path(args.out), text)
        _show_report(result, console)
        console.print(f"Wrote the signed report to {escape(args.out)}.")
    return bool(result["sound"])


def _check_report(args: argparse.Namespace, console: Console) -> bool:
    public = Path(args.public) if args.public else report.public_key_path(_key(None, load(Path(args.config))))
    keys = report.load_public_keys(public)
    try:
        text = Path(args.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise AuditError(
            "HB638", f"{args.file} cannot be read.", "Pass a file written by `hubbub audit self`."
        ) from None
    result = report.verify_report(text, keys)

    def show(where: Console) -> None:
        where.print(
            f"Signed with key {result['key'][:16]}… at {escape(str(result['time']))} by hubbub {result['hubbub']}."
        )
        _show_report(result, where)

    names = ("part", "claim", "cases", "seconds", "problems")
    lines = [
        (part["name"], part["what"], int(part["cases"]), float(part["seconds"]), "; ".join(part["problems"]))
        for part in result["parts"]
    ]
    output.rows(names, lines, dict(result), args, console, show)
    return bool(result["sound"])


def _key(path: str | None, config: Config) -> Path:
    return Path(path) if path else folder_of(config) / "audit.key"


def _show_report(result: Mapping[str, Any], console: Console) -> None:
    rows = [
        ("problem" if part["problems"] else "passed", part["name"], part["what"], f"{part['cases']:,}")
        for part in result["parts"]
    ]
    console.print(terminal.table(("", "part", "claim", "cases"), rows, right=(3,)))
    for part in result["parts"]:
        for problem in part["problems"]:
            console.print(f"[bold red]problem[/] {escape(part['name'])}: {escape(problem)}")
    verdict = "[bold green]passed[/]" if result["sound"] else "[bold red]FAILED[/]"
    console.print(f"{verdict} after {result['seconds']} seconds.")


def _replace(path: Path, text: str) -> None:
    """Write a file atomically, so that no reader sees half of it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise AuditError(
            "HB633", f"{path} cannot be written ({error.strerror}).", "Choose another file: --out FILE."
        ) from None
