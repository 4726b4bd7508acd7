"""Runnable examples: learning about a population is not a privacy breach, and the effect of one row is bounded.

The smoking study (Kasiviswanathan and Smith 2014, example 1), Dalenius' goal with two left feet, and the parable of
Turing's height (Dwork 2011). In each, someone learns something about a person, and just as much if that person's row is
not used.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from statistics import NormalDist

from hubbub.core.finite import FiniteDistribution
from hubbub.core.numbers import brief
from hubbub.core.reals import Enclosure
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource, system
from hubbub.semantics.bounds import beliefs
from hubbub.semantics.games import Game
from hubbub.semantics.odds import in_a_hundred
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, share
from hubbub.semantics.screens.figures import Bars

#: What an adversary is unsure of: whether the first theory holds, Alice's bit, and how many others have the trait.
World = tuple[bool, int, int]

_REACH = 2


@dataclass(frozen=True)
class TraitStudy:
    """A noisy count of how many of n people have a trait, under two theories about its rate.

    belief     prior probability of the first theory
    rates      rate of the trait under the first and the second theory
    """

    people: int
    epsilon: Fraction
    belief: Fraction
    rates: tuple[Fraction, Fraction]

    @cached_property
    def game(self) -> Game[World, int]:
        """The game about Alice, person 0; people are independent and identically distributed given the theory."""
        noise = Laplace.from_epsilon(sensitivity=1, epsilon=self.epsilon)
        window = (-_REACH, self.people + _REACH)

        @cache
        def counted(count: int) -> FiniteDistribution[int]:
            return noise.distribution(count, window)

        prior: dict[World, Fraction] = {}
        for theory, rate, weight in zip((True, False), self.rates, (self.belief, 1 - self.belief), strict=True):
            for alice in (0, 1):
                for others in range(self.people):
                    chance = (
                        math.comb(self.people - 1, others) * rate**others * (1 - rate) ** (self.people - 1 - others)
                    )
                    prior[theory, alice, others] = weight * chance * (rate if alice else 1 - rate)
        return Game(prior, lambda world: counted(world[1] + world[2]), lambda world, _: (world[0], 0, world[2]), 1)

    @property
    def before(self) -> Fraction:
        """The prior probability that Alice has the trait."""
        return self.belief * self.rates[0] + (1 - self.belief) * self.rates[1]

    def after(self, answer: int, *, used: bool) -> Enclosure:
        """Enclose the posterior probability after an answer that uses her row, or a blank in its place."""
        return self.game.belief(answer, _alice_has_trait, left_out=None if used else 0)


def _alice_has_trait(world: World) -> bool:
    return world[1] == 1


def _bound(epsilon: Fraction) -> str:
    most = in_a_hundred(beliefs(epsilon=epsilon))
    return f"At this ε, one row changes any belief by at most {most} percentage points."


def _beliefs(study: TraitStudy, answer: int) -> tuple[Enclosure, Enclosure, Bars]:
    """Return the posteriors with and without Alice's row after an answer, and their figure."""
    used, unused = study.after(answer, used=True), study.after(answer, used=False)
    heights = tuple(float(chance) for chance in (study.before, used[0], unused[0]))
    groups = ("before", "with her row", "without it")
    return used, unused, Bars("Belief that Alice has the trait", groups, (("belief", heights),))


@lru_cache(maxsize=32)
def smoking(*, epsilon: Fraction = Fraction(1, 2), n: int = 60, rate: int = 30) -> Reading:
    """Tell how a study teaches an insurer something about Alice, whether or not she is in it."""
    study = TraitStudy(n, epsilon, Fraction(1, 2), (Fraction(3, 10), Fraction(1, 10)))
    answer = round(n * Fraction(rate, 100))
    used, unused, figure = _beliefs(study, answer)
    return Reading(
        (
            f"A study counts how many of {n} smokers fall ill, with noise for ε = {brief(epsilon)}. An insurer"
            " does not know whether smoking is harmful: either 30% or 10% of smokers fall ill. So their estimate"
            f" for Alice, a smoker, is {share(study.before)}.",
            f"The answer is {answer}. The insurer's estimate for Alice is now {share(used)}.",
            f"Without Alice's row, the same answer gives {share(unused)}: the insurer"
            " learned from the study, not from her row.",
            _bound(epsilon),
        ),
        figure=figure,
    )


@lru_cache(maxsize=32)
def dalenius(*, epsilon: Fraction = Fraction(1, 2), n: int = 60) -> Reading:
    """Tell why no useful study can reveal nothing about a respondent."""
    study = TraitStudy(n, epsilon, Fraction(99, 100), (Fraction(1), Fraction(1, 1000)))
    used, unused, figure = _beliefs(study, 0)
    return Reading(
        (
            "In 1977, Dalenius asked that a study reveal nothing about a respondent that could not be learned without"
            " the data. Suppose someone is 99% sure that everybody has two left feet. Their estimate for Alice is then"
            f" {share(study.before)}.",
            f"A count of people with two left feet among {n}, with noise for ε = {brief(epsilon)}, is 0."
            f" The estimate for Alice falls to {share(used)}: the study changed a belief"
            " about her completely.",
            f"Without her row, the same answer gives {share(unused)}. Any useful answer"
            " has this effect; what can be guaranteed is that her participation makes little difference.",
            f"{_bound(epsilon)} That every useful release fails Dalenius' goal, whatever noise it adds, is shown by"
            " `hubbub explain pad`.",
        ),
        figure=figure,
    )


@dataclass(frozen=True)
class Heights:
    """The mean height of a simulated population, in millimeters between 1200 and 2200, as a private sum over n."""

    people: int
    epsilon: Fraction

    LOW, HIGH = 1200, 2200
    #: The auxiliary information: by how much Turing is taller than the average.
    TALLER = 50

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The heights: evenly spaced quantiles of a normal distribution."""
        normal = NormalDist(1650, 65)
        return tuple(round(normal.inv_cdf((k + 0.5) / self.people)) for k in range(self.people))

    @property
    def noise(self) -> Laplace:
        """The noise on the sum; replacing a row changes the sum by at most the width of the bounds."""
        return Laplace.from_epsilon(sensitivity=self.HIGH - self.LOW, epsilon=self.epsilon)

    @property
    def half_width(self) -> Fraction:
        """The 95% margin of error of the released mean."""
        return self.noise.error(Fraction(95, 100)) / self.people

    def mean(self, source: RandomSource, *, left_out: int | None = None) -> Fraction:
        """Release the mean, or the mean with one row replaced by the smallest height."""
        total = sum(self.rows) - (0 if left_out is None else self.rows[left_out] - self.LOW)
        return Fraction(self.noise.sample(total, source), self.people)


def height(source: RandomSource, *, epsilon: Fraction = Fraction(1, 2), n: int = 1000) -> Reading:
    """Tell how a mean and auxiliary information reveal the height of someone who is not in the data."""
    heights = Heights(n, epsilon)
    half = -(-(heights.half_width + Fraction(1, 2)) // 1)  # the half is for rounding to whole millimeters
    tallest = n - 1
    estimates = [round(heights.mean(source, left_out=row)) + heights.TALLER for row in (None, tallest)]
    return Reading(
        (
            f"Everybody knows that Turing is {heights.TALLER} mm taller than the average Lithuanian woman. Nobody knows"
            f" that average; heights are between {heights.LOW} and {heights.HIGH} mm.",
            f"A private mean of {n:,} simulated women, with noise for ε = {brief(epsilon)}, reveals Turing's"
            f" height: {estimates[0]} mm, with a 95% margin of error of ±{half} mm.",
            f"Without the row of the tallest woman, the estimate is {estimates[1]} mm, with the same margin of error"
            f" around a mean that changed by at most {-(-(heights.HIGH - heights.LOW) // n)} mm. Turing himself is"
            " in neither dataset.",
            "The population and the auxiliary information revealed the height. No single row made it possible, so"
            " removing a row would have protected nobody.",
        ),
    )


_STUDY = (base.epsilon("0.5"), base.whole("n", "People", 60, steps=(5, 10, 20, 40, 60, 80), low=2, high=80))

SCREENS = (
    Screen(
        "smoking",
        "Does a study of smokers breach Alice's privacy?",
        "Learning about a population is not a breach (Kasiviswanathan and Smith 2014, example 1).",
        (*_STUDY, base.whole("rate", "Ill in the answer (%)", 30, steps=range(0, 101, 5), low=0, high=100)),
        smoking,
    ),
    Screen(
        "dalenius",
        "Can a study reveal nothing at all about a respondent?",
        "Dalenius' goal of 1977, with the two left feet of Dwork (2011). See also `hubbub explain pad`.",
        _STUDY,
        dalenius,
    ),
    Screen(
        "height",
        "Was Turing's privacy breached?",
        "A mean and auxiliary information reveal the height of someone who is not in the data (Dwork 2011).",
        (base.epsilon("0.5"), base.whole("n", "People", 1000, steps=(100, 300, 1000, 3000, 10000), low=10, high=10000)),
        lambda *, epsilon, n: height(system(), epsilon=epsilon, n=n),
    ),
)
