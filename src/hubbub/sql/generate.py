"""Write a syntax tree as DuckDB's SQL, in a number of steps that is bounded by the size of the tree.

Tested in tests/sql/test_generate.py.
"""

from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from hubbub.sql.text import SourceText

#: Steps for each node. A tree that is written as it stands takes two to four.
STEPS_PER_NODE = 40
STEPS_AT_LEAST = 2_000


class _TooLongError(Exception):
    """More steps than the tree may take."""


class _BoundedGenerator(DuckDBGenerator):
    """Counts its steps: for some functions sqlglot writes an argument twice, so nested ones double at every level."""

    steps_left = 0

    def sql(self, *args: Any, **options: Any) -> str:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise _TooLongError
        return super().sql(*args, **options)


def duckdb_sql(tree: exp.Expr, source: SourceText, *, identify: bool = False) -> str:
    """Write the tree without comments, or raise HB746 where its text would be far longer than the query."""
    generator = _BoundedGenerator(dialect=DuckDB(), identify=identify, comments=False)
    generator.steps_left = STEPS_AT_LEAST + STEPS_PER_NODE * sum(1 for _ in tree.walk())
    try:
        return generator.generate(tree)
    except _TooLongError:
        raise source.error(
            tree,
            "HB746",
            "This query grows too large when its functions are translated.",
            "Nest fewer functions in one another, or compute the inner ones in a subquery first.",
        ) from None
