"""Rows whose unit is NULL belong to nobody who could be protected: they count nowhere."""

from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.visits_table import arrays, connect, fill, run, visits

from hubbub.analyses.rows import Rows
from hubbub.core.schema import PrivacyUnit
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.finish import exact_results
from hubbub.sql.plan import plan

#: Two patients with one visit each, and three visits of nobody.
ROWS = [
    (1, "North", 10.0, 50, True),
    (2, "South", 20.0, 60, False),
    (None, "North", 10.0, 50, True),
    (None, "South", 20.0, 60, False),
    (None, "North", 30.0, 70, True),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT count(*) FROM visits", [2]),
        ("SELECT count(DISTINCT patient) FROM visits", [2]),
        ("SELECT count(DISTINCT age) FROM visits", [2]),
        ("SELECT sum(flag::INTEGER) FROM visits", [1]),
        ("SELECT region, count(*) FROM visits GROUP BY region", [1, 1, 0, 0]),
        ("SELECT count(*) FROM (SELECT patient, max(age) AS a FROM visits GROUP BY patient) AS s", [2]),
    ],
)
def test_rows_without_an_owner_are_not_counted(text: str, expected: list[int]) -> None:
    table = visits(PrivacyUnit("patient", groups=4, rows=3))
    made = plan(bind(text, tables={"visits": table}), epsilon=Fraction(1), delta=Fraction(0), salt="s")
    with connect() as connection:
        fill(connection, ROWS)
        measures, _ = exact_results(made, run(connection, made))
    assert np.asarray(measures[0]).tolist() == expected


def test_rows_without_an_owner_are_not_read_for_graphs_and_own_functions() -> None:
    """There the scan alone keeps them out: all of nobody's rows together would be one more unit."""
    table = visits(PrivacyUnit("patient", groups=4, rows=3))
    rows = Rows(table, tuple(each for each in table.columns if each.name in ("age", "cost")), RenderOptions("s"))
    with connect() as connection:
        fill(connection, ROWS)
        taken = rows.take(arrays(connection, rows.sql))
    assert taken.owners is not None
    assert sorted(taken.owners.tolist()) == [0, 1]
    assert sorted(taken.columns["age"].tolist()) == [50.0, 60.0]
    assert sorted(taken.columns["cost"].tolist()) == [10.0, 20.0]
