"""A run on an engine in memory, for analyses that are prepared without a curator."""

from collections.abc import Callable, Mapping
from typing import cast

import duckdb
import pytest

from hubbub.analyses.base import Arrays
from hubbub.core.secret import Secret
from hubbub.noise.source import Source, system


class Bench:
    """What a charged analysis runs with, on a connection; remembers the texts that it was asked."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: Source) -> None:
        self.connection = connection
        self.source = source
        self.asked: list[str] = []
        self.steps: list[tuple[float, str]] = []

    def ask(self, sql: str) -> Secret[Arrays]:
        self.asked.append(sql)
        return Secret(cast(Arrays, self.connection.execute(sql).fetchnumpy()))

    def progress(self, done: float, what: str) -> None:
        self.steps.append((done, what))


@pytest.fixture
def bench() -> Callable[[Mapping[str, str]], Bench]:
    """Make a run on tables that are given as SQL: name → the SELECT that makes it."""

    def made(tables: Mapping[str, str]) -> Bench:
        connection = duckdb.connect()
        for name, select in tables.items():
            connection.execute(f'CREATE TABLE "{name}" AS {select}')
        return Bench(connection, system())

    return made
