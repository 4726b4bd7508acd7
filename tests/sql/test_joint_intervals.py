"""Joint intervals: all cells of an answer are inside at once with at least 95%."""

from collections.abc import Sequence
from fractions import Fraction
from math import log

import numpy as np
import pytest
from tests.fixtures.visits_table import bounds

from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql import presentation
from hubbub.sql.bind import bind
from hubbub.sql.finish import declared_keys
from hubbub.sql.plan import Plan, plan
from hubbub.sql.presentation import Answer, present

CELLS, RUNS = 12, 2000
TABLE = Table(
    "t",
    (Column("x", Kind.INTEGER, bounds=bounds(0, 10)), Column("k", Kind.INTEGER, values=tuple(range(CELLS)))),
    PrivacyUnit(None),
)
ROWS, MEAN = 4000, 7
QUERIES = (
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT k, COUNT(x) AS n, AVG(x) AS a FROM t GROUP BY k",
)


def planned(sql: str, **options: object) -> Plan:
    query = bind(sql, tables={"t": TABLE})
    return plan(query, epsilon=Fraction(1, 10), delta=Fraction(0), salt="s", **options)  # type: ignore[arg-type]


def answers(made: Plan) -> list[Answer]:
    """Answer as often as `RUNS`, from groups of 4,000 rows of mean 7: sums about the middle are 4,000·(7 − 5)."""
    exact = [ROWS if len(n.measure.__slots__) == 2 else ROWS * (MEAN - 5) for n in made.measures]
    noisy = [
        total + noised.mechanism.sample(np.zeros(RUNS * CELLS, dtype=np.int64), system())
        for total, noised in zip(exact, made.measures, strict=True)
    ]
    keys, cells = declared_keys(made), [each.reshape(RUNS, CELLS) for each in noisy]
    return [present(made, keys, [each[run] for each in cells], [], raw=False) for run in range(RUNS)]


def misses(given: Sequence[Answer], truth: Sequence[float], *, joint: bool) -> float:
    """Return the share of answers of which some interval misses."""
    missed = 0
    for answer in given:
        ends = answer.joint if joint else tuple(zip(answer.low, answer.high, strict=True))
        noisy = ends[1:]
        missed += any(
            (low > value).any() or (high < value).any() for (low, high), value in zip(noisy, truth, strict=True)
        )
    return missed / len(given)


@pytest.mark.row(31, 100)
@pytest.mark.parametrize(("sql", "truth"), [(QUERIES[0], [ROWS]), (QUERIES[1], [ROWS, MEAN])])
def test_all_cells_of_an_answer_hold_at_once(sql: str, truth: list[float]) -> None:
    """2,000 whole answers: a share of misses of 5% is exceeded by 2.5% with probability below 1e-6 (binomial tail).

    Single intervals miss in some cell of nearly half of all answers: the planted error that the same check catches.
    """
    given = answers(planned(sql))
    assert misses(given, truth, joint=True) <= 0.075
    assert misses(given, truth, joint=False) > 0.3


@pytest.mark.row(31)
def test_joint_intervals_of_independent_counts_are_those_of_the_paper() -> None:
    """ln(K/α)·b, and all hold with probability (1 − α/K)^K: 5.394·b at K = 11, with .0489 (lecture slides)."""
    assert log(11 / 0.05) == pytest.approx(5.394, abs=5e-4)
    assert pytest.approx(0.0489, abs=5e-5) == 1 - (1 - 0.05 / 11) ** 11
    made = planned(QUERIES[0])
    answer = present(made, declared_keys(made), [np.full(CELLS, ROWS)], [], raw=False)
    half = (answer.joint[1][1] - answer.joint[1][0]) / 2
    assert half == pytest.approx(10 * log(CELLS / 0.05), abs=1)


def test_a_union_bound_over_too_few_cells_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error: K is taken to be 2."""
    monkeypatch.setattr(presentation, "joint_level", lambda *_: Fraction(975, 1000))
    assert misses(answers(planned(QUERIES[0])), [ROWS], joint=True) > 0.075


@pytest.mark.row(100)
def test_the_estimate_is_that_of_the_joint_intervals() -> None:
    (each,), (joint,) = planned(QUERIES[0]).outputs, planned(QUERIES[0], joint=True).outputs
    assert each.plus_minus == pytest.approx(10 * log(20), abs=1)
    assert joint.plus_minus == pytest.approx(10 * log(20 * CELLS), abs=1)
    assert planned(QUERIES[0], joint=True).event == planned(QUERIES[0]).event


def test_one_interval_is_joint_already() -> None:
    made = planned("SELECT COUNT(*) FROM t")
    answer = present(made, declared_keys(made), [np.array([7])], [], raw=False)
    assert answer.joint == ()


@pytest.mark.parametrize(
    "sql", ["SELECT MEDIAN(x) FROM t", "SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC LIMIT 2"]
)
def test_selected_values_have_no_joint_intervals(sql: str) -> None:
    with pytest.raises(QueryError, match="HB585"):
        planned(sql, joint=True)
