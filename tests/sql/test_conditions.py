"""Groups and bounds that follow from the conditions of a query: they hold for every row that meets the conditions.

All engines compute comparisons alike (tests/sql/test_postgres_functions.py, tests/sql/test_spark_functions.py), so
DuckDB stands for them here.
"""

import random
from collections.abc import Iterator, Mapping
from datetime import date
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures.nasty_values import COLS, LISTED, SCAN, fill, literal, random_expression
from tests.fixtures.visits_table import arrays, run
from tests.sql.corpus.queries import quiet
from tests.sql.corpus.worlds import WORLDS

from hubbub.core.schema import Bounds, Kind, Table
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql import conditions as module
from hubbub.sql import dates, render
from hubbub.sql.bind import bind
from hubbub.sql.conditions import Conditions
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, facts
from hubbub.sql.finish import finish
from hubbub.sql.functions import build
from hubbub.sql.plan import plan
from hubbub.sql.relations import Filter
from hubbub.sql.restrictions import same_value

Tables = Mapping[str, Table]


@pytest.fixture(scope="module")
def nasty() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        fill(connection)
        yield connection


def made(name: str, *args: Expr) -> Expr:
    call = build(name, args)
    assert call is not None
    return call


def random_test(rng: random.Random) -> Expr:
    """Build a comparison of a column, or of a function of one, with constants or with another column."""
    col: Expr = rng.choice(list(COLS.values()))
    if rng.random() < 0.3:
        col = random_expression(rng, 1)
    values = [literal(value) for value in LISTED[col.kind]]
    kind = rng.random()
    if kind < 0.15:
        return made("is_null", col)
    if kind < 0.3:
        return made("in", col, *values)
    if kind < 0.4 and col.kind not in (Kind.BOOLEAN,):
        return made("between", col, *sorted((rng.choice(values), rng.choice(values)), key=lambda v: repr(v.value)))
    if kind < 0.5 and col.kind is Kind.TEXT:
        return made("like", col, literal("%a%"))
    if kind < 0.55 and col.kind is Kind.BOOLEAN:
        return col
    others = [each for each in COLS.values() if each.kind is col.kind] if rng.random() < 0.2 else values
    name = rng.choice(["eq", "ne", "lt", "le", "gt", "ge", "is_distinct"])
    pair = (col, rng.choice(others)) if rng.random() < 0.7 else (rng.choice(others), col)
    return made(name, *pair)


def random_condition(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.3:
        return random_test(rng)
    if rng.random() < 0.25:
        return made("not", random_condition(rng, depth - 1))
    if rng.random() < 0.1:
        return made("coalesce", random_condition(rng, depth - 1), Literal(value=False, kind=Kind.BOOLEAN))
    parts = [random_condition(rng, depth - 1) for _ in range(rng.choice((2, 2, 3)))]
    return made(rng.choice(["and", "and", "or"]), *parts)


def violations(nasty: duckdb.DuckDBPyConnection, predicate: Expr) -> list[str]:
    """Say which rows that meet a condition have values that it is said to exclude."""
    known = Conditions()
    known.add(predicate)
    exprs = list(known.known)
    shown = ", ".join(f"{render.expression(expr)} AS e{i}" for i, expr in enumerate(exprs))
    if not exprs:
        return []
    rows = render.relation(Filter(SCAN, predicate))
    table = arrays(nasty, f"SELECT {shown} FROM ({rows}) AS t")
    wrong = []
    for i, expr in enumerate(exprs):
        column = table[f"e{i}"]
        if np.ma.getmaskarray(column).any() and known.known[expr].null is False:
            wrong.append(f"{expr} is NULL")
        present = np.ma.getdata(column)[~np.ma.getmaskarray(column)]
        wrong += [f"{expr} is {value!r}" for value in present.tolist() if not allowed(value, known, expr)]
    return wrong


def allowed(value: Any, known: Conditions, expr: Expr) -> bool:
    restricted = facts(known.shadow(expr))
    plain = value.date() if expr.kind is Kind.DATE and hasattr(value, "date") else value
    if restricted.values is not None and same_value(plain) not in {same_value(v) for v in restricted.values}:
        return False
    if restricted.bounds is None:
        return True
    low, high = restricted.bounds.low, restricted.bounds.high
    if isinstance(plain, date):
        return low <= dates.number(plain) <= high
    return isinstance(plain, str | bool) or float(low) <= plain <= float(high)


def test_rows_that_meet_a_condition_have_what_it_says(nasty: duckdb.DuckDBPyConnection) -> None:
    """Random conditions over a table with NULL, NaN, infinities, two zeros, denormals, and odd texts and dates."""
    rng = random.Random(5)
    for _ in range(600):
        assert violations(nasty, random_condition(rng, 3)) == []


@pytest.mark.parametrize("spoil", ["strict", "negated", "null"])
def test_a_planted_wrong_conclusion_is_caught(
    nasty: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    if spoil == "strict":
        right = module._between
        monkeypatch.setattr(module, "_between", lambda expr, within, **_: right(expr, within, strict=True))
    elif spoil == "negated":
        monkeypatch.setitem(module._NEGATED, "lt", "gt")
    else:
        monkeypatch.setattr(module, "_TOLERATES_NULL", frozenset({"and", "or"}))
    rng = random.Random(5)
    assert any(violations(nasty, random_condition(rng, 3)) for _ in range(600))


#: Queries over the clinic with their number of groups, counted by hand.
GROUPS = {
    "age FROM people WHERE age BETWEEN 10 AND 17": 8,
    "age FROM people WHERE age > 9.5 AND 18 > age": 8,
    "age FROM people WHERE age >= 10 AND age < 12 OR age = 50": 41,
    "age FROM people WHERE age = 3 OR age IN (5, 7) OR 9 = age": 4,
    "age FROM people WHERE age <= 4 AND age NOT IN (1, 2) AND age <> 0": 2,
    "age FROM people WHERE NOT (age > 4 OR age = 2)": 4,
    "age FROM people WHERE (age < 5) IS TRUE": 5,
    "age FROM people WHERE age <= $1": 6,
    "health FROM people WHERE health IN ('good', 'poor', 'unheard of')": 2,
    "health FROM people WHERE health <> 'good'": 2,
    "health FROM people WHERE health IS DISTINCT FROM 'good'": 3,
    "health FROM people WHERE health IS NOT DISTINCT FROM 'good'": 1,
    "page FROM logs WHERE page IN ('p', 'q')": 2,
    "page FROM logs WHERE page = 'p' OR page = 'z'": 2,
    "lower(page) FROM logs WHERE lower(page) IN ('p', 'q', 'r')": 3,
    "upper(page) FROM logs WHERE page IN ('p', 'q', 'P')": 2,
    "female FROM people WHERE female": 1,
    "female FROM people WHERE NOT female": 1,
    "floor(age / 10) FROM people WHERE age >= 20 AND age < 40": 2,
    "age > 50 FROM people WHERE age > 60": 1,
    "date_trunc('month', day) FROM people WHERE day >= '2020-01-01' AND day < '2021-01-01'": 12,
    "date_trunc('day', seen) FROM people WHERE seen >= '2020-02-28' AND seen < '2020-03-02'": 3,
    "year(seen) FROM people WHERE seen BETWEEN '2019-05-01' AND '2020-05-01'": 2,
    "year FROM visits WHERE year > 2000 AND year < 2003": 2,
    "n FROM (SELECT person, count(*) AS n FROM visits GROUP BY person HAVING count(*) BETWEEN 1 AND 9)": 9,
    "b FROM (SELECT person, age + 1 AS b FROM people WHERE age < 10) WHERE b > 4": 6,
    "m FROM (SELECT person, max(age) AS m FROM people WHERE age < 10 GROUP BY person)": 10,
    "year FROM (SELECT person, year FROM people WHERE year < 3 UNION ALL SELECT person, year FROM visits "
    "WHERE year IN (7, 8))": 4,
    "v.year FROM people AS p JOIN visits AS v ON p.person = v.person AND v.year = p.year": 5,
    "p.site FROM people AS p JOIN sites AS s ON p.site = s.site AND s.site < 4": 3,
    "p.age FROM people AS p LEFT JOIN sites AS s ON p.site = s.site WHERE s.beds > 10": 111,
    "s.site FROM people AS p LEFT JOIN (SELECT site FROM sites WHERE site IN (1, 2)) AS s ON p.site = s.site "
    "WHERE s.site IS NOT NULL": 2,
    "p.site FROM people AS p LEFT JOIN (SELECT a.site FROM sites AS a JOIN sites AS b ON a.site = b.site) AS s "
    "ON p.site = s.site WHERE p.age > 50": 6,
    "p.site FROM people AS p LEFT JOIN (SELECT site FROM sites WHERE site IN (1, 2)) AS s ON p.site = s.site": 6,
}


@pytest.fixture(scope="module")
def world() -> Iterator[duckdb.DuckDBPyConnection]:
    with WORLDS["made"]().connect() as connection:
        yield connection


@pytest.mark.parametrize("text", GROUPS)
def test_groups_and_bounds_are_taken_from_the_query(world: duckdb.DuckDBPyConnection, text: str) -> None:
    """The groups are as many as counted by hand, and DuckDB's counts are ours, without noise."""
    key, _, rest = text.partition(" FROM ")
    whole = f"SELECT {key} AS k, count(*) AS n FROM {rest} GROUP BY 1"
    parameters = (5,) if "$1" in text else ()
    query = bind(whole, tables=WORLDS["made"]().tables, parameters=parameters)
    planned = quiet(plan(query, epsilon=Fraction(10**6), delta=Fraction(0), salt="s"))
    assert planned.size == GROUPS[text]
    ours = {plain(k): n for k, n in finish(planned, run(world, planned), system()).rows}
    assert len(ours) == GROUPS[text]
    theirs = dict(world.execute(f"SELECT * FROM ({whole}) WHERE k IS NOT NULL", list(parameters) or None).fetchall())
    assert {k: n for k, n in ours.items() if n} == {plain(k): n for k, n in theirs.items()}


def plain(key: Any) -> Any:
    return float(key) if isinstance(key, int | float) and not isinstance(key, bool) else key


#: Arguments over the clinic, whose column `spending` has no declared bounds, with the bounds that the query gives.
BOUNDED = {
    "avg(spending) FROM people WHERE spending BETWEEN 0 AND 100": (0, 100),
    "sum(spending) FROM people WHERE spending > -5 AND spending <= 0.5": (-5, Fraction(1, 2)),
    "var_pop(spending) FROM people WHERE spending IN (1.5, 250)": (Fraction(3, 2), 250),
    "avg(spending * 2) FROM people WHERE spending BETWEEN 0 AND 100": (0, 200),
    "avg(spending) FILTER (WHERE spending BETWEEN 0 AND 7) FROM people": (0, 7),
    "avg(s) FROM (SELECT person, spending AS s FROM people WHERE abs(spending) < 9 AND spending > -9)": None,
    "avg(s) FROM (SELECT person, spending AS s FROM people WHERE spending < 9 AND spending > -9)": (-9, 9),
    "sum(age) FROM people WHERE age BETWEEN 10 AND 17": (10, 17),
    "sum(age) FROM people WHERE age < 17": (0, 16),
    "avg(age) FROM people WHERE age = 40": (40, 41),
    "stddev_pop(age) FROM people WHERE age = 40": (40, 41),
    "avg(age) FROM people WHERE age > 3 OR age < 2": (0, 110),
    "avg(t) FROM (SELECT person, max(spending) AS t FROM people WHERE spending BETWEEN 1 AND 2 GROUP BY person)": (
        1,
        2,
    ),
}


@pytest.mark.parametrize("text", BOUNDED)
def test_bounds_are_taken_from_the_query(world: duckdb.DuckDBPyConnection, clinic: Tables, text: str) -> None:
    """The bounds are those of the condition, and the exact result is DuckDB's: no row is clamped by mistake."""
    whole, expected = f"SELECT {text}", BOUNDED[text]
    if expected is None:
        with pytest.raises(QueryError, match="HB515"):
            bind(whole, tables=clinic)
        return
    query = bind(whole, tables=WORLDS["made"]().tables)
    (argument,) = query.aggregates[0].arguments
    assert facts(argument).bounds == Bounds(Fraction(expected[0]), Fraction(expected[1]))
    planned = quiet(plan(query, epsilon=Fraction(10**6), delta=Fraction(0), salt="s"))
    ((ours,),) = finish(planned, run(world, planned), system()).rows
    ((theirs,),) = world.execute(whole).fetchall()
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_a_count_and_an_average_of_one_condition_share_their_measures(clinic: Tables) -> None:
    text = "SELECT count(spending), avg(spending), sum(spending) FROM people WHERE spending BETWEEN 0 AND 100"
    assert len(plan(bind(text, tables=clinic), epsilon=Fraction(1), delta=Fraction(0), salt="s").measures) == 2


def test_conditions_on_results_do_not_count(clinic: Tables) -> None:
    text = "SELECT age, count(*) FROM people GROUP BY age HAVING age BETWEEN 10 AND 17"
    assert plan(bind(text, tables=clinic), epsilon=Fraction(1), delta=Fraction(0), salt="s").size == 111


def test_conditions_that_leave_no_group_are_refused(clinic: Tables) -> None:
    for text in ("age FROM people WHERE age > 200", "health FROM people WHERE health = 'well'"):
        with pytest.raises(QueryError, match="HB569"):
            bind(f"SELECT {text.split()[0]}, count(*) FROM {text.partition(' FROM ')[2]} GROUP BY 1", tables=clinic)


def test_conditions_that_leave_no_value_for_a_mode_are_refused(clinic: Tables) -> None:
    for where in ("health = 'well'", "female AND NOT female", "health IN ('good') AND health NOT IN ('good')"):
        with pytest.raises(QueryError, match="HB569"):
            bind(f"SELECT mode({'female' if 'female' in where else 'health'}) FROM people WHERE {where}", tables=clinic)


def test_a_value_that_a_condition_bounds_is_clamped_before_arithmetic() -> None:
    """An engine may compute before it filters: what an unbounded column gives to a sum is bounded in every row."""
    col = COLS["real_a"]
    known = Conditions()
    known.add(made("between", col, literal(0), literal(100)))
    bounded = known.bounded(col)
    assert isinstance(bounded, FunctionCall)
    assert bounded.function == "case"
    assert isinstance(known.bounded(COLS["real_in"]), Col)
