"""Grouping sets over keys that nobody declared become one query for each set."""

from fractions import Fraction

import pytest

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.errors import QueryError
from hubbub.sql.bind import bind_releases
from hubbub.sql.expressions import Literal
from hubbub.sql.grouping_sets import ORDER, by_set
from hubbub.sql.plan import plan
from hubbub.sql.query import Queries, Query

VISITS = Table(
    "visits",
    (
        Column("id", Kind.INTEGER),
        Column("region", Kind.TEXT, values=("n", "s")),
        Column("ward", Kind.TEXT),
        Column("cost", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(9))),
    ),
    PrivacyUnit("id", 1, 1, "person"),
)
DELTA = Fraction(1, 10**6)


def bound(text: str) -> Query | Queries:
    return bind_releases(text, tables={"visits": VISITS})


def parts(text: str) -> Queries:
    query = bound(text)
    assert isinstance(query, Queries)
    return query


@pytest.mark.parametrize(
    ("sets", "alone"),
    [
        ("ROLLUP (region, ward)", ("region, ward", "region", None)),
        ("CUBE (ward, region)", ("ward, region", "ward", "region", None)),
        ("GROUPING SETS ((ward), (cost, ward))", ("ward", "cost, ward")),
        ("region, ROLLUP (ward)", ("region, ward", "region")),
    ],
)
def test_each_set_is_a_query_of_its_own(sets: str, alone: tuple[str | None, ...]) -> None:
    """Relations, measures and price of each part are those of the query that an analyst would write for its set."""
    query = parts(f"SELECT COUNT(*), AVG(cost) FROM visits GROUP BY {sets}")
    assert query.together is not None
    assert (query.together.count, len(query.parts)) == (len(alone), len(alone))
    for part, keys in zip(query.parts, alone, strict=True):
        written = bound("SELECT COUNT(*), AVG(cost) FROM visits" + (f" GROUP BY {keys}" if keys else ""))
        assert isinstance(written, Query)
        mine, right = (plan(each, epsilon=Fraction(1), delta=DELTA, salt="s") for each in (part, written))
        assert mine.event == right.event
        assert [each.sensitivity for each in mine.measures] == [each.sensitivity for each in right.measures]
        assert [type(each) for each in mine.groups] == [type(each) for each in right.groups]
        assert (mine.threshold is None) == (right.threshold is None)


def test_missing_keys_are_null_and_grouping_is_one() -> None:
    query = parts("SELECT ward, GROUPING(ward), COUNT(*) FROM visits GROUP BY ROLLUP (ward) HAVING GROUPING(ward) = 0")
    whole = query.parts[1]
    assert [expr for _, expr in whole.select][:2] == [Literal(None, Kind.TEXT), Literal(1, Kind.INTEGER)]
    assert whole.keys == ()
    assert "grouping:" not in repr(query.parts)


def test_an_order_that_is_not_shown_is_a_hidden_column() -> None:
    query = parts("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) ORDER BY SUM(cost), n LIMIT 5")
    assert query.together is not None
    assert [name for name, _ in query.parts[0].select] == ["ward", "n", f"{ORDER}0"]
    assert (query.together.columns, query.together.limit) == (2, 5)
    assert not any(part.order for part in query.parts)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, COUNT(*) FROM visits GROUP BY ROLLUP (region)",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
        "SELECT COUNT(*) FROM visits GROUP BY GROUPING SETS ((region), ())",
    ],
)
def test_other_queries_stay_one_release(text: str) -> None:
    query = bound(text)
    assert isinstance(query, Query)
    assert by_set(query) is query


def test_the_sets_of_a_part_of_a_query_are_refused_when_it_is_planned() -> None:
    query = parts(
        "SELECT a.ward, a.n, b.n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)) AS a, "
        "(SELECT COUNT(*) AS n FROM visits) AS b"
    )
    assert query.together is None
    with pytest.raises(QueryError, match="HB564"):
        plan(query.parts[0], epsilon=Fraction(1), delta=DELTA, salt="s")
