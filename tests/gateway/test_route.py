"""Who answers a query: the catalog or the service."""

import pytest

from hubbub.errors import ParameterError
from hubbub.gateway.route import MAX_NESTING, route

DATASETS = {"visits", "columns"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT version(), current_schema()",
        "SELECT relname FROM pg_class",
        "SELECT * FROM information_schema.columns",
        "SELECT * FROM hubbub.budget",
        "WITH t AS (SELECT oid FROM pg_catalog.pg_class) SELECT * FROM t",
        "VALUES (1)",
    ],
)
def test_questions_about_the_catalog_never_reach_the_service(sql: str) -> None:
    assert route(sql, DATASETS, "hubbub").tree is not None


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits"),
        ("SELECT COUNT(*) FROM columns", "SELECT COUNT(*) FROM columns"),
        ('SELECT COUNT(*) FROM public."visits"', 'SELECT COUNT(*) FROM        "visits"'),
        ("SELECT COUNT(*) FROM hubbub.public.visits", "SELECT COUNT(*) FROM               visits"),
        ("SELECT COUNT(public.visits.age) FROM public.visits", "SELECT COUNT(       visits.age) FROM        visits"),
        ("SELECT * FROM release(17)", "SELECT * FROM release(17)"),
        ("SELECT COUNT(*) FROM nothing", "SELECT COUNT(*) FROM nothing"),
        ("SELECT COUNT( FROM visits", "SELECT COUNT( FROM visits"),
        ("CALL kmeans(table => 'visits')", "CALL kmeans(table => 'visits')"),
        ("SELECT 'public.visits' FROM visits", "SELECT 'public.visits' FROM visits"),
    ],
)
def test_everything_else_is_asked_as_it_was_written_without_the_schema(sql: str, asked: str) -> None:
    found = route(sql, DATASETS, "hubbub")
    assert (found.tree, found.sql) == (None, asked)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM visits, pg_class", "HB818"),
        ("SELECT (SELECT COUNT(*) FROM visits) FROM hubbub.budget", "HB818"),
        ("SELECT relname FROM pg_catalog.pg_class WHERE (", "HB810"),
        ("SELECT " + "(" * (MAX_NESTING + 1), "HB809"),
        ("SELECT " + "1," * 20_000 + "1", "HB809"),
    ],
)
def test_what_is_neither_is_refused(sql: str, code: str) -> None:
    with pytest.raises(ParameterError, match=code):
        route(sql, DATASETS, "hubbub")
