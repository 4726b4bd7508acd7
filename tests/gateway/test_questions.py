"""What tools ask the catalog at sign-in and when they list tables: recorded by running them, answered here, free.

`HUBBUB_CAMPAIGN=full python -m tests.campaigns.pg_clients --write` records the questions.
"""

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlglot

from hubbub.gateway.catalog.contents import PgColumn, PgTable
from hubbub.gateway.catalog.database import CatalogDatabase
from hubbub.gateway.catalog.translate import Names

FILE = Path(__file__).with_name("questions.json")
QUESTIONS: dict[str, list[str]] = json.loads(FILE.read_text())
#: The tables of the campaign, in the order that gives them the same oids.
TABLES = (
    PgTable("public", "kinds", (PgColumn("word", "text"), PgColumn("whole", "integer"))),
    PgTable(
        "public",
        "visits",
        (
            PgColumn("region", "text"),
            PgColumn("age", "integer"),
            PgColumn("day", "date"),
            PgColumn("cost", "real"),
        ),
        "private: answers have noise and a price",
    ),
)


@pytest.fixture(scope="module")
def catalog() -> CatalogDatabase:
    return CatalogDatabase(TABLES)


def ask(catalog: CatalogDatabase, sql: str) -> Any:
    names = Names("ana", "hubbub", 7, {"search_path": "public"}.get)
    count = len(set(re.findall(r"\$(\d+)", sql)))
    return catalog.answer(sqlglot.parse_one(sql, read="postgres"), [None] * count, names, lambda _: None)


@pytest.mark.parametrize("tool", QUESTIONS)
def test_every_question_of_a_tool_is_answered(catalog: CatalogDatabase, tool: str) -> None:
    for sql in QUESTIONS[tool]:
        answer = ask(catalog, sql)
        assert answer.columns, sql
        assert all(len(row) == len(answer.columns) for row in answer.rows), sql


@pytest.mark.parametrize("tool", ["psql", "Superset", "DuckDB (ATTACH)"])
def test_the_answers_name_the_tables_and_their_columns(catalog: CatalogDatabase, tool: str) -> None:
    cells = {str(cell) for sql in QUESTIONS[tool] for row in ask(catalog, sql).rows for cell in row}
    assert {"visits", "kinds", "region", "cost"} <= cells


@pytest.mark.postgres
def test_the_columns_are_named_as_postgresql_names_them(catalog: CatalogDatabase, postgres_dsn: str) -> None:
    """The same questions to a real PostgreSQL have columns of the same names; psql reads its own by their place."""
    every = dict.fromkeys(sql for tool, listed in QUESTIONS.items() if tool != "psql" for sql in listed)
    plain = [sql for sql in every if "$" not in sql and "hubbub" not in sql]
    assert len(plain) > 20
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE visits (region text, age bigint, day date, cost double precision)")
        for sql in plain:
            real = connection.execute(sql).description
            assert real is not None
            assert [name for name, _ in ask(catalog, sql).columns] == [column.name for column in real], sql
