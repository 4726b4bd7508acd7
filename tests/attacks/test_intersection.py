"""Intersection attack: tables of the same people."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks.base import AttackStudy, ceiling
from hubbub.attacks.intersection import intersect, weigh
from hubbub.attacks.table import AttackTable
from hubbub.core import binomial
from hubbub.errors import AttackError
from hubbub.noise.geometric import discrete_laplace

Run = Callable[..., AttackStudy]


def test_the_value_that_all_groups_share_is_guessed() -> None:
    """Four people, two groupings of two: each person's two groups share one value only, by hand."""
    values = np.array([0, 1, 2, 1])
    first, second = (weigh(np.array(groups), values, 3) for groups in ([0, 0, 1, 1], [0, 1, 0, 1]))
    assert first.tolist() == [[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 1]]
    guesses, sure = intersect([first, second])
    assert guesses.tolist() == [0, 1, 2, 1]
    assert sure.all()
    assert not intersect([first])[1].any()


@pytest.mark.row(104)
def test_two_k_anonymous_tables_reveal_what_one_hides_and_private_ones_compose(run: Run) -> None:
    """1,000 people in both tables. The attacker is seeded; hubbub's scores exceed their maximum with less than 1e-8."""
    study = run("intersection", epsilons=("0.5", "1"))
    one, two, *ours = study.findings
    assert float(one.facts["revealed with certainty"]) < 0.02
    assert float(two.facts["revealed with certainty"]) > 0.25
    assert two.score.interval(1 - 1e-6)[0] > one.score.interval(1 - 1e-6)[1]
    assert [each.epsilon for each in ours] == [Fraction(1), Fraction(2)]
    for finding in ours:
        assert finding.ceiling == ceiling(finding.epsilon or Fraction(0))
        assert binomial.tail(finding.score.right, finding.score.trials, finding.ceiling or 0) > 1e-8


@pytest.mark.row(104)
def test_where_both_releases_agree_the_odds_are_those_of_the_sum(run: Run) -> None:
    """At ε = 1 each, agreement is right with probability e²/(1 + e²) = .881: about 1,200 of 2,000 agree, 6 deviations.

    One release alone gives .731, so the two do add up.
    """
    study = run("intersection", epsilons=("1",))
    assert float(study.findings[-1].facts["right where all releases agree"]) == pytest.approx(0.881, abs=0.06)


@pytest.mark.row(104)
def test_more_tables_reveal_more(run: Run) -> None:
    study = run("intersection", epsilons=("1",), releases="4")
    shares = [float(each.facts["revealed with certainty"]) for each in study.findings[:4]]
    assert shares == sorted(shares)
    assert shares[3] > 0.5
    assert study.findings[-1].epsilon == 4


def test_noise_that_is_too_weak_exceeds_the_maximum_of_the_sum(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the charged noise: right in 98% where 88% are allowed; missed with a chance below 1e-9."""

    def weak(*, scale: Fraction, count: int, source: object) -> object:
        return discrete_laplace(scale=scale / 4, count=count, source=source)  # type: ignore[arg-type]

    monkeypatch.setattr("hubbub.mechanisms.laplace.discrete_laplace", weak)
    study = run("intersection", epsilons=("1",))
    assert not study.findings[-1].held
    assert any("exceed the guarantee" in sentence for sentence in study.words)


def test_a_table_of_the_user_is_shared_among_owners(run: Run, generator: np.random.Generator) -> None:
    table = AttackTable("t", {"a": generator.integers(0, 50, 400), "b": generator.integers(0, 9, 400)})
    study = run("intersection", table, sensitive="b", k="4", epsilons=("1",))
    assert study.findings[0].target == "4-anonymous: 1 table"
    assert study.findings[0].score.trials == 200
    with pytest.raises(AttackError, match="HB651"):
        run("intersection", table, sensitive="b", k="300", epsilons=("1",))
