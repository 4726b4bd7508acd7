"""Values of ε from papers and published deployments, for comparison.

Numbers alone do not compare guarantees. Each reference point also states its privacy unit (a person, or a person-day)
and whether it uses the central or the local model.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.numbers import brief
from hubbub.semantics.odds import guess, in_a_hundred


@dataclass(frozen=True, slots=True)
class ReferencePoint:
    """A published value of ε; it is a total unless `unit` states otherwise."""

    name: str
    epsilon: Fraction
    unit: str
    source: str

    @property
    def guesses(self) -> str:
        """The maximum number of right guesses out of 100."""
        return in_a_hundred(guess(epsilon=self.epsilon, delta=Fraction(0)))


#: In increasing order of ε. ln 2 and ln 3 are rounded up in the fourth digit.
REFERENCE_POINTS = (
    ReferencePoint("a cautious value in papers", Fraction("0.01"), "one person", "Dwork 2011"),
    ReferencePoint("a common value in papers", Fraction("0.1"), "one person", "Dwork 2011"),
    ReferencePoint("odds at most doubled, ln 2", Fraction("0.6932"), "one person", "Dwork 2011"),
    ReferencePoint(
        "a coin-flip survey, ln 3",
        Fraction("1.0987"),
        "one answer, true with probability ¾, local model",
        "Warner 1965; Dwork 2011",
    ),
    ReferencePoint(
        "Google's COVID-19 Search Trends symptoms dataset, 2020",
        Fraction("1.68"),
        "one person per day",
        "Bavadekar and others 2020 (arXiv 2009.01265)",
    ),
    ReferencePoint(
        "Health data types viewed on iPhones",
        Fraction(2),
        "one person per day, local model",
        "Apple, Differential Privacy Overview, 2017",
    ),
    ReferencePoint(
        "emoji usage on iPhones",
        Fraction(4),
        "one person per day, local model",
        "Apple, Differential Privacy Overview, 2017",
    ),
    ReferencePoint(
        "demonstration data for the 2020 US census, April 2021",
        Fraction("12.2"),
        "one person",
        "US Census Bureau 2021, as reported by the California Department of Finance",
    ),
)


def compare(epsilon: Fraction) -> str:
    """Return a sentence that compares ε with its neighbors among the reference points.

    >>> compare(Fraction(1))
    'ε = 1 lies between 0.6932 (odds at most doubled, ln 2) and 1.0987 (a coin-flip survey, ln 3).'
    """
    below = [point for point in REFERENCE_POINTS if point.epsilon <= epsilon]
    above = [point for point in REFERENCE_POINTS if point.epsilon > epsilon]
    shown = f"ε = {brief(epsilon)}"
    if below and below[-1].epsilon == epsilon:
        return f"{shown} is the value for {below[-1].name}."
    if not below:
        return f"{shown} is below {_shown(above[0])}."
    if not above:
        return f"{shown} is above {_shown(below[-1])}."
    return f"{shown} lies between {_shown(below[-1])} and {_shown(above[0])}."


def _shown(point: ReferencePoint) -> str:
    return f"{brief(point.epsilon)} ({point.name})"
