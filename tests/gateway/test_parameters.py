"""The types of parameters that a client does not state."""

import pytest

from hubbub.gateway import parameters

COLUMNS = {"age": 20, "region": 25, "cost": 701, "day": 1082}


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT COUNT(*) FROM v WHERE age > $1", [20]),
        ("SELECT COUNT(*) FROM v WHERE age BETWEEN $1 AND $2", [20, 20]),
        ("SELECT COUNT(*) FROM v WHERE region IN ($1, $2)", [25, 25]),
        ("SELECT COUNT(*) FROM v WHERE v.cost < $2 AND day = $1", [1082, 701]),
        ("SELECT COUNT(*) FROM v WHERE age > -$1", [20]),
        ("SELECT $1::int", [23]),
        ("SELECT COUNT(*) FROM v LIMIT $1", [20]),
        ("SELECT COUNT(*) FROM v WHERE $1 = $2", [25, 25]),
        ("SELECT COUNT( $1", [25]),
        ("SELECT '$1'", []),
    ],
)
def test_a_parameter_has_the_type_of_what_it_is_compared_with(sql: str, kinds: list[int]) -> None:
    assert parameters.types(sql, [], COLUMNS) == kinds


def test_a_stated_type_counts() -> None:
    assert parameters.types("SELECT COUNT(*) FROM v WHERE age > $1", [1700], COLUMNS) == [1700]
    assert parameters.types("SELECT COUNT(*) FROM v WHERE age > $1", [0], COLUMNS) == [20]
