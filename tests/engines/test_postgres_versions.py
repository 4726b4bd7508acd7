"""Changes of PostgreSQL tables: what is not a change of rows costs nothing, and every change of rows is seen."""

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.fixtures.postgres import place
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.curator.versions import Versions
from hubbub.engines.base import EngineLimits, View
from hubbub.engines.postgres import data_version
from hubbub.engines.postgres.connection import PostgresEngine


@pytest.fixture
def database(postgres_server: Server) -> Iterator[str]:
    with postgres_server.database() as dsn:
        yield str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])


@contextmanager
def opened(
    server: Server, database: str, table: str = "x", role: str = "hubbub", *, checksum: bool = False
) -> Iterator[PostgresEngine]:
    source = place(server, database, table)
    if role != "hubbub":
        source = type(source)(source.form, source.path, source.table, source.address.replace("hubbub@", f"{role}@"))
    view = View("x", source, (("id", Kind.INTEGER),), checksum=checksum)
    with closing(PostgresEngine([view], limits=EngineLimits(seconds=30))) as engine:
        yield engine


def content(engine: PostgresEngine) -> str:
    value = engine.content_hash("x")
    assert value is not None
    return value.through(bytes.hex)


IDLE = (
    "VACUUM FULL x",
    "VACUUM FREEZE x",
    "CLUSTER x USING x_id",
    "REINDEX TABLE x",
    "ANALYZE x",
    "BEGIN; INSERT INTO x SELECT 7 FROM generate_series(1, 999); ROLLBACK",
    "BEGIN; DELETE FROM x; ROLLBACK",
    "UPDATE x SET id = 0 WHERE FALSE",
    "SELECT pg_stat_reset()",
    "INSERT INTO other VALUES (1)",
    "BEGIN; SELECT * FROM x FOR UPDATE; COMMIT",
)
CHANGES = (
    "INSERT INTO x VALUES (3)",
    "UPDATE x SET id = id WHERE id = 3",
    "UPDATE x SET id = 4 WHERE id = 3",
    "WITH gone AS (DELETE FROM x WHERE id = 1) INSERT INTO x VALUES (9)",
    "ALTER TABLE x ADD extra int DEFAULT 5",
    "ALTER TABLE x DROP extra; ALTER TABLE x ADD extra int DEFAULT 6",
    "ALTER TYPE mood RENAME VALUE 'sad' TO 'low'",
    "CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -$1'",
    "CREATE OR REPLACE VIEW v AS SELECT f(id) AS id FROM x WHERE id < 99",
    "TRUNCATE x",
)


def test_only_changes_of_rows_change_the_content_hash(postgres_server: Server, database: str) -> None:
    postgres_server.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE x (id int, m mood); CREATE TABLE other (id int);"
        "CREATE INDEX x_id ON x (id); INSERT INTO x VALUES (1, 'ok'), (2, 'sad');"
        "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';"
        "CREATE VIEW v AS SELECT f(id) AS id FROM x",
        database,
    )
    with opened(postgres_server, database, "v") as engine:
        seen = [content(engine)]
        for statement in IDLE:
            postgres_server.run(statement, database)
            assert content(engine) == seen[0], statement
        for step in ("INSERT INTO x VALUES (3)", "DELETE FROM x WHERE id = 3"):
            postgres_server.run(step, database)
            assert (content(engine) == seen[0]) == step.startswith("DELETE")  # the same rows again are the same state
        for change in CHANGES:
            postgres_server.run(change, database)
            now = content(engine)
            assert now not in seen, change
            seen.append(now)


def test_every_history_of_small_changes_has_a_hash_for_each_state(postgres_server: Server, database: str) -> None:
    """All histories of two steps on a partitioned table, each from where the one before ended: no hash comes back."""
    postgres_server.run(
        "CREATE TABLE x (id int) PARTITION BY HASH (id);"
        "CREATE TABLE x0 PARTITION OF x FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
        "CREATE TABLE x1 PARTITION OF x FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        database,
    )
    steps = (
        "INSERT INTO x VALUES (1), (2)",
        "DELETE FROM x WHERE ctid IN (SELECT min(ctid) FROM x WHERE id = 1)",
        "UPDATE x SET id = 3 - id",
    )
    with opened(postgres_server, database) as engine:
        hashes: dict[str, list[tuple[object, ...]]] = {}
        with psycopg.connect(postgres_server.dsn(database), autocommit=True) as writer:
            for step in itertools.chain.from_iterable(itertools.product(steps, repeat=2)):
                writer.execute(step.encode())
                state = writer.execute("SELECT tableoid, xmin, ctid, id FROM x ORDER BY tableoid, ctid").fetchall()
                assert hashes.setdefault(content(engine), state) == state, step
        assert len(hashes) > 12


def test_a_hash_that_ignores_transactions_is_caught(
    postgres_server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted error: rows are counted, whoever wrote them."""
    monkeypatch.setattr(data_version, "_BY_TRANSACTION", data_version._BY_TRANSACTION.replace("xmin", "1"))
    with pytest.raises(AssertionError):
        test_only_changes_of_rows_change_the_content_hash(postgres_server, database)


def test_a_state_keeps_its_name_through_what_is_no_change(
    postgres_server: Server, database: str, tmp_path: Path
) -> None:
    postgres_server.run("CREATE TABLE x (id int); INSERT INTO x VALUES (1), (2)", database)
    versions = Versions(tmp_path / "versions.json")
    with opened(postgres_server, database) as engine:
        reads: list[str] = []

        def hashed() -> Secret[bytes] | None:
            reads.append("x")
            return engine.content_hash("x")

        def name() -> str:
            return versions.name("x", engine.fingerprint("x"), hashed)

        first = name()
        assert (name(), len(reads)) == (first, 1)  # the rows are read once for each fingerprint
        postgres_server.run("VACUUM FULL x", database)
        assert (name(), len(reads)) == (first, 2)
        assert (name(), len(reads)) == (first, 2)
        postgres_server.run("DELETE FROM x WHERE id = 1", database)
        postgres_server.run("VACUUM FULL x", database)  # so that the fingerprint changes at once
        second = name()
        assert second != first
        versions.refresh("x")
        assert name() not in (first, second)


def test_large_tables_and_hidden_tables_are_not_read(
    postgres_server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_server.run("DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    postgres_server.run(
        "CREATE TABLE x (id int); INSERT INTO x VALUES (1); CREATE VIEW v AS SELECT id FROM x;"
        "GRANT SELECT ON v TO reader",
        database,
    )
    with opened(postgres_server, database, "v", "reader") as hidden:
        hidden.fingerprint("x")
        assert hidden.content_hash("x") is None
    monkeypatch.setattr(data_version, "HASHED_WHOLE", 100)
    with opened(postgres_server, database) as large:
        assert large.content_hash("x") is None
    with opened(postgres_server, database, checksum=True) as declared:
        assert declared.content_hash("x") is not None
