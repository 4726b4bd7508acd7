"""What is made of noisy integers: intervals that cover, consistent answers, expressions over answers."""

import random
from collections.abc import Sequence
from datetime import date
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from tests.fixtures.visits_table import AGE, COST, FLAG, REGION, connect, fill, query, run, visits

from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.noise.source import system
from hubbub.sql.expressions import Col, Facts, FunctionCall, Literal
from hubbub.sql.finish import finish
from hubbub.sql.noise import half_width
from hubbub.sql.plan import plan
from hubbub.sql.query import Aggregate, Key, OrderTerm

RUNS = 2000
WORLD = Key("world", Col("age", Kind.INTEGER, Facts(values=tuple(range(RUNS)))))


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    rng = random.Random(3)
    connection = connect(2)
    rows = []
    for unit in range(1500):
        age = rng.randrange(10, 90)
        rows.append((unit, "North", min(200.0, max(-50.0, age + rng.gauss(20, 40))), age, True))
    fill(connection, rows)
    return connection


@pytest.mark.row(68)
def test_every_answer_compares_privacy_noise_with_sampling_error(engine: duckdb.DuckDBPyConnection) -> None:
    """A count of 1,500 has a sampling error of 1.96·√1500 ≈ 76; noise of ε=0.1 is ±30, of ε=0.01 ±300."""
    for epsilon, ratio in ((Fraction(1, 10), 0.395), (Fraction(1, 100), 3.95)):
        made = plan(
            query(visits(PrivacyUnit(None)), [Aggregate("n", "count")]), epsilon=epsilon, delta=Fraction(0), salt="s"
        )
        answer = finish(made, run(engine, made), system())
        n = max(1, answer.rows[0][0])
        half = half_width(made.measures[0].mechanism, Fraction(95, 100))
        assert answer.ratio[0] == pytest.approx(half / (1.96 * n**0.5), rel=0.05)
        assert answer.ratio[0] == pytest.approx(ratio, rel=0.5)


def test_answers_are_consistent_and_raw_ones_are_as_they_fall() -> None:
    """An empty table 2,000 times over: about half of the raw counts are negative, none of the others is."""
    aggregates = [Aggregate("n", "count"), Aggregate("v", "var_pop", (COST,)), Aggregate("a", "avg", (COST,))]
    made = plan(
        query(visits(PrivacyUnit(None)), aggregates, keys=[WORLD]), epsilon=Fraction(1), delta=Fraction(0), salt="s"
    )
    tables = run(connect(), made)
    raw, clean = finish(made, tables, system(), raw=True), finish(made, tables, system())
    assert 700 < (raw.values[1] < 0).sum() < 1300
    assert raw.values[1].dtype == np.float64
    assert (clean.values[1] >= 0).all()
    assert clean.values[1].dtype == np.int64
    assert (clean.values[2] >= 0).all()
    assert (clean.values[3] >= -50).all()
    assert (clean.values[3] <= 200).all()


def test_every_declared_cell_appears_and_gets_its_own_noise() -> None:
    made = plan(
        query(visits(PrivacyUnit(None)), [Aggregate("n", "count")], keys=[WORLD]),
        epsilon=Fraction(1, 10),
        delta=Fraction(0),
        salt="s",
    )
    answer = finish(made, run(connect(), made), system(), raw=True)
    assert answer.values[0].tolist() == list(range(RUNS))
    assert len(set(answer.values[1].tolist())) > 50


def ordered(aggregate: str, *, descending: bool) -> Sequence[OrderTerm]:
    return [OrderTerm(Col(aggregate, Kind.REAL), descending, nulls_first=False)]


def test_having_order_and_limit_run_on_noisy_answers(engine: duckdb.DuckDBPyConnection) -> None:
    n = Col("n", Kind.INTEGER)
    asked = query(
        visits(PrivacyUnit(None)),
        [Aggregate("n", "count"), Aggregate("a", "avg", (COST,))],
        keys=[
            Key("old", FunctionCall("gt", (AGE, Literal(50, Kind.INTEGER)), Kind.BOOLEAN, Facts(values=(False, True))))
        ],
        having=FunctionCall("gt", (n, Literal(10, Kind.INTEGER)), Kind.BOOLEAN),
        order=ordered("a", descending=True),
        limit=1,
        select=[
            ("old", Col("old", Kind.BOOLEAN)),
            ("double", FunctionCall("mul", (Col("a", Kind.REAL), Literal(2, Kind.INTEGER)), Kind.REAL)),
            ("total", FunctionCall("mul", (Col("a", Kind.REAL), n), Kind.REAL)),
            ("a", Col("a", Kind.REAL)),
        ],
    )
    made = plan(asked, epsilon=Fraction(10), delta=Fraction(0), salt="s")
    answer = finish(made, run(engine, made), system())
    ((old, double, total, average),) = answer.rows
    assert answer.columns == ("old", "double", "total", "a")
    (wanted,) = engine.execute("SELECT TRUE, 2 * avg(cost), sum(cost) FROM visits WHERE age > 50").fetchall()
    assert (old, double, total) == pytest.approx(wanted, rel=0.2)
    _, (low, high), (least, most), (below, above) = answer.intervals[0]
    assert double == 2 * average
    assert (low, high) == pytest.approx((2 * below, 2 * above))
    assert least < total < most


def test_keys_of_every_kind_can_be_used_in_expressions() -> None:
    day = Col("day", Kind.DATE, Facts(values=(date(2020, 1, 1), date(2021, 5, 6))))
    asked = query(
        visits(PrivacyUnit(None)),
        [Aggregate("n", "count")],
        also=[day],
        keys=[Key("region", REGION), Key("flag", FLAG), Key("day", day)],
        sets=[(0, 1, 2), ()],
        select=[
            ("r", FunctionCall("upper", (Col("region", Kind.TEXT),), Kind.TEXT)),
            ("f", FunctionCall("not", (Col("flag", Kind.BOOLEAN),), Kind.BOOLEAN)),
            ("y", FunctionCall("year", (Col("day", Kind.DATE),), Kind.INTEGER)),
            ("day", Col("day", Kind.DATE)),
        ],
        order=[OrderTerm(Col("day", Kind.DATE), descending=True, nulls_first=False)],
    )
    made = plan(asked, epsilon=Fraction(1), delta=Fraction(0), salt="s")
    nothing = {each.name: {"cell": np.array([], np.int64), "m0": np.array([], np.int64)} for each in made.statements}
    answer = finish(made, nothing, system())
    assert answer.rows[:2] == [("NORTH", True, 2021.0, date(2021, 5, 6)), ("NORTH", False, 2021.0, date(2021, 5, 6))]
    # what is computed from keys alone has no noise, and no interval
    assert np.isnan(answer.low[2]).all()
    assert np.isnan(answer.high[2]).all()


def test_totals_of_a_rollup_have_no_key(engine: duckdb.DuckDBPyConnection) -> None:
    asked = query(
        visits(PrivacyUnit(None)),
        [Aggregate("n", "count")],
        keys=[Key("region", REGION), Key("flag", FLAG)],
        sets=[(0, 1), (0,), ()],
    )
    made = plan(asked, epsilon=Fraction(10**6), delta=Fraction(0), salt="s")
    rows = finish(made, run(engine, made), system()).rows
    assert len(rows) == 8 + 4 + 1
    assert ("North", None, 1500) in rows
    assert rows[-1] == (None, None, 1500)
