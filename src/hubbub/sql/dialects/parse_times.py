"""Formats of dates and times as regular expressions, for engines whose own functions raise errors on other texts.

Tested in tests/sql/test_patterns.py, tests/sql/test_postgres_functions.py and tests/sql/test_spark_functions.py.
"""

import re
from dataclasses import dataclass

#: What DuckDB takes for a blank.
_BLANKS = "[ \t\n\x0b\x0c\r]"
#: The number of digits of each field, and its value where the format lacks it.
FIELDS = {"Y": (4, 1900), "m": (2, 1), "d": (2, 1), "H": (2, 0), "M": (2, 0), "S": (2, 0)}


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A regular expression with a group for each field, without anchors, and the fields in their order."""

    pattern: str
    fields: tuple[str, ...]


def time_format(form: str) -> TimeFormat | None:
    r"""Read a format of %Y, %m, %d, %H, %M and %S as DuckDB's strptime does; None: it means something else there.

    Blanks around the text are skipped, and blanks in it match blanks. A field takes as many digits as it can, so one
    that is followed by another at once has all its digits. No text matches in two ways, so that an engine that
    backtracks takes time in proportion to the text.

    >>> time_format("%Y%m").pattern.strip("[ \t\n\x0b\x0c\r]*")
    '([0-9]{4})([0-9]{1,2})'
    """
    parts = re.findall(r"%[YmdHMS]| +|[^% ]", form)
    fields = [part[1] for part in parts if part[0] == "%"]
    if "".join(parts) != form or not fields or len(set(fields)) < len(fields) or form != form.strip(" "):
        return None
    pattern = f"{_BLANKS}*"
    for place, part in enumerate(parts):
        if part[0] == "%":
            digits, last = FIELDS[part[1]][0], parts[place + 1 : place + 2]
            pattern += f"([0-9]{{{digits}}})" if last and last[0][0] == "%" else f"([0-9]{{1,{digits}}})"
        else:
            pattern += f"{_BLANKS}+" if part[0] == " " else part if part.isalnum() or part in "-/:" else f"[{part}]"
    return TimeFormat(f"{pattern}{_BLANKS}*", tuple(fields))
