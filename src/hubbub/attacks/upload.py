"""A table from the bytes of a CSV file that somebody sent: strict, bounded, in memory; no file and no engine."""

import csv
import io

import numpy as np

from hubbub.attacks.table import Table, typed
from hubbub.errors import AttackError

MOST_BYTES = 1 << 20
MOST_ROWS = 100_000
MOST_COLUMNS = 100
_LONGEST = 63  # characters of a column's name
_REMEDY = "Send comma-separated text in UTF-8, the names of the columns in its first line."


def decoded(content: bytes) -> str:
    """Take bytes for text, or refuse them: too many, not UTF-8, or with what no text has."""
    if len(content) > MOST_BYTES:
        raise _refused(f"has more than {MOST_BYTES:,} bytes", "Take an excerpt, or run: hubbub attack NAME table.csv")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused("is not text in UTF-8") from None
    if "\0" in text:
        raise _refused("is not text")
    return text


def table(text: str) -> Table:
    """Read a CSV text; every line has as many values as the first has names."""
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        raise _refused("is not CSV: a quote is not closed, or a value is too long") from None
    lines = [line for line in lines if line]
    if len(lines) < 2:
        raise _refused("has no rows")
    names, rows = [name.strip() for name in lines[0]], lines[1:]
    if len(rows) > MOST_ROWS:
        raise _refused(f"has more than {MOST_ROWS:,} rows", "Take an excerpt, or run: hubbub attack NAME table.csv")
    if len(names) > MOST_COLUMNS:
        raise _refused(f"has more than {MOST_COLUMNS} columns", "Leave out those that the attack does not need.")
    if not all(0 < len(name) <= _LONGEST and name.isprintable() and '"' not in name for name in names):
        raise _refused(f"has a column whose name is empty, longer than {_LONGEST} characters, or not plain text")
    if len({name.casefold() for name in names}) < len(names):
        raise _refused("has two columns of one name")
    if set(map(len, rows)) != {len(names)}:
        raise _refused("has lines with more or fewer values than there are names")
    cells = np.array(rows, dtype=object)
    return Table("upload", {name: typed(cells[:, place]) for place, name in enumerate(names)})


def _refused(why: str, remedy: str = _REMEDY) -> AttackError:
    return AttackError("HB645", f"the table that was sent {why}.", remedy)
