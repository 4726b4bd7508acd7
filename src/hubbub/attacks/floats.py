"""Low bits: Laplace noise made in floating point gives its input away by its last digits (Mironov 2012).

A sampler that computes value ± b·ln(u) reaches only some of the doubles, and which ones depends on the value: most
outputs that come from one value cannot come from the other at all, so that the true ε is infinite.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Finding, Progress, Study, ceiling, compared, unheard
from hubbub.attacks.game import Bits, flip, scored, settled
from hubbub.attacks.table import Table
from hubbub.attacks.target import Declared, laplace, protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.noise.source import system

#: Steps of hubbub's grid to one; a power of two, so that quotients are exact in doubles.
GRID = 1024
_DECLARED: Declared = {"amount": {"bounds": [0, 1], "step": 1 / GRID}}
_NEAR = 40
_WORDS = 2.0**53

Doubles = NDArray[np.float64]


def textbook(values: Doubles, scale: float, generator: np.random.Generator) -> Doubles:
    """Add Laplace noise as a textbook has it, in doubles: value ± b·ln(u). Not private, whatever the scale."""
    u = generator.integers(1, 2**53, len(values)) / _WORDS
    return np.asarray(values + generator.choice([-1.0, 1.0], len(values)) * (scale * np.log(u)))


def reachable(outputs: Doubles, value: float, scale: float) -> Bits:
    """Say for each output whether the textbook's noise, with some u near the one it needs, gives it from this value."""
    needed = np.round(np.exp(-np.abs(outputs - value) / scale) * _WORDS)
    found = np.zeros(len(outputs), dtype=np.bool_)
    for step in range(-_NEAR, _NEAR + 1):
        shift = scale * np.log(np.clip(needed + step, 1, _WORDS) / _WORDS)
        found |= (value + shift == outputs) | (value - shift == outputs)
    return found


def low_bits(outputs: Doubles, scale: float, generator: np.random.Generator) -> Bits:
    """Guess whether 0 or 1 is behind each output: the only one that reaches it, or else the nearer one."""
    reach = reachable(outputs, 1.0, scale).astype(np.int64) - reachable(outputs, 0.0, scale)
    nearer = np.abs(outputs) - np.abs(outputs - 1)
    return settled(np.where(reach == 0, nearer, reach), generator)


def study(
    table: Table | None = None,  # noqa: ARG001 - all studies are called alike
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    trials: int = 4000,
) -> Study:
    """Look at the last bits of a noisy sum, to see which true values could have led to it.

    Mr X pays 0 or 1, as a coin falls, and the sum is published with noise of scale 1/ε: once as textbooks make it, in
    floating point, once by hubbub, in exact integers on a grid that does not depend on the data.
    """
    trials = numbers.integer(trials, "trials", 1, 10**6)
    coins = flip(trials, generator)
    made = Table("payments", {"amount": generator.integers(0, GRID + 1, 200) / GRID})
    findings = []
    for place, epsilon in enumerate(epsilons):
        progress(place / len(epsilons), f"ε = {brief(epsilon)}")
        scale = float(1 / epsilon)
        naive = textbook(coins.astype(np.float64), scale, generator)
        alone = float(np.mean(reachable(naive, 0.0, scale) != reachable(naive, 1.0, scale)))
        findings.append(
            Finding(
                "textbook noise in floating point",
                epsilon,
                scored(low_bits(naive, scale, generator), coins),
                None,
                {"outputs that only one value reaches": alone},
            )
        )
        with protected(made, epsilon=epsilon, declared=_DECLARED) as session:
            noise = laplace(session.query("SELECT SUM(amount) AS total FROM people", epsilon=epsilon))
        exact = noise.sample(coins.astype(np.int64) * GRID, system()) / GRID
        findings += [
            Finding(
                "hubbub, by the last bits", epsilon, scored(low_bits(exact, scale, generator), coins), ceiling(epsilon)
            ),
            Finding("hubbub, by size alone", epsilon, scored(settled(exact - 0.5, generator), coins), ceiling(epsilon)),
        ]
    progress(1.0, "done")
    return Study("floats", "What the last bits tell", compared(findings), tuple(findings))
