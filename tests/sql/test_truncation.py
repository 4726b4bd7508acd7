"""Each unit's rows are cut before a join that multiplies: by that unit's rows alone, and alike on every engine."""

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Hash
from hubbub.engines.base import Engine
from hubbub.errors import QueryError
from hubbub.sql import fanout, render
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.plan import Plan, plan
from hubbub.sql.relations import Rel, Scan, Truncate, columns

COLUMNS = (
    Column("u", Kind.INTEGER),
    Column("x", Kind.REAL, bounds=Bounds(Fraction(-9), Fraction(9))),
    Column("y", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(9))),
    Column("w", Kind.TEXT),
    Column("b", Kind.BOOLEAN),
    Column("d", Kind.DATE),
    Column("m", Kind.TIMESTAMP),
)
TABLE = Table("t", COLUMNS, PrivacyUnit("u", entity="person", groups=2, rows=3))
OTHER = replace(TABLE, name="o", unit=PrivacyUnit("u", entity="person", groups=1, rows=2))
PUBLIC = Table(
    "p",
    (Column("y", Kind.INTEGER), Column("z", Kind.TEXT), Column("n", Kind.INTEGER)),
    None,
    unique=("n",),
    size=30,
    repeats={"y": 3, "z": 15, "n": 1},
)
TABLES = {"t": TABLE, "o": OTHER, "p": PUBLIC}


def planned(text: str, tables: dict[str, Table] = TABLES, **options: Any) -> Plan:
    query = bind(text, tables=tables)
    return plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s", **options)


def filled(rng: random.Random, rows: int = 60) -> duckdb.DuckDBPyConnection:
    """Few units with many rows, some of them alike, with both zeros and NULL."""
    connection = duckdb.connect(config={"threads": 1})
    types = "u BIGINT, x DOUBLE, y BIGINT, w VARCHAR, b BOOLEAN, d DATE, m TIMESTAMP"
    made = [
        (
            rng.randrange(5),
            rng.choice((None, 0.0, -0.0, 1.25, rng.uniform(-9, 9))),
            rng.choice((None, 0, 1, 2)),
            rng.choice((None, "", "a", "é", "b" * 50)),
            rng.choice((None, True, False)),
            rng.choice((None, "2020-02-29", "0001-01-01")),
            rng.choice((None, "2020-02-29 01:02:03.5")),
        )
        for _ in range(rows)
    ]
    for name in ("t", "o"):
        connection.execute(f"CREATE TABLE {name} ({types})")
        insert_rows(connection, name, made)
    connection.execute(
        "CREATE TABLE p AS SELECT i // 3 AS y, ['a', 'é'][1 + i % 2] AS z, i AS n FROM range(30) AS r(i)"
    )
    return connection


def kept(rel: Rel, connection: duckdb.DuckDBPyConnection) -> dict[Any, Counter[Any]]:
    """Run a relation and sort its rows by their owner, each with its exact form."""
    text = render.relation(rel, DUCKDB)
    found = connection.execute(f"SELECT * FROM ({text})").fetchall()
    units: dict[Any, Counter[Any]] = {}
    for unit, *values in found:
        units.setdefault(unit, Counter())[tuple(map(repr, values))] += 1
    return units


def a_cut(hashing: Hash, rows: int = 4) -> Truncate:
    query = bind("SELECT count(x), count(y), count(w), count(b), count(d), count(m) FROM t", tables=TABLES)
    assert isinstance(query.relation, Scan)
    return Truncate(query.relation, rows, "s", hashing)


@pytest.mark.parametrize("hashing", ["engine", "portable"])
def test_a_cut_is_a_function_of_the_rows_of_one_unit(hashing: Hash) -> None:
    for seed in range(6):
        connection = filled(random.Random(seed))
        cut = a_cut(hashing)
        whole = kept(cut, connection)
        before = {unit: rows.total() for unit, rows in kept(cut.input, connection).items()}
        assert {unit: rows.total() for unit, rows in whole.items()} == {u: min(4, n) for u, n in before.items()}
        for gone in before:
            connection.execute("CREATE OR REPLACE TABLE rest AS SELECT * FROM t WHERE u <> ? ORDER BY random()", [gone])
            connection.execute("CREATE OR REPLACE TABLE whole AS FROM t; DROP TABLE t; ALTER TABLE rest RENAME TO t")
            assert kept(cut, connection) == {unit: rows for unit, rows in whole.items() if unit != gone}
            connection.execute("DROP TABLE t; ALTER TABLE whole RENAME TO t")


def test_a_cut_that_looks_at_the_order_of_rows_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the two zeros are not brought into one form, so which is called the first copy tells the order."""
    monkeypatch.setattr(DUCKDB.__class__, "one_zero", lambda _, text: text)
    connection, seen = duckdb.connect(config={"threads": 1}), set()
    for first, second in (("0.0", "-0.0"), ("-0.0", "0.0")):
        connection.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT 1 AS u, x, NULL AS y, NULL AS w, NULL AS b, NULL AS d, NULL AS m "
            f"FROM (VALUES ({first}::DOUBLE), ({second}::DOUBLE)) AS v(x)"
        )
        seen.add(str(kept(a_cut("engine", 1), connection)))
    assert len(seen) == 2
    monkeypatch.undo()
    seen.clear()
    for first, second in (("0.0", "-0.0"), ("-0.0", "0.0")):
        connection.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT 1 AS u, x, NULL AS y, NULL AS w, NULL AS b, NULL AS d, NULL AS m "
            f"FROM (VALUES ({first}::DOUBLE), ({second}::DOUBLE)) AS v(x)"
        )
        seen.add(str(kept(a_cut("engine", 1), connection)))
    assert len(seen) == 1


def test_a_cut_keeps_the_same_rows_on_every_engine(postgres_server: Server, spark_address: str, tmp_path: Path) -> None:
    postgres_server.run("CREATE DATABASE cuts")
    connection = filled(random.Random(7), 200)
    postgres.copied(connection, ["t"], postgres_server, "cuts")
    engines: list[tuple[Dialect, Engine]] = [
        (POSTGRES, postgres.engine({"t": TABLE}, postgres_server, "cuts")),
        (SPARK, spark.engine({"t": TABLE}, spark.copied(connection, ["t"], tmp_path), spark_address)),
    ]
    cut = a_cut("portable", 9)
    names = ["$unit", *(column.name for column in columns(cut) if column.name[0] not in "dm")]
    try:
        shown = ", ".join(map(DUCKDB.identifier, names))
        mine = connection.execute(f"SELECT {shown} FROM ({render.relation(cut, DUCKDB)})").fetchall()
        assert max(Counter(row[0] for row in mine).values()) == 9
        for dialect, engine in engines:
            shown = ", ".join(map(dialect.identifier, names))
            theirs = engine.run(f"SELECT {shown} FROM ({render.relation(cut, dialect)}) AS c").through(
                lambda arrays: list(zip(*(column.tolist() for column in arrays.values()), strict=True))
            )
            assert Counter(map(repr, mine)) == Counter(map(repr, theirs))
    finally:
        for _, engine in engines:
            engine.close()
        postgres_server.run("DROP DATABASE cuts WITH (FORCE)")


JOINS = {
    # the bound of t is 2 · 3, of o 1 · 2, and a value of y stands three times in p
    "SELECT count(*) FROM t JOIN o ON t.u = o.u": 12,
    "SELECT count(*) FROM t AS a JOIN t AS b ON a.u = b.u JOIN t AS c ON a.u = c.u": 216,
    "SELECT count(*) FROM t LEFT JOIN o ON t.u = o.u AND t.y = o.y": 12,
    "SELECT count(*) FROM t JOIN p ON t.y = p.y": 18,
    "SELECT count(*) FROM t JOIN p ON t.y = p.y JOIN p AS q ON t.w = q.z": 270,
    "SELECT count(*) FROM t JOIN p ON t.y * 0 = p.y * 0": 180,
    "SELECT count(*) FROM (SELECT u, y FROM t UNION ALL SELECT u, y FROM o) AS s JOIN o ON s.u = o.u": 16,
    "SELECT count(*) FROM (SELECT u, y, count(*) AS n FROM t GROUP BY u, y) AS s JOIN o ON s.u = o.u": 12,
}


@pytest.mark.parametrize("text", JOINS)
def test_no_unit_makes_more_rows_than_the_plan_states(text: str) -> None:
    part = fanout.bound_joins(bind(text, tables=TABLES).relation, fanout.TruncationBounds(None, None, "s", "engine"))
    assert part.most == JOINS[text]
    most = max(rows.total() for rows in kept(part.rel, filled(random.Random(3), 200)).values())
    assert 0 < most <= JOINS[text]
    # without the cuts there are more: the test would see them missing
    uncut = kept(bind(text, tables=TABLES).relation, filled(random.Random(3), 200))
    assert max(rows.total() for rows in uncut.values()) > JOINS[text]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(x) FROM t",
        "SELECT count(*) FROM t JOIN p ON t.y = p.n",
        "SELECT count(*) FROM t WHERE u IN (SELECT u FROM o WHERE y = 1)",
        "SELECT avg(s.n) FROM (SELECT u, least(count(*), 5) AS n FROM t GROUP BY u) AS s JOIN o ON s.u = o.u",
        "SELECT count(*) FROM (SELECT u, y FROM t UNION ALL SELECT u, y FROM t) AS s",
    ],
)
def test_what_multiplies_nothing_is_not_cut(text: str) -> None:
    assert all("$cut" not in statement.sql for statement in planned(text).statements)


def test_filters_on_one_side_come_before_its_cut() -> None:
    """Of a unit's forty rows the one that is asked about is kept, also where one row may be."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE t AS SELECT 1 AS u, 0.0 AS x, i % 40 AS y FROM range(40) AS r(i)")
    one = {"t": replace(TABLE, unit=PrivacyUnit("u", entity="person", groups=1, rows=1))}
    text = "SELECT count(*) FROM t AS a JOIN t AS b ON a.u = b.u WHERE a.y = 7 AND b.y = 3 AND a.y > b.y"
    counted = [
        connection.execute(planned(text.replace("7", str(y)), one).statements[0].sql).fetchall() for y in (7, 2, 9)
    ]
    assert [rows[0][-1] if rows else 0 for rows in counted] == [1, 0, 1]


def test_a_query_may_tighten_the_cut() -> None:
    text = "SELECT count(*) FROM t JOIN o ON t.u = o.u"
    (line,) = {each for each in planned(text, rows=1, groups=1).derivation if each.startswith("truncation")}
    assert line == "truncation before the join: each unit keeps at most 1 rows, by hash; stability 1 in units"


def refused(text: str, tables: dict[str, Table] = TABLES, **options: Any) -> QueryError:
    with pytest.raises(QueryError) as caught:
        planned(text, tables, **options)
    return caught.value


def test_joins_that_make_too_many_rows_are_refused_with_the_factor() -> None:
    aliases = [f"t{i}" for i in range(16)]
    itself = "SELECT count(*) FROM t AS t0" + "".join(f" JOIN t AS {a} ON t0.u = {a}.u" for a in aliases[1:])
    wide = {"t": replace(TABLE, unit=PrivacyUnit("u", entity="person", groups=1, rows=5))}
    error = refused(itself, wide)
    assert error.code == "HB524"
    assert "5 rows of t" in error.message
    assert planned(itself, wide, rows=1).derivation
    many = "SELECT count(*) FROM o" + "".join(f" JOIN p AS {a} ON o.w = {a}.z" for a in aliases[:15])
    error = refused(many)
    assert error.code == "HB524"
    assert "15 matches of one row in p" in error.message


def test_public_tables_that_make_too_many_rows_are_refused() -> None:
    """An engine leaves such a join out where nobody is there to meet it, and runs out of time where somebody is."""
    text = "SELECT count(*) FROM o JOIN (SELECT a.n AS n FROM p AS a {} JOIN p AS b ON a.y = b.y) AS s ON o.y = s.n"
    large = {**TABLES, "p": replace(PUBLIC, size=fanout.MAX_PUBLIC_ROWS, repeats={"y": 2, "n": 1})}
    for how in ("", "LEFT"):
        assert planned(text.format(how)).statements
        error = refused(text.format(how), large)
        assert error.code == "HB524"
        assert "public tables p and p" in error.message


def test_public_tables_meet_each_other_on_columns_that_repeat() -> None:
    """Each row of p meets the three that share its y, and a unit's row of t meets those."""
    connection = filled(random.Random(1))
    connection.execute("CREATE OR REPLACE TABLE o AS SELECT 7 AS u, 0.0 AS x, 4 AS y")
    text = "SELECT count(*) FROM o JOIN (SELECT a.n AS n FROM p AS a JOIN p AS b ON a.y = b.y) AS s ON o.y = s.n"
    found = connection.execute(
        planned(text, {**TABLES, "o": replace(OTHER, unit=PrivacyUnit("u", entity="person", rows=9))}).statements[0].sql
    )
    assert [row[-1] for row in found.fetchall()] == [3]


def test_a_unique_column_whose_values_meet_when_they_are_read_is_counted() -> None:
    tables = {**TABLES, "p": replace(PUBLIC, repeats={**PUBLIC.repeats, "n": 4})}
    assert (
        fanout.bound_joins(
            bind("SELECT count(*) FROM t JOIN p ON t.y = p.n", tables=tables).relation,
            fanout.TruncationBounds(None, None, "s", "engine"),
        ).most
        == 6 * 4
    )


def test_a_public_table_that_nobody_counted_is_refused() -> None:
    tables = {**TABLES, "p": replace(PUBLIC, size=None)}
    assert refused("SELECT count(*) FROM t JOIN p ON t.y = p.y", tables).code == "HB525"
    assert planned("SELECT count(*) FROM t JOIN p ON t.y = p.n", tables).statements


BOTH = "t AS a JOIN t AS b ON a.u = b.u"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {{}}, count(*) FROM {BOTH} GROUP BY 1",
        f"SELECT count(DISTINCT {{}}) FROM {BOTH}",
        f"SELECT count(*) FROM (SELECT a.u, {{}}, count(*) AS n FROM {BOTH} GROUP BY 1, 2) AS s",
        f"SELECT count(*) FROM (SELECT a.u, a.y, min({{}}) AS z FROM {BOTH} GROUP BY 1, 2) AS s WHERE z = 'a'",
        f"SELECT count(*) FROM {BOTH} WHERE {{}} = 'a'",
        f"SELECT {{}}, count(*) FROM {BOTH} JOIN (SELECT DISTINCT u FROM t) AS c ON a.u = c.u GROUP BY 1",
    ],
)
def test_joined_rows_with_much_text_are_refused(text: str) -> None:
    column = Column("k", Kind.TEXT, values=("a", "bb"))
    tables = {
        "t": replace(TABLE, columns=(*COLUMNS, column), unit=PrivacyUnit("u", entity="person", groups=30, rows=30))
    }
    codes = []
    for key in ("a.w || b.w", "a.k || b.k"):
        query = bind(text.format(key), tables=tables)
        try:
            plan(query, epsilon=Fraction(1), delta=Fraction(1, 10**6), salt="s")
        except QueryError as error:
            codes.append(error.code)
        else:
            codes.append("planned")
    assert codes == ["HB568", "planned"]
