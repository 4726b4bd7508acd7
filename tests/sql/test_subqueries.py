"""EXISTS, IN and scalar subqueries mean what SQL says, and see the rows of one unit only."""

import random
from dataclasses import replace

import duckdb
import pytest
from tests.fixtures.unit_tables import TABLES, bound, check_neighbors, filled

from hubbub.errors import QueryError
from hubbub.sql import fanout, render
from hubbub.sql.bind import bind
from hubbub.sql.bind_match import Match

#: Conditions on a row of people (p) or visits (v).
ON_PEOPLE = """
EXISTS (SELECT 1 FROM v WHERE v.id = p.id AND v.code = 'A')
NOT EXISTS (SELECT * FROM v WHERE v.id = p.id AND v.code = 'A')
EXISTS (SELECT 1 FROM v WHERE v.id = p.id AND code = 'A') AND NOT EXISTS (SELECT 1 FROM v WHERE p.id = v.id AND n = 1)
EXISTS (SELECT DISTINCT code FROM v WHERE v.id = p.id AND p.age > 2)
EXISTS (SELECT 1 FROM v WHERE v.id = p.id AND v.n = p.age) OR sex = 'f'
EXISTS (SELECT 1 FROM v WHERE v.id = p.id AND v.n < p.age)
NOT EXISTS (SELECT 1 FROM v JOIN w USING (code) WHERE v.id = p.id AND zone = 'y')
EXISTS (SELECT 1 FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id) s WHERE s.id = p.id AND k > 2)
EXISTS (SELECT 1 FROM v WHERE v.id = p.id AND EXISTS (SELECT 1 FROM v u WHERE u.id = v.id AND u.day > v.day))
p.id IN (SELECT id FROM v WHERE code = 'A')
p.id NOT IN (SELECT id FROM v WHERE code = 'A')
p.id IN (SELECT beds FROM w)
p.id NOT IN (SELECT beds FROM w)
p.id NOT IN (SELECT beds FROM w WHERE beds IS NOT NULL)
p.id IN (SELECT id FROM v GROUP BY id HAVING COUNT(*) > 2)
(SELECT COUNT(*) FROM v WHERE v.id = p.id) = 0
(SELECT MAX(cost) FROM v WHERE v.id = p.id AND code = 'B') > 0
COALESCE((SELECT SUM(n) FROM v WHERE v.id = p.id), -1) < 2
(SELECT COUNT(*) + COUNT(n) FROM v WHERE v.id = p.id AND ok) > 1
age > (SELECT MAX(beds) FROM w)
age > (SELECT COUNT(*) FROM w WHERE zone = 'nowhere')
EXISTS (SELECT 1 FROM w WHERE zone = 'nowhere') IS FALSE
""".strip().splitlines()
ON_VISITS = """
EXISTS (SELECT 1 FROM v b WHERE b.id = v.id AND b.day < v.day)
EXISTS (SELECT 1 FROM v b WHERE b.id = v.id AND v.day >= b.day AND b.code = v.code AND b.n = 1)
EXISTS (SELECT 1 FROM v b WHERE b.id = v.id AND b.code <> v.code)
NOT EXISTS (SELECT 1 FROM v b WHERE b.id = v.id AND v.n <> b.n)
EXISTS (SELECT 1 FROM v b WHERE b.id = v.id AND b.cost + 1 > v.cost)
v.n IN (SELECT n FROM v b WHERE b.id = v.id AND b.code = 'A')
v.n NOT IN (SELECT n FROM v b WHERE b.id = v.id AND b.code = 'A')
(v.n IN (SELECT n FROM v b WHERE b.id = v.id AND b.code = 'A')) IS NULL
(v.n NOT IN (SELECT n FROM v b WHERE b.id = v.id AND n IS NOT NULL)) IS NULL
CASE WHEN v.n IN (SELECT b.n + 1 FROM v b WHERE b.id = v.id) THEN ok ELSE TRUE END
(v.id, code) IN (SELECT id, code FROM v b WHERE n = 1)
code IN (SELECT code FROM w)
code NOT IN (SELECT code FROM w)
code NOT IN (SELECT code FROM w WHERE zone <> 'z')
code NOT IN (SELECT code FROM w WHERE zone = 'nowhere')
EXISTS (SELECT 1 FROM w WHERE w.code = v.code AND zone = 'y') OR n = 1
EXISTS (SELECT 1 FROM w WHERE w.code = v.code AND beds > v.n)
n > (SELECT AVG(n) FROM v b WHERE b.id = v.id)
n > (SELECT MIN(n) FROM v b WHERE b.id = v.id AND b.code = v.code)
day = (SELECT MAX(day) FROM v b WHERE b.id = v.id)
n < (SELECT SUM(beds) FROM (SELECT code, LEAST(beds, 9) AS beds FROM w WHERE beds > 0) w WHERE w.code = v.code)
""".strip().splitlines()
BEDS, SAME = "(SELECT MIN(beds) FROM w)", "FROM v WHERE v.id = p.id"
TEXTS = [f"SELECT COUNT(*) FROM p WHERE {each}" for each in ON_PEOPLE]
TEXTS += [f"SELECT COUNT(*) FROM v WHERE {each}" for each in ON_VISITS]


@pytest.fixture(scope="module")
def worlds() -> list[duckdb.DuckDBPyConnection]:
    """Several tables, without the rows that belong to nobody."""
    connections = [filled(random.Random(seed)) for seed in range(4)]
    for connection in connections:
        connection.execute("DELETE FROM p WHERE id IS NULL; DELETE FROM v WHERE id IS NULL")
    return connections


@pytest.mark.parametrize("text", TEXTS)
def test_answers_are_those_of_the_engine(text: str, worlds: list[duckdb.DuckDBPyConnection]) -> None:
    """The oracle is DuckDB on the same text."""
    sql = render.relation(bound(text))
    for connection in worlds:
        assert connection.execute(f"SELECT count(*) FROM ({sql})").fetchall() == connection.execute(text).fetchall()


def test_removing_a_unit_removes_its_rows_and_changes_no_others() -> None:
    shown = [text.replace("COUNT(*)", "COUNT(age)" if " FROM p " in text else "COUNT(day)", 1) for text in TEXTS]
    check_neighbors(shown, filled(random.Random(7)))


def test_a_subquery_that_sees_other_units_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the join compares no privacy IDs."""
    right = Match.group
    monkeypatch.setattr(Match, "group", lambda self, *rest: right(replace(self, unit=False), *rest))
    text = "SELECT COUNT(day) FROM v WHERE EXISTS (SELECT 1 FROM v b WHERE b.id = v.id AND b.n = v.n)"
    with pytest.raises(AssertionError):
        check_neighbors([text], filled(random.Random(7)))


def test_a_subquery_neither_multiplies_nor_truncates_rows() -> None:
    for text in TEXTS:
        if " JOIN w " in text:
            continue  # which multiplies visits by itself
        query = bind(text, tables=TABLES)
        assert fanout.contribution(query.relation) == fanout.contribution(
            bind(text.split(" WHERE ")[0], tables=TABLES).relation
        )
        assert "Truncate" not in repr(bound(text)), text


def test_row_level_tables_can_ask_public_tables_only() -> None:
    text = "SELECT COUNT(*) FROM r WHERE code IN (SELECT code FROM w) OR EXISTS (SELECT 1 FROM w WHERE w.beds = r.n)"
    connection = filled(random.Random(3))
    seen = connection.execute(f"SELECT count(*) FROM ({render.relation(bound(text))})").fetchall()
    assert seen == connection.execute(text).fetchall()


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        # the same text inside and outside of a subquery has two values
        (f"SELECT COUNT(*) FROM v WHERE {BEDS} IN (SELECT n + {BEDS} FROM v b WHERE b.id = v.id)", "HB514", "join"),
        (f"SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 {SAME} AND n > {BEDS} AND age = {BEDS})", "HB514", "join"),
        (f"SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 {SAME} AND n > {BEDS} AND age + {BEDS} = n)", "HB514", "join"),
        (f"SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 {SAME} AND n > {BEDS} AND age + {BEDS} < n)", "HB514", "join"),
        ("SELECT COUNT(*) FROM p WHERE age > (SELECT AVG(n) FROM v WHERE v.n < p.age)", "HB740", "parameter"),
        ("SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM v WHERE v.n = p.age)", "HB740", "privacy IDs"),
        ("SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM v WHERE n = 1)", "HB740", "privacy IDs"),
        ("SELECT COUNT(*) FROM p WHERE age IN (SELECT n FROM v)", "HB740", "privacy IDs"),
        ("SELECT COUNT(*) FROM p WHERE age NOT IN (SELECT id FROM v)", "HB514", "id IN (SELECT id"),
        ("SELECT COUNT(*) FROM p WHERE id IN (SELECT n FROM v)", "HB514", "id IN (SELECT id"),
        ("SELECT COUNT(*) FROM p WHERE id IN (SELECT id, n FROM v)", "HB514", "as many"),
        ("SELECT COUNT(*) FROM p WHERE EXISTS (SELECT COUNT(*) FROM v WHERE v.id = p.id)", "HB739", "FROM clause"),
        ("SELECT COUNT(*) FROM p WHERE (SELECT n FROM v WHERE v.id = p.id) = 1", "HB739", "MAX"),
        ("SELECT COUNT(*) FROM p WHERE (SELECT MAX(n) FROM v WHERE v.id = p.id AND v.n < p.age) = 1", "HB739", "MAX"),
        ("SELECT COUNT(*) FROM p WHERE (SELECT MAX(n) FROM v WHERE v.id = p.id AND p.age = 1) = 1", "HB739", "CASE"),
        (
            "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM v WHERE v.id = p.id AND n > age AND n < age)",
            "HB738",
            "LAG",
        ),
        ("SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM v WHERE v.id = p.id AND n + age = 3)", "HB738", "LAG"),
        ("SELECT COUNT(*) FROM p WHERE EXISTS (SELECT zzz FROM v WHERE v.id = p.id)", "HB506", "code"),
        ("SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM r WHERE r.n = p.age)", "HB514", "on its own"),
        ("SELECT COUNT(*) FROM r WHERE EXISTS (SELECT 1 FROM r s WHERE s.n = r.n)", "HB738", "public"),
        ("SELECT COUNT(*) FROM r WHERE EXISTS (SELECT 1 FROM v WHERE v.n = r.n)", "HB514", "on its own"),
        (
            "SELECT COUNT(*) FROM p LEFT JOIN v ON p.id = v.id AND EXISTS (SELECT 1 FROM w WHERE w.beds = p.age)",
            "HB514",
            "WHERE",
        ),
    ],
)
def test_refusals_name_the_reason_and_the_remedy(text: str, code: str, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        bind(text, tables=TABLES)
    assert (refused.value.code, says in refused.value.remedy) == (code, True), str(refused.value)
