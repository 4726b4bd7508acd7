"""Worked examples that run: what a study teaches about everybody is no breach, and what one row adds is bounded.

The smoking study (Kasiviswanathan and Smith 2014, example 1), Dalenius' goal with two left feet, and the parable of
Turing's height (Dwork 2011). In each, somebody learns something about a person; in each, just as much if that
person's row is not used.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from statistics import NormalDist

from hubbub.core.finite import FiniteDistribution
from hubbub.core.numbers import brief
from hubbub.core.reals import Enclosure
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource, system
from hubbub.semantics.bounds import beliefs
from hubbub.semantics.games import Game
from hubbub.semantics.odds import in_a_hundred

#: What an adversary about a study is unsure of: whether the effect is there, Alice's bit, how many others have it.
World = tuple[bool, int, int]

#: The examples by name, and what each asks.
TITLES = {
    "smoking": "Does a study of smokers breach Alice's privacy?",
    "dalenius": "Can nothing at all be learned about a respondent?",
    "height": "Was Turing's privacy breached?",
}

_REACH = 30


@dataclass(frozen=True, slots=True)
class Story:
    """A worked example in words."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class TraitStudy:
    """A noisy count of how many of n people have a trait, about whose rate there are two theories.

    belief     how likely the first theory is held
    rates      how likely anybody has the trait by the first and by the second
    """

    people: int
    epsilon: Fraction
    belief: Fraction
    rates: tuple[Fraction, Fraction]

    @cached_property
    def game(self) -> Game[World, int]:
        """The game about Alice, person 0; the people are alike and independent given the theory."""
        noise = Laplace.from_epsilon(sensitivity=1, epsilon=self.epsilon)
        window = (-_REACH, self.people + _REACH)

        @cache
        def counted(count: int) -> FiniteDistribution[int]:
            return noise.distribution(count, window)

        prior: dict[World, Fraction] = {}
        for theory, rate, held in zip((True, False), self.rates, (self.belief, 1 - self.belief), strict=True):
            for own in (0, 1):
                for others in range(self.people):
                    chance = (
                        math.comb(self.people - 1, others) * rate**others * (1 - rate) ** (self.people - 1 - others)
                    )
                    prior[theory, own, others] = held * chance * (rate if own else 1 - rate)
        return Game(prior, lambda world: counted(world[1] + world[2]), lambda world, _: (world[0], 0, world[2]), 1)

    @property
    def before(self) -> Fraction:
        """How likely Alice is held to have the trait beforehand."""
        return self.belief * self.rates[0] + (1 - self.belief) * self.rates[1]

    def after(self, answer: int, *, used: bool) -> Enclosure:
        """Enclose how likely after an answer about data with her row, or with a blank in its place."""
        return self.game.belief(answer, _has_it, left_out=None if used else 0)


def _has_it(world: World) -> bool:
    return world[1] == 1


def shown(chance: Enclosure) -> str:
    """Show an enclosed probability to a tenth of a percent.

    >>> shown((Fraction(1, 3), Fraction(1, 3))), shown((Fraction(1, 10**9), Fraction(1, 10**9)))
    ('33.3 %', '0.0 %')
    """
    return f"{float(100 * (chance[0] + chance[1]) / 2):.1f} %"


def _bound(epsilon: Fraction) -> str:
    most = in_a_hundred(beliefs(epsilon=epsilon))
    return f"Whatever anybody believes, one row moves no belief by more than {most} percentage points at this ε."


@cache
def smoking(*, epsilon: Fraction = Fraction(1, 2), people: int = 60) -> Story:
    """Tell of a study that teaches an insurer something about Alice, whether or not she is in it."""
    study = TraitStudy(people, epsilon, Fraction(1, 2), (Fraction(3, 10), Fraction(1, 10)))
    answer = round(people * study.rates[0])
    return Story(
        TITLES["smoking"],
        (
            f"A study counts how many of {people} smokers fall ill, with noise for ε = {brief(epsilon)}. An "
            "insurer does"
            f" not know whether smoking harms: 30 % of smokers fall ill, or 10 %; so Alice, a smoker, with"
            f" {shown((study.before, study.before))}.",
            f"The answer is {answer}. The insurer now gives Alice {shown(study.after(answer, used=True))}.",
            f"Had Alice's row not been used, the same answer would give "
            f"{shown(study.after(answer, used=False))}: it is the"
            " study that taught it, and not her row.",
            _bound(epsilon),
        ),
    )


@cache
def dalenius(*, epsilon: Fraction = Fraction(1, 2), people: int = 60) -> Story:
    """Tell why nobody can promise that nothing is learned about a respondent."""
    study = TraitStudy(people, epsilon, Fraction(99, 100), (Fraction(1), Fraction(1, 1000)))
    return Story(
        TITLES["dalenius"],
        (
            "Dalenius asked in 1977 that nothing be learned about a respondent that could not be learned "
            "without the data."
            f" Somebody is 99 % sure that everybody has two left feet, and so gives Alice"
            f" {shown((study.before, study.before))}.",
            f"A count of the two-left-footed among {people} people, with noise for ε = {brief(epsilon)}, is "
            "0. Afterwards"
            f" Alice gets {shown(study.after(0, used=True))}: a belief about her has changed altogether.",
            f"Without her row the same answer gives {shown(study.after(0, used=False))}. Any useful answer does this;"
            " what can be promised is that her taking part makes little difference.",
            _bound(epsilon),
        ),
    )


@dataclass(frozen=True)
class Heights:
    """The mean height of a made-up population, in millimetres between 1200 and 2200, as a private sum over n."""

    people: int
    epsilon: Fraction

    LOW, HIGH = 1200, 2200
    #: What everybody knows: by how much Turing is taller than the average.
    TALLER = 50

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The heights: evenly spaced quantiles of a normal distribution."""
        normal = NormalDist(1650, 65)
        return tuple(round(normal.inv_cdf((k + 0.5) / self.people)) for k in range(self.people))

    @property
    def noise(self) -> Laplace:
        """What is added to the sum; a row that is replaced moves it by at most the width of the bounds."""
        return Laplace.from_epsilon(sensitivity=self.HIGH - self.LOW, epsilon=self.epsilon)

    @property
    def half_width(self) -> Fraction:
        """Within how much of the true mean the released one is, 95 times of 100."""
        return self.noise.error(Fraction(95, 100)) / self.people

    def mean(self, source: RandomSource, *, left_out: int | None = None) -> Fraction:
        """Release the mean, or that without one row, in whose place the least height stands."""
        total = sum(self.rows) - (0 if left_out is None else self.rows[left_out] - self.LOW)
        return Fraction(self.noise.sample(total, source), self.people)


def height(source: RandomSource, *, epsilon: Fraction = Fraction(1, 2), people: int = 1000) -> Story:
    """Tell how a mean and a little side information give away the height of somebody who is not in the data at all."""
    found = Heights(people, epsilon)
    half = -(-(found.half_width + Fraction(1, 2)) // 1)  # the half is for rounding to whole millimetres
    tallest = people - 1
    estimates = [round(found.mean(source, left_out=row)) + found.TALLER for row in (None, tallest)]
    return Story(
        TITLES["height"],
        (
            f"Everybody knows: Turing is {found.TALLER} mm taller than the average Lithuanian woman. Nobody knows that"
            f" average; heights are between {found.LOW} and {found.HIGH} mm.",
            f"A private mean of {people:,} women (made up), with noise for ε = {brief(epsilon)}, gives Turing's height"
            f" away: {estimates[0]} mm, right to ±{half} mm in 95 of 100 such releases.",
            f"Without the row of the tallest of the women: {estimates[1]} mm, right to the same ±{half} mm "
            "around a mean"
            f" that has moved by at most {-(-(found.HIGH - found.LOW) // people)} mm. Turing himself is in neither.",
            "What was learned comes from the population and the side information. No row of the data made "
            "it possible, so"
            " keeping a row out would have helped nobody.",
        ),
    )


def tell_story(name: str) -> Story:
    """Tell one of the stories by its name, with noise of the system's randomness where it draws any."""
    told: dict[str, Callable[[], Story]] = {
        "smoking": smoking,
        "dalenius": dalenius,
        "height": partial(height, system()),
    }
    return told[name]()
