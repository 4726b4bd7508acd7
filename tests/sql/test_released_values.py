"""Noisy values of releases inside later queries of one statement: what is accepted, and what a value cannot decide."""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.fixtures.unit_tables import TABLES

from hubbub.audit.replan import plan_again
from hubbub.core.schema import Column, Kind
from hubbub.curator.queries import PreparedQueries
from hubbub.curator.question import Question
from hubbub.engines.registry import ENGINES
from hubbub.errors import QueryError
from hubbub.sql.bind import bind_releases
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.plan import Plan, plan
from hubbub.sql.query import Queries

ANSWERED = {
    "SELECT COUNT(*) FROM p WHERE age > (SELECT AVG(age) FROM p)": 1,
    "SELECT sex, COUNT(*) FROM p WHERE age > (SELECT AVG(age) FROM p WHERE sex = 'f') GROUP BY sex": 1,
    "SELECT COUNT(*) FROM p WHERE age > (SELECT AVG(age) FROM p) OR age < (SELECT AVG(age) FROM p)": 1,
    "SELECT COUNT(*) FROM p WHERE age > (SELECT AVG(age) FROM p WHERE age < (SELECT MAX(age) FROM p))": 2,
    "SELECT SUM(CASE WHEN n > (SELECT 0.5 * AVG(n) FROM v) THEN 1 ELSE 0 END) FROM v": 1,
    "SELECT age > (SELECT AVG(age) FROM p) AS older, COUNT(*) FROM p GROUP BY 1": 1,
    "SELECT AVG(LEAST(GREATEST(n - LEAST(GREATEST((SELECT AVG(n) FROM v), 0), 9), -1), 1)) FROM v": 1,
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id) t WHERE k > (SELECT COUNT(*) FROM v) / 10": 1,
    "SELECT COUNT(*) FROM p JOIN v USING (id) WHERE n > (SELECT AVG(n) FROM v)": 1,
    "SELECT COUNT(*) / (SELECT COUNT(*) FROM p) AS share FROM p WHERE age > (SELECT AVG(age) FROM p)": 1,
    "WITH m AS (SELECT AVG(age) AS a FROM p) SELECT COUNT(*) FROM p WHERE age > (SELECT a FROM m)": 1,
}
REFUSED = {
    "SELECT COUNT(*) FROM p WHERE sex = (SELECT MODE(sex) FROM p)": "HB785",
    "SELECT COUNT(*) FROM p WHERE age > (SELECT MAX(k) FROM (SELECT sex, COUNT(*) AS k FROM p GROUP BY 1) t)": "HB785",
    "SELECT COUNT(*) FROM p WHERE age > (SELECT COUNT(*) FROM p GROUP BY sex)": "HB785",
    "SELECT COUNT(*) FROM (SELECT id, MAX(n) > (SELECT AVG(n) FROM v) AS b FROM v GROUP BY id) t WHERE b": "HB786",
    "SELECT SUM(n - (SELECT AVG(n) FROM v)) FROM v": "HB515",
    "SELECT COUNT(*) FROM p WHERE age > (SELECT AVG(n) FROM v WHERE v.n < p.age)": "HB740",
    "SELECT COUNT(*) FROM p WHERE age IN (SELECT AVG(age) FROM p)": "HB512",
    "SELECT COUNT(*) FROM p WHERE "
    + " AND ".join(f"age > (SELECT AVG(age) FROM p WHERE age < {i})" for i in range(1, 17)): "HB754",
}
NUMBERS = (None, Fraction(0), Fraction(-1, 3), Fraction(10) ** 300, -(Fraction(10) ** 300), Fraction(2) ** 53)


def releases(text: str) -> Queries:
    """Bind a statement that has several releases."""
    queries = bind_releases(text, tables=TABLES)
    assert isinstance(queries, Queries)
    return queries


@pytest.mark.parametrize(("text", "values"), ANSWERED.items())
def test_a_value_about_everybody_is_a_release_of_its_own(text: str, values: int) -> None:
    queries = releases(text)
    assert queries.values == values
    assert all(not part.keys and len(part.select) == 1 for part in queries.parts[:values])


@pytest.mark.parametrize(("text", "code"), REFUSED.items())
def test_other_values_are_refused_before_the_charge(text: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        plan_again(Question(text, epsilon=1), TABLES, salt="", hashing="engine")
    assert caught.value.code == code


def facts(planned: Plan) -> list[object]:
    """List all that a plan decides, with the lengths of its statements instead of their texts."""
    parts = [planned.event, planned.limits, planned.groups, planned.measures, planned.choices, planned.derivation]
    return [*parts, planned.expected, planned.outputs, {name: len(sql) for name, sql in planned.sql.items()}]


@pytest.mark.parametrize("text", ANSWERED)
def test_the_plan_is_the_same_for_all_values(text: str) -> None:
    queries = releases(text)
    for entry in ENGINES:
        dialect = entry.load_dialect()
        for part in queries.parts:
            seen = [
                plan(
                    part,
                    epsilon=Fraction(1),
                    delta=Fraction(0),
                    salt="s",
                    dialect=dialect.reading([number] * queries.values),
                )
                for number in NUMBERS
            ]
            assert all(facts(each) == facts(seen[0]) for each in seen)
        texts = {sql for each in seen for sql in each.sql.values()}
        assert len(texts) in (len(NUMBERS), 1), "the last query reads a value, or the one over its result does"


def test_a_column_or_a_text_of_the_same_name_is_not_the_value() -> None:
    name = "$released0"
    column = Column(name, Kind.INTEGER, bounds=next(c for c in TABLES["p"].columns if c.name == "age").bounds)
    tables = {**TABLES, "p": replace(TABLES["p"], columns=(*TABLES["p"].columns, column))}
    text = f'SELECT COUNT(*) FROM p WHERE "{name}" > (SELECT AVG(age) FROM p) AND sex <> \'"{name}"\''
    queries = bind_releases(text, tables=tables)
    assert isinstance(queries, Queries)
    dialect = DUCKDB.reading([Fraction(12345)])
    planned = plan(queries.parts[1], epsilon=Fraction(1), delta=Fraction(0), salt="s", dialect=dialect)
    (sql,) = planned.sql.values()
    assert sql.count("12345") == 1
    assert f"'\"{name}\"'" in sql
    assert f'"{name}_' in sql


def test_the_shares_of_many_releases_add_up_to_at_most_the_whole() -> None:
    text = "SELECT COUNT(*) FROM p WHERE age > (SELECT AVG(age) FROM p WHERE age < (SELECT MAX(age) FROM p))"
    question = Question(text, epsilon=Fraction(1, 10**6), delta=Fraction(1, 10**7))
    planned = plan_again(question, TABLES, salt="", hashing="engine")
    assert isinstance(planned, PreparedQueries)
    assert Fraction(1, 10**6) - Fraction(1, 10**28) < sum(part.epsilon for part in planned.parts) <= Fraction(1, 10**6)
    assert RenderOptions("", "engine", DUCKDB).dialect.values is None, "the shared dialect has no values"
