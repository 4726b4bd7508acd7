"""Files that `hubbub sanitize` writes: a table, and a note on what it does not guarantee.

Tested in tests/cli/test_sanitize.py.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

from hubbub.crowd.disclaimers import Kind
from hubbub.crowd.points import CategoryColumn, Column
from hubbub.crowd.sanitizers import Columns, SanitizedData
from hubbub.errors import CrowdError

_BATCH = 10_000


def files_to_write(to: str | None, kind: Kind, *, force: bool) -> dict[str, Path]:
    """Name the files to write, and reject those that cannot be written before anything is computed."""
    if to is None:
        return {}
    path = Path(to)
    if path.suffix.lower() != ".csv":
        raise CrowdError("HB625", f"{to[-60:]!r} is not a .csv file.", "Use a name that ends with .csv.")
    names = {"histogram": ("cells",), "cross": ("points", "cells")}.get(kind, ("points",))
    files = {name: path if number == 0 else path.with_suffix(f".{name}.csv") for number, name in enumerate(names)}
    check_writable([*files.values(), _note_path(path)], force=force)
    return files


def _note_path(path: Path) -> Path:
    return path.with_suffix(".txt")


def check_writable(paths: Sequence[Path], *, force: bool) -> None:
    """Reject files whose folder does not exist, and existing files unless they may be replaced."""
    for path in paths:
        if not path.parent.is_dir() or path.is_dir():
            raise CrowdError(
                "HB625", f"{path} cannot be written: its folder does not exist.", "Create the folder first."
            )
        if path.exists() and not force:
            raise CrowdError("HB625", f"{path} already exists.", "Choose another file, or replace it with --force.")


def write_table(path: Path, columns: Columns) -> None:
    """Write columns as CSV."""
    names = list(columns)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            for start in range(0, len(columns[names[0]]), _BATCH):
                batch = [columns[name][start : start + _BATCH].tolist() for name in names]
                writer.writerows(zip(*(map(_text, values) for values in batch), strict=True))
    except OSError as error:
        raise CrowdError("HB625", f"{path} cannot be written: {error.strerror}.", "Choose another location.") from None


def _text(value: float | str) -> str:
    return str(value) if isinstance(value, int | str) else f"{value:.10g}"


def write_note(table: Path, sanitized: SanitizedData) -> None:
    """Write a note next to the file, because the file may be passed on."""
    lines = [
        *(f"{number}. {text}" for number, text in enumerate(sanitized.description.warnings, 1)),
        "",
        f"Made by the crowd sanitizer '{sanitized.kind}' with t = {sanitized.t}, which {sanitized.description.does}.",
        "Columns were scaled to [-1, 1] by these bounds: "
        + "; ".join(
            _scale(axis) + ("" if axis.declared else " (taken from the data)") for axis in sanitized.points.axes
        ),
    ]
    _note_path(table).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _scale(axis: Column) -> str:
    if isinstance(axis, CategoryColumn):
        return f"{axis.name} with {axis.width} categories"
    return f"{axis.name} {axis.low:.10g} to {axis.high:.10g}"
