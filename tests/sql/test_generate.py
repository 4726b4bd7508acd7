"""Writing a tree as DuckDB's SQL takes steps in proportion to the tree, whatever functions are nested in it."""

import pytest
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from hubbub.curator.question import Question
from hubbub.errors import QueryError
from hubbub.sql import generate
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.spellings import DIALECTS
from hubbub.sql.text import SourceText

DEPTH = 22
#: Functions of several arguments that dialects spell alike, the first nested in itself.
NESTED = ("GREATEST({}, 5)", "LEAST({}, 5)", "COALESCE({}, 5)", "NULLIF({}, 5)", "MOD({}, 5)", "ROUND({}, 5)")


def nested(pattern: str) -> str:
    text = "x"
    for _ in range(DEPTH):
        text = pattern.format(text)
    return f"SELECT COUNT(*) FROM t WHERE {text} > 7"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("pattern", NESTED)
def test_a_deep_query_is_written_or_refused_in_bounded_steps(
    pattern: str, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are counted, not seconds: nested 22 deep, an argument that is written twice has four million copies."""
    steps = 0
    bounded = generate._BoundedGenerator.sql

    def counted(self: generate._BoundedGenerator, *args: object, **options: object) -> str:
        nonlocal steps
        steps += 1
        return bounded(self, *args, **options)

    monkeypatch.setattr(generate._BoundedGenerator, "sql", counted)
    text = nested(pattern)
    tree = Dialect.get_or_raise(dialect).parse(text)[0]
    assert tree is not None
    nodes = sum(1 for _ in tree.walk())
    written = ""
    try:
        written = duckdb_sql(tree, SourceText(text))
    except QueryError as error:
        assert error.code == "HB746"  # noqa: PT017 - either end is right, as long as it comes
    assert 0 < steps <= generate.STEPS_AT_LEAST + generate.STEPS_PER_NODE * nodes + 1
    assert len(written) <= 100 * len(text)


def test_what_would_double_is_refused_by_its_code() -> None:
    with pytest.raises(QueryError, match="HB746"):
        Question(nested("GREATEST({}, 5)"), dialect="bigquery").text()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, SUM(x) OVER (PARTITION BY b ORDER BY c) AS s FROM t JOIN u USING (k) WHERE a IN (1, 2)",
        "WITH w AS (SELECT 'it''s' AS q) SELECT GREATEST(q, 'b'), CAST(x AS DOUBLE) FROM w /* note */ LIMIT 3",
    ],
)
def test_an_ordinary_query_is_written_as_sqlglot_writes_it(text: str) -> None:
    (tree,) = Dialect.get_or_raise("duckdb").parse(text)
    assert isinstance(tree, exp.Expr)
    assert duckdb_sql(tree, SourceText(text)) == tree.sql(dialect="duckdb", comments=False)
    assert duckdb_sql(tree, SourceText(text), identify=True) == tree.sql("duckdb", comments=False, identify=True)
