"""A condition on ROW_NUMBER bounds the rows of a unit, and so the noise."""

import random
from fractions import Fraction

import pytest
from tests.fixtures.unit_tables import TABLES, bound, filled, owned_rows

from hubbub.sql import fanout
from hubbub.sql.bind import bind
from hubbub.sql.numbered import most_rows
from hubbub.sql.plan import plan

NUMBER = "ROW_NUMBER() OVER (PARTITION BY id ORDER BY day)"
#: What a subquery keeps, and how many rows of a unit that is at most.
KEPT = {
    f"SELECT id, n FROM v QUALIFY {NUMBER} = 1": 1,
    f"SELECT id, n FROM v QUALIFY {NUMBER} <= 2": 2,
    f"SELECT id, n FROM v QUALIFY {NUMBER} < 3 AND ok": 2,
    f"SELECT id, n FROM v QUALIFY {NUMBER} IN (1, 3)": 2,
    f"SELECT id, n FROM v QUALIFY {NUMBER} BETWEEN 2 AND 3": 2,
    f"SELECT id, n FROM (SELECT id, n, {NUMBER} AS k FROM v) s WHERE k = 2": 1,
    f"SELECT id, n FROM (SELECT id, n, {NUMBER} AS k FROM v) s WHERE k <= 2 AND k <= 1": 1,
    "SELECT DISTINCT ON (id) id, n FROM v ORDER BY id, day": 1,
    f"SELECT id, n FROM v QUALIFY {NUMBER} > 1": None,
    f"SELECT id, n FROM v QUALIFY {NUMBER} = 1 OR ok": None,
    f"SELECT id, n FROM v QUALIFY {NUMBER} <= n": None,
    f"SELECT id, n FROM v QUALIFY {NUMBER} <= 1.5": None,
    "SELECT id, n FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY id, code ORDER BY day) = 1": None,
    "SELECT id, n FROM v QUALIFY RANK() OVER (PARTITION BY id ORDER BY day) = 1": None,
    f"SELECT id, n FROM (SELECT id, n, {NUMBER} % 2 AS k FROM v) s WHERE k = 1": None,
    f"SELECT id, n FROM (SELECT id, n, {NUMBER} AS k FROM v) a JOIN w ON a.n = w.beds WHERE k = 1": None,
}


@pytest.mark.parametrize("select", KEPT)
def test_no_unit_has_more_rows_than_the_numbers_allow(select: str) -> None:
    text = f"SELECT COUNT(n) FROM ({select}) AS q"
    relation = bind(text, tables=TABLES).relation
    assert most_rows(relation) == KEPT[select]
    most = max(
        (
            sum(rows.values())
            for seed in range(4)
            for rows in owned_rows(bound(text), filled(random.Random(seed))).values()
        ),
        default=0,
    )
    if KEPT[select] is not None:
        assert most == KEPT[select]  # it is reached


def test_the_noise_is_that_of_one_row() -> None:
    first = bind(
        f"SELECT code, COUNT(*) FROM (SELECT id, code FROM v QUALIFY {NUMBER} = 1) GROUP BY code", tables=TABLES
    )
    bounds = fanout.contribution(first.relation)
    assert (bounds.groups, bounds.rows) == (1, 1)
    planned = plan(first, epsilon=Fraction(1), delta=Fraction(0), salt="s")
    assert [each.sensitivity.l1 for each in planned.measures] == [1]
    two = bind(f"SELECT COUNT(*) FROM (SELECT id, code FROM v QUALIFY {NUMBER} <= 2) GROUP BY code", tables=TABLES)
    planned = plan(two, epsilon=Fraction(1), delta=Fraction(0), salt="s")
    assert [each.sensitivity.l1 for each in planned.measures] == [2]
