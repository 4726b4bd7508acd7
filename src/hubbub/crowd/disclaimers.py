"""Descriptions and warnings for the crowd sanitizers, shown before their output is published.

Tested in tests/crowd/test_sanitizers.py.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["histogram", "ball", "sphere", "gaussian", "cross"]

#: Shown with every sanitizer.
NOT_PRIVATE = "This is NOT differentially private. It has no ε, and no budget was charged."

ALWAYS = (
    "An adversary with auxiliary information about a person can learn the rest; nothing limits what they learn.",
    "If you publish again after the data changed, the differences reveal who came or left, and fresh noise averages "
    "out.",
    "The proofs cover only isolation of uniform points in a high-dimensional cube by an adversary without other "
    "knowledge. Your table does not satisfy these assumptions.",
    "No perfect sanitizer exists: every useful sanitizer lets some adversary with auxiliary information succeed.",
)


@dataclass(frozen=True, slots=True)
class SanitizerDescription:
    """What a sanitizer does, in one sentence, and its weaknesses."""

    does: str
    does_not: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings to show before it is used."""
        return NOT_PRIVATE, *self.does_not, *ALWAYS


SANITIZERS: dict[Kind, SanitizerDescription] = {
    "histogram": SanitizerDescription(
        "halves a cell in every dimension while it holds 2t rows or more, and publishes the number of rows per cell",
        (
            "The counts are exact. An adversary who knows all rows but one can read off the cell of the last row.",
            "A cell with one row reveals that exactly one person is there. With few columns a cell can be small enough "
            "to identify a person.",
        ),
    ),
    "ball": SanitizerDescription(
        "moves each row to a random point within the distance to its t-th nearest row",
        (
            "The distance that a row moves depends exactly on its neighbors, so a published row reveals them, too.",
            "A row can stay close to its true position; with few columns, many rows do.",
        ),
    ),
    "sphere": SanitizerDescription(
        "moves each row by exactly the distance to its t-th nearest row, in a random direction",
        (
            "The distance that a row moves depends exactly on its neighbors, so a published row reveals them, too.",
            "With one column there are only two directions: an adversary who guesses the distance needs two attempts.",
        ),
    ),
    "gaussian": SanitizerDescription(
        "adds normal noise to each row, scaled to the distance to its t-th nearest row",
        (
            "The distance that a row moves depends exactly on its neighbors, so a published row reveals them, too.",
            "This is not the Gaussian mechanism: the data, not a sensitivity, sets the scale of the noise.",
        ),
    ),
    "cross": SanitizerDescription(
        "publishes a recursive histogram of one half of the rows, and the other half with normal noise scaled to the "
        "cells of that histogram",
        (
            "The histogram's counts are exact, and the cell of every perturbed row is published.",
            "An adversary who knows which half a row is in learns more about it.",
        ),
    ),
}

KINDS: tuple[Kind, ...] = get_args(Kind)
