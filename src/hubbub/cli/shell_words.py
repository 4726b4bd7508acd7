"""What the shell offers to complete: datasets, columns, functions, keywords, commands and options.

Tested in tests/cli/test_shell.py.
"""

import re
from collections.abc import Mapping

from hubbub.cli.shell_commands import HELP, SETTINGS

KEYWORDS = tuple(
    """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN IS NULL BETWEEN LIKE CASE WHEN THEN ELSE END JOIN
    LEFT ON USING DISTINCT WITH FILTER ASC DESC COUNT SUM AVG MIN MAX MEDIAN VARIANCE STDDEV QUANTILE_CONT CALL
    """.split()  # noqa: SIM905 - two lines instead of forty
)
_WORD = re.compile(r"[\w\\]*$")
_TABLES = re.compile(r"\b(?:from|join)\s+(\w+)", re.IGNORECASE)
_AFTER_TABLE = re.compile(r"\b(?:from|join)\s+\w*$", re.IGNORECASE)


class ShellWords:
    """The words that can stand at a place; columns are those of the tables that the text names, if it names any."""

    def __init__(self, columns: Mapping[str, tuple[str, ...]], functions: tuple[str, ...]) -> None:
        """Know the columns of each dataset, and the functions."""
        self._columns = columns
        self._functions = functions

    def complete(self, before: str) -> list[tuple[str, str]]:
        """Return the words that can follow a text, each with what it is."""
        match = _WORD.search(before)
        part = "" if match is None else match[0].lower()
        return [(word, about) for word, about in self._offered(before) if word.lower().startswith(part)]

    def _offered(self, before: str) -> list[tuple[str, str]]:
        line = before.lstrip()
        if line.startswith("\\"):
            name, space, _ = line.partition(" ")
            if not space:
                return [(each.split()[0], about) for each, about in HELP.items()]
            if name in ("\\set", "\\unset"):
                return [(each, about) for each, about in SETTINGS.items()] if line.count(" ") == 1 else []
            if name in ("\\d", "\\dt"):
                return [(each, "dataset") for each in self._columns]
            if name != "\\plan":
                return []
        if _AFTER_TABLE.search(before):
            return [(each, "dataset") for each in self._columns]
        named = [name for name in _TABLES.findall(before) if name in self._columns] or list(self._columns)
        columns = {column: f"column of {name}" for name in named for column in self._columns[name]}
        words = [*columns.items(), *((each, "dataset") for each in self._columns)]
        return [*words, *((each, "function") for each in self._functions), *((each, "") for each in KEYWORDS)]


def word_start(before: str) -> int:
    """Return where the word begins that a completion replaces, as a negative offset."""
    match = _WORD.search(before)
    return 0 if match is None else -len(match[0])
