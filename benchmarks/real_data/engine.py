"""An engine that remembers its results, so that an answer can be repeated with fresh noise in milliseconds."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays
from hubbub.engines.duckdb.connection import DuckDBEngine


@contextmanager
def remembered() -> Iterator[None]:
    """Run each statement once for as long as the context lasts. The data must not change, and one engine is open."""
    results: dict[str, Secret[Arrays]] = {}
    run = DuckDBEngine.run

    def recall(engine: DuckDBEngine, sql: str) -> Secret[Arrays]:
        if sql not in results:
            results[sql] = run(engine, sql)
        return results[sql]

    with mock.patch.object(DuckDBEngine, "run", recall):
        yield
