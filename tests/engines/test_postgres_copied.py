"""Copies of PostgreSQL tables: the same values, one snapshot, at the version that was asked for, and nothing left."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from tests.engines.test_postgres import HOSTILE, view
from tests.fixtures.postgres import place
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Column, Kind, Table
from hubbub.engines.base import DataSource, Engine, EngineLimits, Upload, View
from hubbub.engines.multi_engine import open_engine
from hubbub.engines.postgres.connection import PostgresEngine, schema
from hubbub.engines.postgres.copied import CopiedEngine
from hubbub.errors import RunError
from hubbub.sql import render
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.expressions import Col
from hubbub.sql.relations import Scan

pytestmark = pytest.mark.postgres
LIMITS = EngineLimits(memory=200, disk=200, threads=1, seconds=30, copy=True)


@pytest.fixture
def database(postgres_server: Server) -> Iterator[str]:
    """A new database; a server's databases outlive no test."""
    with postgres_server.database() as dsn:
        yield psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]  # type: ignore[misc]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _read(engine: Engine, columns: tuple[Column, ...], dialect: Dialect) -> list[tuple[object, ...]]:
    """Return the rows of a scan in any order, with values that compare exactly."""
    table = Table("hostile", columns, None)
    scan = Scan(
        table, tuple(Col(c.name, c.kind, column_facts(c)) for c in columns), tuple(column.name for column in columns)
    )
    arrays = engine.run(render.relation(scan, dialect)).through(dict)
    engine.close()
    texts = [
        [None if hidden else _exact(value, column.kind) for value, hidden in zip(data, mask, strict=True)]
        for column in columns
        for data, mask in [(np.ma.getdata(arrays[column.name]), np.ma.getmaskarray(np.ma.asarray(arrays[column.name])))]
    ]
    return sorted(zip(*texts, strict=True), key=repr)


def _exact(value: object, kind: Kind) -> object:
    if kind.numeric:
        return float(value).hex()  # type: ignore[arg-type]
    return str(np.datetime64(value, "us")) if kind in (Kind.DATE, Kind.TIMESTAMP) else value  # type: ignore[call-overload]


def test_hostile_values_are_copied_as_the_server_reads_them(postgres_server: Server, database: str) -> None:
    postgres_server.run(HOSTILE, database)
    source = place(postgres_server, database, "hostile")
    kinds = {field.name: field.kind for field in schema(source) if field.kind}
    also = {"d": Kind.TIMESTAMP, "ts": Kind.DATE, "i": Kind.REAL, "n": Kind.TEXT, "f": Kind.TEXT}
    for chosen in (kinds, {**kinds, **also}):
        columns = tuple(Column(name, kind) for name, kind in chosen.items())
        views = [View("hostile", source, tuple(chosen.items()))]
        there = _read(PostgresEngine(views, limits=LIMITS), columns, POSTGRES)
        here = _read(CopiedEngine(views, limits=LIMITS), columns, DUCKDB)
        assert len(here) == 7
        assert here == there


def test_a_changed_table_is_copied_again_and_an_unchanged_one_is_not(
    postgres_server: Server, database: str, folder: Path
) -> None:
    postgres_server.run("CREATE TABLE t (x bigint, at bigint); INSERT INTO t VALUES (1, 1), (2, 1)", database)
    views = [View("t", place(postgres_server, database, "t"), (("x", Kind.INTEGER),), version="at")]
    engine = open_engine(views, frozenset(), limits=LIMITS)
    assert isinstance(engine, CopiedEngine)

    def total() -> int:
        return engine.run('SELECT sum(x) AS n FROM "t"').through(lambda arrays: int(arrays["n"][0]))

    assert total() == 3
    (first,) = folder.glob("hubbub-copy-*")
    assert [file.stat().st_mode & 0o777 for file in first.iterdir()] == [0o600]
    postgres_server.run("INSERT INTO t VALUES (10, 1)", database)  # the declared version says that nothing changed
    assert total() == 3
    postgres_server.run("INSERT INTO t VALUES (100, 2)", database)
    assert total() == 113
    assert not first.exists()
    engine.close()
    assert [path for path in folder.iterdir() if path.name.startswith("hubbub-copy")] == []


def test_tables_of_one_question_are_copied_in_one_snapshot(
    postgres_server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_server.run("CREATE TABLE a (x bigint); CREATE TABLE b (x bigint)", database)
    postgres_server.run("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)", database)
    engine = CopiedEngine([view(postgres_server, database, name) for name in "ab"], limits=LIMITS)
    from hubbub.engines.postgres import copied

    copy_table = copied._copy_table
    calls: list[bool] = []

    def interleaved(*arguments: object) -> None:
        copy_table(*arguments)  # type: ignore[arg-type]
        if not calls:
            calls.append(True)
            postgres_server.run("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)", database)

    monkeypatch.setattr(copied, "_copy_table", interleaved)
    arrays = engine.run('SELECT (SELECT count(*) FROM "a") AS a, (SELECT count(*) FROM "b") AS b').through(dict)
    engine.close()
    assert (int(arrays["a"][0]), int(arrays["b"][0])) == (1, 1)


@pytest.mark.parametrize("limits", [{"disk": 0}, {"seconds": 0}])
def test_a_copy_beyond_its_limits_fails_without_a_message(
    postgres_server: Server, database: str, folder: Path, limits: dict[str, int]
) -> None:
    postgres_server.run("CREATE TABLE t AS SELECT generate_series(1, 10) AS x", database)
    kept = replace(LIMITS, **limits)  # type: ignore[arg-type]
    engine = CopiedEngine([view(postgres_server, database, "t")], limits=kept)
    with pytest.raises(RunError) as caught:
        engine.run('SELECT count(*) AS n FROM "t"')
    engine.close()
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert list(folder.iterdir()) == []


def test_a_public_file_is_joined_with_a_copied_table(postgres_server: Server, database: str, tmp_path: Path) -> None:
    postgres_server.run("CREATE TABLE t AS SELECT generate_series(1, 10) AS x", database)
    path = tmp_path / "names.csv"
    path.write_text("x,name\n1,one\n2,two\n")
    names = View("names", DataSource("csv", path), (("x", Kind.INTEGER), ("name", Kind.TEXT)))
    uploads = [Upload(names, dict)]
    engine = CopiedEngine([view(postgres_server, database, "t")], limits=LIMITS, uploads=uploads)
    arrays = engine.run('SELECT count(*) AS n FROM "t" JOIN "names" USING (x)').through(dict)
    engine.close()
    assert int(arrays["n"][0]) == 2
