"""Start a real Spark for tests and campaigns, copy DuckDB tables to Parquet files, and open an engine on them."""

import fcntl
import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb

from hubbub.core.schema import Table
from hubbub.engines.base import EngineLimits, View, identifier, locate
from hubbub.engines.spark.connection import SparkEngine
from hubbub.engines.spark.local_server import LocalServer

#: For small tables: one partition, and no code generation.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}
LIMITS = EngineLimits(memory=1000, seconds=120)

_numbers = itertools.count()


@contextmanager
def shared(folder: Path) -> Iterator[str]:
    """Yield the address of one Spark for all processes that share a folder; the first process starts and stops it.

    Each process holds the lock `used` in shared mode while it uses Spark; the first one waits for the others.
    """
    with (folder / "spark-turn").open("a") as turn, (folder / "spark-used").open("a") as used:
        fcntl.flock(turn, fcntl.LOCK_EX)
        known, mine = folder / "spark-address", None
        if not known.exists():
            mine = LocalServer("local[2]", LIMITS, SMALL)
            known.write_text(mine.address)
        address = known.read_text()
        fcntl.flock(used, fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        try:
            yield address
        finally:
            if mine is None:
                fcntl.flock(used, fcntl.LOCK_UN)
            else:
                fcntl.flock(turn, fcntl.LOCK_EX)
                known.unlink()
                fcntl.flock(used, fcntl.LOCK_EX)
                mine.close()


def copied(source: duckdb.DuckDBPyConnection, names: Iterable[str], folder: Path) -> dict[str, Path]:
    """Copy each table to a file."""
    made = {}
    for name in names:
        made[name] = folder / f"{name}-{next(_numbers)}.parquet"
        source.execute(f"COPY (FROM {identifier(name)}) TO '{made[name]}'")
    return made


def engine(
    tables: Mapping[str, Table], files: Mapping[str, Path], address: str, limits: EngineLimits = LIMITS
) -> SparkEngine:
    """Open the engine on files."""
    views = []
    for name, table in tables.items():
        unit = table.unit.column if table.unit else None
        shown = tuple((c.name, c.kind) for c in table.columns if not c.hidden or c.name == unit)
        place = locate(f"spark:{address}/{files[name]}", "source", base=Path(), name=name)
        views.append(View(name, place, shown))
    return SparkEngine(views, limits=limits)
