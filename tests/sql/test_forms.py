"""The ways in which people write conditions: each is accepted, and means on every engine what it means in DuckDB."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.engines.base import Arrays
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.expressions import Expr

F = Fraction
TABLE = Table(
    "t",
    (
        Column("u", Kind.INTEGER),
        Column("a", Kind.REAL, Bounds(F(-5), F(5)), F(1, 100)),
        Column("i", Kind.INTEGER, Bounds(F(-10), F(10))),
        Column("p", Kind.BOOLEAN),
        Column("q", Kind.BOOLEAN),
        Column("s", Kind.TEXT),
        Column("d", Kind.DATE),
        Column("m", Kind.TIMESTAMP),
        Column("n", Kind.INTEGER),
    ),
    PrivacyUnit("u"),
)
ALL = "a IS NULL OR i IS NULL OR p OR q OR s IS NULL OR d IS NULL OR m IS NULL OR n IS NULL"

#: Conditions that DuckDB and PostgreSQL write alike.
FORMS = """
s NOT LIKE 'a%'
s NOT LIKE '%'
s NOT LIKE ''
s NOT ILIKE 'x%'
NOT s LIKE 'a%'
NOT s NOT LIKE 'a%'
s LIKE 'a%' AND s NOT LIKE '%b'
s || 'z' NOT LIKE '%z'
a NOT BETWEEN 0 AND 1
NOT a BETWEEN 0 AND 1
NOT a NOT BETWEEN 0 AND 1
a NOT BETWEEN i AND 3
a NOT BETWEEN 3 AND i
7 NOT BETWEEN i AND 8
p AND i NOT BETWEEN -3 AND 0 AND q
i + 1 NOT BETWEEN 2 AND 8
i NOT IN (7, 8)
NOT i IN (7)
NOT i NOT IN (7)
i IN (7, NULL)
i NOT IN (7, NULL)
i NOT IN (8, NULL)
s NOT IN ('ab', 'zz')
lower(s) NOT IN ('ab')
coalesce(i, 0) NOT IN (0)
i IS NOT NULL
i NOTNULL
i ISNULL
NOT i ISNULL
NOT p IS NULL
NOT p IS NOT NULL
p IS TRUE
p IS FALSE
p IS NOT TRUE
p IS NOT FALSE
p IS UNKNOWN
p IS NOT UNKNOWN
NOT p IS UNKNOWN
p IS NOT DISTINCT FROM q
i IS NOT DISTINCT FROM 7
i IS DISTINCT FROM 7
s IS DISTINCT FROM 'ab'
a = .07
a > .06
.06 < a
a IN (.07, 1.5)
a NOT IN (.07, 1.)
a >= 1.
a >= 1.e0
a < 1e3
a > 1E-3
a > 1.5e-1
a > -.5
a > - .5
a*.5 > .03
a * 1. > 1
a-.5 < 0
a BETWEEN .05 AND .1
a = +1.5
+a > 0
a + +1 > 0
a - -1 > 0
i*-1 < 0
- - i > 0
-(-i) > 0
a != 1.5
a <> 1.5
NOT p AND NOT q
NOT p OR NOT q
NOT (p OR q)
NOT a > 0 AND p
NOT i = 7
p
NOT p
((p))
p = q
p <> FALSE
(p IS NULL) = (q IS NULL)
CASE WHEN s NOT LIKE 'a%' THEN 1 ELSE 0 END = 1
CASE WHEN a NOT BETWEEN 0 AND 1 THEN .5 ELSE 1. END = .5
CASE i WHEN 7 THEN 1 WHEN -3 THEN 2 END = 2
CASE WHEN p IS NOT TRUE THEN i NOT IN (7) ELSE NOT q END
d >= DATE '1994-01-01'
d < DATE '1994-01-01' + INTERVAL '1' YEAR
d NOT BETWEEN '1994-01-01' AND '1994-12-31'
d NOT IN ('1994-02-03', '1995-01-01')
extract(year FROM d) NOT IN (1995)
m NOT BETWEEN TIMESTAMP '1994-02-03' AND TIMESTAMP '1994-02-04'
d + 1 > DATE '1994-02-03'
nullif(i, 7) IS NOT NULL
abs(i) NOT BETWEEN 4 AND 8
""".strip().splitlines()
#: Conditions that only DuckDB knows.
DUCKDB_FORMS = ("i NOT NULL", "a == 1.5", "i // 2 = 3", "i ** 2 = 49", "i > 1_0", "i / 2 > 1", "i ^ 2 = 49")


@pytest.fixture(scope="module")
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 1 AS u, *, CAST(row_number() OVER () AS INTEGER) AS n FROM "
            "(VALUES (1.5), (-2.00), (.07), (NULL)) AS v1(a), (VALUES (7), (-3), (NULL)) AS v2(i), "
            "(VALUES (TRUE), (FALSE), (NULL)) AS v3(p), (VALUES (TRUE), (FALSE), (NULL)) AS v4(q), "
            "(VALUES ('ab'), ('Xy'), (NULL), ('a_%'), ('')) AS v5(s), "
            "(VALUES (DATE '1994-02-03'), (NULL)) AS v6(d), (VALUES (TIMESTAMP '1994-02-03 10:11:12'), (NULL)) AS v7(m)"
        )
        yield connection


def bound(condition: str, dialect: str = "duckdb") -> Expr:
    (aggregate,) = bind(f"SELECT count({condition}) FROM t", tables={"t": TABLE}, dialect=dialect).aggregates
    return aggregate.arguments[0]


def text(exprs: list[Expr], dialect: Dialect = DUCKDB) -> str:
    """Write a query for the values of conditions, row by row."""
    relation = render.relation(bind(f"SELECT count({ALL}) FROM t", tables={"t": TABLE}).relation, dialect)
    shown = ", ".join(f"{render.expression(expr, dialect)} AS e{k}" for k, expr in enumerate(exprs))
    (row,) = (name for name in map(dialect.identifier, ("n_8", "n_9")) if name in relation)
    return f"SELECT {shown} FROM ({relation}) AS r ORDER BY {row}"


def listed(table: Arrays, count: int) -> list[list[object]]:
    columns = [table[f"e{k}"] for k in range(count)]
    return [
        [
            None if hidden else value
            for value, hidden in zip(np.ma.getdata(c).tolist(), np.ma.getmaskarray(c).tolist(), strict=True)
        ]
        for c in columns
    ]


def truth(local: duckdb.DuckDBPyConnection, condition: str) -> list[object]:
    return [value for (value,) in local.execute(f"SELECT {condition} FROM t ORDER BY n").fetchall()]


def wrong(local: duckdb.DuckDBPyConnection, values: list[list[object]], forms: list[str]) -> list[str]:
    return [form for form, ours in zip(forms, values, strict=True) if ours != truth(local, form)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_conditions_mean_what_they_mean_in_duckdb(local: duckdb.DuckDBPyConnection, dialect: str) -> None:
    forms = [*FORMS, *(DUCKDB_FORMS if dialect == "duckdb" else ())]
    values = listed(arrays(local, text([bound(form, dialect) for form in forms])), len(forms))
    assert wrong(local, values, forms) == []


def test_a_planted_negation_is_noticed(local: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """NOT that is false where its operand is NULL."""
    spelled: Callable[..., str] = lambda _, a: f"(NOT coalesce({a[0]}, TRUE))"  # noqa: E731
    monkeypatch.setitem(DUCKDB.spellings, "not", spelled)
    values = listed(arrays(local, text([bound(form) for form in FORMS])), len(FORMS))
    assert {"s NOT LIKE 'a%'", "i NOT IN (8, NULL)", "a NOT BETWEEN i AND 3"} <= set(wrong(local, values, FORMS))


def elsewhere(local: duckdb.DuckDBPyConnection, dialect: Dialect, run: Callable[[str], Any]) -> list[str]:
    exprs = [bound(form) for form in FORMS]
    return wrong(local, run(text(exprs, dialect)).through(lambda table: listed(table, len(exprs))), FORMS)


def test_conditions_mean_the_same_on_postgres(local: duckdb.DuckDBPyConnection, postgres_server: Server) -> None:
    postgres_server.run("CREATE DATABASE forms")
    try:
        postgres.copied(local, ["t"], postgres_server, "forms")
        engine = postgres.engine({"t": TABLE}, postgres_server, "forms")
        try:
            assert elsewhere(local, POSTGRES, engine.run) == []
        finally:
            engine.close()
    finally:
        postgres_server.run("DROP DATABASE forms WITH (FORCE)")


def test_conditions_mean_the_same_on_spark(
    local: duckdb.DuckDBPyConnection, spark_address: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = spark.copied(local, ["t"], tmp_path_factory.mktemp("forms"))
    engine = spark.engine({"t": TABLE}, files, spark_address)
    try:
        assert elsewhere(local, SPARK, engine.run) == []
    finally:
        engine.close()


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT *, a + 1 AS z FROM t",
        "SELECT a + 1 AS z, * FROM t",
        "SELECT t.*, a AS z FROM t",
        "SELECT t.*, .5 * a AS z, i AS j FROM t",
        "SELECT *, a AS z FROM t WHERE s NOT LIKE 'x%'",
        "SELECT *, i NOT IN (7) AS z FROM t",
    ],
)
def test_a_star_may_stand_beside_other_columns(local: duckdb.DuckDBPyConnection, inner: str) -> None:
    query = bind(f"SELECT count(z) FROM ({inner}) AS r", tables={"t": TABLE})
    z = render.expression(query.aggregates[0].arguments[0])
    ours = local.execute(f"SELECT {z} AS z FROM ({render.relation(query.relation)}) ORDER BY z").fetchall()
    plain = local.execute(f"SELECT z FROM ({inner}) ORDER BY z").fetchall()
    assert ours == [(float(z) if isinstance(z, Decimal) else z,) for (z,) in plain]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("NOT LIKE 'a'", "HB501"),
        ("s NOT 'a'", "HB501"),
        ("s NOT NOT LIKE 'a'", "HB501"),
        ("a NOT BETWEEN 1", "HB501"),
        ("a NOT BETWEEN AND 2", "HB501"),
        ("AND NOT BETWEEN 1 AND 2", "HB501"),
        ("a NOT", "HB501"),
        ("i NOT IN ()", "HB508"),
        ("a = .", "HB501"),
        ("a = ..5", "HB501"),
        ("a = 1.5.5", "HB504"),
        ("a .5 > 1", "HB506"),
        ("a = .5.5", "HB508"),
        ("a = 1e", "HB508"),
        ("a > +", "HB501"),
        ("a > 1 +", "HB501"),
        ("p IS NOT q", "HB503"),
        ("i = NULL", "HB508"),
        ("i IN (NULL)", "HB508"),
        ("unknown", "HB506"),
        ("s LIKE 'a!x' ESCAPE '!'", "HB508"),
        ("s LIKE 'a!' ESCAPE '!'", "HB508"),
        ("s LIKE 'a!_' ESCAPE '!!'", "HB508"),
        ("a > 2e1-3", "HB508"),
    ],
)
def test_other_conditions_are_refused(condition: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        bound(condition)
    assert caught.value.code == code
