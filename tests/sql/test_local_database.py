"""The database of this process: each thread and each use has a connection of its own."""

import threading
from pathlib import Path

import duckdb
import numpy as np
import pytest

from hubbub.sql import local_database


def test_threads_do_not_see_what_others_register() -> None:
    own = local_database.connection("test")
    own.register("arrays", {"a": np.array([1, 2])})
    seen: list[str] = []

    def look() -> None:
        try:
            local_database.connection("test").execute("FROM arrays").fetchall()
        except duckdb.CatalogException:
            seen.append("nothing")

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    own.unregister("arrays")
    assert seen == ["nothing"]
    assert local_database.connection("test") is own
    assert local_database.connection("other") is not own


def test_it_reads_no_file_and_starts_no_thread() -> None:
    connection = local_database.connection("test")
    before = {*Path("/proc/self/task").iterdir()}  # of other tests, too: theirs may end meanwhile
    assert connection.execute("SELECT sum(i) FROM range(100000) AS t(i)").fetchall() == [(4999950000,)]
    assert {*Path("/proc/self/task").iterdir()} <= before
    with pytest.raises(duckdb.PermissionException):
        connection.execute("FROM read_csv('/etc/passwd')")
