"""The explanation of one (ε, δ): sentences, icons, comparisons and warnings."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.core.odds import LARGE, MANY, but_for, factor, three_digits, times
from hubbub.semantics.bounds import approximate_beliefs, beliefs
from hubbub.semantics.information import bits_about_a_fact, bits_about_a_person
from hubbub.semantics.odds import EVEN, Meaning, in_a_hundred, meaning, semantic
from hubbub.semantics.pointwise import calibrated_exceedance
from hubbub.semantics.reference_points import REFERENCE_POINTS, compare
from hubbub.semantics.tradeoff import approximate

#: Maximum group size; larger groups would mean the whole dataset.
FAMILY_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Explanation:
    """What (ε, δ) means for one person and for a group, compared with published values of ε."""

    meaning: Meaning
    size: int

    @property
    def heading(self) -> str:
        """The parameters that are explained."""
        delta = f", δ = {brief(self.meaning.delta)}" if self.meaning.delta else ""
        people = "" if self.meaning.people is None else f", {self.meaning.people:,} people"
        return f"ε = {brief(self.meaning.epsilon)}{delta}{people}"

    @property
    def beliefs(self) -> str:
        """The largest change of a belief by one person's data."""
        known = self.meaning
        if not known.delta:
            most, chance = beliefs(epsilon=known.epsilon), Fraction(0)
        elif known.people is None:
            return "With δ > 0, the effect of one person's data on a belief depends on the number of people; specify n."
        else:
            most, chance = approximate_beliefs(epsilon=known.epsilon, delta=known.delta, people=known.people)
        if chance >= 1 or most >= 1:
            at = "δ and n" if known.delta else "ε"
            return f"At this {at}, there is no bound on how far one person's data changes a belief."
        change = f"One person's data changes any belief by at most {in_a_hundred(most)} percentage points"
        return f"{change}{but_for(chance)}{self._printed()}."

    def _printed(self) -> str:
        """Return what the published theorem says beside it."""
        known = self.meaning
        if not known.delta or known.people is None:
            return ""
        printed = semantic(epsilon=known.epsilon, delta=known.delta, people=known.people)
        says = "says nothing here" if printed is None or printed[0] >= 1 else f"has {in_a_hundred(printed[0])}"
        return f" (Kasiviswanathan and Smith 2014, Theorem 2.4, {says})"

    @property
    def exceedance(self) -> str:
        """What δ is not: the chance that the odds rise by more than e^ε."""
        known = self.meaning
        chance = calibrated_exceedance(epsilon=known.epsilon, delta=known.delta) if known.delta else None
        if chance is None or factor(known.epsilon) > MANY:
            return ""
        return (
            f"δ is not the chance that the odds rise by more than e^ε = {times(factor(known.epsilon))}: with Gaussian"
            f" noise of this ε and δ, it is {three_digits(chance)}, or {times(chance / known.delta)} times δ."
        )

    @property
    def bits(self) -> str:
        """The information that the answers tell about one person."""
        known = self.meaning
        fact = three_digits(bits_about_a_fact([(known.epsilon, known.delta)]))
        amount = "1 bit" if fact == "1" else f"{fact} bits"
        told = f"The answers tell at most {amount} about a yes-or-no fact about one person"
        if known.delta or known.epsilon > LARGE:
            return f"{told}, to someone who knows everybody else's data."
        everything = three_digits(bits_about_a_person(known.epsilon))
        return f"{told}, and {everything} bits about that person in all, to someone who knows everybody else's data."

    @property
    def comparison(self) -> str:
        """The comparison of ε with published values."""
        return compare(self.meaning.epsilon)

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences, the most important first."""
        known = self.meaning
        lines = (
            known.belief,
            known.rare,
            known.odds,
            self.exceedance,
            known.guesses,
            known.test,
            known.consequence,
            known.family_of(self.size),
            self.beliefs,
            self.bits,
            self.comparison,
        )
        return tuple(line for line in lines if line)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The caveats of the guarantee."""
        return self.meaning.warnings

    def icons(self) -> tuple[str, ...]:
        """Draw 100 guesses in five lines: ● right by chance, ◉ additional right guesses at most, ○ wrong."""
        right = self.meaning.of_a_hundred
        marks = "●" * 50 + "◉" * (right - 50) + "○" * (100 - right)
        return tuple(" ".join(marks[start : start + 20]) for start in range(0, 100, 20))

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        curve = approximate(epsilon=self.meaning.epsilon, delta=self.meaning.delta).curve()
        return self.meaning.to_json() | {
            "sentences": list(self.sentences),
            "tradeoff": [[float(level), float(power)] for level, power in curve],
            "familiar": [
                {"name": point.name, "epsilon": str(point.epsilon), "unit": point.unit, "source": point.source}
                for point in REFERENCE_POINTS
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
    """Validate the parameters and explain them.

    >>> print(explain(epsilon=1).sentences[1])
    Someone who starts out 1% sure can end up at most 2.7% sure.
    """
    pure = numbers.exact(delta, "delta") == 0
    known = meaning(
        epsilon=numbers.epsilon(epsilon),
        delta=Fraction(0) if pure else numbers.delta(delta),
        prior=numbers.in_range(prior, "belief", Fraction(0), Fraction(1)),
        people=None if people is None else numbers.integer(people, "n", 1, 10**12),
    )
    return Explanation(known, numbers.integer(size, "family", 1, FAMILY_MAX))
