"""Parse an uploaded CSV file strictly, in memory and within limits."""

import csv
import io

import numpy as np

from hubbub.attacks.table import AttackTable, parse_numbers
from hubbub.errors import AttackError

MAX_BYTES = 1 << 20
MAX_ROWS = 100_000
MAX_COLUMNS = 100
_MAX_NAME = 63  # maximum characters of a column name
_REMEDY = "Upload comma-separated UTF-8 text with the column names in the first line."


def decode_upload(content: bytes) -> str:
    """Decode the bytes; reject too many bytes, invalid UTF-8 and control characters."""
    if len(content) > MAX_BYTES:
        raise _invalid_table(
            f"has more than {MAX_BYTES:,} bytes", "Use a sample, or run `hubbub attack NAME table.csv`."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _invalid_table("is not plain text in UTF-8") from None
    if "\0" in text:
        raise _invalid_table("is not plain text")
    return text


def table(text: str) -> AttackTable:
    """Parse CSV text; every line must have as many values as there are column names."""
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        raise _invalid_table("is not valid CSV: a quote is not closed, or a value is too long") from None
    lines = [line for line in lines if line]
    if len(lines) < 2:
        raise _invalid_table("has no rows")
    names, rows = [name.strip() for name in lines[0]], lines[1:]
    if len(rows) > MAX_ROWS:
        raise _invalid_table(f"has more than {MAX_ROWS:,} rows", "Use a sample, or run `hubbub attack NAME table.csv`.")
    if len(names) > MAX_COLUMNS:
        raise _invalid_table(f"has more than {MAX_COLUMNS} columns", "Remove columns that the attack does not need.")
    if not all(0 < len(name) <= _MAX_NAME and name.isprintable() and '"' not in name for name in names):
        raise _invalid_table(f"has a column whose name is empty, longer than {_MAX_NAME} characters, or not plain text")
    if len({name.casefold() for name in names}) < len(names):
        raise _invalid_table("has two columns with the same name")
    if set(map(len, rows)) != {len(names)}:
        raise _invalid_table("has lines with more or fewer values than column names")
    cells = np.array(rows, dtype=object)
    return AttackTable("upload", {name: parse_numbers(cells[:, index]) for index, name in enumerate(names)})


def _invalid_table(problem: str, remedy: str = _REMEDY) -> AttackError:
    return AttackError("HB645", f"The uploaded table {problem}.", remedy)
