"""LIMIT over declared groups: groups that may be empty do not fill it up."""

from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.visits_table import visits

from hubbub.core.schema import PrivacyUnit
from hubbub.sql.bind import bind
from hubbub.sql.finish import declared_keys
from hubbub.sql.plan import plan
from hubbub.sql.presentation import present

#: At ε = 1/10 a count is within ±30.
EPSILON = Fraction(1, 10)


def shown(text: str, *sums: list[int]) -> list[tuple[object, ...]]:
    """Answer a query about the four regions (North, South, Ça va, and an empty text) from these noisy sums."""
    query = bind(text, tables={"visits": visits(PrivacyUnit("patient", 1, 1))})
    made = plan(query, epsilon=EPSILON, delta=Fraction(0), salt="s", noise="laplace")
    assert len(made.measures) == len(sums)
    return present(made, declared_keys(made), [np.array(each) for each in sums], [], raw=False).rows


def test_groups_that_may_be_empty_do_not_fill_a_limit() -> None:
    text = "SELECT region, count(*) AS n FROM visits GROUP BY region"
    assert [n for _, n in shown(f"{text} ORDER BY n DESC LIMIT 3", [25, 500, 10, 90])] == [500, 90]
    assert [n for _, n in shown(f"{text} LIMIT 3", [25, 500, 10, 90])] == [500, 90]
    assert [n for _, n in shown(f"{text} LIMIT 1", [25, 500, 10, 90])] == [500]


@pytest.mark.parametrize("limit", [4, 1000])
def test_a_limit_that_chooses_nothing_leaves_nothing_out(limit: int) -> None:
    """Tools add a large LIMIT to every query: the answer is that without one."""
    text = "SELECT region, count(*) AS n FROM visits GROUP BY region ORDER BY n DESC"
    assert shown(f"{text} LIMIT {limit}", [25, 500, -10, 90]) == shown(text, [25, 500, -10, 90])
    assert len(shown(f"{text} LIMIT {limit}", [25, 500, -10, 90])) == 4


def test_without_a_limit_all_declared_groups_are_there() -> None:
    text = "SELECT region, count(*) AS n FROM visits GROUP BY region ORDER BY n"
    assert [n for _, n in shown(text, [25, 500, -10, 90])] == [0, 25, 90, 500]


def test_if_all_groups_may_be_empty_a_limit_keeps_them() -> None:
    text = "SELECT region, count(*) AS n FROM visits GROUP BY region ORDER BY n DESC LIMIT 2"
    assert [n for _, n in shown(text, [25, -3, 10, 4])] == [25, 10]


def test_an_average_of_nothing_is_not_the_largest() -> None:
    """The average of an empty group is a ratio of noises: ORDER BY would put it first or last."""
    text = "SELECT region, avg(age) AS a FROM visits GROUP BY region ORDER BY a DESC LIMIT 2"
    rows = shown(text, [1000, 2, 900, 1], [0, 900, -9000, -900])
    assert [region for region, _ in rows] == ["North", "Ça\u0301 va"]


@pytest.mark.parametrize("limit", ["", " LIMIT 4"])
def test_a_result_without_counts_keeps_its_groups(limit: str) -> None:
    assert len(shown(f"SELECT region, sum(age) FROM visits GROUP BY region{limit}", [0, 5, 9, 1])) == 4
