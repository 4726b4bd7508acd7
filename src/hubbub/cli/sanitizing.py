"""The command `hubbub sanitize`: publish by a crowd sanitizer, with what it does not promise said first."""

import csv
import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.attacks.base import percent
from hubbub.attacks.isolation import MOST_COLUMNS, Beside, beside
from hubbub.attacks.table import Table, read
from hubbub.cli.attacking import progress
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.crowd.disclaimers import KINDS, NOT_PRIVATE, PROMISES, Kind
from hubbub.crowd.experiments import drawing, informed, re_released, sweep, uniform
from hubbub.crowd.isolation import demanded
from hubbub.crowd.points import Points, points
from hubbub.crowd.sanitize import Columns, Sanitized, sanitize
from hubbub.errors import CrowdError
from hubbub.noise.source import system

#: The plots: what each is over, and where.
CURVES: dict[str, tuple[str, tuple[float, ...]]] = {
    "isolation-d": ("d", (1, 2, 3, 5, 8, 12, 16)),
    "isolation-t": ("t", (2, 5, 10, 20, 50)),
    "isolation-c": ("c", (1.5, 2, 3, 4, 6, 10)),
    "known-d": ("d", (2, 3, 4, 5, 7, 9)),
    "known-c": ("c", (1.5, 2, 3, 4, 6)),
    "again": ("T", (1, 2, 4, 8, 16, 32, 64)),
}
_BATCH = 10_000


def command(options: Namespace, console: Console) -> int:
    """Run the command."""
    rng = np.random.default_rng(system().words(8).tolist())  # nobody's promise depends on it
    if options.curves is not None:
        return _curves(options, rng, console)
    kind, prices = _kind(options), _prices(options.compare)
    files = _files(options, kind)
    demanded(c=options.c, t=options.t)
    _warn(kind, Console(stderr=True, highlight=False))
    made = _points(options, rng)
    _remarks(made, Console(stderr=True, highlight=False))
    if prices and len(made.axes) > MOST_COLUMNS:
        raise CrowdError("HB626", f"at most {MOST_COLUMNS} columns can be compared.", "Name fewer with --columns.")
    with progress("sanitize") as told:
        sanitized = sanitize(made, kind, t=options.t, rng=rng, progress=lambda done, what: told(done / 2, what))
        for name, path in files.items():
            _write(path, sanitized.tables[name])
        compared = beside(
            sanitized, c=options.c, epsilons=prices, progress=lambda done, what: told(0.5 + done / 2, what)
        )
        told(1.0, "done")
    if files:
        _note(_about(Path(options.to)), sanitized)
    if options.json:
        sys.stdout.write(json.dumps(_form(sanitized, compared, files), ensure_ascii=False) + "\n")
    else:
        _show(sanitized, compared, options.c, console)
        for path in files.values():
            console.print(f"Wrote {escape(str(path))}. {NOT_PRIVATE}")
    return 0


def _kind(options: Namespace) -> Kind:
    if options.table is None or options.columns is None:
        raise CrowdError(
            "HB626", "it is not said what to sanitize.", "Name a table and its columns: people.csv --columns age,income"
        )
    found = next((kind for kind in KINDS if kind == options.kind), None)
    if found is None:
        raise CrowdError("HB624", "it is not said which sanitizer.", f"Choose one: --with {', '.join(KINDS)}")
    return found


def _prices(text: str | None) -> list[Fraction]:
    return sorted({numbers.epsilon(each.strip()) for each in text.split(",")}) if text is not None else []


def _files(options: Namespace, kind: Kind) -> dict[str, Path]:
    """Name the files to write, and refuse those that cannot be, before anything is computed."""
    if options.to is None:
        return {}
    path = Path(options.to)
    if path.suffix.lower() != ".csv":
        raise CrowdError("HB625", f"{options.to[-60:]!r} is not the name of a .csv file.", "End it with .csv.")
    names = {"histogram": ("cells",), "cross": ("points", "cells")}.get(kind, ("points",))
    files = {name: path if place == 0 else path.with_suffix(f".{name}.csv") for place, name in enumerate(names)}
    _writable([*files.values(), _about(path)], force=options.force)
    return files


def _about(path: Path) -> Path:
    return path.with_suffix(".txt")


def _writable(paths: Sequence[Path], *, force: bool) -> None:
    for path in paths:
        if not path.parent.is_dir() or path.is_dir():
            raise CrowdError("HB625", f"there is no folder to write {path} in.", "Make it first.")
        if path.exists() and not force:
            raise CrowdError("HB625", f"{path} exists.", "Name another file, or replace it (--force).")


def _points(options: Namespace, rng: np.random.Generator) -> Points:
    table: Table = read(options.table)
    names = [name.strip() for name in options.columns.split(",") if name.strip()]
    return points(
        {name: table.column(name) for name in names},
        names,
        rng=rng,
        bounds={name: _pair(name, text) for name, text in _named(options.bounds, "--bounds age=0:110")},
        steps={name: _real(text, f"the step of {name}") for name, text in _named(options.step, "--step age=1")},
    )


def _named(given: Sequence[str], example: str) -> list[tuple[str, str]]:
    found = []
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise CrowdError("HB626", f"{text[:60]!r} does not name a column.", f"Write such as {example}")
        found.append((name.strip(), value))
    return found


def _pair(name: str, text: str) -> tuple[float, float]:
    low, sign, high = text.partition(":")
    if not sign:
        raise CrowdError("HB626", f"the bounds of {name} are not two numbers.", f"Write such as --bounds {name}=0:110")
    return _real(low, f"a bound of {name}"), _real(high, f"a bound of {name}")


def _real(text: str, name: str) -> float:
    return float(numbers.exact(text, name))


def _warn(kind: Kind, console: Console) -> None:
    """Say what it does not promise, before it does anything."""
    console.print(f"[bold yellow]![/] [bold]{NOT_PRIVATE}[/]")
    console.print(f"  It {escape(PROMISES[kind].does)}.")
    console.print(terminal.sentences(PROMISES[kind].warnings[1:]))


def _remarks(made: Points, console: Console) -> None:
    if made.left_out:
        console.print(f"[yellow]![/] {made.left_out:,} rows have no number in some column and are left out.")
    taken = [axis.name for axis in made.axes if not axis.declared]
    if taken:
        console.print(
            f"[yellow]![/] The bounds of {escape(', '.join(taken))} are the least and the greatest value in the data,"
            " which publishes both. Give them with --bounds."
        )


def _write(path: Path, columns: Columns) -> None:
    names = list(columns)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            for start in range(0, len(columns[names[0]]), _BATCH):
                part = [columns[name][start : start + _BATCH].tolist() for name in names]
                writer.writerows(zip(*(map(_text, values) for values in part), strict=True))
    except OSError as error:
        raise CrowdError("HB625", f"{path} cannot be written: {error.strerror}.", "Write it elsewhere.") from None


def _text(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.10g}"


def _note(path: Path, sanitized: Sanitized) -> None:
    """Put beside the file what it is: it may travel without us."""
    lines = [
        *(f"{number}. {text}" for number, text in enumerate(sanitized.promise.warnings, 1)),
        "",
        f"Made by the crowd sanitizer '{sanitized.kind}' with t = {sanitized.t}, which {sanitized.promise.does}.",
        "Columns were scaled to [-1, 1] by these bounds: "
        + "; ".join(
            f"{axis.name} {axis.low:.10g} to {axis.high:.10g}" + ("" if axis.declared else " (taken from the data)")
            for axis in sanitized.points.axes
        ),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _show(sanitized: Sanitized, compared: Sequence[Beside], c: float, console: Console) -> None:
    n = len(sanitized.points.values)
    console.print(f"[bold]{sanitized.kind}[/], {n:,} rows, {len(sanitized.points.axes)} columns, t = {sanitized.t}\n")
    named = [(each.name, "none" if each.epsilon is None else brief(each.epsilon), each) for each in compared]
    console.print(
        terminal.table(
            ("published", "ε", "means off by", "rows in a wrong bin"),
            [(name, price, f"{each.means:.3f} sd", percent(each.shares)) for name, price, each in named],
            right=(1, 2, 3),
        )
    )
    console.print(f"\nGuesses that are {c:g} times nearer to somebody than to a crowd of {sanitized.t}:")
    console.print(
        terminal.table(
            ("published", "ε", "guessed", "guesses", "single out", "95%"),
            [
                (name, price, who, f"{rate.trials:,}", percent(rate.share), "–".join(map(percent, rate.interval())))
                for name, price, each in named
                for who, rate in each.rates.items()
            ],
            right=(1, 3, 4, 5),
        )
    )
    if any(each.epsilon is not None for each in compared):
        console.print(
            "\n[dim]ε bounds what any adversary learns of a person, whatever they know. To single somebody out of a"
            " crowd is another question: one can do it blindly, and be protected nevertheless.[/]"
        )
    console.print()


def _form(sanitized: Sanitized, compared: Sequence[Beside], files: dict[str, Path]) -> dict[str, object]:
    return {
        "sanitizer": sanitized.kind,
        "t": sanitized.t,
        "rows": len(sanitized.points.values),
        "left_out": sanitized.points.left_out,
        "differentially_private": False,
        "warnings": list(sanitized.promise.warnings),
        "files": [str(path) for path in files.values()],
        "published": [
            {
                "name": each.name,
                "epsilon": None if each.epsilon is None else str(each.epsilon),
                "means_off_by_deviations": each.means,
                "share_in_wrong_bin": each.shares,
                "singled_out": {
                    name: {"right": rate.right, "trials": rate.trials, "interval": rate.interval()}
                    for name, rate in each.rates.items()
                },
            }
            for each in compared
        ],
    }


def _curves(options: Namespace, rng: np.random.Generator, console: Console) -> int:
    if options.table is not None:
        raise CrowdError("HB626", "curves are drawn on made-up points.", "Leave the table out.")
    folder = Path(options.curves)
    paths = {name: folder / f"{name}.svg" for name in CURVES}
    _writable(list(paths.values()), force=options.force)
    with progress("curves") as told:
        for place, (name, (over, values)) in enumerate(CURVES.items()):
            told(place / len(CURVES), name)
            paths[name].write_text(_drawn(name, over, values, rng), encoding="utf-8")
        told(1.0, "done")
    console.print("Wrote " + ", ".join(escape(str(path)) for path in paths.values()))
    return 0


def _drawn(name: str, over: str, values: Sequence[float], rng: np.random.Generator) -> str:
    """Draw one plot: who knows nothing, who knows nearly all, or who waits for the next release."""
    if name == "again":
        made = uniform(300, 8, rng)
        curves = {
            words: re_released(made, "sphere", map(int, values), t=10, c=4, rng=rng, keep=keep)
            for words, keep in (("noise drawn anew", False), ("places kept", True))
        }
        return drawing(over, curves, note="n = 300, d = 8, t = 10, c = 4")
    if name.startswith("known"):
        fixed = {"d": "d = 3", "c": "c = 4"}
        curves = informed(over, values, rng=rng)
        return drawing(over, curves, note=f"t = 2, {', '.join(text for key, text in fixed.items() if key != over)}")
    fixed = {"d": "d = 5", "t": "t = 10", "c": "c = 3"}
    note = ", ".join(["n = 1000", *(text for key, text in fixed.items() if key != over)])
    return drawing(over, sweep(over, values, rng=rng), note=note)
