"""The suites of questions on PostgreSQL and Spark: a sample of them, or all under HUBBUB_CAMPAIGN=full."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server
from tests.sql.suites import schemas
from tests.sql.suites.harness import files, opened
from tests.sql.suites.questions import SuiteQuestion, questions, themes, waiting

FULL = os.environ.get("HUBBUB_CAMPAIGN") == "full"
#: Every how many questions one is asked. Spark needs seconds for each; its dialect has tests of its own.
STEP = {"postgres": 1, "spark": 1} if FULL else {"postgres": 24, "spark": 96}
#: Questions for which each engine writes something of its own, and that are never left out.
ALWAYS = frozenset({"small lines of one brand, beside the noisy average of their part"})


def chosen(schema: str, engine: str) -> list[SuiteQuestion]:
    """Choose questions that need the engine: all that do not wait."""
    asked = [each for folder, theme in themes() if folder == schema for each in questions(folder, theme)]
    late = waiting()
    ready = [each for each in asked if each.id not in late]
    return [each for place, each in enumerate(ready) if place % STEP[engine] == 0 or each.name in ALWAYS]


@pytest.fixture
def database(postgres_server: Server) -> Iterator[str]:
    postgres_server.run("CREATE DATABASE suites")
    yield "suites"
    postgres_server.run("DROP DATABASE suites WITH (FORCE)")


@pytest.mark.parametrize("schema", schemas.SCHEMAS)
def test_postgres_answers_the_same_questions(
    schema: str, postgres_server: Server, database: str, tmp_path: Path
) -> None:
    with schemas.create(schema) as connection:
        names = schemas.names(connection)
        postgres.copied(connection, names, postgres_server, database)
        sources = {name: postgres.address(postgres_server, database, f"public.{name}") for name in names}
        with opened(tmp_path, schema, "postgres", connection, sources) as ground:
            complaints = list(ground.complaints(chosen(schema, "postgres")))
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("schema", schemas.SCHEMAS)
def test_spark_answers_the_same_questions(schema: str, spark_address: str, tmp_path: Path) -> None:
    with schemas.create(schema) as connection:
        sources = files(connection, schemas.names(connection), tmp_path)
        there = {name: f"spark:{spark_address}/{path}" for name, path in sources.items()}
        with opened(tmp_path, schema, "spark", connection, there) as ground:
            complaints = list(ground.complaints(chosen(schema, "spark")))
    assert not complaints, "\n".join(complaints)
