"""Views whose rows change although their tables do not are refused on every engine; others are accepted."""

import sqlite3
from pathlib import Path

import duckdb
import pytest

from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource, EngineLimits, UnreachableError, View
from hubbub.engines.duckdb.connection import DuckDBEngine, schema
from hubbub.errors import ConfigError


@pytest.mark.parametrize(
    ("view", "why"),
    [
        ("SELECT *, now() AS at FROM t", r"now\(\)"),
        ("SELECT *, current_date AS at FROM t", "CURRENT_DATE"),
        ("SELECT *, current_timestamp AS at FROM t", "CURRENT_TIMESTAMP|get_current_timestamp"),
        ("SELECT * FROM t WHERE name = current_user", "CURRENT_USER"),
        ("SELECT * FROM t WHERE random() < 0.5", r"random\(\)"),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM t AS s WHERE s.id < 9 * random())", r"random\(\)"),
        ("SELECT *, age(born) AS years FROM t", r"age\(\)"),
        ("SELECT * FROM t WHERE chance() < 0.5", r"random\(\)"),
        ("SELECT * FROM inner_view", r"uuid\(\)"),
        ("SELECT *, nextval('numbers') AS n FROM t", r"nextval\(\)"),
        ("SELECT * FROM t TABLESAMPLE 10%", "TABLESAMPLE"),
        ("SELECT id, dice FROM generated", r"random\(\)"),
        ("SELECT column0 AS id FROM read_csv('/etc/hostname', header = false)", r"read_csv\(\)"),
    ],
)
def test_a_view_of_duckdb_that_changes_by_itself_is_refused(tmp_path: Path, view: str, why: str) -> None:
    _furnish(tmp_path, view)
    with pytest.raises(ConfigError, match=f"HB411.*({why})"):
        schema(DataSource("duckdb", tmp_path / "t.duckdb", "v"))


@pytest.mark.parametrize(
    "view",
    [
        "SELECT id, lower(name) AS name, date_trunc('month', born) AS born, age(born, DATE '2020-01-01') AS a FROM t",
        "WITH a AS (SELECT * FROM t) SELECT a.id, user, sum(id) OVER (PARTITION BY name) AS s FROM a, range(2) AS r",
        "SELECT * FROM t AS x JOIN t AS y USING (id) WHERE shorter(x.name) = 'a'",
        "SELECT id, twice FROM generated",
    ],
)
def test_other_views_of_duckdb_are_accepted(tmp_path: Path, view: str) -> None:
    _furnish(tmp_path, view)
    assert schema(DataSource("duckdb", tmp_path / "t.duckdb", "v"))[0].name == "id"


def _furnish(folder: Path, view: str) -> None:
    with duckdb.connect(str(folder / "t.duckdb")) as made:
        made.execute('CREATE TABLE t (id INTEGER, name VARCHAR, born DATE, "user" VARCHAR)')
        made.execute("CREATE TABLE generated (id INTEGER, twice AS (2 * id))")
        if "dice" in view:
            made.execute("CREATE OR REPLACE TABLE generated (id INTEGER, dice AS (random()))")
        made.execute(
            "CREATE MACRO chance() AS random(); CREATE MACRO shorter(x) AS left(x, 1); CREATE SEQUENCE numbers"
        )
        made.execute("CREATE VIEW inner_view AS SELECT *, uuid() AS code FROM t")
        made.execute(f"CREATE VIEW v AS {view}")


def test_a_view_of_sqlite_that_changes_by_itself_is_refused(tmp_path: Path) -> None:
    bodies = {
        "SELECT id, random() AS r FROM t": "random",
        "SELECT id FROM t WHERE at < date('now')": "now",
        "SELECT id FROM t WHERE at < CURRENT_TIMESTAMP": "current_timestamp",
        "SELECT id, date() AS d FROM t": "date",
        "SELECT id FROM inner_view": "random",
        "SELECT id, upper(at) AS at, date(at) AS d FROM t": "",
    }
    for number, (body, why) in enumerate(bodies.items()):
        path = tmp_path / f"{number}.sqlite"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE t (id INTEGER, at TEXT)")
        connection.execute("CREATE VIEW inner_view AS SELECT id FROM t ORDER BY random()")
        connection.execute(f"CREATE VIEW v AS {body}")
        connection.close()
        source = DataSource("sqlite", path, "v")
        if why:
            with pytest.raises(ConfigError, match=f"HB411.*uses {why}"):
                schema(source)
        else:
            assert schema(source)[0].name == "id"


def test_a_view_that_becomes_unsteady_is_refused_before_the_next_query(tmp_path: Path) -> None:
    _furnish(tmp_path, "SELECT id FROM t")
    view = View("v", DataSource("duckdb", tmp_path / "t.duckdb", "v"), (("id", Kind.INTEGER),))
    engine = DuckDBEngine([view], limits=EngineLimits(memory=200, disk=0, threads=1, seconds=20))
    engine.fingerprint("v")
    engine.run('SELECT count(*) AS n FROM "v"')
    changed = tmp_path / "new.duckdb"
    with duckdb.connect(str(changed)) as made:
        made.execute("CREATE TABLE t AS SELECT 1 AS id; CREATE VIEW v AS SELECT id FROM t WHERE random() < 2")
    changed.replace(tmp_path / "t.duckdb")
    for _ in range(2):
        with pytest.raises(UnreachableError, match=r"random\(\)"):
            engine.fingerprint("v")
    engine.close()
