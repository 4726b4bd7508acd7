"""Attack on crowd sanitizers, compared with a private table of the same rows."""

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest

from hubbub.attacks import isolation
from hubbub.attacks.catalogue import find_attack
from hubbub.attacks.game import flip, guess_from, score_guesses
from hubbub.attacks.isolation import compare, publish_counts, study
from hubbub.attacks.table import AttackTable
from hubbub.crowd.points import make_points
from hubbub.crowd.sanitizers import sanitize
from hubbub.errors import AttackError
from hubbub.mechanisms.laplace import Laplace

EPSILONS = [Fraction(1, 10), Fraction(1)]


def test_sanitizers_betray_who_is_in_the_data_and_hubbub_stays_under_its_ceiling() -> None:
    """120 coins. Blind guessing reaches the required 85% with probability below 1e-14.

    `held` has a false alarm below 1e-6. The planted error is in the next test.
    """
    result = study(None, epsilons=EPSILONS, generator=np.random.default_rng(5), people=200, trials=120)
    counts, ordered, shuffled, *private = result.findings
    assert counts.score.share > 0.85
    assert ordered.score.share > 0.85
    assert shuffled.score.share > 0.5
    assert [each.epsilon for each in private] == EPSILONS
    assert all(each.held and each.ceiling is not None for each in private)
    assert all(each.epsilon is None and each.ceiling is None for each in (counts, ordered, shuffled))
    assert "recursive histogram" in result.words[0]


def test_noise_that_is_too_small_passes_the_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error: a table of counts sampled at ε = 20 but reported as ε = 0.1."""
    real = isolation.publish_counts
    monkeypatch.setattr(
        isolation, "publish_counts", lambda points, *, singly, **_: real(points, epsilon=Fraction(20), singly=singly)
    )
    result = study(None, epsilons=[Fraction(1, 10)], generator=np.random.default_rng(5), people=200, trials=120)
    assert not result.findings[-1].held


def test_two_noisy_counts_tell_as_much_as_their_noise_lets_them() -> None:
    """Correct with probability 1/(1 + e^(−1/scale)): 20,000 coins, six deviations, false alarm below 1e-8.

    A row that counts three times, or noise of half the scale, would differ by more than 0.1.
    """
    generator = np.random.default_rng(11)
    coins = flip(20_000, generator)
    noise = Laplace(sensitivity=2, scale=Fraction(2))
    evidence = isolation._by_noise(np.ones(20_000, dtype=np.bool_), coins, noise)
    share = score_guesses(guess_from(evidence, generator), coins).share
    assert abs(share - 1 / (1 + exp(-0.5))) < 6 * sqrt(0.25 / 20_000)
    # if both people are in one cell, the counts reveal nothing
    assert not isolation._by_noise(np.zeros(5, dtype=np.bool_), coins[:5], noise).any()


def test_it_runs_on_a_table_of_the_user() -> None:
    generator = np.random.default_rng(3)
    table = AttackTable(
        "people",
        {
            "age": generator.integers(18, 90, 700),
            "cost": generator.exponential(50, 700),
            "name": np.array([f"n{index}" for index in range(700)], dtype=object),
        },
    )
    reported: list[float] = []
    result = find_attack("isolation").run(
        table,
        epsilons=["1"],
        generator=generator,
        settings={"trials": "10", "columns": "age,cost"},
        progress=lambda done, _: reported.append(done),
    )
    assert result.findings[0].score.trials == 10
    assert reported == sorted(reported)
    assert reported[-1] == 1.0


@pytest.mark.parametrize(
    ("columns", "more"), [({"name": np.array(["a"] * 50, dtype=object)}, {}), ({"x": np.arange(20)}, {"crowd": 10})]
)
def test_tables_that_do_not_do_are_refused(columns: dict[str, np.ndarray], more: dict[str, int]) -> None:
    with pytest.raises(AttackError, match="HB651"):
        study(AttackTable("t", columns), epsilons=[Fraction(1)], generator=np.random.default_rng(1), trials=2, **more)  # type: ignore[arg-type]


def test_a_private_table_stands_beside_a_sanitizer_with_figures_for_both() -> None:
    """At ε = 50 the noise is 0 in nearly all of 100 cells, and the table's columns are correct within one row in 50."""
    generator = np.random.default_rng(9)
    columns = {"a": generator.uniform(0, 1, 1000), "b": generator.uniform(0, 1, 1000)}
    points = make_points(columns, ["a", "b"], rng=generator, bounds={"a": (0, 1), "b": (0, 1)})
    own, exact, noisy = compare(
        sanitize(points, "ball", t=10, rng=generator), c=4, epsilons=[Fraction(50), Fraction(1, 100)]
    )
    assert (own.name, own.epsilon, exact.epsilon) == ("ball", None, Fraction(50))
    assert exact.shares < 0.02 < noisy.shares
    assert exact.means is not None
    assert exact.means < 0.05
    assert set(own.rates) == {"the point itself", "posterior mean"}
    table, release = publish_counts(points, epsilon=Fraction(50), singly=False)
    assert abs(int(table.cells.sum()) - 1000) < 20
    assert release.epsilon == 50


def test_more_columns_than_a_table_has_are_refused() -> None:
    generator = np.random.default_rng(1)
    columns = {f"x{index}": generator.uniform(0, 1, 50) for index in range(9)}
    with pytest.raises(AttackError, match="HB651"):
        publish_counts(make_points(columns, list(columns), rng=generator), epsilon=Fraction(1), singly=True)
