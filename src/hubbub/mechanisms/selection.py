"""Shared base of the private selection mechanisms, which choose a candidate by integer scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.unit import Relation
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.sensitivity import check_relation

Scores = NDArray[np.int64]

MAX_CANDIDATES = 1 << 32

#: Scores are clamped to this limit; clamping neither increases a difference nor reverses a change.
SCORE_LIMIT = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The parameters of a selection among `candidates` by integer scores.

    `monotone` means that the scores of two neighbors all differ in one direction: this holds for scores that never
    decrease when a unit is added, under the add/remove relation.
    """

    rule: ClassVar[Literal["exponential", "permute_and_flip", "noisy_max"]]

    candidates: int
    sensitivity: int
    monotone: bool
    rate: Fraction

    def __post_init__(self) -> None:
        numbers.integer(self.candidates, "candidates", 1, MAX_CANDIDATES)
        numbers.sensitivity(self.sensitivity)
        check_flag(self.monotone)
        rate = numbers.in_range(self.rate, "rate", 1 / numbers.SCALE_MAX, 1 / numbers.SCALE_MIN)
        object.__setattr__(self, "rate", rate)

    @classmethod
    def from_epsilon(
        cls, *, candidates: int, sensitivity: int, monotone: bool, relation: Relation, epsilon: numbers.Number
    ) -> Self:
        """Calibrate the rate to ε.

        Theorem (Rate of a selection). Let each score move by at most D between neighbors. The rate ε/(2D) costs ε;
        where all scores move one way (monotone scores, one unit added or removed) the rate ε/D does. Under replace
        monotone scores may move both ways, so the rate stays ε/(2D).
        Assumes  the theorems of the three rules, whose loss is 2·rate·D, or rate·D where scores move one way.
        Tested   tests/mechanisms/test_selection.py::test_printed_rate_of_the_exponential_mechanism_costs_twice
                 tests/mechanisms/test_selection.py::test_printed_noise_of_report_noisy_max_costs_twice_under_replace
        """
        one_way = check_flag(monotone) and check_relation(relation) is Relation.ADD_REMOVE
        difference = numbers.sensitivity(sensitivity) * (1 if one_way else 2)
        return cls(
            candidates=candidates, sensitivity=sensitivity, monotone=one_way, rate=numbers.epsilon(epsilon) / difference
        )

    @property
    def event(self) -> events.SelectionEvent:
        """The event that the ledger records."""
        return events.SelectionEvent(self.rule, self.sensitivity, self.monotone, self.rate)

    @property
    def epsilon(self) -> Fraction:
        """The pure loss: 2·rate·D, or rate·D where scores move one way."""
        return self.rate * self.sensitivity * (1 if self.monotone else 2)

    def scores(self, value: Scores) -> Scores:
        """Validate the scores (int64, one per candidate) and clamp them into ±2⁶¹."""
        if value.shape != (self.candidates,) or value.dtype != np.int64:
            raise MechanismError(
                "HB612",
                f"The scores are not an int64 array of {self.candidates} values.",
                "Pass one score per candidate.",
            )
        return np.clip(value, -SCORE_LIMIT, SCORE_LIMIT)

    def rows(self, value: Scores) -> Scores:
        """Validate rows of scores, as `scores` does one row."""
        if value.ndim != 2 or value.shape[1] != self.candidates or value.dtype != np.int64:
            raise MechanismError(
                "HB612",
                f"The scores are not int64 rows of {self.candidates} values.",
                "Pass one score per candidate.",
            )
        return np.clip(value, -SCORE_LIMIT, SCORE_LIMIT)

    def listed(self, value: Sequence[int]) -> list[int]:
        """Validate a short list of scores whose distribution is listed."""
        return [int(score) for score in self.scores(np.array(value, dtype=np.int64))]


def check_flag(monotone: object) -> bool:
    """Return `monotone` if it is a bool, or raise."""
    if not isinstance(monotone, bool):
        raise ParameterError("HB101", "monotone is not a bool.", "Pass True or False.")
    return monotone
