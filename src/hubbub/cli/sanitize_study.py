"""`hubbub sanitize study`: list the studies of the crowd sanitizers, describe one, or run it.

Tested in tests/cli/test_sanitize_study.py.
"""

import argparse
import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.cli import output
from hubbub.cli.progress import progress
from hubbub.cli.sanitize_files import check_writable
from hubbub.crowd.disclaimers import NOT_PRIVATE
from hubbub.crowd.studies.base import CrowdStudy, Plot
from hubbub.crowd.studies.catalogue import STUDIES, StudyEntry, find_study
from hubbub.errors import CrowdError

#: The word in place of a table that asks for a study.
WORD = "study"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a study."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="after study: a setting; repeatable"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="after study: random seed")
    parser.add_argument("--plot", metavar="FILE", help="after study: write its plot as .svg")
    parser.add_argument("--about", action="store_true", help="after study: only describe it and its settings")


def refuse_options(args: argparse.Namespace) -> None:
    """Reject options of a study without one."""
    if args.name is not None or args.set or args.plot is not None or args.about or args.seed is not None:
        raise CrowdError(
            "HB626", "--set, --seed, --plot, --about and a second name are for studies.", "Run hubbub sanitize study"
        )


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    if args.columns or args.kind or args.to or args.compare or args.bounds or args.step or args.values:
        raise CrowdError("HB626", "A study simulates its own rows.", "Omit the options of a table; use --set.")
    if args.name is None:
        rows = [(entry.name, entry.summary, entry.source) for entry in STUDIES.values()]
        console.print(terminal.table(("study", "description", "Chawla and others 2005"), rows))
        console.print(f"\n[bold yellow]![/] [bold]{NOT_PRIVATE}[/]")
        return 0
    entry = find_study(args.name)
    if args.about:
        return _about(entry, console)
    settings = _settings(args.set)
    path = _plot_path(args.plot, force=args.force)
    seed = secrets.randbits(63) if args.seed is None else abs(args.seed)
    with progress(entry.name) as report:
        study = entry.run(rng=np.random.default_rng(seed), settings=settings, progress=report)
    if path is not None:
        _write(path, study.plots[0])
    form = {**study.to_json(), "seed": seed}
    output.rows(study.columns, study.rows, form, args, console, lambda where: _show(study, entry, where))
    if output.format_of(args) == "table":
        console.print(f"\n[dim]Repeat it with --seed {seed}.[/]" + (f" Wrote {escape(str(path))}." if path else ""))
    return 0


def _about(entry: StudyEntry, console: Console) -> int:
    console.print(f"[bold]{escape(entry.name)}[/]: {escape(entry.summary)} (Chawla and others 2005, {entry.source})\n")
    for paragraph in entry.about.split("Theorem (")[0].split("\n\n"):
        console.print(escape(" ".join(paragraph.split())) + "\n")
    rows = [
        (name, ",".join(value) if isinstance(value, tuple) else str(value)) for name, value in entry.settings.items()
    ]
    console.print(
        terminal.table(("setting", "default"), [(name, text or "chosen by the study") for name, text in rows])
    )
    console.print(f"\n[dim]Change a setting: hubbub sanitize study {entry.name} --set {escape(rows[-1][0])}=…[/]")
    return 0


def _settings(texts: Sequence[str]) -> dict[str, str]:
    """Read --set; the study itself checks names and types."""
    settings = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise CrowdError("HB685", f"{text[:60]!r} is not a setting.", "Write a name and a value: --set n=500")
        settings[name.strip()] = value
    return settings


def _plot_path(text: str | None, *, force: bool) -> Path | None:
    """Return where to write the plot; reject what cannot be written before anything runs."""
    if text is None:
        return None
    path = Path(text)
    if path.suffix.lower() != ".svg":
        raise CrowdError("HB625", f"{text[-60:]!r} is not an .svg file.", "Use a name that ends with .svg.")
    check_writable([path], force=force)
    return path


def _write(path: Path, plot: Plot) -> None:
    try:
        path.write_text(plot.svg(), encoding="utf-8")
    except OSError as error:
        raise CrowdError("HB625", f"{path} cannot be written: {error.strerror}.", "Choose another location.") from None


def _show(study: CrowdStudy, entry: StudyEntry, console: Console) -> None:
    console.print(f"[bold]{escape(study.title)}[/] (Chawla and others 2005, {entry.source})\n")
    console.print(terminal.table(study.columns, study.rows, right=range(1, len(study.columns))))
    console.print()
    console.print(terminal.sentences(study.words))
    console.print(f"\n[bold yellow]![/] [bold]{NOT_PRIVATE}[/]")
