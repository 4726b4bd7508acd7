"""Guessing game for attacks on one person: the secret is a fair coin, and the attack guesses it.

The coin is added to the table, so nothing else reveals it and blind guessing is correct half of the time: any advantage
of an attack comes from the answers. ε-differential privacy limits every attack to e^ε/(1+e^ε).

Tested in tests/attacks/test_differencing.py.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, Score, ceiling
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource, system

Bits = NDArray[np.bool_]
Integers = NDArray[np.int64]


def flip(trials: int, generator: np.random.Generator) -> Bits:
    """Flip a fair coin for each trial."""
    return generator.random(trials) < 0.5


def guess_from(evidence: NDArray[Any], generator: np.random.Generator) -> Bits:
    """Guess 1 if the evidence is positive, 0 if it is negative, and at random if it is zero."""
    return np.where(evidence == 0, flip(len(evidence), generator), evidence > 0)


def score_guesses(guesses: Bits, secrets: Bits) -> Score:
    """Count the correct guesses."""
    return Score(int(np.count_nonzero(guesses == secrets)), len(secrets), 0.5)


def informed(mechanism: Laplace, others: Integers, secrets: Bits, source: RandomSource) -> Bits:
    """Guess from one noisy count, knowing everyone else's contribution.

    This is the best guess from a count with this noise: it takes the likelier side. At a scale of 1/ε it is correct
    with probability exactly 1/(1+e^−ε), so the ceiling is attained and cannot be lowered.
    """
    answers = mechanism.sample(others + secrets, source)
    return np.asarray(answers - others > 0)


def informed_at(
    target: str, epsilons: Sequence[Fraction], noises: Sequence[Laplace], others: Integers, secrets: Bits
) -> list[AttackFinding]:
    """Score that guess against the noise at each ε."""
    return [
        AttackFinding(
            target, epsilon, score_guesses(informed(noise, others, secrets, system()), secrets), ceiling(epsilon)
        )
        for epsilon, noise in zip(epsilons, noises, strict=True)
    ]
