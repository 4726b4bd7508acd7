"""A questionnaire with every kind of question, and fixed words."""

from collections.abc import Callable

import numpy as np
import pytest

from hubbub.local.survey import TEMPLATE, Survey
from hubbub.noise.source import Words


class Seeded:
    """Words of a seeded generator: the same in every run, and useless for privacy."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def words(self, count: int) -> Words:
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


@pytest.fixture
def seeded() -> Callable[[int], Seeded]:
    return Seeded


@pytest.fixture
def survey() -> Survey:
    return Survey.parse(TEMPLATE)
