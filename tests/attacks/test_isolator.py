"""Isolation of a lonely person: the theorem by enumeration, and the attack on exact and on private counts."""

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest

from hubbub.attacks import isolator
from hubbub.attacks.catalogue import find_attack
from hubbub.attacks.isolation import publish_counts
from hubbub.attacks.isolator import isolation_ceiling, study
from hubbub.mechanisms.laplace import Laplace

EPSILONS = [Fraction(1, 10), Fraction(1)]


def best_isolator(noise: Laplace, corners: int, span: int) -> float:
    """The success rate of the best isolator of a person in a random one of the corners, with noise on each count."""
    known = [
        {t: float(mass[0]) for t, mass in noise.distribution(count, (-span, span)).mass.items()} for count in (0, 1)
    ]
    total = 0.0
    for answer in product(known[0], repeat=corners):
        empty = [known[0][t] for t in answer]
        # the likelihood of each corner, over that of nobody: the best guess names the largest
        total += float(np.prod(empty)) * max(known[1][t] / p for t, p in zip(answer, empty, strict=True)) / corners
    return total


@pytest.mark.row(98)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
def test_no_isolator_gains_more_than_stated(epsilon: Fraction) -> None:
    """Two corners, all answers enumerated: the best isolator stays below e^ε·p; noise of a sixth does not.

    A mechanism that names the true one of eight corners with probability e^ε/8 attains the bound, so no less will do.
    """
    ceiling = isolation_ceiling(epsilon, without=Fraction(1, 2))
    assert ceiling == pytest.approx(min(exp(epsilon) / 2, 1 - exp(-epsilon) / 2), abs=1e-12)
    assert 0.5 < best_isolator(Laplace(sensitivity=1, scale=1 / epsilon), 2, 40) <= ceiling
    assert best_isolator(Laplace(sensitivity=1, scale=1 / (6 * epsilon)), 2, 12) > ceiling
    named, other = exp(epsilon) / 8, (1 - exp(epsilon) / 8) / 7
    assert max(named * 8, 1 / (named * 8), other * 8, 1 / (other * 8)) <= exp(epsilon) + 1e-12  # against nobody: 1/8
    assert named == pytest.approx(isolation_ceiling(epsilon, without=Fraction(1, 8)), abs=1e-12)


@pytest.mark.row(98)
def test_a_lonely_person_is_isolated_by_exact_counts_and_not_by_private_ones() -> None:
    """250 trials. `held` has a false alarm below 1e-6; without the data, 1 in 8 within five and a half deviations."""
    result = study(epsilons=EPSILONS, generator=np.random.default_rng(3), people=100, trials=250)
    counts, *private = result.findings
    assert counts.score.share == 1.0
    assert [each.epsilon for each in private] == EPSILONS
    for each in private:
        assert each.held
        assert each.ceiling == pytest.approx(exp(float(each.epsilon or 0)) / 8, abs=1e-9)
        without = float(str(each.facts["isolated without the person's data"]).removesuffix("%")) / 100
        assert abs(without - 1 / 8) < 5.5 * (7 / 64 / 250) ** 0.5
    assert "recursive histogram: 100%" in result.words[0]


def test_noise_that_is_too_small_passes_the_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error: a table of counts sampled at ε = 20 but reported as ε = 0.1."""
    monkeypatch.setattr(
        isolator,
        "publish_counts",
        lambda points, *, singly, **_: publish_counts(points, epsilon=Fraction(20), singly=singly),
    )
    result = find_attack("isolator").run(
        epsilons=["0.1"], generator=np.random.default_rng(3), settings={"people": 100, "trials": 150}
    )
    assert not result.findings[-1].held
