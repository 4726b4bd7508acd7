"""DuckDB inside this process, for texts to parse and for answers that are computed from: it reads no file.

Tested in tests/sql/test_local_database.py.
"""

import threading
from functools import cache

import duckdb

_LOCAL = threading.local()
_LOCK = threading.Lock()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Open the database of this process; it has no threads of its own, so that a fork leaves nothing behind."""
    return duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "async_threads": 0,
            "enable_external_access": False,
            "python_enable_replacements": False,
        },
    )


def connection(use: str) -> duckdb.DuckDBPyConnection:
    """Return this thread's connection for one use; what it registers is seen by no other."""
    own: duckdb.DuckDBPyConnection | None = getattr(_LOCAL, use, None)
    if own is None:
        with _LOCK:
            own = _database().cursor()
        setattr(_LOCAL, use, own)
    return own
