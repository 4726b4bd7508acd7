"""Rules of an organisation for numbers that are shown, beside the noise: a minimum frequency, and rounding.

Tested in tests/sql/test_disclosure.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class DisclosureRule:
    """Rules for the numbers of queries on a dataset.

    suppress_below  numbers of a group are not shown if its noisy count is below this
    round_to        counts are rounded to multiples of this
    round_by_noise  numbers are rounded to the last digit that their noise leaves meaningful
    """

    suppress_below: int | None = None
    round_to: int | None = None
    round_by_noise: bool = False

    @property
    def form(self) -> dict[str, Any]:
        """The rule as a receipt states it; empty if there is none."""
        form: dict[str, Any] = {} if self.suppress_below is None else {"suppress_below": self.suppress_below}
        if self.round_to is not None:
            form["round_to"] = self.round_to
        return form | ({"round_by_noise": True} if self.round_by_noise else {})

    @classmethod
    def strictest(cls, rules: Iterable["DisclosureRule"]) -> Self:
        """Combine the rules of several datasets: the highest threshold, and the coarsest rounding."""
        listed = list(rules)
        return cls(
            max((rule.suppress_below for rule in listed if rule.suppress_below is not None), default=None),
            max((rule.round_to for rule in listed if rule.round_to is not None), default=None),
            any(rule.round_by_noise for rule in listed),
        )


NO_RULE = DisclosureRule()


def disclosure_sentence(form: Mapping[str, Any], *, analysis: bool = False) -> str:
    """Say what a rule does to the numbers of an answer, by its form; empty if there is no rule.

    >>> disclosure_sentence({"round_by_noise": True}).partition(". ")[0]
    'Numbers are rounded by the size of their noise, and intervals outwards'
    """
    if not form:
        return ""
    if analysis:
        return "The data owner's rules for small numbers and rounding are for queries; analyses do not follow them."
    below, said = form.get("suppress_below"), []
    if below is not None:
        said.append(f"Numbers of a group whose noisy count is below {below} are suppressed, if the query has a count.")
    if "round_to" in form:
        said.append(f"Counts are rounded to multiples of {form['round_to']}, and intervals outwards.")
    if form.get("round_by_noise"):
        said.append("Numbers are rounded by the size of their noise, and intervals outwards.")
    said.append(
        "This follows a rule of the data owner. The noise protects people with or without it, so a total from which a"
        " suppressed number can be computed does no harm."
    )
    return " ".join(said)
