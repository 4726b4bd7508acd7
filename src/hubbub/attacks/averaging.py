"""Averaging: fresh noise cancels, so whoever may ask again and again learns the truth (Dwork 2011); and its cure."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Fact, Finding, Progress, Score, Study, ceiling, compared, unheard
from hubbub.attacks.bits import share
from hubbub.attacks.game import Bits, flip, informed, scored, settled
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import Table
from hubbub.attacks.target import count, counting, laplace, number, protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import BudgetError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

WHERE = "diagnosis = 'asthma'"
_AGAIN = 20
_AT_ONCE = 1 << 22  # draws held in memory


def averaged(answers: NDArray[np.int64], others: int, generator: np.random.Generator) -> Bits:
    """Guess each person's bit from many answers to one question (a row each), by who knows everybody else's part."""
    return settled(answers.mean(axis=1) - others - 0.5, generator)


def study(
    table: Table | None = None,  # noqa: ARG001 - all studies are called alike
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    times: int = 2000,
    trials: int = 500,
) -> Study:
    """Ask the same count again and again, and average the answers.

    Where each answer has fresh noise and nobody keeps accounts, ε per answer means nothing: `times` answers are worth
    almost the truth. hubbub answers the same question from its ledger, word for word and free; who insists on a new
    draw pays for it, and `times` of them share one ε.
    """
    times, trials = numbers.integer(times, "times", 1, 10**6), numbers.integer(trials, "trials", 1, 10**6)
    made, others = clinic(500, generator), 100
    coins = flip(trials, generator)
    findings = []
    for place, epsilon in enumerate(epsilons):
        progress(place / len(epsilons), f"ε = {brief(epsilon)}")
        fresh = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon)
        whole, replay = _replayed(made, epsilon)
        each = share(epsilon, times)
        part = counting(made, WHERE, epsilon=each)
        kept = scored(informed(whole, np.full(trials, others), coins, system()), coins)
        findings += [
            Finding(
                "fresh noise for every answer, no accounts",
                epsilon,
                _many(fresh, coins, others, times, generator),
                None,
                {"answers averaged": times},
            ),
            Finding("hubbub, asked again", epsilon, kept, ceiling(epsilon), replay),
            Finding(
                "hubbub, ε shared by many answers",
                epsilon,
                _many(part, coins, others, times, generator),
                ceiling(epsilon),
                {"answers averaged": times, "ε of each": float(each)},
            ),
        ]
    progress(1.0, "done")
    return Study("averaging", "Asking the same until the noise is gone", compared(findings), tuple(findings))


def _many(noise: Laplace, coins: Bits, others: int, times: int, generator: np.random.Generator) -> Score:
    """Score the average of so many answers for each trial, some trials at a time."""
    step = max(1, _AT_ONCE // times)
    guesses = [
        averaged(noise.sample(np.repeat(others + part[:, None], times, axis=1), system()), others, generator)
        for part in (coins[start : start + step].astype(np.int64) for start in range(0, len(coins), step))
    ]
    return scored(np.concatenate(guesses), coins)


def _replayed(made: Table, epsilon: Fraction) -> tuple[Laplace, dict[str, Fact]]:
    """Ask one thing many times at the whole of ε, then once more with the wish for a new draw."""
    with protected(made, epsilon=epsilon) as session:
        releases = [count(session, WHERE, epsilon=epsilon) for _ in range(_AGAIN)]
        try:
            count(session, WHERE, epsilon=epsilon, key="a fresh draw")
            fresh = "given"
        except BudgetError:
            fresh = "refused"
    different = len({number(each) for each in releases})
    return laplace(releases[0]), {"times asked": _AGAIN, "different answers": different, "a fresh draw": fresh}
