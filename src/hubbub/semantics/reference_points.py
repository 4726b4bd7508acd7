"""The ε of others, to compare with: from papers, a coin, and promises that were published.

Numbers alone do not compare promises: whom they protect (a person for good, or a person for a day), against whom (a
curator who is trusted, or none) and in all or each time differ, and are said beside each.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.numbers import brief
from hubbub.semantics.odds import guess, in_a_hundred


@dataclass(frozen=True, slots=True)
class ReferencePoint:
    """A promise that people may have heard of; ε in all, unless `unit` says otherwise."""

    name: str
    epsilon: Fraction
    unit: str
    source: str

    @property
    def guesses(self) -> str:
        """How many of a hundred guesses are right at most."""
        return in_a_hundred(guess(epsilon=self.epsilon, delta=Fraction(0)))


#: By ε, the smallest first. ln 2 and ln 3 are rounded up in the fourth digit.
REFERENCE_POINTS = (
    ReferencePoint("a careful choice in papers", Fraction("0.01"), "one person", "Dwork 2011"),
    ReferencePoint("a usual choice in papers", Fraction("0.1"), "one person", "Dwork 2011"),
    ReferencePoint("odds at most doubled (ln 2)", Fraction("0.6932"), "one person", "Dwork 2011"),
    ReferencePoint(
        "a survey by a coin (ln 3)",
        Fraction("1.0987"),
        "one answer, ¾ of them true, no curator",
        "Warner 1965; Dwork 2011",
    ),
    ReferencePoint(
        "Google's trends of searches for symptoms, 2020",
        Fraction("1.68"),
        "one person and day",
        "Bavadekar and others 2020 (arXiv 2009.01265)",
    ),
    ReferencePoint(
        "health types that are looked at, on iPhones",
        Fraction(2),
        "one person and day, no curator",
        "Apple, Differential Privacy Overview, 2017",
    ),
    ReferencePoint(
        "emoji, on iPhones",
        Fraction(4),
        "one person and day, no curator",
        "Apple, Differential Privacy Overview, 2017",
    ),
    ReferencePoint(
        "demonstration files for the 2020 census of the United States, April 2021",
        Fraction("12.2"),
        "one person",
        "US Census Bureau 2021, as told by the California Department of Finance",
    ),
)


def compare(epsilon: Fraction) -> str:
    """Say between which familiar promises an ε lies.

    >>> compare(Fraction(1))
    'ε = 1 lies between 0.6932, odds at most doubled (ln 2), and 1.0987, a survey by a coin (ln 3).'
    """
    below = [each for each in REFERENCE_POINTS if each.epsilon <= epsilon]
    above = [each for each in REFERENCE_POINTS if each.epsilon > epsilon]
    shown = f"ε = {brief(epsilon)}"
    if below and below[-1].epsilon == epsilon:
        return f"{shown} is that of {below[-1].name}."
    if not below:
        return f"{shown} is below {brief(above[0].epsilon)}, {above[0].name}."
    if not above:
        return f"{shown} is above {brief(below[-1].epsilon)}, {below[-1].name}."
    low, high = below[-1], above[0]
    return f"{shown} lies between {brief(low.epsilon)}, {low.name}, and {brief(high.epsilon)}, {high.name}."
