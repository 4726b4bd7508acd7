"""Columns in which one value is written in several ways: what may be a unit, and what Spark makes of them."""

import sqlite3
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.fixtures import equal_values as alike
from tests.fixtures import spark
from tests.fixtures.postgres import place as in_postgres
from tests.fixtures.postgres_server import Server

from hubbub.analyses.rows import Rows
from hubbub.config import examine
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.engines.base import Arrays, DataSource, Field, View, locate
from hubbub.engines.duckdb.connection import schema
from hubbub.engines.postgres.connection import schema as postgres_schema
from hubbub.engines.spark.connection import SparkEngine
from hubbub.engines.spark.connection import schema as spark_schema
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.plan import plan


def refused(fields: tuple[Field, ...]) -> set[str]:
    return {field.name for field in fields if field.unfit or field.misread(field.kind or Kind.TEXT)}


def test_a_unit_is_no_column_whose_equal_values_differ_in_a_file(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "p.duckdb")) as made:
        made.execute(
            "CREATE TABLE p (a VARCHAR COLLATE NOCASE, b VARCHAR COLLATE NFC, c VARCHAR COLLATE de, d INTERVAL,"
            " e DOUBLE[], f BLOB, g VARCHAR, h DOUBLE, i BIGINT, j UUID, k TIMESTAMPTZ, l VARCHAR COLLATE C)"
        )
        made.execute("CREATE VIEW v AS SELECT upper(a) AS a, a COLLATE C AS b, CAST(a AS VARCHAR) AS c FROM p")
    assert refused(schema(DataSource("duckdb", tmp_path / "p.duckdb", "p"))) == set("abcdef")
    assert refused(schema(DataSource("duckdb", tmp_path / "p.duckdb", "v"))) == set("ac")
    with sqlite3.connect(tmp_path / "p.sqlite") as lite:
        lite.execute("CREATE TABLE p (a TEXT COLLATE NOCASE, b TEXT COLLATE RTRIM, c, d BLOB, e TEXT, f INTEGER)")
        lite.execute("CREATE VIEW v AS SELECT a, e, a || '' AS i FROM p")
    assert refused(schema(DataSource("sqlite", tmp_path / "p.sqlite", "p"))) == set("abcd")
    assert "a" in refused(schema(DataSource("sqlite", tmp_path / "p.sqlite", "v")))


def test_a_unit_is_no_column_whose_equal_values_differ_in_postgres(postgres_server: Server) -> None:
    with alike.in_postgres(postgres_server) as sources:
        database = sources["first"].split("/")[3]
        postgres_server.run("CREATE TABLE odd (a interval, b float8[], c jsonb, d bytea, e uuid)", database)
        assert refused(postgres_schema(in_postgres(postgres_server, database, "odd"))) == set("abcd")
        names = refused(postgres_schema(in_postgres(postgres_server, database, "first")))
    # moments and decimals are rounded when they are read
    rounded = {"scale", "scale_text", "instant", "instant_text", "day", "moment"}
    assert names == {"nocase", "noaccent", "normal", "domain"} | rounded


@pytest.mark.parametrize(
    ("type_", "declared", "code"),
    [
        ("DOUBLE", "{type: integer}", "HB413"),
        ("BIGINT", "{type: real}", "HB413"),
        ("VARCHAR", "{type: integer}", "HB413"),
        ("TIMESTAMP", "{type: date}", "HB413"),
        ("VARCHAR COLLATE NOCASE", "{}", "HB413"),
        ("BLOB", "{type: text}", "HB413"),
        ("INTERVAL", "{type: text}", "HB414"),
        ("DOUBLE", "{type: text}", None),
        ("DOUBLE", "{}", None),
        ("VARCHAR", "{}", None),
        ("BIGINT", "{}", None),
        ("BIGINT", "{type: text}", None),
    ],
)
def test_a_unit_is_read_so_that_equals_stay_equal_and_others_apart(
    tmp_path: Path, type_: str, declared: str, code: str | None
) -> None:
    with duckdb.connect(str(tmp_path / "p.duckdb")) as made:
        made.execute(f"CREATE TABLE p (who {type_}, x DOUBLE)")
    yaml = tmp_path / "hubbub.yaml"
    yaml.write_text(
        "version: 1\ndatasets:\n  p: {source: 'duckdb:p.duckdb#p', unit: {column: who}, budget: {epsilon: 1},"
        f" columns: {{who: {declared}, x: {{}}}}}}\nanalysts: {{ana: {{p: {{epsilon: 1}}}}}}\n"
    )
    _, problems = examine(yaml)
    assert [problem.code for problem in problems] == ([code] if code else [])


def test_an_interval_is_refused_as_a_key_and_may_be_hidden(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "p.duckdb")) as made:
        made.execute("CREATE TABLE p (who BIGINT, x INTERVAL)")
    yaml = tmp_path / "hubbub.yaml"
    for declared, codes in (("{type: text}", ["HB414"]), ("{type: text, hidden: true}", []), ("{}", [])):
        yaml.write_text(
            "version: 1\ndatasets:\n  p: {source: 'duckdb:p.duckdb#p', unit: row, budget: {epsilon: 1},"
            f" columns: {{who: {{}}, x: {declared}}}}}\nanalysts: {{ana: {{p: {{epsilon: 1}}}}}}\n"
        )
        assert [problem.code for problem in examine(yaml)[1]] == codes


def _texts(found: Arrays) -> list[tuple[str, ...]]:
    return sorted(zip(*([repr(v) for v in found[name].tolist()] for name in sorted(found)), strict=True))


def test_spark_shows_equal_values_in_one_form_whichever_comes_first(tmp_path: Path, spark_address: str) -> None:
    """Before noise, over both orders; what is expected is written by hand."""
    kinds = {"zero": Kind.REAL, "free": Kind.REAL, "short": Kind.REAL, "zero_text": Kind.TEXT, "scale": Kind.REAL}
    texts = ("padded", "nocase", "noaccent", "trimmed", "forms")
    columns = (
        Column("half", Kind.BOOLEAN),
        Column("flag", Kind.BOOLEAN),
        Column("who", Kind.REAL),
        Column("n", Kind.INTEGER, Bounds(Fraction(-(10**9)), Fraction(10**9))),
        *(Column(name, kind) for name, kind in kinds.items()),
        *(Column(name, Kind.TEXT) for name in texts),
    )
    sources = alike.in_spark(spark_address, tmp_path, ("first", "second"))
    table = Table("t", columns, PrivacyUnit("who", groups=1, rows=1))
    signed = "CASE WHEN flag THEN -abs(n) ELSE abs(n) END"
    asked = {
        "keys": f"SELECT {', '.join(kinds)}, count(*) AS m FROM t GROUP BY {', '.join(kinds)}",
        "choice": f"SELECT CASE WHEN half THEN {signed} ELSE n + 1 END AS k, count(*) AS m FROM t GROUP BY k",
    }
    distinct = ", ".join(f"count(DISTINCT `{name}`) AS `{name}`" for name in texts)
    seen = []
    for world, source in sources.items():
        spot = locate(source, "source", base=Path(), name="t")
        engine = SparkEngine([View("t", spot, tuple((c.name, c.kind) for c in columns))], limits=spark.LIMITS)
        try:
            made = {
                name: plan(
                    bind(text, tables={"t": table}),
                    epsilon=Fraction(9),
                    delta=Fraction(1, 10**6),
                    salt="s",
                    dialect=SPARK,
                )
                .statements[0]
                .sql
                for name, text in asked.items()
            }
            keys = engine.run(made["keys"]).through(_texts)
            assert keys == [("0.0", "0.0", "0.0", "'0.0'", "1.0", "10")], world
            seen.append([(abs(float(k)), *m) for k, *m in engine.run(made["choice"]).through(_texts)])
            counts = engine.run(f"SELECT {distinct} FROM `t` AS s").through(_texts)
            assert counts == [("2",) * len(texts)], world
            rows = Rows(table, columns[3:4], RenderOptions("s", "engine", SPARK))
            taken = engine.run(rows.sql).through(rows.take)
            assert len(np.unique(np.asarray(taken.owners))) == alike.PEOPLE
        finally:
            engine.close()
    assert seen[0] == seen[1]
    names = refused(spark_schema(locate(sources["first"], "source", base=Path(), name="t")))
    assert names == {"nocase", "noaccent", "trimmed", "forms"}
