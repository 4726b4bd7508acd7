"""Exact Bayesian games: an adversary's beliefs after an answer, with and without one person's data.

The games are those of Kasiviswanathan and Smith (2014): in game 0 the answer is about the real data x; in game i it is
about x with person i's data replaced by a default. An adversary with any belief b about x updates it by Bayes' rule in
either game; semantic privacy requires the two posteriors to be close, in statistical difference, for every person.

A world is the subject of the belief: a whole database, or only what the answer depends on (`without` maps a world to
the world without a person). Everything is exact where the distributions are rational, and enclosed elsewhere.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf
from typing import Generic, TypeVar

from hubbub.core.finite import FiniteDistribution
from hubbub.core.reals import Enclosure, sqrt
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import Extended, total_variation

World = TypeVar("World", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)
Row = TypeVar("Row", bound=Hashable)

_ZERO, _ONE = Fraction(0), Fraction(1)
_NOTHING: Enclosure = (_ZERO, _ZERO)
_ALL: Enclosure = (_ONE, _ONE)


def databases(domain: Iterable[Row], *, people: int) -> tuple[tuple[Row, ...], ...]:
    """List every database of `people` rows.

    >>> databases("ab", people=2)
    (('a', 'a'), ('a', 'b'), ('b', 'a'), ('b', 'b'))
    """
    return tuple(product(domain, repeat=people))


def with_default(default: Row) -> Callable[[tuple[Row, ...], int], tuple[Row, ...]]:
    """Return a function that replaces a person's row by a default.

    >>> with_default(0)((1, 1, 1), 1)
    (1, 0, 1)
    """
    return lambda rows, person: (*rows[:person], default, *rows[person + 1 :])


def uniform(worlds: Iterable[World]) -> dict[World, Fraction]:
    """Return the uniform distribution over these worlds."""
    listed = tuple(worlds)
    return {world: Fraction(listed.count(world), len(listed)) for world in listed}


@dataclass(frozen=True, slots=True)
class Game(Generic[World, Outcome]):
    """A belief about the world, and a mechanism whose answer depends on it; people are numbered from 0.

    prior         the exact prior belief
    distribution  the mechanism: the distribution of the answer in each world, without a tail
    without       the world that the mechanism sees when one person's data is not used
    """

    prior: Mapping[World, Fraction]
    distribution: Callable[[World], FiniteDistribution[Outcome]]
    without: Callable[[World, int], World]
    people: int

    def __post_init__(self) -> None:
        if sum(self.prior.values()) != 1 or any(chance < 0 for chance in self.prior.values()):
            raise ParameterError(
                "HB175", "The prior does not add up to 1.", "Pass non-negative probabilities that add up to 1."
            )

    def mass(self, world: World, transcript: Outcome, *, left_out: int | None = None) -> Enclosure:
        """Enclose the probability of an answer in one world, with nobody or one person left out."""
        return _complete(self.distribution(world if left_out is None else self.without(world, left_out))).mass.get(
            transcript, _NOTHING
        )

    def transcripts(self) -> tuple[Outcome, ...]:
        """List every possible answer of game 0."""
        answers: dict[Outcome, None] = {}
        for world, chance in self.prior.items():
            if chance:
                answers |= {
                    answer: None for answer, (_, high) in _complete(self.distribution(world)).mass.items() if high
                }
        return tuple(answers)

    def evidence(self, transcript: Outcome, *, left_out: int | None = None) -> Enclosure:
        """Enclose the probability of an answer under this belief."""
        masses = [(b, self.mass(world, transcript, left_out=left_out)) for world, b in self.prior.items() if b]
        return sum((b * low for b, (low, _) in masses), _ZERO), sum((b * high for b, (_, high) in masses), _ZERO)

    def posterior(self, transcript: Outcome, *, left_out: int | None = None) -> FiniteDistribution[World] | None:
        """Return the posterior in game 0, or in the game without one person; None if the answer is impossible.

        Theorem (Bayes by enumeration). The posterior of x after the answer t is, in game 0,
        b[x]·Pr[A(x) = t] / Σ_z b[z]·Pr[A(z) = t], and the same with A(x₋ᵢ) and A(z₋ᵢ) in game i.
        Tested   tests/semantics/test_games.py::test_posteriors_are_those_of_bayes_worked_out_by_hand
        """
        weights = {}
        for world, chance in self.prior.items():
            low, high = self.mass(world, transcript, left_out=left_out) if chance else _NOTHING
            weights[world] = (chance * low, chance * high)
        least = sum((low for low, _ in weights.values()), _ZERO)
        most = sum((high for _, high in weights.values()), _ZERO)
        if not most:
            return None
        return FiniteDistribution(
            {
                world: (low / (low + most - high) if low else _ZERO, high / (high + least - low) if high else _ZERO)
                for world, (low, high) in weights.items()
            }
        )

    def belief(self, transcript: Outcome, event: Callable[[World], bool], *, left_out: int | None = None) -> Enclosure:
        """Enclose the posterior probability of an event."""
        posterior = self.posterior(transcript, left_out=left_out)
        if posterior is None:
            raise ParameterError("HB176", "This answer is impossible under the prior.", "Pass a possible answer.")
        masses = [mass for world, mass in posterior.mass.items() if event(world)]
        others = [mass for world, mass in posterior.mass.items() if not event(world)]
        low = max(sum((low for low, _ in masses), _ZERO), 1 - sum((high for _, high in others), _ZERO))
        high = min(sum((high for _, high in masses), _ZERO), 1 - sum((low for low, _ in others), _ZERO))
        return low, high

    def difference(self, transcript: Outcome, person: int) -> Enclosure:
        """Enclose the statistical difference of the posteriors after an answer, with and without one person's data.

        If the answer is possible only with the person's data, it is 1.
        """
        real, hypothetical = self.posterior(transcript), self.posterior(transcript, left_out=person)
        if real is None:
            return _NOTHING
        return _ALL if hypothetical is None else total_variation(real, hypothetical)

    def worst(self, transcript: Outcome) -> Enclosure:
        """Enclose the largest difference over all people."""
        differences = [self.difference(transcript, person) for person in range(self.people)]
        return max(low for low, _ in differences), max(high for _, high in differences)

    def breach(self, level: Fraction) -> Enclosure:
        """Enclose the probability that some person's difference exceeds a level, for data sampled from the prior.

        (s, δ)-semantic privacy means that this is at most δ at level s, for every prior.
        """
        low, high = _ZERO, _ZERO
        for transcript in self.transcripts():
            worst, evidence = self.worst(transcript), self.evidence(transcript)
            low += evidence[0] if worst[0] > level else _ZERO
            high += evidence[1] if worst[1] > level else _ZERO
        return low, high


def semantic_level(
    distribution: Callable[[World], FiniteDistribution[Outcome]],
    worlds: Iterable[World],
    without: Callable[[World, int], World],
    *,
    people: int,
) -> Enclosure:
    """Enclose the least s such that a mechanism is s-semantically private: the largest difference over all beliefs.

    Theorem (Worst belief). Let r(x) = Pr[A(x) = t]/Pr[A(x₋ᵢ) = t], and M and m its largest and least value. The largest
    statistical difference between the posteriors after t in game 0 and in game i, over all beliefs, is
    (√M − √m)/(√M + √m) = tanh(¼·ln(M/m)).
    Proof    Let q be the posterior in game i; any q is that of some belief. That of game 0 is p(x) = q(x)r(x)/Σqr. For
    a set S of weight w under q, the odds p(S) : p(not S) are those of w times a number of at most R = M/m, so p(S) − w
    is at most wR/(wR + 1 − w) − w; that is largest at w = 1/(1 + √R), where it is (√R − 1)/(√R + 1). A belief on a
    world of the ratio M and one of the ratio m attains it.
    Assumes  distributions without a tail. Where an answer cannot come in game i at all, the difference is taken to be
             1.
    Tested   tests/semantics/test_games.py::test_no_belief_moves_further_than_the_worst_one
             tests/semantics/test_games.py::test_response_over_an_exclusive_or_attains_the_bound
    """
    distributions = {world: _complete(distribution(world)).mass for world in worlds}
    answers = {answer: None for masses in distributions.values() for answer in masses}
    spreads = [_NOTHING]
    for person in range(people):
        hidden = {world: _complete(distribution(without(world, person))).mass for world in distributions}
        for answer in answers:
            pairs = [
                (distributions[world].get(answer, _NOTHING), hidden[world].get(answer, _NOTHING))
                for world in distributions
            ]
            spreads.append(_spread([(real, other) for real, other in pairs if real[1] or other[1]]))
    return max(low for low, _ in spreads), max(high for _, high in spreads)


def _spread(pairs: list[tuple[Enclosure, Enclosure]]) -> Enclosure:
    """Enclose tanh(¼·ln(M/m)) over the ratios of these pairs."""
    if not any(real[1] for real, _ in pairs):
        return _NOTHING
    lows = [real[0] / other[1] if other[1] else inf for real, other in pairs]
    highs = [real[1] / other[0] if other[0] else inf for real, other in pairs]
    return _gap(max(lows), min(highs), _ZERO)[0], _gap(max(highs), min(lows), _ONE)[1]


def _gap(most: Extended, least: Extended, unknown: Fraction) -> Enclosure:
    """Enclose (√R − 1)/(√R + 1) of R = most/least; 1 if the answer rules out a world in only one of the games."""
    if isinstance(most, float) or not least:
        return _ALL if most else (unknown, unknown)
    if isinstance(least, float):
        return unknown, unknown
    low, high = sqrt(max(_ONE, most / least))
    return max(_ZERO, (low - 1) / (low + 1)), (high - 1) / (high + 1)


def _complete(distribution: FiniteDistribution[Outcome]) -> FiniteDistribution[Outcome]:
    if distribution.tail:
        raise ParameterError(
            "HB177",
            "The distribution is truncated, so some answers are unknown.",
            "Clamp the mechanism into a window.",
        )
    return distribution
