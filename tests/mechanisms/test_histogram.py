"""Histograms and contingency tables."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.core.unit import Relation
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.mechanisms.histogram import NoisyHistogram
from hubbub.noise.source import RandomSource, system

INCOMES = np.array([12, 15, 31, 48, 48, 52, 67, 75, 90, 120, 250, 18, 22], dtype=np.int64)


@pytest.mark.row(37)
def test_eleven_income_bins_cost_one_epsilon_in_all() -> None:
    """Eleven bins of 10,000: the scale is 1/ε under add/remove, whatever the number of bins, and 2/ε under replace."""
    for cells in (2, 11, 1000):
        table = NoisyHistogram.from_epsilon(shape=(cells,), rows=1, relation=Relation.ADD_REMOVE, epsilon="0.1")
        assert table.scale == 10
        assert table.loss.epsilon == Fraction(1, 10)
        assert math.sqrt(table.noise.variance[1]) == pytest.approx(math.sqrt(2) / 0.1, rel=2e-3)
    bins = NoisyHistogram.from_epsilon(shape=(11,), rows=1, relation=Relation.ADD_REMOVE, epsilon=1)
    counted = bins.count(np.minimum(INCOMES // 10, 10))
    assert counted.tolist() == [0, 3, 1, 1, 2, 1, 1, 1, 0, 1, 2]
    assert bins.sample(counted, system()).shape == (11,)
    replaced = NoisyHistogram.from_epsilon(shape=(11,), rows=1, relation=Relation.REPLACE, epsilon=1)
    assert [bins.scale, replaced.scale] == [Fraction(1), Fraction(2)]


@pytest.mark.row(37)
def test_two_bit_table_has_four_cells_of_error_root_two_over_epsilon(seeded: Callable[[int], RandomSource]) -> None:
    """The 4-cell contingency table of two bits: every cell's root mean square error is √2/ε (ε = .1, 20,000 tables)."""
    table = NoisyHistogram.from_epsilon(shape=(2, 2), rows=1, relation=Relation.ADD_REMOVE, epsilon="0.1")
    over_50 = np.array([1, 1, 0, 0, 1], dtype=np.int64)
    smokes = np.array([1, 0, 0, 1, 1], dtype=np.int64)
    counted = table.count(over_50, smokes)
    assert counted.tolist() == [[1, 1], [1, 2]]
    source = seeded(11)
    noise = np.stack([table.sample(counted, source) - counted for _ in range(20_000)])
    assert np.sqrt((noise**2.0).mean(axis=0)) == pytest.approx(np.full((2, 2), math.sqrt(2) / 0.1), rel=0.06)


@pytest.mark.row(28)
def test_noise_made_for_one_relation_fails_under_the_other() -> None:
    """A table noised for add/remove and used under replace loses twice what it states."""
    table = NoisyHistogram.from_epsilon(shape=(2,), rows=1, relation=Relation.ADD_REMOVE, epsilon=1)
    window = (-6, 9)
    one_row_less = table.distribution(np.array([2, 1]), window), table.distribution(np.array([1, 1]), window)
    another_row = table.distribution(np.array([2, 1]), window), table.distribution(np.array([1, 2]), window)
    assert float(worst_ratio(*one_row_less)[1]) == pytest.approx(1)
    assert float(worst_ratio(*another_row)[0]) == pytest.approx(2)


def test_rows_outside_the_table_are_left_out() -> None:
    table = NoisyHistogram.from_epsilon(shape=(2, 3), rows=1, relation=Relation.ADD_REMOVE, epsilon=1)
    counted = table.count(np.array([0, 1, -1, 2, 1]), np.array([0, 2, 0, 0, 3]))
    assert counted.tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(MechanismError):
        table.count(np.array([0]))
    with pytest.raises(MechanismError):
        table.sample(np.zeros((3, 2), dtype=np.int64), system())


@pytest.mark.parametrize("shape", [(), (0,), (-1, 2), (True,), (2.0,), 3, [2, 2], (10**5, 10**5)])
def test_bad_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError):
        NoisyHistogram.from_epsilon(shape=shape, rows=1, relation=Relation.ADD_REMOVE, epsilon=1)
