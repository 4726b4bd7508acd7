"""Bounds of columns that a query finds: levels of magnitude, what the rest of the query costs, and honest answers."""

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.fixtures.insert_rows import insert_rows

import hubbub
from hubbub.accounting.cost import privacy_cost
from hubbub.audit.receipt import check_receipt
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.plan import bound_work, plan
from hubbub.sql.query import Query
from hubbub.sql.value_bounds import ValueBounds, value_bounds, with_bounds

WIDE = Bounds(Fraction(-(10**12)), Fraction(10**12))
OPTIONS = RenderOptions("salt")
QUERIES = (
    "SELECT sum(x) AS s FROM t",
    "SELECT k, avg(x) AS a, count(*) AS n FROM t GROUP BY k",
    "SELECT stddev(x) AS s, corr(x, y) AS r FROM t",
    "SELECT median(x) AS m, max(y) AS y FROM t",
    "SELECT sum(x * y) FILTER (WHERE k = 'a') AS s FROM t",
)


def table(unit: PrivacyUnit, relation: Relation = Relation.ADD_REMOVE) -> Table:
    return Table(
        "t",
        (
            Column("id", Kind.INTEGER),
            Column("k", Kind.TEXT, values=("a", "b")),
            Column("x", Kind.REAL, bounds=WIDE, auto=True),
            Column("y", Kind.INTEGER, bounds=WIDE, auto=True),
        ),
        unit,
        relation,
    )


def found(text: str, declared: Table) -> tuple[Query, ValueBounds]:
    query = bind(text, tables={"t": declared})
    values = value_bounds(query, bound_work(query, None, None, OPTIONS), declared.relation, Fraction(1), OPTIONS)
    assert values is not None
    return query, values


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as opened:
        opened.execute("CREATE TABLE t (id BIGINT, k VARCHAR, x DOUBLE, y BIGINT)")
        yield opened


def levels(
    connection: duckdb.DuckDBPyConnection, people: list[list[tuple[Any, ...]]], values: ValueBounds
) -> list[dict[int, int]]:
    connection.execute("DELETE FROM t")
    insert_rows(connection, "t", [row for rows in people for row in rows])
    return [dict(connection.execute(each.sql).fetchall()) for each in values.histograms]


def distance(one: dict[int, int], two: dict[int, int]) -> int:
    return sum(abs(one.get(level, 0) - two.get(level, 0)) for level in one.keys() | two.keys())


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("unit", [PrivacyUnit("id", 2, 3), PrivacyUnit("id", 50, 50, auto=True), PrivacyUnit(None)])
def test_one_unit_moves_a_histogram_of_magnitudes_by_one(
    connection: duckdb.DuckDBPyConnection, text: str, unit: PrivacyUnit
) -> None:
    chance = random.Random(text)
    numbers = [None, 0.0, -0.0, 1e-9, 1.0, -3.5, 1e6, -1e13, 1e300, float("inf"), float("nan")]
    _, values = found(text, table(unit))
    moved = set()
    for _ in range(15):
        people = [
            [
                (
                    person,
                    chance.choice(["a", "b", "c", None]),
                    chance.choice(numbers),
                    chance.choice([None, 0, -7, 10**9]),
                )
                for _ in range(1 if unit.column is None else chance.randint(1, 6))
            ]
            for person in range(6)
        ]
        whole = levels(connection, people, values)
        without = levels(connection, people[1:], values)
        moved |= {distance(one, two) for one, two in zip(whole, without, strict=True)}
    assert moved <= {0, 1}
    assert 1 in moved


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("relation", list(Relation))
def test_the_query_costs_no_more_than_what_is_left_at_any_bounds(text: str, relation: Relation) -> None:
    for unit in (PrivacyUnit("id", 2, 3), PrivacyUnit("id", 50, 50, auto=True), PrivacyUnit(None)):
        query, values = found(text, table(unit, relation))
        spent = [privacy_cost(each.mechanism.event).pure for each in values.histograms]
        assert None not in spent
        assert sum(each for each in spent if each is not None) + values.rest <= 1
        assert privacy_cost(values.event).pure == 1
        for size in (Fraction(1, 1 << 20), Fraction(1), Fraction(777), Fraction(1 << 40)):
            bounds = {expr: Bounds(-size, size) for expr in values.arguments}
            planned = plan(with_bounds(query, bounds), epsilon=values.rest, delta=Fraction(0), salt="", noise="laplace")
            cost = privacy_cost(planned.event).pure
            assert cost is not None
            assert cost <= values.rest


YAML = """version: 1
datasets:
  t:
    source: t.parquet
    unit: {column: id, rows: auto, max_rows: 100}
    columns:
      k: {values: [a, b]}
      c: {}
      x: {bounds: auto}
    budget: {epsilon: 1000, delta: 1e-6}
analysts: {ana: {t: {epsilon: 1000, delta: 1e-6}}}
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    duckdb.execute(
        f"COPY (SELECT i % 3000 AS id, CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END AS k, 'c' AS c, "
        f"1000 + (i * 7919) % 401 AS x FROM range(9000) AS r(i)) TO '{tmp_path}/t.parquet'"
    )
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(str(tmp_path / "hubbub.yaml"), analyst="ana") as opened:
        yield opened


def test_an_average_over_a_column_without_bounds_is_near_the_truth_and_its_interval_holds_it(session: Any) -> None:
    # at ε = 100 the noise scale is below 1 of the bound; the chance that it leaves its interval is far below 10⁻⁶
    release = session.query("SELECT avg(x) AS a FROM t", epsilon=100)
    ((value,), (interval,)) = release.rows[0], release.intervals[0]
    assert interval[0] <= 1200 <= interval[1]
    assert abs(value - 1200) < 60
    assert "x is clamped to -2048 to 2048" in str(release)


def test_the_receipt_holds_and_a_forged_one_does_not(session: Any) -> None:
    release = session.query("SELECT k, sum(x) AS s FROM t GROUP BY k", epsilon=1)
    paper = json.loads(json.dumps(release.receipt))
    assert check_receipt(paper).sound
    for draw, part in ((0, 0), (1, 1)):
        forged = json.loads(json.dumps(paper))
        forged["draws"][draw]["noise"]["scale"] = forged["event"]["parts"][part][0]["scale"] = "1/10"
        assert not check_receipt(forged).sound
    fewer = json.loads(json.dumps(paper))
    del fewer["draws"][0]
    assert not check_receipt(fewer).sound


def test_bounds_and_groups_are_not_found_in_one_query(session: Any) -> None:
    with pytest.raises(hubbub.HubbubError, match="HB577"):
        session.query("SELECT c, sum(x) AS s FROM t GROUP BY c", epsilon=1)


def test_conditions_of_the_query_spare_the_search(session: Any) -> None:
    plain = session.estimate("SELECT avg(x) AS a FROM t", epsilon=1)
    given = session.estimate("SELECT avg(x) AS a FROM t WHERE x BETWEEN 1000 AND 1400", epsilon=1)
    assert len(plain.sql) == 2
    assert len(given.sql) == 1


def test_an_analysis_needs_declared_bounds(session: Any) -> None:
    with pytest.raises(hubbub.HubbubError, match="bounds"):
        session.query("CALL moments(table => 't', columns => ['x'])", epsilon=1, rows=3)
