"""Intervals are about all rows: those that a found bound leaves out, and values beyond bounds that were found."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.fixtures.visits_table import run

import hubbub
from hubbub.audit.receipt import check_receipt
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.noise.source import system
from hubbub.sql.auto_bounds import ChosenBound
from hubbub.sql.bind import bind
from hubbub.sql.finish import finish
from hubbub.sql.plan import Plan, plan, settle
from hubbub.sql.presentation import Answer
from hubbub.sql.value_bounds import bounded_argument, with_bounds

AUTO = PrivacyUnit("u", 100, 100, auto=True)
#: So large that every draw is the exact number, but for a chance far below 1e-6.
EXACT = Fraction(10**5)


def declared(unit: PrivacyUnit, bounds: Bounds | None = None, *, auto: bool = False) -> Table:
    columns = (Column("u", Kind.INTEGER), Column("x", Kind.INTEGER, bounds=bounds, auto=auto))
    return Table("t", columns, unit, Relation.ADD_REMOVE)


def people(*groups: tuple[int, int, int]) -> duckdb.DuckDBPyConnection:
    """Fill a table with so many units, of so many rows each, with one value in all of them."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE t (u BIGINT, x BIGINT)")
    for i, (units, rows, value) in enumerate(groups):
        connection.execute(
            f"INSERT INTO t SELECT {i * 1000} + a, {value} FROM range({units}) AS p(a), range({rows}) AS q(b)"
        )
    return connection


def answer(connection: duckdb.DuckDBPyConnection, made: Plan) -> Answer:
    return finish(made, run(connection, made), system())


@pytest.mark.parametrize(
    ("text", "truths"),
    [
        ("SELECT median(x) FROM t", [4]),
        ("SELECT median(x), quantile_disc(x, 0.4), quantile_disc(x, 0.6) FROM t", [4, 4, 4]),
        ("SELECT max(x), min(x) FROM t", [4, 0]),
    ],
)
def test_a_quantile_allows_for_the_rows_that_its_bound_leaves_out(text: str, truths: list[int]) -> None:
    """100 units have a row with 0, 10 have 20 rows with 4: two thirds of all rows are 4, and few at the bound 1."""
    query = bind(text, tables={"t": declared(AUTO, Bounds(Fraction(0), Fraction(9)))})
    made = plan(query, epsilon=EXACT, delta=Fraction(0), salt="s")
    assert [each.contribution for each in made.levels] == ["rows"]
    with people((100, 1, 0), (10, 20, 4)) as connection:
        for most in (190.0, float("inf")):
            settled = settle(made, [ChosenBound(1, 190.0, most, 110.0, 300.0)])
            for truth, (low, high) in zip(truths, answer(connection, settled).intervals[0], strict=True):
                assert low <= truth <= high
        if "median" in text:
            planted = settle(made, [ChosenBound(1, 0.0, 0.0, 110.0, 300.0)])
            assert answer(connection, planted).intervals[0][0][1] < 4, "nothing is allowed for"


@pytest.mark.parametrize(
    ("text", "unit", "bound"),
    [
        ("SELECT sum(x) FROM t", AUTO, 10),
        ("SELECT sum(x), avg(x) FROM t", AUTO, 10),
        ("SELECT sum(x) FROM t", PrivacyUnit("u", 1, 10), None),
    ],
)
def test_a_sum_allows_for_every_clipped_row_of_a_unit(text: str, unit: PrivacyUnit, bound: int | None) -> None:
    """49 units have ten rows with 1, one has ten with 100: clipped to 1, one row of each lacks 99, and the sum 990."""
    wide = Bounds(Fraction(-(10**12)), Fraction(10**12))
    query = bind(text, tables={"t": declared(unit, wide, auto=True)})
    (argument,) = query.aggregates[0].arguments
    bounds = {argument: Bounds(Fraction(-1), Fraction(1))}
    made = plan(with_bounds(query, bounds), epsilon=EXACT, delta=Fraction(0), salt="s")
    if bound is not None:
        steps = [bound * max(n.measure.high for n in made.measures if type(n.measure).__name__ == "BoundedSum")]
        chosen = [
            ChosenBound(bound if each.contribution == "rows" else steps[0], 0.0, 0.0, 50.0, 500.0, each.contribution)
            for each in made.levels
        ]
        made = settle(made, chosen)
    made = replace(made, clipped={bounded_argument(argument, bounds): 99.0})
    with people((49, 10, 1), (1, 10, 100)) as connection:
        ((low, high), *_) = answer(connection, made).intervals[0]
        assert low <= 1490 <= high
        assert answer(connection, replace(made, clipped={})).intervals[0][0][1] < 1490


@pytest.mark.parametrize(
    ("text", "few", "truth"),
    [
        ("SELECT avg(x) FROM t", 100, 100.0),
        ("SELECT 2 * avg(x) FROM t", 100, 200.0),
        ("SELECT var_pop(x) FROM t", 50, 99**2 / 4),
        ("SELECT stddev_pop(x) FROM t", 50, 99 / 2),
    ],
)
def test_averages_and_variances_allow_for_clipped_values(text: str, few: int, truth: float) -> None:
    """Some of 100 units have 100, the others 1; all are clipped to 1, and rows that are left out may be 1 as well."""
    wide = Bounds(Fraction(-(10**12)), Fraction(10**12))
    query = bind(text, tables={"t": declared(AUTO, wide, auto=True)})
    (argument,) = query.aggregates[0].arguments
    bounds = {argument: Bounds(Fraction(-1), Fraction(1))}
    made = plan(with_bounds(query, bounds), epsilon=EXACT, delta=Fraction(0), salt="s")
    with people((few, 2, 100), (100 - few, 2, 1)) as connection:
        settled = settle(made, [ChosenBound(2, 0.0, 40.0, 100.0, 200.0)])
        settled = replace(settled, clipped={bounded_argument(argument, bounds): 99.0 * few})
        ((low, high),) = answer(connection, settled).intervals[0]
        assert low <= truth <= high
        planted = replace(settled, clipped={})
        assert answer(connection, planted).intervals[0][0][1] < truth


YAML = """version: 1
datasets:
  t:
    source: t.parquet
    unit: {column: id, rows: auto, max_rows: 10}
    columns: {x: {bounds: auto}}
    budget: {epsilon: 1000}
analysts: {ana: {t: {epsilon: 1000}}}
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    """Open 3,000 people with values from −8 to 8, and two at the ends of what `bounds: auto` allows."""
    duckdb.execute(
        f"COPY (SELECT i AS id, CASE i WHEN 0 THEN -1e12 WHEN 1 THEN 1e12 ELSE i % 17 - 8 END AS x "
        f"FROM range(3000) AS r(i)) TO '{tmp_path}/t.parquet'"
    )
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(str(tmp_path / "hubbub.yaml"), analyst="ana") as opened:
        yield opened


def test_extremes_are_open_where_bounds_were_found(session: Any) -> None:
    """No value is beyond these two, so the intervals hold them whatever is selected: no false alarm."""
    release = session.query("SELECT max(x) AS high, min(x) AS low, median(x) AS middle FROM t", epsilon=3)
    (highest, lowest, middle) = release.intervals[0]
    assert highest[1] is None or highest[1] >= 1e12
    assert lowest[0] is None or lowest[0] <= -1e12
    assert middle[0] is not None
    assert middle[1] is not None
    assert "x is clamped to" in str(release)


def test_the_receipt_of_a_join_states_its_cut_and_holds(session: Any) -> None:
    release = session.query("SELECT count(*) AS n FROM t AS a JOIN t AS b ON a.id = b.id", epsilon=3)
    assert release.left_out.joined == 10
    assert check_receipt(release.document()).problems == []
    assert "Before the join, a table keeps at most 10 rows of each id." in str(release)
