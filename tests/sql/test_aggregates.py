"""Each aggregate: right where the noise is negligible, scores that move no further than stated."""

import math
import random
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from tests.fixtures.visits_table import AGE, COST, FLAG, REGION, REGIONS, connect, fill, query, run, visits

from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql.aggregates.formula import power_of_two
from hubbub.sql.expressions import Col, Facts, FunctionCall, Literal
from hubbub.sql.finish import finish
from hubbub.sql.plan import plan
from hubbub.sql.query import Aggregate, Key

HUGE = Fraction(10**6)
YOUNG = FunctionCall("lt", (AGE, Literal(40, Kind.INTEGER)), Kind.BOOLEAN)


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    rng = random.Random(2)
    rows = [
        (
            rng.randrange(300),
            rng.choice((*REGIONS, None)),
            None if rng.random() < 0.1 else rng.uniform(-50, 200),
            None if rng.random() < 0.1 else rng.randrange(111),
            rng.choice((True, False)),
        )
        for _ in range(3000)
    ]
    connection = connect(2)
    fill(
        connection,
        [
            (u, r, c, None if a is None or c is None else min(110, abs(a // 2 + int(c / 4))), f)
            for u, r, c, a, f in rows
        ],
    )
    return connection


ANSWERS = {
    "count": ("count(*)", Aggregate("x", "count")),
    "count of a column": ("count(cost)", Aggregate("x", "count", (COST,))),
    "count with a filter": ("count(*) FILTER (WHERE age < 40)", Aggregate("x", "count", (), YOUNG)),
    "count distinct": ("count(DISTINCT age)", Aggregate("x", "count_distinct", (AGE,))),
    "sum distinct": ("sum(DISTINCT age)", Aggregate("x", "sum_distinct", (AGE,))),
    "sum distinct of reals": ("sum(DISTINCT cost)", Aggregate("x", "sum_distinct", (COST,))),
    "avg distinct": ("avg(DISTINCT age)", Aggregate("x", "avg_distinct", (AGE,))),
    "var distinct with a filter": (
        "var_samp(DISTINCT age) FILTER (WHERE age < 40)",
        Aggregate("x", "var_samp_distinct", (AGE,), YOUNG),
    ),
    "stddev distinct": ("stddev_pop(DISTINCT age)", Aggregate("x", "stddev_pop_distinct", (AGE,))),
    "sum": ("sum(cost)", Aggregate("x", "sum", (COST,))),
    "sum of integers": ("sum(age)", Aggregate("x", "sum", (AGE,))),
    "sum with a filter": ("sum(cost) FILTER (WHERE age < 40)", Aggregate("x", "sum", (COST,), YOUNG)),
    "avg": ("avg(cost)", Aggregate("x", "avg", (COST,))),
    "avg with a filter": ("avg(age) FILTER (WHERE age < 40)", Aggregate("x", "avg", (AGE,), YOUNG)),
    "var_pop": ("var_pop(cost)", Aggregate("x", "var_pop", (COST,))),
    "var_samp": ("var_samp(age)", Aggregate("x", "var_samp", (AGE,))),
    "stddev_pop": ("stddev_pop(age)", Aggregate("x", "stddev_pop", (AGE,))),
    "stddev_samp": ("stddev_samp(cost)", Aggregate("x", "stddev_samp", (COST,))),
    "covar_pop": ("covar_pop(age, cost)", Aggregate("x", "covar_pop", (AGE, COST))),
    "covar_samp": ("covar_samp(cost, age)", Aggregate("x", "covar_samp", (COST, AGE))),
    "corr": ("corr(cost, age)", Aggregate("x", "corr", (COST, AGE))),
    "regr_slope": ("regr_slope(age, cost)", Aggregate("x", "regr_slope", (AGE, COST))),
    "regr_intercept": ("regr_intercept(age, cost)", Aggregate("x", "regr_intercept", (AGE, COST))),
    "regr_r2": ("regr_r2(age, cost)", Aggregate("x", "regr_r2", (AGE, COST))),
    "min": ("min(age)", Aggregate("x", "min", (AGE,))),
    "max": ("max(age)", Aggregate("x", "max", (AGE,))),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_the_engines_own_where_noise_is_negligible(name: str, engine: duckdb.DuckDBPyConnection) -> None:
    text, aggregate = ANSWERS[name]
    asked = query(visits(PrivacyUnit(None)), [aggregate], keys=[Key("region", REGION)])
    made = plan(asked, epsilon=HUGE, delta=Fraction(0), salt="s")
    answer = finish(made, run(engine, made), system())
    found = dict(answer.rows)
    wanted = dict(
        engine.execute(f"SELECT region, {text} FROM visits WHERE region IS NOT NULL GROUP BY region").fetchall()
    )
    assert set(found) == set(REGIONS) == set(wanted)
    for region in REGIONS:
        assert found[region] == pytest.approx(wanted[region], rel=1e-4, abs=1e-4), region
    for (_, (low, high)), value in zip(answer.intervals, answer.values[1].tolist(), strict=True):
        assert low - 1e-6 <= value <= high + 1e-6


def test_shared_sums_give_the_same_answers(engine: duckdb.DuckDBPyConnection) -> None:
    named = [Aggregate(f"a{i}", a.function, a.arguments, a.where, a.level) for i, (_, a) in enumerate(ANSWERS.values())]
    made = plan(query(visits(PrivacyUnit(None)), named), epsilon=HUGE, delta=Fraction(0), salt="s")
    (row,) = finish(made, run(engine, made), system()).rows
    texts = ", ".join(text for text, _ in ANSWERS.values())
    (wanted,) = engine.execute(f"SELECT {texts} FROM visits").fetchall()
    assert row == pytest.approx(wanted, rel=1e-3, abs=1e-3)


def test_count_of_units_counts_each_once(engine: duckdb.DuckDBPyConnection) -> None:
    asked = query(visits(PrivacyUnit("patient", groups=4, rows=1)), [Aggregate("u", "count_units", (), YOUNG)])
    made = plan(asked, epsilon=HUGE, delta=Fraction(0), salt="s")
    wanted = engine.execute("SELECT count(DISTINCT patient) FILTER (WHERE age < 40) FROM visits").fetchall()
    assert finish(made, run(engine, made), system()).rows == wanted


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(9, 10), Fraction(0), Fraction(1), Fraction(1, 3)])
def test_quantiles_have_the_right_rank_where_noise_is_negligible(
    level: Fraction, engine: duckdb.DuckDBPyConnection
) -> None:
    asked = query(visits(PrivacyUnit(None)), [Aggregate("q", "quantile", (COST,), None, level)])
    made = plan(asked, epsilon=HUGE, delta=Fraction(0), salt="s")
    answer = finish(made, run(engine, made), system())
    ((found,),) = answer.rows
    step = float(made.histograms[0].step)
    costs = np.array(engine.execute("SELECT cost FROM visits WHERE cost IS NOT NULL ORDER BY 1").fetchnumpy()["cost"])
    below, up_to = (costs < found - step).sum(), (costs <= found + step).sum()
    assert below <= float(level) * len(costs) <= up_to
    ((low, high),) = answer.intervals[0]
    assert low <= np.quantile(costs, float(level), method="inverted_cdf") <= high


def test_the_mode_is_the_most_frequent_value(engine: duckdb.DuckDBPyConnection) -> None:
    aggregates = [Aggregate("a", "mode", (AGE,)), Aggregate("r", "mode", (REGION,)), Aggregate("f", "mode", (FLAG,))]
    made = plan(query(visits(PrivacyUnit(None)), aggregates), epsilon=HUGE, delta=Fraction(0), salt="s")
    (row,) = finish(made, run(engine, made), system()).rows
    for value, column in zip(row, ("age", "region", "flag"), strict=True):
        counts = engine.execute(
            f"SELECT {column}, count(*) AS n FROM visits WHERE {column} IS NOT NULL GROUP BY 1"
        ).fetchall()
        assert dict(counts)[value] == max(n for _, n in counts)


def test_an_empty_group_gets_an_answer_that_claims_nothing(engine: duckdb.DuckDBPyConnection) -> None:
    """Noise of ε = 1 on a group that nobody is in: the average is inside its bounds and its interval is all of them."""
    key = Key("k", Col("region", Kind.TEXT, Facts(values=("nowhere",))))
    made = plan(
        query(visits(PrivacyUnit(None)), [Aggregate("a", "avg", (COST,)), Aggregate("n", "count")], keys=[key]),
        epsilon=Fraction(1),
        delta=Fraction(0),
        salt="s",
    )
    answer = finish(made, run(engine, made), system())
    ((_, average, count),) = answer.rows
    assert -50 <= average <= 200
    assert count >= 0
    assert answer.intervals[0][1] == (-50.0, 200.0)


def test_power_of_two_is_the_least_above() -> None:
    for least in (Fraction(1, 7), Fraction(5), Fraction(8), Fraction(10**9, 3), Fraction(1, 1024)):
        power = power_of_two(least)
        assert power >= least > power / 2
        assert math.log2(power).is_integer()


@pytest.mark.parametrize(
    ("aggregate", "code"),
    [
        (Aggregate("x", "sum", (Col("cost", Kind.REAL),)), "HB552"),
        (Aggregate("x", "corr", (Col("cost", Kind.REAL), AGE)), "HB552"),
        (Aggregate("x", "quantile", (Col("cost", Kind.REAL),), None, Fraction(1, 2)), "HB552"),
        (Aggregate("x", "quantile", (COST,), None, Fraction(3, 2)), "HB561"),
        (Aggregate("x", "min", (REGION,)), "HB562"),
        (Aggregate("x", "mode", (Col("cost", Kind.REAL),)), "HB563"),
        (Aggregate("x", "string_agg", (REGION,)), "HB559"),
    ],
)
def test_what_cannot_be_bounded_is_refused(aggregate: Aggregate, code: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan(query(visits(PrivacyUnit(None)), [aggregate]), epsilon=Fraction(1), delta=Fraction(0), salt="s")
    assert refused.value.code == code
