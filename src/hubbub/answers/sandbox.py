"""How answers of the sandbox are marked: wherever they are shown, printed or written.

Tested in tests/answers/test_sandbox_marks.py.
"""

from collections.abc import Collection, Mapping
from typing import Any

MADE_UP = "Sandbox: these numbers are about made-up rows, not about the data. Nothing was charged."
FROM_RELEASE = "Sandbox: these numbers are about synthetic rows ({}), not about the data. Nothing was charged."
PUBLIC_TABLES = "Sandbox: this answer is from public tables, which are as they are."
#: The last column of tables and files that hold such an answer.
COLUMN = "made_up"


def marked_column(taken: Collection[str]) -> str:
    """Name the column that marks an answer; a name that the query uses gets an underscore more."""
    name = COLUMN
    while name in taken:
        name += "_"
    return name


def is_made_up(receipt: Mapping[str, Any]) -> bool:
    """Whether an answer is about rows that are not the data's; an answer from public tables is not."""
    return sandbox_note(receipt) not in ("", PUBLIC_TABLES)


def sandbox_note(receipt: Mapping[str, Any]) -> str:
    """Say that an answer is from the sandbox; empty for a real one."""
    return str(receipt.get("sandbox", ""))
