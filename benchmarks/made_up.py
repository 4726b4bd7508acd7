"""A session over one made-up table, for benchmarks of analyses."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from numpy.typing import NDArray

import hubbub
from hubbub.curator.session import Session


@contextmanager
def session_over(
    table: Mapping[str, NDArray[Any]], declared: Mapping[str, str], *, unit: str = "row"
) -> Iterator[Session]:
    """Open a session over a table called `made`; `declared` says what hubbub.yaml says of each column."""
    with tempfile.TemporaryDirectory() as folder:
        with duckdb.connect() as connection:
            connection.register("made", dict(table))
            connection.execute(f"COPY (SELECT * FROM made) TO '{folder}/made.parquet'")
        columns = "\n".join(f"      {name}: {text}" for name, text in declared.items())
        Path(folder, "hubbub.yaml").write_text(
            f"version: 1\ndatasets:\n  made:\n    source: made.parquet\n    unit: {unit}\n"
            f"    budget: {{epsilon: 1000, delta: 1e-3}}\n    columns:\n{columns}\n"
            "analysts: {ana: {made: {epsilon: 1000, delta: 1e-3}}}\n"
        )
        with hubbub.open(Path(folder, "hubbub.yaml")) as session:
            yield session
