"""Small files with values that must never be seen, and an engine over all of them."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource, EngineLimits, View
from hubbub.engines.duckdb.connection import DuckDBEngine

COLUMNS = (("id", Kind.INTEGER), ("amount", Kind.REAL), ("word", Kind.TEXT))
Open = Callable[..., DuckDBEngine]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same three rows as CSV, Parquet, DuckDB and SQLite, and one file that nobody declared."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.execute(
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 1.5, 'CANARY-7431'), (2, NULL, 'b'), (3, -2.0, NULL))"
            " AS v(id, amount, word)"
        )
        made.execute(f"COPY t TO '{tmp_path}/t.parquet'")
        made.execute(f"COPY t TO '{tmp_path}/t.csv' (HEADER)")
        made.execute(f"COPY (SELECT 'UNDECLARED' AS s) TO '{tmp_path}/other.csv' (HEADER)")
    with sqlite3.connect(tmp_path / "t.sqlite") as lite:
        lite.execute("CREATE TABLE t (id INTEGER, amount REAL, word TEXT)")
        lite.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, 1.5, "CANARY-7431"), (2, None, "b"), (3, -2.0, None)])
    lite.close()
    return tmp_path


@pytest.fixture
def places(folder: Path) -> dict[str, DataSource]:
    return {
        "csv": DataSource("csv", folder / "t.csv"),
        "parquet": DataSource("parquet", folder / "t.parquet"),
        "duckdb": DataSource("duckdb", folder / "t.duckdb", "t"),
        "sqlite": DataSource("sqlite", folder / "t.sqlite", "t"),
    }


@pytest.fixture
def open_engine() -> Iterator[Open]:
    """Open engines that are closed at the end."""
    opened: list[DuckDBEngine] = []

    def opener(views: list[View], limits: EngineLimits | None = None) -> DuckDBEngine:
        opened.append(DuckDBEngine(views, limits=limits or EngineLimits(memory=200, disk=0, threads=1, seconds=20)))
        return opened[-1]

    yield opener
    for engine in opened:
        engine.close()


@pytest.fixture
def engine(places: dict[str, DataSource], open_engine: Open) -> DuckDBEngine:
    """One engine over the four forms, each under the name of its form."""
    return open_engine([View(name, place, COLUMNS) for name, place in places.items()])
