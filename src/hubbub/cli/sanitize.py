"""`hubbub sanitize`: publish a table with a crowd sanitizer, after showing what it does not guarantee."""

import argparse
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.attacks.base import percent
from hubbub.attacks.isolation import MAX_COLUMNS, SanitizerComparison, compare
from hubbub.attacks.table import AttackTable, read
from hubbub.cli import options, output, sanitize_files, sanitize_study
from hubbub.cli.progress import progress
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.crowd.disclaimers import KINDS, NOT_PRIVATE, SANITIZERS, Kind
from hubbub.crowd.isolation import check_parameters
from hubbub.crowd.points import CategoryColumn, Points, ScaledColumn, make_points
from hubbub.crowd.sanitizers import SanitizedData, sanitize
from hubbub.errors import CrowdError
from hubbub.noise.source import system

_DESCRIPTION = """\
Publish a table with one of the crowd sanitizers of 2005, to compare and attack it. The result is
NOT differentially private and is not charged to a budget. To publish data, use hubbub publish.
"""
_EXAMPLES = """\
sanitizers:
  histogram   halve cells with 2t rows or more in every dimension; publish exact counts
  ball        move each row to a random point within the radius of its t nearest neighbors
  sphere      move each row by the radius of its t nearest neighbors, in a random direction
  gaussian    add Gaussian noise as wide as that radius
  cross       a histogram of half of the rows; the other half with noise as wide as its cells

examples:
  hubbub sanitize people.csv --columns age,income --with ball
                                       measure how many rows are singled out; nothing is written
  hubbub sanitize people.csv --columns age,income --bounds age=0:110 --step age=1 --with histogram --to out.csv
  hubbub sanitize people.csv --columns age,income --with ball --compare 0.1,1
                                       compare it with differentially private tables of the same rows
  hubbub sanitize people.csv --columns age,ward --values ward=North,South --with ball
                                       text columns, too: any two categories are equally far apart
  hubbub sanitize study                list the studies of the paper's constructions
  hubbub sanitize study subspace --plot subspace.svg
                                       run one: a table, a plot and what it means
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.add_argument("table", nargs="?", metavar="TABLE", help="a .csv or .parquet file, or the word study")
    parser.add_argument("name", nargs="?", metavar="NAME", help="after study: the name of a study")
    parser.add_argument("--columns", metavar="A,B,…", help="numeric and text columns to publish")
    parser.add_argument("--with", dest="kind", metavar="SANITIZER", help="a sanitizer from the list below")
    parser.add_argument("--t", type=int, default=10, metavar="N", help="size of the crowd (default: %(default)s)")
    parser.add_argument(
        "--c", type=float, default=4.0, metavar="X", help="how many times nearer singles a row out (default: 4)"
    )
    parser.add_argument(
        "--bounds",
        action="append",
        default=[],
        metavar="COLUMN=LOW:HIGH",
        help="range to scale a column by; repeatable (default: its minimum and maximum, which reveals both)",
    )
    parser.add_argument(
        "--step",
        action="append",
        default=[],
        metavar="COLUMN=STEP",
        help="resolution of a column: spread equal values within one step (1: integers); repeatable",
    )
    parser.add_argument(
        "--values",
        action="append",
        default=[],
        metavar="COLUMN=A,B,…",
        help="categories of a text column, or codes; repeatable (default: those in the data, which reveals them)",
    )
    parser.add_argument("--to", metavar="FILE", help="write CSV here, with a note on what is not guaranteed")
    parser.add_argument("--compare", metavar="ε,…", help="compare with differentially private tables of the same rows")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    sanitize_study.add_arguments(parser)
    options.add_json(parser)
    output.add_output(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if args.table == sanitize_study.WORD:
        return sanitize_study.run(args, console)
    sanitize_study.refuse_options(args)
    rng = np.random.default_rng(system().words(8).tolist())  # no privacy guarantee depends on it
    kind, epsilons = _kind(args), _epsilons(args.compare)
    files = sanitize_files.files_to_write(args.to, kind, force=args.force)
    check_parameters(c=args.c, t=args.t)
    aside = Console(stderr=True, highlight=False)
    _warn(kind, aside)
    data = _points(args, rng)
    _warn_about_data(data, aside)
    if epsilons and any(axis.width > 1 for axis in data.axes):
        raise CrowdError("HB686", "Text columns cannot be compared with tables of counts.", "Omit --compare.")
    if epsilons and len(data.axes) > MAX_COLUMNS:
        raise CrowdError(
            "HB626", f"At most {MAX_COLUMNS} columns can be compared.", "Pass fewer columns with --columns."
        )
    with progress("sanitize") as report:
        sanitized = sanitize(data, kind, t=args.t, rng=rng, progress=lambda share, step: report(share / 2, step))
        for name, path in files.items():
            sanitize_files.write_table(path, sanitized.tables[name])
        compared = compare(
            sanitized, c=args.c, epsilons=epsilons, progress=lambda share, step: report(0.5 + share / 2, step)
        )
        report(1.0, "done")
    if files:
        sanitize_files.write_note(Path(args.to), sanitized)
    names = ("published", "epsilon", "guess", "guesses", "single_out", "low", "high")
    lines = [
        (table.name, epsilon, guess, rate.trials, rate.share, *rate.interval())
        for table in compared
        for epsilon in (None if table.epsilon is None else float(table.epsilon),)
        for guess, rate in table.rates.items()
    ]
    form = _form(sanitized, compared, files)
    output.rows(names, lines, form, args, console, lambda where: _show(sanitized, compared, args.c, where))
    if output.format_of(args) == "table":
        for path in files.values():
            console.print(f"Wrote {escape(str(path))}. {NOT_PRIVATE}")
    return 0


def _kind(args: argparse.Namespace) -> Kind:
    if args.table is None or args.columns is None:
        raise CrowdError(
            "HB626", "No table or no columns were given.", "Pass both: hubbub sanitize people.csv --columns age,income"
        )
    kind = next((kind for kind in KINDS if kind == args.kind), None)
    if kind is None:
        problem = "No sanitizer was chosen" if args.kind is None else f"Unknown sanitizer {args.kind[:40]!r}"
        raise CrowdError("HB624", f"{problem}.", f"Pass --with and one of: {', '.join(KINDS)}.")
    return kind


def _epsilons(text: str | None) -> list[Fraction]:
    return sorted({numbers.epsilon(item.strip()) for item in text.split(",")}) if text is not None else []


def _points(args: argparse.Namespace, rng: np.random.Generator) -> Points:
    table: AttackTable = read(args.table)
    names = [name.strip() for name in args.columns.split(",") if name.strip()]
    return make_points(
        {name: table.column(name) for name in names},
        names,
        rng=rng,
        bounds={name: _pair(name, text) for name, text in _by_column(args.bounds, "--bounds age=0:110")},
        steps={name: _real(text, f"the step of {name}") for name, text in _by_column(args.step, "--step age=1")},
        categories={
            name: [value.strip() for value in text.split(",")]
            for name, text in _by_column(args.values, "--values ward=North,South")
        },
    )


def _by_column(texts: Sequence[str], example: str) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise CrowdError("HB626", f"{text[:60]!r} does not name a column.", f"Write such as {example}")
        pairs.append((name.strip(), value))
    return pairs


def _pair(name: str, text: str) -> tuple[float, float]:
    low, sign, high = text.partition(":")
    if not sign:
        raise CrowdError("HB626", f"The bounds of {name} are not two numbers.", f"Write such as --bounds {name}=0:110")
    return _real(low, f"a bound of {name}"), _real(high, f"a bound of {name}")


def _real(text: str, name: str) -> float:
    return float(numbers.exact(text, name))


def _warn(kind: Kind, console: Console) -> None:
    """State what the sanitizer does not guarantee, before it runs."""
    console.print(f"[bold yellow]![/] [bold]{NOT_PRIVATE}[/]")
    console.print(f"  It {escape(SANITIZERS[kind].does)}.")
    console.print(terminal.sentences(SANITIZERS[kind].warnings[1:]))


def _warn_about_data(data: Points, console: Console) -> None:
    if data.left_out:
        console.print(
            f"[yellow]![/] {data.left_out:,} rows with a missing value or an undeclared category were skipped."
        )
    texts = [axis.name for axis in data.axes if isinstance(axis, CategoryColumn) and not axis.declared]
    if texts:
        console.print(
            f"[yellow]![/] The categories of {escape(', '.join(texts))} are those in the data, which reveals them."
            " Set them with --values."
        )
    undeclared = [axis.name for axis in data.axes if isinstance(axis, ScaledColumn) and not axis.declared]
    if undeclared:
        console.print(
            f"[yellow]![/] The bounds of {escape(', '.join(undeclared))} are the minimum and maximum of the data,"
            " which reveals both. Set them with --bounds."
        )


def _show(sanitized: SanitizedData, compared: Sequence[SanitizerComparison], c: float, console: Console) -> None:
    n = len(sanitized.points.values)
    console.print(f"[bold]{sanitized.kind}[/], {n:,} rows, {len(sanitized.points.axes)} columns, t = {sanitized.t}\n")
    tables = [(table.name, "none" if table.epsilon is None else brief(table.epsilon), table) for table in compared]
    console.print(
        terminal.table(
            ("published", "ε", "error of means", "rows in a wrong bin or category"),
            [
                (name, epsilon, "–" if table.means is None else f"{table.means:.3f} sd", percent(table.shares))
                for name, epsilon, table in tables
            ],
            right=(1, 2, 3),
        )
    )
    console.print(f"\nGuesses that are {c:g} times nearer to one row than to {sanitized.t} rows:")
    console.print(
        terminal.table(
            ("published", "ε", "guess", "guesses", "single out", "95%"),
            [
                (name, epsilon, guess, f"{rate.trials:,}", percent(rate.share), "–".join(map(percent, rate.interval())))
                for name, epsilon, table in tables
                for guess, rate in table.rates.items()
            ],
            right=(1, 3, 4, 5),
        )
    )
    if any(table.epsilon is not None for table in compared):
        console.print(
            "\n[dim]ε bounds what any adversary learns about a person, whatever else they know. Isolation is a"
            " different measure: a blind guess can isolate a person who is protected all the same.[/]"
        )
    console.print()


def _form(
    sanitized: SanitizedData, compared: Sequence[SanitizerComparison], files: dict[str, Path]
) -> dict[str, object]:
    return {
        "sanitizer": sanitized.kind,
        "t": sanitized.t,
        "rows": len(sanitized.points.values),
        "left_out": sanitized.points.left_out,
        "differentially_private": False,
        "warnings": list(sanitized.description.warnings),
        "files": [str(path) for path in files.values()],
        "published": [
            {
                "name": table.name,
                "epsilon": None if table.epsilon is None else str(table.epsilon),
                "means_off_by_deviations": table.means,
                "share_in_wrong_bin": table.shares,
                "singled_out": {
                    name: {"right": rate.right, "trials": rate.trials, "interval": rate.interval()}
                    for name, rate in table.rates.items()
                },
            }
            for table in compared
        ],
    }
