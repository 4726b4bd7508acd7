"""The size of a release and the work on its answers are known before the charge, from the query alone."""

import time
from fractions import Fraction
from typing import Any

import pytest

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.plan import Plan, plan
from hubbub.sql.postprocess_cost import CostEstimator
from hubbub.sql.release_size import check

PEOPLE = Table(
    "people",
    (
        Column("pid", Kind.INTEGER),
        Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(999))),
        Column("day", Kind.INTEGER, Bounds(Fraction(0), Fraction(364))),
        Column("word", Kind.TEXT, values=("a" * 500, "b")),
    ),
    PrivacyUnit("pid", 5, 5),
)
STEPS = (
    "t + t",
    "1 / t",
    "t / 2",
    "t % 3",
    "sqrt(t)",
    "ln(t)",
    "abs(t) - 1",
    "least(t, 2)",
    "round(t, 1)",
    "t * t - 1",
    "CASE WHEN t > 1 THEN t ELSE -t END",
    "coalesce(t, 1)",
    "power(t, 2)",
    "exp(t)",
    "nullif(t, 3)",
    "floor(t / 7)",
)


def chain(first: str, step: str, levels: int) -> str:
    """Write a query over released answers over released answers …"""
    text = f"WITH a0 AS (SELECT {first} AS t FROM people)"
    text += "".join(f", a{n} AS (SELECT {step} AS t FROM a{n - 1})" for n in range(1, levels))
    return f"{text} SELECT t FROM a{levels - 1}"


def planned(text: str) -> Plan:
    return plan(bind(text, tables={"people": PEOPLE}), epsilon=Fraction(1), delta=Fraction(0), salt="s")


def refusal(action: Any) -> str:
    with pytest.raises(QueryError) as error:
        action()
    assert error.value.code == "HB549"
    return str(error.value)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("levels", [1, 2, 5])
def test_the_weight_is_the_length_of_the_rendered_text(step: str, levels: int) -> None:
    """Exactly, although nothing of that length was written."""
    (_, expr), *_ = bind(chain("COUNT(*)", step, levels), tables={"people": PEOPLE}).select
    assert CostEstimator({}).of(expr).length == len(render.expression(expr))


@pytest.mark.parametrize("step", ["t + t", "1 / t", "sqrt(t)", "CASE WHEN t > 1 THEN t ELSE -t END"])
def test_answers_that_double_at_each_level_are_refused_at_once(step: str) -> None:
    """529 characters took 36 s and 1.5 GB."""
    start = time.thread_time()
    refusal(lambda: bind(chain("COUNT(*)", step, 60), tables={"people": PEOPLE}))
    assert time.thread_time() - start < 2.0


def test_texts_that_double_at_each_level_are_refused_at_once() -> None:
    refusal(lambda: bind(chain("CAST(COUNT(*) AS TEXT)", "t || t", 14), tables={"people": PEOPLE}))
    assert bind(chain("CAST(COUNT(*) AS TEXT)", "t || t", 8), tables={"people": PEOPLE}).select


def test_a_chain_that_does_not_grow_is_answered_up_to_a_depth() -> None:
    assert bind(chain("COUNT(*)", "least(t, 2)", 120), tables={"people": PEOPLE}).select
    refusal(lambda: bind(chain("COUNT(*)", "least(t, 2)", 121), tables={"people": PEOPLE}))
    with pytest.raises(QueryError) as deep:
        bind(chain("COUNT(*)", "least(t, 2)", 200), tables={"people": PEOPLE})
    assert deep.value.code == "HB500"


def test_rows_times_columns_are_bounded() -> None:
    found = planned("SELECT age, day, COUNT(*) AS n FROM people GROUP BY age, day")
    assert found.size == 365_000
    assert "1,095,000 values" in refusal(lambda: check(found, most=1_000_000))
    check(found, most=1_095_000)
    check(planned("SELECT age, day, COUNT(*) AS n FROM people GROUP BY age, day LIMIT 1000"), most=3_000)
    assert "3,003" in refusal(
        lambda: check(planned("SELECT age, day, COUNT(*) AS n FROM people GROUP BY age, day LIMIT 1001"), most=3_000)
    )


def test_bytes_are_bounded_by_the_longest_declared_text() -> None:
    """A key of 500 characters is shown for each of 2,000 groups: a megabyte, where 128 bytes a value are allowed."""
    found = planned("SELECT age, word, COUNT(*) AS n FROM people GROUP BY age, word")
    assert "bytes" in refusal(lambda: check(found, most=6_000))
    check(found, most=20_000)


def test_expressions_over_many_groups_are_weighed_by_their_rows() -> None:
    terms = " + ".join(["SUM(age)"] * 100)
    heavy = f"SELECT age, day, {', '.join(f'{terms} AS x{n}' for n in range(8))} FROM people GROUP BY age, day"
    found = planned(heavy)
    refusal(lambda: check(found, most=10_000_000))
    check(planned(heavy.replace("age, day", "day")), most=10_000_000)
