"""The commands `hubbub audit release`, `hubbub audit self` and `hubbub audit check-report`."""

import json
import os
from argparse import Namespace
from collections.abc import Mapping
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.audit import nightly, report
from hubbub.audit import release as releases
from hubbub.config import Config, load
from hubbub.core import numbers
from hubbub.curator.opening import folder_of
from hubbub.errors import AuditError

_MOST_WORLDS = 10_000
_MOST_SECONDS = 86_400


def release(options: Namespace, console: Console) -> int:
    """Audit one release; 0 where it is sound, 1 where it is not."""
    worlds = numbers.integer(options.worlds, "worlds", 1, _MOST_WORLDS)
    found = releases.audit(load(Path(options.config)), options.number, worlds=worlds)
    if options.json:
        console.print_json(json.dumps(found.form()))
        return 0 if found.sound else 1
    console.print(terminal.sentences(found.lines))
    for line in found.left_out:
        console.print(f"[yellow]left out[/] {escape(line)}")
    for problem in found.problems:
        console.print(f"[bold red]problem[/] {escape(problem)}")
    if not found.sound:
        console.print(f"[bold red]NOT SOUND[/]: release {options.number} is not what it claims to be.")
        return 1
    console.print(f"[bold green]sound[/]: release {options.number} costs {escape(found.loss)}.")
    return 0


def own(options: Namespace, console: Console) -> int:
    """Audit the product on made-up data and sign the report; 0 where it is sound, 1 where it is not."""
    seconds = float(numbers.in_range(options.seconds, "seconds", Fraction(1), Fraction(_MOST_SECONDS)))
    config = load(Path(options.config))
    key = report.private_key(_key(options.key, config), make=options.key is None)
    aside = Console(stderr=True, highlight=False)
    found = nightly.audit(config, seconds=seconds, say=lambda text: aside.print(text, markup=False))
    text = report.signed({"hubbub": version("hubbub"), **found}, key)
    if options.out is None:
        console.print(text, markup=False, soft_wrap=True, end="")
    else:
        _replace(Path(options.out), text)
        _tell(found, console)
        console.print(f"The signed report is in {escape(options.out)}.")
    return 0 if found["sound"] else 1


def check_report(options: Namespace, console: Console) -> int:
    """Check a signed report; 0 where it is genuine and says that all is well."""
    public = Path(options.public) if options.public else report.public_half(_key(None, load(Path(options.config))))
    key = report.public_key(public)
    try:
        text = Path(options.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise AuditError("HB638", f"{options.file} cannot be read.", "Give what `hubbub audit self` wrote.") from None
    found = report.checked(text, key)
    console.print(f"Signed by the key {found['key'][:16]}… at {escape(str(found['time']))}, hubbub {found['hubbub']}.")
    _tell(found, console)
    return 0 if found["sound"] else 1


def _key(given: str | None, config: Config) -> Path:
    return Path(given) if given else folder_of(config) / "audit.key"


def _tell(found: Mapping[str, Any], console: Console) -> None:
    rows = [
        ("problem" if part["problems"] else "sound", part["name"], part["what"], f"{part['cases']:,}")
        for part in found["parts"]
    ]
    console.print(terminal.table(("", "part", "claim", "looks"), rows, right=(3,)))
    for part in found["parts"]:
        for problem in part["problems"]:
            console.print(f"[bold red]problem[/] {escape(part['name'])}: {escape(problem)}")
    word = "[bold green]sound[/]" if found["sound"] else "[bold red]NOT SOUND[/]"
    console.print(f"{word}, after {found['seconds']} seconds.")


def _replace(path: Path, text: str) -> None:
    """Write a file in one step, so that who reads it never finds half of it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise AuditError(
            "HB633", f"{path} cannot be written ({error.strerror}).", "Name another file: --out FILE."
        ) from None
