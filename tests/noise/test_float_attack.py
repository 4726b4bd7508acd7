"""Noise made in floats gives its input away by its last digits (Mironov, 2012); integer noise does not."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import system

Doubles = NDArray[np.float64]

SCALE = 100.0  # so that one step of the true value is to cost ε = 0.01
GRID = 1024  # steps of our fixed-point grid to one
DRAWS = 4000


def naive(value: float, generator: np.random.Generator) -> Doubles:
    """Add Laplace noise as a textbook has it: value ± b·ln(u), then to be rounded afterwards, or not."""
    u = generator.integers(1, 2**53, DRAWS) * 2.0**-53
    noisy: Doubles = value + generator.choice([-1.0, 1.0], DRAWS) * (SCALE * np.log(u))
    return noisy


def ours(value: int) -> Doubles:
    """Add exact integer noise on the grid; the quotient is exact in doubles."""
    return (value * GRID + discrete_laplace(scale=Fraction(100 * GRID), count=DRAWS, source=system())) / GRID


def reachable(outputs: Doubles, value: float) -> NDArray[np.bool_]:
    """Say for each output whether some u near the one it needs gives it, to the last bit, from this value."""
    needed = np.round(np.exp(-np.abs(outputs - value) / SCALE) * 2.0**53)
    found = np.zeros(len(outputs), dtype=np.bool_)
    for step in range(-40, 41):
        shift = SCALE * np.log(np.clip(needed + step, 1, 2**53) * 2.0**-53)
        found |= (value + shift == outputs) | (value - shift == outputs)
    return found


def success(from_zero: Doubles, from_one: Doubles) -> float:
    """Give how often the attack names the true value, from one output each; where it is in doubt it guesses."""
    won = 0.0
    for outputs, true, other in ((from_zero, 0.0, 1.0), (from_one, 1.0, 0.0)):
        possible, alternative = reachable(outputs, true), reachable(outputs, other)
        won += float(np.where(possible == alternative, 0.5, possible).mean())
    return won / 2


@pytest.mark.row(25)
def test_a_float_sampler_is_read_by_its_last_bits_and_exact_noise_is_not() -> None:
    """ε = 0.01 allows the best of all attacks a success of 0.5025; 6 standard errors of 8,000 trials are 0.034."""
    allowed = np.exp(0.01) / (1 + np.exp(0.01))
    generator = np.random.default_rng()
    assert success(naive(0.0, generator), naive(1.0, generator)) > 0.75
    assert success(ours(0), ours(1)) < allowed + 0.034


@pytest.mark.row(25)
def test_a_single_float_output_can_rule_an_input_out_and_an_exact_one_cannot() -> None:
    generator = np.random.default_rng()
    outputs = naive(0.0, generator)
    assert reachable(outputs, 0.0).all()
    assert (~reachable(outputs, 1.0)).mean() > 0.5  # so many outputs have an infinite loss
    # ours: every output has positive mass from both, and the log-ratio is |steps|/scale at most, exactly
    steps = np.rint(ours(0) * GRID).astype(np.int64)
    loss = np.abs(np.abs(steps) - np.abs(steps - GRID))
    assert loss.max() <= GRID
