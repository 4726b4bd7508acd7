"""Answers that follow from earlier releases: what they are computed from, in words.

Everything here comes from the ledger and the query, never from the noise. Tested in tests/curator/test_reuse.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

#: How the note of a derived answer begins.
DERIVED_NOTE = "This answer was computed from "


def named(numbers: Sequence[int]) -> str:
    """Name releases by their numbers.

    >>> named([12]), named([12, 15]), named([1, 2, 3])
    ('release 12', 'releases 12 and 15', 'releases 1, 2 and 3')
    """
    *others, last = map(str, numbers)
    return f"releases {', '.join(others)} and {last}" if others else f"release {last}"


def derived_note(derived: Mapping[str, Any]) -> str:
    """State what a derived answer was computed from, and which rows count in it."""
    numbers = [source["charge"] for source in derived["sources"]]
    text = f"{DERIVED_NOTE}{named(numbers)}, which paid for its noise; it is free."
    if derived["exact"]:
        return text
    return (
        f"{text} The bounds are those of {named(numbers)} in its own groups, so at least as many rows of each privacy "
        "unit count as in an answer to this query alone."
    )
