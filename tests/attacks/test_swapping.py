"""Swapping attack: values exchanged between pairs of rows."""

from collections.abc import Callable

import numpy as np
import pytest

from hubbub.attacks.base import AttackStudy
from hubbub.attacks.swapping import link, swapped
from hubbub.attacks.table import AttackTable
from hubbub.errors import AttackError

Run = Callable[..., AttackStudy]


def test_a_swap_keeps_the_values_and_moves_a_share_of_the_rows(generator: np.random.Generator) -> None:
    """10,000 distinct values at rate ½: 5,000 rows move, with a deviation of 70.7; 6 deviations."""
    values = np.arange(10_000)
    result = swapped(values, 0.5, generator)
    assert np.array_equal(np.sort(result), values)
    moved = result != values
    assert abs(int(moved.sum()) - 5000) < 425
    assert np.array_equal(result[result[moved]], values[moved])  # pairs
    assert np.array_equal(swapped(values, 0.0, generator), values)
    assert (swapped(values, 1.0, generator) != values).all()


def test_a_person_without_a_matching_row_is_guessed_by_a_coin(generator: np.random.Generator) -> None:
    coins = np.array([True, False])
    assert link(np.array([0, 1]), np.array([0, 1]), coins, generator).tolist() == [True, False]
    guesses = [bool(link(np.array([0, 0]), np.array([1, 1]), coins, generator)[0]) for _ in range(100)]
    assert 10 < sum(guesses) < 90


@pytest.mark.row(106)
def test_swapped_rows_give_most_secrets_away_and_hubbub_does_not(run: Run) -> None:
    """The attacker is seeded. A unique row that was not swapped is read; a swapped one is a coin flip.

    Rate r leaves about (1 − r)·p + r·½ right, where p is the share without swapping: 6 deviations of 2,000 guesses.
    """
    study = run("swapping", epsilons=("0.1", "1"))
    plain, *swaps, low, high = study.findings
    assert plain.score.share > 0.9
    for rate, finding in zip((0.1, 0.5, 1.0), swaps, strict=True):
        expected = (1 - rate) * plain.score.share + rate * 0.5
        assert finding.score.share == pytest.approx(expected, abs=0.067)
        assert float(finding.facts["rows that keep their area"]) == pytest.approx(1 - rate * 39 / 40, abs=0.03)
    assert low.held
    assert high.held
    assert "still read off" in study.words[0]


@pytest.mark.row(106)
def test_a_table_and_a_column_of_the_user_are_swapped(run: Run, generator: np.random.Generator) -> None:
    table = AttackTable("t", {"zip": np.arange(500), "age": generator.integers(0, 9, 500), "sick": np.ones(500)})
    study = run("swapping", table, quasi="zip,age", column="age", rates="0.2", epsilons=("1",))
    assert study.title == "Swapping age between rows"
    assert study.findings[0].score.share == 1.0  # zip is unique
    for settings in ({"column": "sick", "quasi": "zip"}, {"rates": ""}):
        with pytest.raises(AttackError, match="HB651"):
            run("swapping", table, epsilons=("1",), **settings)
    for rates in ("2", "0", "often", "nan"):
        with pytest.raises(AttackError, match="HB643"):
            run("swapping", table, rates=rates, epsilons=("1",))
    with pytest.raises(AttackError, match="HB644"):
        run("swapping", table, quasi="nose", epsilons=("1",))
