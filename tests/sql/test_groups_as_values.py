"""Groups of everybody's rows beside private rows are the values for each key that could be written instead."""

import pytest
from tests.fixtures.unit_tables import TABLES

from hubbub.errors import QueryError
from hubbub.sql.bind import bind_releases
from hubbub.sql.query import Queries

EQUAL = {
    "SELECT COUNT(*) FROM v WHERE code IN (SELECT code FROM v GROUP BY code HAVING COUNT(*) > 5)": (
        "SELECT COUNT(*) FROM v WHERE CASE WHEN v.code IS NULL THEN NULL WHEN "
        "(SELECT COUNT(*) FROM v AS g WHERE g.code = v.code) > 5 THEN TRUE ELSE FALSE END"
    ),
    "SELECT COUNT(*) FROM v JOIN (SELECT code, AVG(n) AS a FROM v GROUP BY 1) s ON s.code = v.code WHERE v.n > s.a": (
        "SELECT COUNT(*) FROM v WHERE v.n > (SELECT AVG(n) FROM v AS g WHERE g.code = v.code)"
    ),
    "WITH s AS (SELECT code, AVG(n) a FROM v GROUP BY 1) SELECT COUNT(n) FROM v, s WHERE s.code = v.code AND n > a": (
        "SELECT COUNT(n) FROM v WHERE n > (SELECT AVG(n) FROM v AS g WHERE g.code = v.code)"
    ),
    "WITH s AS (SELECT AVG(age) AS a FROM p) SELECT COUNT(*) FROM p, s WHERE p.age > s.a": (
        "SELECT COUNT(*) FROM p WHERE p.age > (SELECT AVG(age) FROM p)"
    ),
    "SELECT COUNT(*) FROM p CROSS JOIN (SELECT AVG(age) AS a, MAX(age) AS m FROM p) AS s WHERE p.age > s.a + s.m": (
        "SELECT COUNT(*) FROM p WHERE p.age > (SELECT AVG(age) FROM p) + (SELECT MAX(age) FROM p)"
    ),
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM v WHERE v.id = p.id GROUP BY v.id HAVING COUNT(*) > 1)": (
        "SELECT COUNT(*) FROM p WHERE CASE WHEN (SELECT COUNT(*) FROM v WHERE v.id = p.id) > 1 THEN TRUE ELSE FALSE END"
    ),
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM v WHERE v.id = p.id GROUP BY v.id HAVING COUNT(*) < 2)": (
        "SELECT COUNT(*) FROM p WHERE CASE WHEN (SELECT COUNT(*) FROM v WHERE v.id = p.id) < 2 AND "
        "(SELECT COUNT(*) FROM v WHERE v.id = p.id) > 0 THEN TRUE ELSE FALSE END"
    ),
    "SELECT COUNT(*) FROM p WHERE sex IN (SELECT code FROM v GROUP BY code HAVING COUNT(*) > 5 AND AVG(n) < 2)": (
        "SELECT COUNT(*) FROM p WHERE CASE WHEN p.sex IS NULL THEN NULL WHEN (SELECT COUNT(*) FROM v AS g WHERE "
        "g.code = p.sex) > 5 AND (SELECT AVG(n) FROM v AS g WHERE g.code = p.sex) < 2 THEN TRUE ELSE FALSE END"
    ),
    "SELECT COUNT(*) FROM p JOIN (SELECT code, COUNT(*) AS k FROM v GROUP BY 1) s ON s.code = p.sex WHERE k > 3": (
        "SELECT COUNT(*) FROM p WHERE (SELECT COUNT(*) FROM v AS g WHERE g.code = p.sex) > 3"
    ),
    # a column in a query within the groups belongs to that query
    "SELECT COUNT(*) FROM v WHERE code IN (SELECT code FROM v WHERE n IN (SELECT beds FROM w) GROUP BY code "
    "HAVING COUNT(*) > 2)": (
        "SELECT COUNT(*) FROM v WHERE CASE WHEN v.code IS NULL THEN NULL WHEN (SELECT COUNT(*) FROM v AS g WHERE "
        "g.code = v.code AND g.n IN (SELECT w.beds FROM w)) > 2 THEN TRUE ELSE FALSE END"
    ),
}
REFUSED = {
    "SELECT COUNT(*) FROM v WHERE code IN (SELECT code FROM v GROUP BY code)": "HB514",
    "SELECT COUNT(*) FROM v WHERE code IN (SELECT code FROM v GROUP BY code ORDER BY COUNT(*) DESC LIMIT 2)": "HB517",
    "SELECT COUNT(*) FROM v LEFT JOIN (SELECT code, COUNT(*) AS k FROM v GROUP BY 1) s ON s.code = v.code": "HB514",
    "SELECT COUNT(*) FROM v JOIN (SELECT code, COUNT(*) AS k FROM v GROUP BY 1) s ON s.k = v.n": "HB514",
    # which groups there are would be an answer of its own
    "SELECT COUNT(*) FROM v JOIN (SELECT code FROM v WHERE n > 2 GROUP BY code) s ON s.code = v.code": "HB514",
    # a row whose value is in no group has no match, but a number without a group is 0 or noise, and not NULL
    "SELECT COUNT(*) FROM p WHERE sex IN (SELECT code FROM v GROUP BY code HAVING COUNT(*) < 5)": "HB514",
    "SELECT COUNT(*) FROM v WHERE code IN (SELECT code FROM v WHERE n > 1 GROUP BY code HAVING AVG(n) < 2)": "HB514",
    "SELECT COUNT(*) FROM p JOIN (SELECT code, COUNT(*) AS k FROM v GROUP BY 1) s ON s.code = p.sex": "HB514",
    "SELECT COUNT(*) FROM p JOIN (SELECT code, COUNT(*) AS k FROM v GROUP BY 1) s ON s.code = sex WHERE k < 3": "HB514",
    "SELECT COUNT(*) FROM p JOIN (SELECT code, AVG(n) AS a FROM v GROUP BY 1) s ON s.code = sex WHERE age > a": "HB514",
    # the outer v is not the inner one
    "SELECT COUNT(*) FROM v WHERE code IN (SELECT v.code FROM v JOIN w ON w.beds = v.n GROUP BY v.code "
    "HAVING COUNT(*) > 2)": "HB514",
    # the groups of one row are several
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM v WHERE v.code = v.code GROUP BY v.code HAVING COUNT(*) > 1)": (
        "HB739"
    ),
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM v WHERE v.code = v.code AND v.id = p.id GROUP BY v.code "
    "HAVING COUNT(*) > 1)": "HB739",
    "SELECT COUNT(*) FROM v JOIN (SELECT day, COUNT(*) AS k FROM v GROUP BY 1) s ON s.day = v.day WHERE k > 1": "HB740",
}


def shape(text: str) -> list[object]:
    """List the aggregates and keys of the releases of a statement, without the numbers in names."""
    query = bind_releases(text, tables=TABLES)
    parts = query.parts if isinstance(query, Queries) else (query,)
    return [
        ([a.function for a in part.aggregates], [key.name.rpartition("_")[0] for key in part.keys]) for part in parts
    ]


@pytest.mark.parametrize("text", EQUAL)
def test_groups_are_bound_as_values_for_each_key(text: str) -> None:
    assert shape(text) == shape(EQUAL[text])


@pytest.mark.parametrize("text", EQUAL)
def test_each_has_as_many_releases_as_it_reads_values(text: str) -> None:
    query = bind_releases(text, tables=TABLES)
    within = "EXISTS" in text  # one person's rows: no release
    assert (query.values if isinstance(query, Queries) else 0) == (
        0 if within else 2 if "MAX" in text or "AND AVG" in text else 1
    )


@pytest.mark.parametrize("text", REFUSED)
def test_groups_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(QueryError) as refused:
        bind_releases(text, tables=TABLES)
    assert refused.value.code == REFUSED[text]
