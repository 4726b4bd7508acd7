"""Tables of Spark that would be misread, or whose rows change by themselves, are refused."""

import os
from pathlib import Path

import duckdb
import pytest
from tests.fixtures import spark

from hubbub.engines.base import LOOSE_COLLATION, UnreachableError, locate
from hubbub.engines.spark import catalog
from hubbub.engines.spark.connection import schema
from hubbub.engines.spark.views import check_plan
from hubbub.errors import ConfigError

REFUSED = {
    "SELECT *, now() AS at FROM {t}": r"now\(\)",
    "SELECT * FROM {t} WHERE name = current_user()": r"current_user\(\)",
    "SELECT * FROM {t} WHERE rand() < 0.5": r"rand\(\)",
    "SELECT * FROM {t} TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "SELECT * FROM {t} WHERE id IN (SELECT id FROM {t} WHERE uuid() > 'a')": r"uuid\(\)",
}
ACCEPTED = ("SELECT id, upper(name) AS name, date_trunc('month', day) AS m FROM {t} WHERE id > 0",)


def test_views_that_change_by_themselves_are_refused_and_a_loose_collation_is_no_unit(spark_address: str) -> None:
    session = catalog.connect(spark_address, spark.LIMITS)
    table = f"steady_{os.getpid()}"
    views = [f"{table}_{number}" for number in range(len(REFUSED) + len(ACCEPTED) + 1)]
    try:
        session.sql(f"CREATE TABLE {table} (id INT, name STRING COLLATE UTF8_LCASE, day DATE) USING parquet")
        for view, body in zip(views, (*REFUSED, *ACCEPTED), strict=False):
            session.sql(f"CREATE VIEW {view} AS {body.format(t=table)}")
        wide = ", ".join(f"id + {number} AS x{number}" for number in range(60))
        session.sql(
            f"CREATE VIEW {views[-1]} AS SELECT {wide}, now() AS at, {wide.replace('AS x', 'AS y')} FROM {table}"
        )
        for view, why in zip((*views[: len(REFUSED)], views[-1]), (*REFUSED.values(), r"now\(\)"), strict=True):
            with pytest.raises(ConfigError, match=f"HB411.*uses {why}"):
                schema(locate(f"spark:{spark_address}/{view}", "source", base=Path(), name="v"))
        good = schema(locate(f"spark:{spark_address}/{views[len(REFUSED)]}", "source", base=Path(), name="v"))
        assert [field.name for field in good] == ["id", "name", "m"]
        unfit = {field.name: field.unfit for field in good}
        assert unfit["name"] == LOOSE_COLLATION
        assert not unfit["id"]
    finally:
        for view in views:
            session.sql(f"DROP VIEW IF EXISTS {view}")
        session.sql(f"DROP TABLE IF EXISTS {table}")
        session.stop()


def test_the_folder_of_a_delta_table_is_not_read_as_parquet(tmp_path: Path, spark_address: str) -> None:
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake" / "_delta_log" / "0.json").write_text("{}")
    duckdb.execute(f"COPY (SELECT 1 AS id) TO '{tmp_path}/lake/part.parquet'")
    duckdb.execute(f"COPY (SELECT 1 AS id) TO '{tmp_path}/plain.parquet'")
    with pytest.raises(ConfigError, match="folder of a Delta table"):
        schema(locate(f"spark:{spark_address}/{tmp_path}/lake", "source", base=Path(), name="v"))
    assert schema(locate(f"spark:{spark_address}/{tmp_path}/plain.parquet", "source", base=Path(), name="v"))


def test_user_defined_functions_in_a_plan_are_refused() -> None:
    for plan in ("Project [pythonUDF(id#1) AS x]", "Project [UDF:f(id#1)]", "Project [HiveSimpleUDF#a.B(id#1)]"):
        with pytest.raises(UnreachableError, match="user-defined"):
            check_plan(plan)
    check_plan("Project [upper(name#2) AS now#3, version#4]")
