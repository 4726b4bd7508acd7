"""Floating-point attack: the low-order bits of floating-point Laplace noise reveal its input (Mironov 2012).

A sampler that computes value ± b·ln(u) reaches only some of the doubles, and which ones depends on the value: most
outputs for one value are impossible for the other, so the true ε is infinite.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, ceiling, describe_findings, no_progress
from hubbub.attacks.game import Bits, flip, guess_from, score_guesses
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import Declared, laplace, open_protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.noise.source import system

#: Steps of hubbub's grid per unit; a power of two, so that quotients are exact in doubles.
GRID = 1024
_DECLARED: Declared = {"amount": {"bounds": [0, 1], "step": 1 / GRID}}
_NEAR = 40
_WORDS = 2.0**53

Doubles = NDArray[np.float64]


def textbook(values: Doubles, scale: float, generator: np.random.Generator) -> Doubles:
    """Add textbook Laplace noise in doubles: value ± b·ln(u). Not private at any scale."""
    u = generator.integers(1, 2**53, len(values)) / _WORDS
    return np.asarray(values + generator.choice([-1.0, 1.0], len(values)) * (scale * np.log(u)))


def reachable(outputs: Doubles, value: float, scale: float) -> Bits:
    """Return whether textbook noise can produce each output from this value, for some u near the required one."""
    needed = np.round(np.exp(-np.abs(outputs - value) / scale) * _WORDS)
    possible = np.zeros(len(outputs), dtype=np.bool_)
    for step in range(-_NEAR, _NEAR + 1):
        shift = scale * np.log(np.clip(needed + step, 1, _WORDS) / _WORDS)
        possible |= (value + shift == outputs) | (value - shift == outputs)
    return possible


def low_bits(outputs: Doubles, scale: float, generator: np.random.Generator) -> Bits:
    """Guess the value behind each output: the only one of 0 and 1 that can produce it, or else the nearer one."""
    reach = reachable(outputs, 1.0, scale).astype(np.int64) - reachable(outputs, 0.0, scale)
    nearer = np.abs(outputs) - np.abs(outputs - 1)
    return guess_from(np.where(reach == 0, nearer, reach), generator)


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - all studies have the same signature
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    trials: int = 4000,
) -> AttackStudy:
    """Use the low-order bits of a noisy sum to exclude true values.

    One person pays 0 or 1 by a coin flip, and the sum is published with noise of scale 1/ε: once with textbook noise in
    floating point, and once by hubbub, in exact integers on a grid that does not depend on the data.
    """
    trials = numbers.integer(trials, "trials", 1, 10**6)
    coins = flip(trials, generator)
    payments = AttackTable("payments", {"amount": generator.integers(0, GRID + 1, 200) / GRID})
    findings = []
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"ε = {brief(epsilon)}")
        scale = float(1 / epsilon)
        naive = textbook(coins.astype(np.float64), scale, generator)
        exclusive = float(np.mean(reachable(naive, 0.0, scale) != reachable(naive, 1.0, scale)))
        findings.append(
            AttackFinding(
                "textbook noise in floating point",
                epsilon,
                score_guesses(low_bits(naive, scale, generator), coins),
                None,
                {"outputs possible for only one value": exclusive},
            )
        )
        with open_protected(payments, epsilon=epsilon, declared=_DECLARED) as session:
            noise = laplace(session.query("SELECT SUM(amount) AS total FROM people", epsilon=epsilon, fresh=True))
        exact = noise.sample(coins.astype(np.int64) * GRID, system()) / GRID
        findings += [
            AttackFinding(
                "hubbub, by low-order bits",
                epsilon,
                score_guesses(low_bits(exact, scale, generator), coins),
                ceiling(epsilon),
            ),
            AttackFinding(
                "hubbub, by size only",
                epsilon,
                score_guesses(guess_from(exact - 0.5, generator), coins),
                ceiling(epsilon),
            ),
        ]
    progress(1.0, "done")
    return AttackStudy("floats", "Low-order bits of floating-point noise", describe_findings(findings), tuple(findings))
