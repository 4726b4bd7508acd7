"""Descriptions of noisy sums: equal for other spellings of one query, different for different queries."""

import json
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.sql.bind import bind
from hubbub.sql.measured import MOST_SUMS, describe, measured
from hubbub.sql.plan import plan
from hubbub.sql.query import Query


def table(name: str, unit: PrivacyUnit | None = None, *, rows: bool = False) -> Table:
    columns = (
        Column("person", Kind.INTEGER),
        Column("site", Kind.TEXT, values=("a", "b")),
        Column("age", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(99)), required=True),
        Column("cost", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(50))),
    )
    return Table(name, columns, unit or PrivacyUnit(None) if not rows else PrivacyUnit("person", groups=2, rows=3))


TABLES = {"v": table("v"), "w": table("w"), "p": table("p", rows=True)}


def described(text: str, **options: Any) -> dict[str, Any] | None:
    query = bind(text, tables=TABLES)
    assert isinstance(query, Query)
    made = plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s", **options)
    return measured(describe(made, (None, None)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "SELECT COUNT(*) FROM v WHERE age > 3 AND site = 'a'",
            "select count(*) as n from v x where 'a' = x.site and 3 < x.age",
        ),
        ("SELECT COUNT(*) FROM v WHERE age > 3", "SELECT COUNT(*) FROM (SELECT age AS z FROM v) AS q WHERE z > 3"),
        ("SELECT COUNT(*) FROM v WHERE age > 3", "WITH q AS (SELECT * FROM v WHERE age > 3) SELECT COUNT(*) FROM q"),
        ("SELECT COUNT(*) FROM v", "SELECT COUNT(age) FROM v"),
        (
            "SELECT site, SUM(cost) FROM v GROUP BY site",
            "SELECT SUM(x), s FROM (SELECT site AS s, cost AS x FROM v) GROUP BY s",
        ),
    ],
)
def test_other_spellings_have_one_description(one: str, other: str) -> None:
    first, second = described(one), described(other)
    assert first is not None
    assert first == second


#: No two of these have the same description.
DIFFERENT = (
    "SELECT COUNT(*) FROM v",
    "SELECT COUNT(cost) FROM v",
    "SELECT COUNT(*) FROM w",
    "SELECT COUNT(*) FROM v WHERE age > 3",
    "SELECT COUNT(*) FROM v WHERE age >= 3",
    "SELECT COUNT(*) FROM v WHERE cost > 3",
    "SELECT COUNT(*) FROM v WHERE site = 'a'",
    "SELECT COUNT(*) FILTER (WHERE site = 'a') FROM v",
    "SELECT site, COUNT(*) FROM v GROUP BY site",
    "SELECT SUM(cost) FROM v",
    "SELECT SUM(LEAST(cost, 40)) FROM v",
    "SELECT SUM(cost + 1) FROM v",
    "SELECT SUM(age) FROM v",
    "SELECT COUNT(*) FROM p",
    "SELECT COUNT(DISTINCT person) FROM p",
    "SELECT COUNT(*) FROM p WHERE age > 3",
)


def test_different_queries_have_different_descriptions() -> None:
    texts = {text: json.dumps(described(text), sort_keys=True) for text in DIFFERENT}
    assert "null" not in texts.values()
    for one, other in combinations(DIFFERENT, 2):
        assert texts[one] != texts[other], (one, other)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM (SELECT SUM(cost) OVER (PARTITION BY person) AS s FROM p) WHERE s > 3",
        "SELECT COUNT(*) FROM (SELECT age FROM p UNION ALL SELECT age FROM p)",
        "SELECT MEDIAN(age) FROM v",
        "SELECT COUNT(*) FROM (SELECT person, SUM(cost) AS c FROM p GROUP BY person) WHERE c > 3",
        "SELECT COUNT(*) FROM p AS a JOIN p AS b ON a.person = b.person",
    ],
)
def test_what_has_no_known_meaning_has_no_description(text: str) -> None:
    assert described(text) is None


def test_long_releases_are_no_sources() -> None:
    cells = 100 * 51 * 2
    text = "SELECT age, cost, site, COUNT(*), SUM(age), SUM(cost) FROM v GROUP BY age, cost, site"
    assert cells * 3 > MOST_SUMS
    assert described(text) is None
