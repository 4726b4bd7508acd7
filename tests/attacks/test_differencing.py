"""Differencing attack: two large counts that differ by Mr X."""

from collections.abc import Callable
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pytest

from hubbub.attacks.base import AttackStudy, ceiling
from hubbub.attacks.differencing import difference, odds, singled_out
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable, read
from hubbub.attacks.target import condition, count, number, open_protected
from hubbub.core import binomial
from hubbub.errors import AttackError
from hubbub.mechanisms.laplace import Laplace

Run = Callable[..., AttackStudy]


@pytest.mark.row(65)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_no_pair_of_answers_moves_the_odds_by_more_than_the_promise(epsilon: Fraction) -> None:
    """All pairs of answers, exactly: the likelihood of a 1 against a 0 is within e^±ε, whatever the true count."""
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon / 2)
    distribution = {z: float(high) for z, (_, high) in mechanism.distribution(0).mass.items()}
    reach = max(distribution)
    masses = np.array([distribution[z] for z in range(-reach, reach + 1)])
    apart = dict(enumerate(np.convolve(masses, masses[::-1]).tolist(), -2 * reach))
    for gap in range(-20, 21):
        assert odds(gap, scale=mechanism.scale) == pytest.approx(apart[gap - 1] / apart[gap], rel=1e-9)
        assert exp(-epsilon) <= odds(gap, scale=mechanism.scale) <= exp(epsilon)


@pytest.mark.row(65)
def test_two_counts_reveal_mr_x_on_an_unprotected_table_and_not_here(run: Run) -> None:
    """Each score exceeds its ceiling by chance with probability below 1e-8. The odds of all answers are within e^ε."""
    study = run("differencing", trials=3000)
    naked = [each for each in study.findings if each.epsilon is None]
    assert [each.score.share for each in naked[:2]] == [1.0, 1.0]  # suppressing small counts does not help
    assert naked[2].score.share > 0.99  # nor does rounding, with 50 variants of the query: 1 − ½·0.8⁵⁰
    assert int(naked[0].facts["people counted"]) > 100
    for finding in study.findings[3:]:
        assert finding.ceiling is not None
        assert finding.epsilon is not None
        assert binomial.tail(finding.score.right, finding.score.trials, finding.ceiling) > 1e-8
        if finding.target == "hubbub":
            assert float(finding.facts["largest posterior odds"]) <= exp(finding.epsilon)


@pytest.mark.row(65)
def test_the_two_counts_are_asked_of_the_real_product(generator: np.random.Generator) -> None:
    """40 people, two counts each through ledger and engine: over 38 correct at ε = ½ have probability below 1e-6."""
    table = clinic(400, generator)
    known = ("birth", "sex", "area")
    rows = generator.choice(singled_out(table, known), 40, replace=False)
    coins = generator.random(40) < 0.5
    ill = table.column("diagnosis").copy()
    ill[rows] = np.where(coins, "asthma", "none")
    right = 0
    with open_protected(table.where(diagnosis=ill), epsilon=Fraction(20)) as session:
        for row, coin in zip(rows, coins, strict=True):
            person = " AND ".join(condition(name, table.column(name)[row]) for name in known)
            where = "diagnosis = 'asthma'"
            answers = [
                number(count(session, text, epsilon=Fraction(1, 4), key=f"{row} {text}"[:60]))
                for text in (where, f"NOT ({person}) AND {where}")
            ]
            guess = difference(np.array([answers[0]]), np.array([answers[1]]), generator)
            right += bool(guess[0] == coin)
        assert session.budget()[0].largest == 0
    assert binomial.tail(39, 40, ceiling(Fraction(1, 2))) < 1e-6
    assert right <= 38


def test_it_runs_on_a_table_of_the_users_own(run: Run) -> None:
    table = AttackTable(
        "staff",
        {
            "age": np.arange(200) % 50,
            "desk": np.arange(200),
            "vote": np.array(["yes", "no"] * 100, dtype=object),
        },
    )
    study = run("differencing", table, column="vote", quasi="age,desk", trials=200)
    assert study.findings[0].score.share == 1.0
    with pytest.raises(AttackError, match="No row of staff is unique"):
        run("differencing", table, column="vote", quasi="age")
    with pytest.raises(AttackError, match="No column of staff has 2 to 50 values"):
        run("differencing", table.keep(["desk"]))


def test_the_study_of_a_file_is_that_of_its_rows(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "staff.csv"
    path.write_text("desk,vote\n" + "".join(f"{i},{'yes' if i % 3 else 'no'}\n" for i in range(90)))
    study = run("differencing", read(path), trials=50)
    assert study.findings[0].facts["people counted"] == 59  # 60 people said yes, minus one
