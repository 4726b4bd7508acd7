"""List columns: a column with `elements: 3` is read as the columns tags[1], tags[2], tags[3] and its length, tags[].

Tested in tests/sql/test_lists.py.
"""

import re

#: The most elements of a list that are read.
MAX_ELEMENTS = 64

_PART = re.compile(r"(.+)\[(\d{0,3})\]", re.DOTALL)


def element_name(column: str, place: int) -> str:
    """Name the column of one element, from 1 on."""
    return f"{column}[{place}]"


def length_name(column: str) -> str:
    """Name the column of the length of a list."""
    return f"{column}[]"


def part_of(name: str) -> tuple[str, int] | None:
    """Return the list column of which a column is a part, and the place of the element; 0 is the length.

    >>> part_of("tags[3]"), part_of("tags[]"), part_of("tags"), part_of("a[1][2]")
    (('tags', 3), ('tags', 0), None, ('a[1]', 2))
    """
    found = _PART.fullmatch(name)
    return None if found is None else (found[1], int(found[2] or 0))
