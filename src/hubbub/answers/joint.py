"""Intervals that hold for all cells of an answer at once.

Tested in tests/answers/test_joint.py.
"""

from collections.abc import Mapping
from typing import Any

#: The probability with which some interval of an answer may miss.
MISS = 0.05


def joint_sentence(count: int, *, independent: bool) -> str:
    """State with what probability all intervals of an answer hold.

    >>> joint_sentence(11, independent=True)
    'all 11 intervals hold at once in at least 95% of answers (95.11%, as their noises are independent)'
    >>> joint_sentence(22, independent=False)
    'all 22 intervals hold at once in at least 95% of answers (by the union bound)'
    """
    exact = f"{100 * (1 - MISS / count) ** count:.2f}%, as their noises are independent"
    return (
        f"all {count:,} intervals hold at once in at least 95% of answers "
        f"({exact if independent else 'by the union bound'})"
    )


def interval_count(receipt: Mapping[str, Any], noisy: int) -> int | None:
    """Return the number of intervals of a query with so many noisy columns; None if its groups were selected."""
    cells = receipt.get("cells") or [None]
    return None if None in cells else sum(cells) * noisy


def independent_noises(receipt: Mapping[str, Any], noisy: int) -> bool:
    """Return whether each interval depends on noise of its own: one column, from one noisy sum."""
    draws = [draw["kind"] for draw in receipt.get("draws", ())]
    return noisy == 1 and draws == ["sum"]
