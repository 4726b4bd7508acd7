"""`hubbub attack`: list the attacks, describe one, or run it and show its findings."""

import argparse
import json
import secrets
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.attacks.base import AttackStudy
from hubbub.attacks.catalogue import ATTACKS, Attack, find_attack
from hubbub.attacks.report import ALARM, COLUMNS, FORMS, ReportContext, exceeding_findings, facts, row, write
from hubbub.attacks.table import read
from hubbub.cli import options, output
from hubbub.cli.progress import progress
from hubbub.errors import AttackError

_DESCRIPTION = """\
Run a known privacy attack to measure what a protection is worth: against unprotected data, against
naive protections, and against hubbub at several ε. Each attack reports its success rate with a
confidence interval, next to blind guessing and the maximum success rate under ε
(for one fair secret bit, e^ε/(1+e^ε): 52.5% at ε = 0.1, 73.1% at 1, 99.3% at 5).
"""
_EXAMPLES = """\
examples:
  hubbub attack                                     list the attacks
  hubbub attack linkage --about                     describe an attack and its settings
  hubbub attack linkage                             run it on simulated data
  hubbub attack linkage people.csv --quasi PUMA,AGEP,SEX
                                                    find rows of your table that are unique in these columns
  hubbub attack homogeneity people.csv --quasi zip,age --set sensitive=diagnosis --set k=10
  hubbub attack differencing --epsilon 0.1,1,10 --report differencing.html

Your table stays on this machine. Attacks on hubbub run against a real hubbub with a temporary ledger:
nothing is charged to your budget. A failed attack proves nothing, because a better one may exist;
only the maximum success rate is proved.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the attack; omit it to list them all")
    parser.add_argument("table", nargs="?", metavar="TABLE", help="a .csv or .parquet file to attack")
    parser.add_argument(
        "-e", "--epsilon", default="0.1,1,5", metavar="ε,…", help="values of ε for hubbub (default: %(default)s)"
    )
    parser.add_argument("--quasi", metavar="A,B,…", help="quasi-identifiers: columns that an outsider may know")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the attack; repeatable"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="random seed for the attacker")
    parser.add_argument("--report", metavar="FILE", help="write a report: .html, .pdf, .svg or .json")
    parser.add_argument("--about", action="store_true", help="only describe the attack and its settings")
    options.add_json(parser)
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code is 1 if an attack beats its guarantee."""
    if args.name is None:
        return _list(args, console)
    attack = find_attack(args.name)
    if args.about:
        return _about(attack, console)
    settings = _settings(args)
    _check_writable(args.report)
    table = None if args.table is None else read(args.table)
    seed = secrets.randbits(63) if args.seed is None else abs(args.seed)
    with progress(attack.name) as report:
        study = attack.run(
            table,
            epsilons=args.epsilon.split(","),
            generator=np.random.default_rng(seed),
            settings=settings,
            progress=report,
        )
    if args.report:
        terms = {"Table": args.table or "simulated for the attack", "Seed": str(seed), **settings}
        write(study, Path(args.report), ReportContext(terms=terms))
    names = [name.lower() or "verdict" for name in COLUMNS]
    lines = [row(finding) for finding in study.findings]
    output.rows(names, lines, json.loads(study.json()), args, console, lambda where: _show(study, where))
    if args.report and output.format_of(args) == "table":
        console.print(f"\nWrote the report to {escape(args.report)}.")
    return 1 if exceeding_findings(study) else 0


def _list(args: argparse.Namespace, console: Console) -> int:
    if args.report or args.set or args.quasi or args.about:
        raise AttackError("HB640", "No attack was chosen.", "Name one: hubbub attack linkage table.csv")
    usage = {"no": "", "may": "[TABLE]", "must": "TABLE"}
    names = ("attack", "input", "description")
    rows = [(attack.name, usage[attack.table], attack.summary) for attack in ATTACKS.values()]

    def show(where: Console) -> None:
        where.print(terminal.table(names, rows))
        where.print("\n[dim]hubbub attack NAME --about describes an attack; hubbub attack NAME runs it.[/]")

    output.rows(names, rows, [dict(zip(names, line, strict=True)) for line in rows], args, console, show)
    return 0


def _about(attack: Attack, console: Console) -> int:
    console.print(f"[bold]{escape(attack.name)}[/]: {escape(attack.summary)}\n")
    for paragraph in attack.about.split("\n\n"):
        console.print(escape(" ".join(paragraph.split())) + "\n")
    if attack.table != "no":
        console.print("Run it on your own table: " + escape(f"hubbub attack {attack.name} table.csv") + "\n")
    rows = [(name, _default(value)) for name, value in attack.settings.items()]
    if rows:
        console.print(terminal.table(("setting", "default"), rows))
        console.print(f"\n[dim]Change a setting: hubbub attack {attack.name} --set {escape(rows[-1][0])}=…[/]")
    return 0


def _default(value: object) -> str:
    return (",".join(value) if isinstance(value, tuple) else str(value)) or "chosen by the attack"


def _settings(args: argparse.Namespace) -> dict[str, str]:
    """Read --set and --quasi; the attack itself checks names and types."""
    settings: dict[str, str] = {}
    for text in args.set:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise AttackError("HB643", f"{text[:60]!r} is not a setting.", "Write a name and a value: --set trials=500")
        settings[name.strip()] = value
    if args.quasi is not None:
        if not args.quasi.strip(" ,"):
            raise AttackError("HB643", "--quasi names no columns.", "List them: --quasi zip,age,sex")
        settings["quasi"] = args.quasi
    return settings


def _check_writable(report: str | None) -> None:
    """Reject a report that cannot be written before anything runs."""
    if report is None:
        return
    path = Path(report)
    if path.suffix.lower().removeprefix(".") not in FORMS:
        endings = ", ".join(f".{form}" for form in FORMS)
        raise AttackError("HB646", f"{report[-60:]!r} has no supported report format.", f"Use one of: {endings}.")
    if not path.parent.is_dir() or path.is_dir():
        raise AttackError(
            "HB646", f"{report[-60:]!r} cannot be written: its folder does not exist.", "Create the folder first."
        )


def _show(study: AttackStudy, console: Console) -> None:
    console.print(f"[bold]{escape(study.title)}[/]\n")
    console.print(terminal.sentences(study.words))
    console.print()
    console.print(terminal.table(COLUMNS, [row(finding) for finding in study.findings], right=(1, 2)))
    details = [(finding.label, escape(facts(finding))) for finding in study.findings if finding.facts]
    if details:
        console.print()
        console.print(terminal.facts(details))
    if exceeding_findings(study):
        console.print(f"\n[bold red]![/] {escape(ALARM)}")
