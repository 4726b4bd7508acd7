"""The add/remove and replace relations between neighboring datasets.

Dwork, McSherry, Nissim and Smith (2006) and Kasiviswanathan and Smith replace one entry; Dwork (2011) adds or removes
one. A histogram then has sensitivity 2 or 1, and a "symmetric difference of at most one" does not cover a replacement,
whose symmetric difference is two. So every sensitivity in hubbub states its relation.

Tested in tests/mechanisms/test_sensitivity.py.
"""

import re
from enum import Enum
from typing import Literal


class Relation(Enum):
    """The relation between neighboring datasets."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"

    @property
    def units_changed(self) -> int:
        """The number of privacy units that differ between neighbors, counted as additions and removals.

        >>> Relation.ADD_REMOVE.units_changed, Relation.REPLACE.units_changed
        (1, 2)
        """
        return 1 if self is Relation.ADD_REMOVE else 2


_PERIOD = re.compile(r"(.+) per (hour|day|week|month)")


def period_guarantee(unit: str) -> str:
    """Say what a unit by time protects, given its name; an empty string for other units.

    >>> period_guarantee("user per day")
    'what is protected is one day of one user; k days of a user cost k times as much privacy'
    >>> period_guarantee("user")
    ''
    """
    match = _PERIOD.fullmatch(unit)
    if match is None:
        return ""
    person, per = match.groups()
    cost = f"k {per}s of a {person} cost k times as much privacy"
    return f"what is protected is one {per} of one {person}; {cost}"


#: The hash that selects which rows to truncate: the engine's own, or md5 of text, which all engines share.
Hash = Literal["engine", "portable"]
