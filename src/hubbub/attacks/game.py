"""The game that attacks on one person are scored by: a fair coin is the person's secret, and the attack names its side.

The coin is put into the table, so that nothing else in the world tells it and blind guessing is right half of the
time: what an attack gains, it gains from the answers. ε-differential privacy allows e^ε/(1+e^ε), whoever attacks.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Finding, Score, ceiling
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Source, system

Bits = NDArray[np.bool_]
Integers = NDArray[np.int64]


def flip(trials: int, generator: np.random.Generator) -> Bits:
    """Flip a fair coin for each trial."""
    return generator.random(trials) < 0.5


def settled(evidence: NDArray[Any], generator: np.random.Generator) -> Bits:
    """Guess 1 where the evidence is above zero, 0 where it is below, and blindly where it says nothing."""
    return np.where(evidence == 0, flip(len(evidence), generator), evidence > 0)


def scored(guesses: Bits, secrets: Bits) -> Score:
    """Count the right guesses."""
    return Score(int(np.count_nonzero(guesses == secrets)), len(secrets), 0.5)


def informed(mechanism: Laplace, others: Integers, secrets: Bits, source: Source) -> Bits:
    """Guess from one noisy count, by somebody who knows everybody else's part in it.

    No guess from a count with this noise is better: it takes the likelier side. At a scale of 1/ε it is right with
    probability exactly 1/(1+e^−ε), so the ceiling is attained and cannot be lowered.
    """
    answers = mechanism.sample(others + secrets, source)
    return np.asarray(answers - others > 0)


def informed_at(
    target: str, epsilons: Sequence[Fraction], noises: Sequence[Laplace], others: Integers, secrets: Bits
) -> list[Finding]:
    """Score that guess against the noise that came at each price."""
    return [
        Finding(target, epsilon, scored(informed(noise, others, secrets, system()), secrets), ceiling(epsilon))
        for epsilon, noise in zip(epsilons, noises, strict=True)
    ]
