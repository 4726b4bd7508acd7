"""What all selections have in common: integer scores of one sensitivity, a rate, and whether scores move one way."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.unit import Relation
from hubbub.errors import MechanismError, ParameterError

Scores = NDArray[np.int64]

MAX_CANDIDATES = 1 << 32

#: Scores beyond this are taken as this; clamping moves no two scores apart and turns no movement round.
SCORE_LIMIT = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The facts of a choice among `candidates` by integer scores.

    `monotone` says that the scores of two neighbors differ all in one direction: that is so for scores that never fall
    when a unit is added, where neighbors differ by one unit more or less.
    """

    rule: ClassVar[Literal["exponential", "permute_and_flip", "noisy_max"]]

    candidates: int
    sensitivity: int
    monotone: bool
    rate: Fraction

    def __post_init__(self) -> None:
        numbers.integer(self.candidates, "candidates", 1, MAX_CANDIDATES)
        numbers.sensitivity(self.sensitivity)
        _flag(self.monotone)
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
        if not isinstance(relation, Relation):
            raise ParameterError("HB154", "this is not a relation between neighbors.", "Give a Relation.")
        one_way = _flag(monotone) and relation is Relation.ADD_REMOVE
        moved = numbers.sensitivity(sensitivity) * (1 if one_way else 2)
        return cls(
            candidates=candidates, sensitivity=sensitivity, monotone=one_way, rate=numbers.epsilon(epsilon) / moved
        )

    @property
    def event(self) -> events.SelectionEvent:
        """The facts that the ledger keeps."""
        return events.SelectionEvent(self.rule, self.sensitivity, self.monotone, self.rate)

    @property
    def epsilon(self) -> Fraction:
        """The pure loss: 2·rate·D, or rate·D where scores move one way."""
        return self.rate * self.sensitivity * (1 if self.monotone else 2)

    def scores(self, value: Scores) -> Scores:
        """Take the scores that are handed over: int64, one for each candidate, clamped into ±2⁶¹."""
        if value.shape != (self.candidates,) or value.dtype != np.int64:
            raise MechanismError("HB612", f"this takes an int64 array of {self.candidates} scores.", "One a candidate.")
        return np.clip(value, -SCORE_LIMIT, SCORE_LIMIT)

    def listed(self, value: Sequence[int]) -> list[int]:
        """Take a short list of scores, for a distribution."""
        return [int(score) for score in self.scores(np.array(value, dtype=np.int64))]


def _flag(monotone: object) -> bool:
    if not isinstance(monotone, bool):
        raise ParameterError("HB101", "monotone is not a bool.", "Give True or False.")
    return monotone
