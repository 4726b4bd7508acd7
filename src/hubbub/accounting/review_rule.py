"""Which answers of a dataset somebody reviews before they leave.

Tested in tests/curator/test_review.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.core import numbers
from hubbub.core.numbers import brief

MAX_PEOPLE = 5


@dataclass(frozen=True, slots=True)
class ReviewRule:
    """Names every answer, or those that cost more than `above` or come from an analysis (`calls`).

    people  how many different people must approve an answer
    """

    above: Fraction | None = None
    calls: bool = False
    people: int = 1

    def names(self, query: str, epsilon: Fraction) -> bool:
        """Say whether an answer to this query at this price needs review; `query` is its text in the ledger."""
        if self.above is None and not self.calls:
            return True
        return (self.above is not None and epsilon > self.above) or (self.calls and query.startswith("CALL "))

    def sentence(self) -> str:
        """Say which answers are reviewed.

        >>> ReviewRule(Fraction(1, 2), calls=True, people=2).sentence()
        'Two people approve each answer that costs more than ε = 0.5 or comes from an analysis before it is shown.'
        """
        which = [f"costs more than ε = {brief(self.above)}"] if self.above is not None else []
        which += ["comes from an analysis"] if self.calls else []
        who = ("One person approves", "Two people approve", "Three people approve")[self.people - 1 : self.people]
        people = who[0] if who else f"{self.people} people approve"
        return f"{people} each answer{' that ' * bool(which)}{' or '.join(which)} before it is shown."

    def form(self) -> dict[str, object]:
        """The canonical form in a recorded policy."""
        form: dict[str, object] = {} if self.above is None else {"above": str(self.above)}
        return form | ({"calls": True} if self.calls else {}) | ({"people": self.people} if self.people > 1 else {})

    @classmethod
    def from_record(cls, form: Mapping[str, Any]) -> "ReviewRule":
        """Read the canonical form back."""
        above = numbers.epsilon(form["above"], "above") if "above" in form else None
        people = int(form.get("people", 1))
        if not 1 <= people <= MAX_PEOPLE:
            raise ValueError("people")
        return cls(above, form.get("calls") is True, people)
