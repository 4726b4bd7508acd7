"""The target is a real hubbub: it charges, keeps a ledger, refuses, and is deleted afterwards."""

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import condition, count, laplace, mechanism, number, open_protected
from hubbub.core import binomial
from hubbub.core.events import from_facts
from hubbub.errors import BudgetError, QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace


@pytest.fixture
def people(generator: np.random.Generator) -> AttackTable:
    return clinic(300, generator)


def test_the_target_charges_refuses_and_replays_as_hubbub_does(people: AttackTable) -> None:
    with open_protected(people, epsilon=Fraction(1)) as session:
        first = count(session, "sex = 'male'", epsilon=Fraction(3, 5))
        assert (first.epsilon, first.replayed) == (Fraction(3, 5), False)
        again = count(session, "sex = 'male'", epsilon=Fraction(3, 5))
        assert again.replayed
        assert number(again) == number(first)
        with pytest.raises(BudgetError):
            count(session, "sex = 'female'", epsilon=Fraction(3, 5))
        with pytest.raises(QueryError):
            session.query("SELECT diagnosis FROM people", epsilon=Fraction(1, 5))
        (budget,) = session.budget()
        assert budget.largest == Fraction(2, 5)


def test_nothing_is_left_behind(people: AttackTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_protected(people, epsilon=Fraction(1)) as session:
        count(session, "sex = 'male'", epsilon=Fraction(1))
        assert list(tmp_path.glob("hubbub-attack-*"))
    assert not list(tmp_path.glob("hubbub-attack-*"))


def test_the_noise_of_the_receipt_is_the_noise_of_the_answers(people: AttackTable) -> None:
    """Of 80 fresh answers at ε = ½, the number of exact ones is binomial: false alarm below 1e-6."""
    true = int(np.count_nonzero(people.column("sex") == "male"))
    with open_protected(people, epsilon=Fraction(100)) as session:
        releases = [count(session, "sex = 'male'", epsilon=Fraction(1, 2), key=str(k)) for k in range(80)]
    noise = laplace(releases[0])
    assert noise == Laplace.from_epsilon(sensitivity=1, epsilon=Fraction(1, 2))
    exact = sum(number(each) == true for each in releases)
    low, high = binomial.interval(exact, 80, 1 - 1e-6)
    assert low <= float(noise.distribution(0).mass[0][1]) <= high


def test_gaussian_noise_is_known_for_what_it_is(people: AttackTable) -> None:
    owned = people.where(person=np.arange(people.rows))
    unit = {"column": "person", "groups": 40, "rows": 1}
    with open_protected(
        owned, epsilon=Fraction(1), delta=Fraction(1, 10**6), unit=unit, relation="add_remove"
    ) as session:
        release = session.query("SELECT area, COUNT(*) AS n FROM people GROUP BY area", epsilon=Fraction(1))
    noise = mechanism(release)
    assert isinstance(noise, Gaussian)
    assert noise.event == from_facts(release.receipt["event"]["parts"][0][0])


def test_a_release_of_several_noises_is_no_single_mechanism(people: AttackTable) -> None:
    with open_protected(people, epsilon=Fraction(1)) as session:
        both = session.query("SELECT AVG(birth) AS mean FROM people", epsilon=Fraction(1))
    with pytest.raises(ValueError, match="does not use exactly one additive mechanism"):
        mechanism(both)


def test_conditions_find_the_rows_they_are_written_for() -> None:
    odd = AttackTable(
        "odd",
        {
            'na"me': np.array(["O'Hara", "", "x; --"], dtype=object),
            "pay": np.array([1.5, np.nan, -2.0]),
            "is": np.array([True, False, True]),
            "n": np.array([1, -2, 3]),
        },
    )
    with open_protected(odd, epsilon=Fraction(10**6)) as session:
        for name, values in odd.columns.items():
            for index, value in enumerate(values):
                same = sum(other == value or (other != other and value != value) for other in values)
                release = count(session, condition(name, value), epsilon=Fraction(1000), key=f"{name} {index}")
                assert number(release) == same  # at ε = 1000 the noise is practically 0
