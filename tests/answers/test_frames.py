"""Frames are the same queries as hand-written SQL, and no name or value of theirs becomes SQL."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from tests.mcp.conftest import lay_out

from hubbub.curator.question import Question
from hubbub.curator.session import open_session
from hubbub.errors import ParameterError
from hubbub.frames import (
    QueryFrame,
    avg,
    col,
    count,
    ibis_sql,
    max_,
    median,
    min_,
    n_unique,
    quantile,
    stddev,
    sum_,
    variance,
)


class Recorder:
    """A session that returns what it is asked."""

    def estimate(self, sql: str, **options: Any) -> Any:
        return "estimate", sql, options

    def query(self, sql: str, **options: Any) -> Any:
        return "query", sql, options


visits: QueryFrame[Any, Any] = QueryFrame.of(Recorder(), "visits")

PAIRS = [
    (visits.agg(n=count()), "SELECT COUNT(*) AS n FROM visits"),
    (
        visits.filter(col("age") > 30).group_by("region").agg(n=count(), cost=avg("cost")),
        "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits WHERE age > 30 GROUP BY region",
    ),
    (
        visits.filter((col("age") >= 18) & ~(col("region") == "North"), col("word") != None).agg(n=count("age")),  # noqa: E711
        "SELECT COUNT(age) AS n FROM visits WHERE (age >= 18 AND NOT region = 'North') AND NOT word IS NULL",
    ),
    (
        visits.group_by(decade=col("age") / 10 - 1).agg(n=n_unique("patient")).order_by("n", descending=True).limit(3),
        "SELECT age / 10 - 1 AS decade, COUNT(DISTINCT patient) AS n FROM visits GROUP BY age / 10 - 1"
        " ORDER BY n DESC LIMIT 3",
    ),
    (
        visits.join("labs", on="patient").agg(
            a=sum_("x"), b=min_("x"), c=max_("x"), d=median("x"), e=quantile("x", 0.9), f=variance("x"), g=stddev("x")
        ),
        "SELECT SUM(x) AS a, MIN(x) AS b, MAX(x) AS c, MEDIAN(x) AS d, QUANTILE_CONT(x, 0.9) AS e, VAR_SAMP(x) AS f,"
        " STDDEV_SAMP(x) AS g FROM visits JOIN labs USING (patient)",
    ),
    (
        visits.agg(n=count().filter(col("region").is_in(["a", "b"]) | col("age").between(1, 2))),
        "SELECT COUNT(*) FILTER (WHERE region IN ('a', 'b') OR age BETWEEN 1 AND 2) AS n FROM visits",
    ),
    (
        visits.filter(col("day") < date(2020, 1, 31), col("at") >= datetime(2020, 1, 31, 12, 30)).agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits WHERE day < DATE '2020-01-31' AND at >= TIMESTAMP '2020-01-31 12:30:00'",
    ),
    (
        visits.agg(cost=sum_(1 + 2 * col("x") - Decimal("0.10"))),
        "SELECT SUM(1 + 2 * x - 0.10) AS cost FROM visits",
    ),
    (visits.filter(col("region").like("N%")).agg(n=count()), "SELECT COUNT(*) AS n FROM visits WHERE region LIKE 'N%'"),
]


def tree(sql: str) -> Any:
    """The syntax of a query, without brackets that change nothing and without quotation marks of names."""
    parsed = sqlglot.parse_one(sql, dialect="duckdb")
    for bracket in list(parsed.find_all(sqlglot.exp.Paren)):
        bracket.replace(bracket.this) if bracket.parent is not None else None
    for name in parsed.find_all(sqlglot.exp.Identifier):
        name.set("quoted", None)
    return parsed


@pytest.mark.parametrize(("frame", "sql"), PAIRS, ids=range(len(PAIRS)))
def test_a_frame_is_the_query_that_one_would_write(frame: QueryFrame[Any, Any], sql: str) -> None:
    assert tree(frame.sql()) == tree(sql)


@pytest.mark.parametrize("evil", ["'", "''", "\\'", "'; DROP TABLE visits; --", '"', "/*", "$1", "x' OR '1'='1", "\n"])
def test_a_text_stays_a_value(evil: str) -> None:
    frame = visits.filter(col("word") == evil).agg(n=count())
    parsed = sqlglot.parse(frame.sql(), dialect="duckdb")
    assert len(parsed) == 1
    literals = [each.this for each in parsed[0].find_all(sqlglot.exp.Literal)]  # type: ignore[union-attr]
    assert literals == [evil]


@pytest.mark.parametrize("evil", ['a"b', '"', 'x" FROM secrets --', "a.b", "a b", "select"])
def test_a_name_stays_a_name(evil: str) -> None:
    frame = QueryFrame.of(Recorder(), evil).group_by(evil).agg(**{evil + "n": avg(evil)})
    (parsed,) = sqlglot.parse(frame.sql(), dialect="duckdb")
    names = {each.this for each in parsed.find_all(sqlglot.exp.Identifier)}  # type: ignore[union-attr]
    assert names == {evil, evil + "n"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: visits.filter("age > 30"),  # type: ignore[arg-type]
        lambda: visits.filter(col("a") > float("nan")),
        lambda: visits.filter(col("a") == "\0"),
        lambda: visits.filter(col("a") == b"x"),
        lambda: visits.filter(col("a").is_in([])),
        lambda: visits.filter((col("a") > 1) and (col("b") > 1)),
        lambda: visits.agg(),
        lambda: visits.agg(n=col("a")),  # type: ignore[arg-type]
        lambda: visits.agg(n=count()).filter(col("n") > 5),
        lambda: visits.agg(n=count()).group_by("a"),
        lambda: visits.join("labs", on="a", how="cross"),
        lambda: visits.group_by(""),
        lambda: ibis_sql(object()),
    ],
)
def test_what_cannot_be_written_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="HB836"):
        wrong()


def test_a_frame_does_not_change() -> None:
    young = visits.filter(col("age") < 18)
    young.agg(n=count())
    assert young.sql() == 'SELECT * FROM "visits" WHERE ("age" < 18)'
    assert visits.sql() == 'SELECT * FROM "visits"'
    assert repr(young).startswith("<frame: SELECT")


def test_options_go_to_the_session() -> None:
    frame = visits.agg(n=count())
    assert frame.query(epsilon="0.1") == ("query", frame.sql(), {"epsilon": "0.1"})
    assert frame.estimate(within=5) == ("estimate", frame.sql(), {"within": 5})


def test_a_frame_and_its_sql_are_one_charge(tmp_path: Path) -> None:
    sql = "SELECT region, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY region"
    with open_session(lay_out(tmp_path), analyst="ana") as h:
        frame = h.table("visits").filter(col("age") > 30).group_by("region").agg(n=count())
        assert Question(frame.sql()).text().replace('"', "").replace("(age > 30)", "age > 30") == Question(sql).text()
        paid = frame.query(epsilon=1)
        assert h.query(frame.sql(), epsilon=1, free=True).document() == paid.document()
        assert frame.estimate(epsilon=1).epsilon == 1
