"""How many privacy units a group needs to be shown, where the groups of an answer are selected privately.

Everything here comes from the plan or the receipt of a query, so stating it reveals nothing.

Tested in tests/curator/test_discovery.py.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, Self

from hubbub.core.numbers import brief
from hubbub.core.wire import Json, optional_fraction, optional_text

#: The number of groups per unit in the second figure that is stated.
SPREAD = 10
#: Fewer groups than this call for a warning.
FEW = 5
#: Where the number of units is not known, needing more than this many calls for a warning.
_MANY = 1000


@dataclass(frozen=True, slots=True)
class GroupThreshold:
    """About how many privacy units a group needs to be shown.

    alone    if they are in no other group
    spread   if each of them is in SPREAD groups
    unit     the privacy ID column; None if each row is a unit
    units    about how many units the dataset has, if that is known
    enough   an ε at which groups of a hundredth of the units (or of 100 units) are shown, if the requested one is small
    """

    alone: int
    spread: int
    unit: str | None = None
    units: int | None = None
    enough: Fraction | None = None

    @property
    def most(self) -> int | None:
        """The most groups that can be shown if each unit is in one group; None if the number of units is not known."""
        return None if self.units is None else self.units // self.alone

    @property
    def scarce(self) -> bool:
        """Whether next to nothing can be shown."""
        return self.alone > _MANY if self.most is None else self.most < FEW

    def sentence(self) -> str:
        """State the threshold.

        >>> GroupThreshold(41, 130, "patient").sentence()
        'A group needs about 41 privacy units (patient) to be shown, or about 130 if each of them is in 10 groups.'
        >>> GroupThreshold(30, 30).sentence()
        'A group needs about 30 rows to be shown.'
        """
        name = "rows" if self.unit is None else f"privacy units ({self.unit})"
        spread = (
            "" if self.spread == self.alone else f", or about {self.spread:,} if each of them is in {SPREAD} groups"
        )
        return f"A group needs about {self.alone:,} {name} to be shown{spread}."

    def warning(self) -> str:
        """Warn if next to nothing can be shown; empty otherwise.

        >>> GroupThreshold(2000, 2000, "patient", units=4044, enough=Fraction(5)).warning()
        'At most 2 groups can be shown: the dataset has about 4,044 privacy units. At ε = 5 many more could be.'
        """
        if not self.scarce:
            return ""
        offer = "" if self.enough is None else f" At ε = {brief(self.enough)} many more could be."
        if self.most is None:
            return f"Only very large groups can be shown.{offer}"
        count = "No group" if not self.most else f"At most {self.most} group{'s' * (self.most > 1)}"
        return f"{count} can be shown: the dataset has about {self.units:,} privacy units.{offer}"

    def note(self, shown: int, *, cut: bool) -> str:
        r"""Explain the number of groups in an answer; `cut` says that HAVING, LIMIT or OFFSET may have removed some.

        >>> GroupThreshold(30, 30).note(0, cut=False)
        'No group was shown. A group needs about 30 rows to be shown. Use a larger ε, or group by a coarser key.'
        >>> GroupThreshold(30, 30).note(12, cut=False)
        'Smaller groups are not shown. A group needs about 30 rows to be shown.'
        >>> print(GroupThreshold(30, 30).note(3, cut=False).replace(". ", ".\n"))
        Smaller groups, if there are any, are not shown.
        A group needs about 30 rows to be shown.
        If you expect more: use a larger ε, or group by a coarser key.
        """
        advice = "Use a larger ε, or group by a coarser key."
        if cut or shown >= FEW:
            return f"Smaller groups are not shown. {self.sentence()}"
        if not shown:
            return f"No group was shown. {self.sentence()} {advice}"
        # there may be no others: three years of data are three groups
        return (
            f"Smaller groups, if there are any, are not shown. {self.sentence()} If you expect more: {advice.lower()}"
        )

    def to_json(self) -> Json:
        """Return it as JSON values, with the sentence and the warning."""
        return asdict(self) | {
            "enough": optional_text(self.enough),
            "text": self.sentence(),
            "warning": self.warning(),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(form["alone"], form["spread"], form["unit"], form["units"], optional_fraction(form, "enough"))

    @classmethod
    def from_receipt(cls, paper: Mapping[str, Any]) -> Self | None:
        """Derive the threshold from a receipt; None if the groups of the answer were declared."""
        unit = next((data["unit"] for data in paper.get("data", ())), "row")
        parts = [paper, *paper.get("queries", ())]
        for draw in (draw for part in parts for draw in part.get("draws", ())):
            if draw["kind"] == "threshold":
                return cls(draw["threshold"], draw["threshold"], None if unit == "row" else unit)
            if draw["kind"] == "weights":
                return cls.from_weights(draw["threshold"], draw["weight"], draw["keys"], unit)
        return None

    @classmethod
    def from_weights(cls, threshold: int, weight: int, keys: int, unit: str | None) -> Self:
        """Derive the threshold from weights: 1/√n for each of a unit's n ≤ keys groups, or a vote for one of them."""
        share = isqrt(weight * weight // min(SPREAD, keys))
        # with fewer keys than groups, a unit gives its weights to some of its groups only
        kept = Fraction(min(SPREAD, keys), SPREAD)
        return cls(-(-threshold // weight), -(-threshold // (share * kept)), unit)
