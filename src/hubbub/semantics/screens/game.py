"""The game of Kasiviswanathan and Smith (2014) on a small database: choose the belief, the secret and the mechanism.

Every person has one of a few values, so that all databases can be listed and Bayes' rule is exact. The adversary's
belief is a weight for each database; side information rules some of them out; the secret is a set of databases.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from hubbub.accounting import gaussian
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import Interval, exp
from hubbub.core.numbers import brief
from hubbub.core.reals import floor_to
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import independent
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.semantics.bounds import beliefs
from hubbub.semantics.games import Game, databases, with_default
from hubbub.semantics.odds import in_a_hundred
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, share
from hubbub.semantics.screens.figures import Bars
from hubbub.semantics.screens.game_tables import label, matching, named, weights
from hubbub.semantics.worst_question import worst_question

Rows = tuple[int, ...]
Mechanism = Callable[[Rows], FiniteDistribution[Any]]

MECHANISMS = ("response", "laplace", "gaussian", "worst")
NAMES = ("Alice", "Bob", "Carol")
_MOST = 9


@dataclass(frozen=True, slots=True)
class Setup:
    """A game, what its mechanism does in words, and whether a bound holds for every answer."""

    game: Game[Rows, Any]
    words: str
    pure: bool


def setup(
    mechanism: str,
    worlds: tuple[Rows, ...],
    belief: Mapping[Rows, Fraction],
    *,
    epsilon: Fraction,
    delta: Fraction,
    person: int,
    default: int,
) -> Setup:
    """Return the game about these databases."""
    people, values = len(worlds[0]), 1 + max(worlds[-1])
    without = with_default(default)
    sensitivity = values - 1
    window = (-4 * sensitivity, (people + 4) * sensitivity)
    clamped = f"clamped to the range from {window[0]} to {window[1]}"
    if mechanism == "response":
        response = RandomizedResponse(answers=values, epsilon=epsilon)
        words = f"Each person's value is published by randomized response at ε = {brief(epsilon)}."
        answers: Mechanism = cache(lambda rows: independent([response.distribution(row) for row in rows]))
    elif mechanism == "laplace":
        laplace = Laplace.from_epsilon(sensitivity=sensitivity, epsilon=epsilon)
        words = f"The sum of all values is published with Laplace noise at ε = {brief(epsilon)}, {clamped}."
        answers = cache(lambda rows: laplace.distribution(sum(rows), window))
    elif mechanism == "gaussian":
        variance = gaussian.discrete_variance_for(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        normal = Gaussian(sensitivity_squared=sensitivity**2, variance=variance)
        words = (
            f"The sum of all values is published with Gaussian noise for ε = {brief(epsilon)} and δ = {brief(delta)},"
            f" {clamped}."
        )
        answers = cache(lambda rows: normal.distribution(sum(rows), window))
    else:
        question = worst_question(belief, without, person=person, epsilon=epsilon)
        words = (
            f"All that ε = {brief(epsilon)} allows is spent on one yes-or-no question, answered by randomized response:"
            f" is the database {named(question)}? No other yes-or-no question changes this belief more."
        )
        if delta:
            words += f" With probability δ = {brief(delta)}, the whole database is published instead."
        answers = cache(lambda rows: _leaky(rows, rows in question, epsilon, delta))
    game: Game[Rows, Any] = Game(belief, answers, without, people)
    return Setup(game, words, pure=mechanism in ("response", "laplace") or not delta)


def _leaky(rows: Rows, truth: bool, epsilon: Fraction, delta: Fraction) -> FiniteDistribution[Hashable]:  # noqa: FBT001
    """Return randomized response on one bit, replaced with probability δ by the data itself."""
    kept = 1 / (1 + exp(-epsilon))
    mass: dict[Hashable, tuple[Fraction, Fraction]] = {
        "yes" if truth else "no": (Interval.of(1 - delta) * kept).enclosure,
        "no" if truth else "yes": (Interval.of(1 - delta) * (1 - kept)).enclosure,
    }
    return FiniteDistribution(mass | ({("data", rows): (delta, delta)} if delta else {}))


def read(
    *,
    mechanism: str,
    epsilon: Fraction,
    delta: Fraction,
    people: int,
    values: int,
    prior: str,
    known: str,
    secret: str,
    person: int,
    default: int,
    answer: str,
) -> Reading:
    """Show the posteriors after one answer in game 0 and in the game without one person's data."""
    if values**people > _MOST:
        raise ParameterError("HB694", f"There are more than {_MOST} databases.", "Use fewer people or values.")
    if person > people or default >= values:
        raise ParameterError("HB694", "The person or the default value is not part of the game.", "Use a smaller one.")
    worlds = databases(range(values), people=people)
    before = weights(prior, worlds)
    possible, hidden = matching(known or "*", worlds), matching(secret, worlds)
    left = sum((before[world] for world in possible), Fraction(0))
    if not left:
        raise ParameterError(
            "HB694", "The side information rules out every database.", "Allow one with a positive prior weight."
        )
    belief = {world: before[world] / left if world in possible else Fraction(0) for world in worlds}
    at = setup(mechanism, worlds, belief, epsilon=epsilon, delta=delta, person=person - 1, default=default)
    game, index = at.game, person - 1
    chosen = _chosen(game, answer, index, hidden)
    real, other = game.posterior(chosen), game.posterior(chosen, left_out=index)
    difference = game.difference(chosen, index)
    name = NAMES[index]
    columns = [
        (label(world), belief[world], real.mass[world] if real else Fraction(0), other.mass[world] if other else None)
        for world in worlds
    ]
    start = sum((belief[world] for world in hidden), Fraction(0))
    ends = [
        None if posterior is None else game.belief(chosen, hidden.__contains__, left_out=left_out)
        for posterior, left_out in ((real, None), (other, index))
    ]
    rows = [
        (label(world), share(before[world]), *map(_shown, column[1:]))
        for world, column in zip(worlds, columns, strict=True)
    ]
    rows.append(("secret", share(sum((before[world] for world in hidden), Fraction(0))), *map(_shown, (start, *ends))))
    return Reading(
        (
            at.words,
            f"The secret is that the database is {named(hidden)}. With the side information, the adversary believes it"
            f" with {share(start)}.",
            f"The answer is {_text(chosen)}{'' if answer != 'worst' else ', the one that moves the belief most'}. In"
            f" game 0, which uses everybody's data, the belief becomes {_shown(ends[0])}; in game {person}, where"
            f" {name}'s value is replaced by {default}, it becomes {_shown(ends[1])}.",
            f"The two posteriors differ by {in_a_hundred(difference[1])} percentage points (statistical difference)."
            + _bound(game, at, epsilon),
        ),
        ("database", "prior", "belief", "game 0", f"game {person}"),
        tuple(rows),
        Bars(
            f"Beliefs before and after the answer {_text(chosen)}",
            ("secret", *(column[0] for column in columns)),
            (
                ("belief before", (float(start), *(float(column[1]) for column in columns))),
                ("game 0: with everybody's data", (_height(ends[0]), *(_height(column[2]) for column in columns))),
                (f"game {person}: without {name}'s", (_height(ends[1]), *(_height(column[3]) for column in columns))),
            ),
        ),
    )


def _chosen(game: Game[Rows, Any], answer: str, person: int, secret: frozenset[Rows]) -> Any:
    answers = {_text(transcript): transcript for transcript in game.transcripts()}
    if answer == "worst":
        # an answer that publishes the data is possible under δ, but shows nothing
        usual = [transcript for transcript in answers.values() if not _publishes(transcript)]

        def moved(transcript: Any) -> tuple[Fraction, Fraction]:
            # of two answers that move it as far, the one that favors the secret
            return floor_to(game.difference(transcript, person)[0], 12), game.belief(transcript, secret.__contains__)[0]

        return max(usual, key=moved)
    if answer not in answers:
        raise ParameterError(
            "HB694", f"{answer[:60]!r} is not a possible answer.", f"Use worst, or one of: {', '.join(answers)}."
        )
    return answers[answer]


def _bound(game: Game[Rows, Any], at: Setup, epsilon: Fraction) -> str:
    level = beliefs(epsilon=epsilon) if epsilon else Fraction(0)
    if at.pure:
        return f" No belief and no answer can make that more than {in_a_hundred(level)} points."
    return (
        f" With a δ no bound holds for every answer: under this belief, the difference exceeds {in_a_hundred(level)}"
        f" points with probability {share(game.breach(level))}."
    )


def _publishes(transcript: Hashable) -> bool:
    return isinstance(transcript, tuple) and transcript[:1] == ("data",)


def _text(transcript: Any) -> str:
    if isinstance(transcript, tuple):
        return f"data={label(transcript[1])}" if _publishes(transcript) else label(transcript)
    return str(transcript)


def _shown(chance: Any) -> str:
    """Format a probability, an enclosure, or None where the answer is impossible."""
    return "impossible" if chance is None else share(chance)


def _height(chance: Any) -> float:
    if chance is None:
        return 0.0
    return float((chance[0] + chance[1]) / 2) if isinstance(chance, tuple) else float(chance)


SCREEN = Screen(
    "game",
    "What does an adversary believe after an answer, with and without one person's data?",
    "Game 0 uses everybody's data; game i replaces person i's by a default. Exact posteriors for a belief, a secret and"
    " side information of your choice (Kasiviswanathan and Smith 2014, section 2).",
    (
        base.choice("mechanism", "Mechanism", *MECHANISMS),
        base.real("epsilon", "ε", "1", steps=base.EPSILONS, low="0", high="40"),
        base.real("delta", "δ", "0.01", steps=("0", *base.DELTAS), low="0", high="0.5"),
        base.whole("people", "People", 2, steps=(1, 2, 3), low=1, high=3),
        base.whole("values", "Values per person", 2, steps=(2, 3), low=2, high=3),
        base.Control("prior", "Prior weights", "uniform", "text"),
        base.Control("known", "Side information", "*", "text"),
        base.Control("secret", "Secret", "1", "text"),
        base.whole("person", "Person left out", 1, steps=(1, 2, 3), low=1, high=3),
        base.whole("default", "Default value", 0, steps=(0, 1, 2), low=0, high=2),
        base.Control("answer", "Answer", "worst", "text"),
    ),
    read,
)
