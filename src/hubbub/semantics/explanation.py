"""One ε explained to people: all sentences about it in their order, icons, comparisons and warnings."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.semantics.bounds import approximate_beliefs, beliefs
from hubbub.semantics.reference_points import REFERENCE_POINTS, compare
from hubbub.semantics.odds import EVEN, Meaning, but_for, in_a_hundred, meaning
from hubbub.semantics.tradeoff import approximate

#: The largest family that is asked about: beyond that, nothing but the whole dataset is meant.
FAMILY_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Explanation:
    """What (ε, δ) means for one person, for a family, and beside what others promise."""

    meaning: Meaning
    size: int

    @property
    def heading(self) -> str:
        """Name the promise."""
        delta = f", δ = {brief(self.meaning.delta)}" if self.meaning.delta else ""
        people = "" if self.meaning.people is None else f", {self.meaning.people:,} people"
        return f"ε = {brief(self.meaning.epsilon)}{delta}{people}"

    @property
    def beliefs(self) -> str:
        """Say how far beliefs are apart in the worlds with and without one person's data."""
        found, of = self.meaning, "Whatever anybody believes, one person's data moves a belief by"
        if not found.delta:
            most = beliefs(epsilon=found.epsilon)
            return f"{of} at most {in_a_hundred(most)} percentage points."
        if found.people is None:
            return "How far a belief moves under a δ depends on the number of people: say how many (n)."
        most, chance = approximate_beliefs(epsilon=found.epsilon, delta=found.delta, people=found.people)
        if chance >= 1 or most >= 1:
            return "Under this δ and n, nothing is known about how far one person's data moves a belief."
        return f"{of} at most {in_a_hundred(most)} percentage points{but_for(chance)}."

    @property
    def comparison(self) -> str:
        """Say between which familiar promises it lies."""
        return compare(self.meaning.epsilon)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything in words, the most important first."""
        found = self.meaning
        return (
            found.belief,
            found.rare,
            found.odds,
            found.guesses,
            found.test,
            found.family_of(self.size),
            self.beliefs,
            self.comparison,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What somebody who leans on it should know."""
        return self.meaning.warnings

    def icons(self) -> tuple[str, ...]:
        """Draw a hundred guesses in five lines: ● right by chance, ◉ right by the answers at most, ○ wrong."""
        right = self.meaning.of_a_hundred
        marks = "●" * 50 + "◉" * (right - 50) + "○" * (100 - right)
        return tuple(" ".join(marks[start : start + 20]) for start in range(0, 100, 20))

    def to_json(self) -> dict[str, object]:
        """Give it for JSON."""
        curve = approximate(epsilon=self.meaning.epsilon, delta=self.meaning.delta).curve()
        return self.meaning.to_json() | {
            "sentences": list(self.sentences),
            "tradeoff": [[float(level), float(power)] for level, power in curve],
            "familiar": [
                {"name": each.name, "epsilon": str(each.epsilon), "unit": each.unit, "source": each.source}
                for each in REFERENCE_POINTS
            ],
        }


def explain(
    *,
    epsilon: numbers.Number,
    delta: numbers.Number = 0,
    prior: numbers.Number = EVEN,
    people: int | None = None,
    size: int = 4,
) -> Explanation:
    """Explain what people typed, or refuse it in words.

    >>> print(explain(epsilon=1).sentences[1])
    If she thought 1 in 100, at most 2.7 in 100 afterwards.
    """
    none = numbers.exact(delta, "delta") == 0
    found = meaning(
        epsilon=numbers.epsilon(epsilon),
        delta=Fraction(0) if none else numbers.delta(delta),
        prior=numbers.in_range(prior, "the belief", Fraction(0), Fraction(1)),
        people=None if people is None else numbers.integer(people, "n", 1, 10**12),
    )
    return Explanation(found, numbers.integer(size, "the family", 1, FAMILY_MAX))
