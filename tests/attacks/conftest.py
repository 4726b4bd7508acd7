"""Fixtures to run a study with few trials, a wide range of ε, and a seeded attacker."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks.base import AttackStudy
from hubbub.attacks.catalogue import find_attack
from hubbub.attacks.table import AttackTable

Run = Callable[..., AttackStudy]


@pytest.fixture
def generator() -> np.random.Generator:
    """The attacker's random generator. hubbub's noise is never seeded."""
    return np.random.default_rng(20260116)


@pytest.fixture
def run(generator: np.random.Generator) -> Run:
    """Run an attack by its name."""

    def runner(
        name: str,
        table: AttackTable | None = None,
        *,
        epsilons: tuple[str, ...] = ("0.1", "1", "3"),
        **settings: object,
    ) -> AttackStudy:
        return find_attack(name).run(
            table, epsilons=list(map(Fraction, epsilons)), generator=generator, settings=settings
        )

    return runner
