"""Compare exact results on neighbors with the stated sensitivity."""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.fixtures.visits_table import connect, fill, run, visits

from hubbub.audit.sensitivity import check_sensitivity
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.sql.bind import bind
from hubbub.sql.measures import Sensitivity
from hubbub.sql.plan import Plan, plan

ROWS = [(n, "North" if n % 2 else "South", 200.0, 110, True) for n in range(6)]
QUERIES = {
    "sums": "SELECT region, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY region",
    "quantile": "SELECT MEDIAN(age) AS m FROM visits",
    "top": "SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2",
    "found": "SELECT age, COUNT(*) AS n FROM visits GROUP BY age",
}


def planned(text: str, relation: Relation = Relation.ADD_REMOVE) -> Plan:
    table = visits(PrivacyUnit("patient", groups=1, rows=1), relation)
    delta = Fraction(1, 10**6) if "age," in text else Fraction(0)
    return plan(bind(text, tables={"visits": table}), epsilon=Fraction(1), delta=delta, salt="s")


def halved(made: Plan) -> Plan:
    """Halve every stated sensitivity."""
    measures = tuple(
        replace(each, sensitivity=Sensitivity(each.sensitivity.l1 // 2, each.sensitivity.l2_squared // 4))
        for each in made.measures
    )
    return replace(made, measures=measures)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("name", QUERIES)
def test_neighbors_within_the_stated_sensitivity_are_not_complained_of(name: str, relation: Relation) -> None:
    made, connection = planned(QUERIES[name], relation), connect()
    fill(connection, ROWS)
    whole = run(connection, made)
    fill(connection, ROWS[1:])
    fewer = run(connection, made)
    assert check_sensitivity(made, whole, fewer) == []
    assert check_sensitivity(made, fewer, whole) == []
    assert check_sensitivity(made, whole, fewer, nothing=True) != []
    assert check_sensitivity(made, whole, whole, nothing=True) == []


def undeclared(text: str, relation: Relation) -> Plan:
    """Plan a query by an age without bounds, so that its groups are selected."""
    table = visits(PrivacyUnit("patient", groups=5, rows=1), relation)
    columns = tuple(replace(each, bounds=None) if each.name == "age" else each for each in table.columns)
    query = bind(text, tables={"visits": replace(table, columns=columns)})
    return plan(query, epsilon=Fraction(1), delta=Fraction(1, 10**6), salt="s", noise="gaussian")


def test_null_is_a_group_beside_that_of_zero() -> None:
    """A unit whose weight is split over both moves each by its part, and not one group by the sum of both."""
    made = undeclared("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", Relation.REPLACE)
    connection = connect()
    fill(connection, [*ROWS, *((9, "North", 1.0, age, True) for age in (None, 0))])
    whole = run(connection, made)
    fill(connection, [*ROWS, (9, "North", 1.0, 7, True)])
    assert check_sensitivity(made, whole, run(connection, made)) == []


def test_a_table_without_groups_is_compared() -> None:
    made = undeclared("SELECT age, MEDIAN(cost) AS m FROM visits GROUP BY age", Relation.ADD_REMOVE)
    connection = connect()
    fill(connection, [])
    nobody = run(connection, made)
    assert check_sensitivity(made, nobody, nobody) == []


def test_a_sensitivity_that_is_halved_is_complained_of() -> None:
    for name in ("sums", "found"):
        made, connection = planned(QUERIES[name]), connect()
        fill(connection, ROWS)
        whole = run(connection, made)
        fill(connection, ROWS[1:])
        assert check_sensitivity(halved(made), whole, run(connection, made)) != []


def test_several_units_may_move_several_times_as_far_and_no_further() -> None:
    made, connection = planned(QUERIES["sums"]), connect()
    fill(connection, ROWS)
    whole = run(connection, made)
    fill(connection, ROWS[3:])
    fewer = run(connection, made)
    assert check_sensitivity(made, whole, fewer, units=3) == []
    assert check_sensitivity(made, whole, fewer, units=2) != []
