"""What each crowd sanitizer does, and what it does not promise, in words for whoever is about to publish."""

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["histogram", "ball", "sphere", "gaussian", "cross"]

#: Said of all of them, wherever they appear.
NOT_PRIVATE = "This is NOT differentially private. No ε belongs to it, and no budget was charged for it."

ALWAYS = (
    "Whoever knows something about a person from elsewhere can learn the rest: nothing bounds what they learn.",
    "Published again after the data changed, what differs tells about those who came or left; noise drawn anew "
    "averages out.",
    "What is proven is about isolation of uniform points of a cube in high dimension, by somebody who knows nothing "
    "else. Your table is not that.",
    "No perfect sanitizer exists: one that is useful lets some adversary with some knowledge succeed.",
)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a sanitizer does, in one sentence, and what it does not promise."""

    does: str
    does_not: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Everything to be said before it is used."""
        return NOT_PRIVATE, *self.does_not, *ALWAYS


PROMISES: dict[Kind, Promise] = {
    "histogram": Promise(
        "cuts the cube of all columns in half in every direction where 2t rows or more are together, and publishes how "
        "many rows each cell has",
        (
            "The counts are exact. Of two tables that differ in one row the counts differ, and whoever knows all rows "
            "but one reads that one's cell off.",
            "A cell with one row says that somebody is there, and that nobody else is. In few columns a cell is small "
            "enough to name a person.",
        ),
    ),
    "ball": Promise(
        "moves each row to a random place within the distance to its t-th nearest row",
        (
            "How far a row moves depends on its neighbors exactly, so a published row tells about them too.",
            "A row can land next to where it was: in few columns many do.",
        ),
    ),
    "sphere": Promise(
        "moves each row by exactly the distance to its t-th nearest row, in a random direction",
        (
            "How far a row moves depends on its neighbors exactly, so a published row tells about them too.",
            "With one column there are two directions: whoever guesses the distance has the value in one of two tries.",
        ),
    ),
    "gaussian": Promise(
        "adds normal noise to each row, as wide as the distance to its t-th nearest row",
        (
            "How far a row moves depends on its neighbors exactly, so a published row tells about them too.",
            "Normal noise here is not the Gaussian mechanism: its width was not set by a sensitivity, and by the data.",
        ),
    ),
    "cross": Promise(
        "publishes a recursive histogram of one half of the rows, and the other half with normal noise as wide as "
        "their cells of it",
        (
            "The histogram's counts are exact, and the cell of every moved row is published.",
            "It says which half a row is in only by which file it helped to make; whoever knows it gains from it.",
        ),
    ),
}

KINDS: tuple[Kind, ...] = get_args(Kind)
