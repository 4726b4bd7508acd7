"""Randomness of the tests: seeded, so that a sampling test gives the same verdict each time."""

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20050205)
