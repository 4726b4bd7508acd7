"""Timing attack: a sampler that takes longer for larger noise reveals its size.

An answer of 103 that took as long as noise of ±3 comes from 100 or 106. A clock is useless against a sampler whose work
does not depend on its sample (Jin, McMurtry, Rubinstein and Ohrimenko 2022 timed deployed samplers).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from random import SystemRandom
from time import perf_counter_ns
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Fact, Progress, ceiling, describe_findings, no_progress
from hubbub.attacks.game import Bits, flip, guess_from, score_guesses
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import count_noise
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import AttackError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource, Words, system

_UNITS = {"seconds": "ns", "steps": "steps"}
_TRUE, _ROUNDS = 100, 8
_LEAST = 1e-9  # minimum spread in steps, so that an exact clock does not divide by zero

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Sampler(Protocol):
    """Adds noise to a number and counts its steps."""

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        ...

    def sample(self, value: int) -> int:
        """Add noise."""
        ...


class Stepwise:
    """Naive two-sided geometric noise: flip a coin with success probability q until it fails.

    The distribution is correct, but the running time grows with the size of the noise.
    """

    def __init__(self, epsilon: Fraction) -> None:
        self.steps = 0
        self._q = exp(-epsilon)
        self._chance = SystemRandom()

    def sample(self, value: int) -> int:
        """Add noise; each coin flip is a step."""
        self.steps += 1
        if self._chance.random() * (1 + self._q) < 1 - self._q:
            return value
        size = 1
        while self._chance.random() < self._q:
            size += 1
        self.steps += size
        return value - size if self._chance.random() < 0.5 else value + size


class Exact:
    """hubbub's noise; each random word is a step."""

    def __init__(self, mechanism: Laplace, source: RandomSource) -> None:
        self.steps = 0
        self._mechanism = mechanism
        self._source = source

    def sample(self, value: int) -> int:
        """Add noise."""
        return self._mechanism.sample(value, self)

    def words(self, count: int) -> Words:
        """Return words of the source and count them."""
        self.steps += count
        return self._source.words(count)


@dataclass(frozen=True, slots=True)
class WorkModel:
    """The attacker's model of a sampler's running time: work = base + rate·|noise| ± spread."""

    base: float
    rate: float
    spread: float

    def residual(self, noise: Integers, work: Floats) -> Floats:
        """Return the distance between the work and the model's prediction for this noise."""
        return np.asarray(np.abs(work - self.base - self.rate * np.abs(noise)))


def learned(noise: Integers, work: Floats) -> WorkModel:
    """Fit work = base + rate·|noise| robustly: repeatedly drop outliers, such as interruptions, and refit."""
    size = np.abs(noise).astype(np.float64)
    kept = work <= np.quantile(work, 0.95)
    model = WorkModel(0.0, 0.0, _LEAST)
    for _ in range(_ROUNDS):
        across, up = size[kept], work[kept]
        rate = 0.0 if np.ptp(across) == 0 else float(np.cov(across, up)[0, 1] / np.var(across, ddof=1))
        model = WorkModel(float(np.mean(up) - rate * np.mean(across)), rate, _LEAST)
        residuals = model.residual(noise, work)
        model = replace(model, spread=max(float(np.median(residuals)), _LEAST))
        kept = residuals <= 3 * model.spread
    return model


def timed(
    answers: Integers, work: Floats, model: WorkModel, *, others: int, epsilon: float, generator: np.random.Generator
) -> Bits:
    """Guess the bit behind each answer from the answer and from how long it took."""
    zero, one = (answers - others - bit for bit in (0, 1))
    by_answer = epsilon * (np.abs(zero) - np.abs(one))
    by_clock = (model.residual(zero, work) - model.residual(one, work)) / model.spread
    return guess_from(np.round(by_answer + by_clock, 9), generator)


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - all studies have the same signature
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    clock: str = "seconds",
    trials: int = 2000,
) -> AttackStudy:
    """Measure how long sampling the noise takes, and subtract the estimated noise from the answer.

    The attacker first times the same number of their own samples. The `clock` measures seconds on this machine, or
    counts steps: coin flips of the naive sampler, random words that hubbub uses. It times the sampler itself; a server
    also delays its responses to a fixed time quantum.
    """
    trials = numbers.integer(trials, "trials", 10, 10**5)
    if clock not in _UNITS:
        raise AttackError("HB643", f"Unknown clock {clock[:20]!r}.", f"Use one of: {', '.join(_UNITS)}.")
    coins = flip(trials, generator)
    patients = clinic(200, generator)
    findings = []
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"ε = {brief(epsilon)}")
        naive, exact = Stepwise(epsilon), Exact(count_noise(patients, "sex = 'male'", epsilon=epsilon), system())
        for name, sampler, most in (
            ("noise sampled step by step", naive, None),
            ("hubbub, everyone else known", exact, ceiling(epsilon)),
        ):
            # alternate own samples and answers, so that both see the same load of the machine
            values = _TRUE + np.column_stack([np.zeros(trials, dtype=np.int64), coins]).ravel()
            noise, work = _measured(sampler, values, clock)
            model = learned(noise[::2], work[::2])
            answers, work = (values + noise)[1::2], work[1::2]
            guesses = timed(answers, work, model, others=_TRUE, epsilon=float(epsilon), generator=generator)
            facts: dict[str, Fact] = {f"{_UNITS[clock]} per unit of noise": model.rate, "spread": model.spread}
            findings.append(AttackFinding(name, epsilon, score_guesses(guesses, coins), most, facts))
    progress(1.0, "done")
    return AttackStudy("timing", "Timing of noise samplers", describe_findings(findings), tuple(findings))


def _measured(sampler: Sampler, values: Integers, clock: str) -> tuple[Integers, Floats]:
    """Sample noise for each value, one at a time; return the noise and the work of each sample."""
    outputs, work = np.empty(len(values), dtype=np.int64), np.empty(len(values))
    for index, value in enumerate(values.tolist()):
        steps, start = sampler.steps, perf_counter_ns()
        outputs[index] = sampler.sample(value)
        end = perf_counter_ns()
        work[index] = end - start if clock == "seconds" else sampler.steps - steps
    return outputs - values, work
