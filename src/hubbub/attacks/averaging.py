"""Averaging attack: fresh noise cancels if the same query can be repeated without accounting (Dwork 2011)."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import (
    AttackFinding,
    AttackStudy,
    Fact,
    Progress,
    Score,
    ceiling,
    describe_findings,
    no_progress,
)
from hubbub.attacks.bits import share
from hubbub.attacks.game import Bits, flip, guess_from, informed, score_guesses
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import count, count_noise, laplace, number, open_protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import BudgetError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

WHERE = "diagnosis = 'asthma'"
_REPETITIONS = 20
_AT_ONCE = 1 << 22  # samples held in memory


def averaged(answers: NDArray[np.int64], others: int, generator: np.random.Generator) -> Bits:
    """Guess each person's bit from many answers to one query (a row each), knowing everyone else's bit."""
    return guess_from(answers.mean(axis=1) - others - 0.5, generator)


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - all studies have the same signature
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    times: int = 2000,
    trials: int = 500,
) -> AttackStudy:
    """Repeat the same count and average the answers.

    If each answer has fresh noise and there is no accounting, ε per answer means nothing: the average of `times`
    answers is almost exact. hubbub returns the same answer again at no cost; a fresh answer is charged, so `times`
    fresh answers share one ε.
    """
    times, trials = numbers.integer(times, "times", 1, 10**6), numbers.integer(trials, "trials", 1, 10**6)
    patients, others = clinic(500, generator), 100
    coins = flip(trials, generator)
    findings = []
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"ε = {brief(epsilon)}")
        fresh = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon)
        whole, replay = _replayed(patients, epsilon)
        per_answer = share(epsilon, times)
        part = count_noise(patients, WHERE, epsilon=per_answer)
        kept = score_guesses(informed(whole, np.full(trials, others), coins, system()), coins)
        findings += [
            AttackFinding(
                "fresh noise per answer, no accounting",
                epsilon,
                _many(fresh, coins, others, times, generator),
                None,
                {"answers averaged": times},
            ),
            AttackFinding("hubbub, repeated query", epsilon, kept, ceiling(epsilon), replay),
            AttackFinding(
                "hubbub, ε shared by all answers",
                epsilon,
                _many(part, coins, others, times, generator),
                ceiling(epsilon),
                {"answers averaged": times, "ε per answer": float(per_answer)},
            ),
        ]
    progress(1.0, "done")
    return AttackStudy("averaging", "Averaging repeated answers", describe_findings(findings), tuple(findings))


def _many(noise: Laplace, coins: Bits, others: int, times: int, generator: np.random.Generator) -> Score:
    """Score the average of `times` answers for each trial, in batches of trials."""
    step = max(1, _AT_ONCE // times)
    guesses = [
        averaged(noise.sample(np.repeat(others + part[:, None], times, axis=1), system()), others, generator)
        for part in (coins[start : start + step].astype(np.int64) for start in range(0, len(coins), step))
    ]
    return score_guesses(np.concatenate(guesses), coins)


def _replayed(patients: AttackTable, epsilon: Fraction) -> tuple[Laplace, dict[str, Fact]]:
    """Repeat one query at ε, then request a fresh answer."""
    with open_protected(patients, epsilon=epsilon) as session:
        releases = [count(session, WHERE, epsilon=epsilon) for _ in range(_REPETITIONS)]
        try:
            count(session, WHERE, epsilon=epsilon, key="fresh")
            fresh = "returned"
        except BudgetError:
            fresh = "refused"
    distinct = len({number(each) for each in releases})
    return laplace(releases[0]), {"repetitions": _REPETITIONS, "distinct answers": distinct, "fresh answer": fresh}
