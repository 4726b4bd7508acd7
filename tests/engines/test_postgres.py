"""PostgreSQL as an engine: what it is shown of a table, what it may do, and what becomes of it when the server goes."""

import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import psycopg
import pytest
from tests.fixtures.postgres import place
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Bounds, Column, Kind, Table
from hubbub.engines.base import EngineLimits, UnreachableError, Upload, View, locate
from hubbub.engines.postgres.connection import PostgresEngine, schema
from hubbub.errors import ConfigError, RunError
from hubbub.sql import render
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.expressions import Col
from hubbub.sql.relations import Scan


@pytest.fixture
def database(postgres_server: Server) -> Iterator[str]:
    """A new database; a server's databases outlive no test."""
    with postgres_server.database() as dsn:
        yield psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]  # type: ignore[misc]


def view(server: Server, database: str, table: str, *columns: tuple[str, Kind]) -> View:
    found = columns or tuple((f.name, f.kind) for f in schema(place(server, database, table)) if f.kind is not None)
    return View(table.rpartition(".")[2], place(server, database, table), found)


def opened(server: Server, database: str, table: str, *columns: tuple[str, Kind], seconds: int = 30) -> PostgresEngine:
    return PostgresEngine([view(server, database, table, *columns)], limits=EngineLimits(seconds=seconds))


# --- what is read ------------------------------------------------------------------------------------------------

HOSTILE = """
CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN posint AS bigint; CREATE DOMAIN small AS posint;
CREATE TABLE hostile (
    n numeric, f float8, r float4, i bigint, d date, ts timestamp, tz timestamptz, t text, c char(4), e mood,
    dom small, u uuid, b boolean, arr int[], j jsonb, twice float8 GENERATED ALWAYS AS (f * 0) STORED
);
INSERT INTO hostile (n, f, r, i, d, ts, tz, t, c, e, dom, u, b) VALUES
    ('NaN', 'NaN', 'NaN', 9223372036854775807, 'infinity', 'infinity', 'infinity', 'a', 'a', 'ok', 1,
     gen_random_uuid(), true),
    ('Infinity', 'Infinity', 'Infinity', -9223372036854775808, '-infinity', '-infinity', '-infinity', 'A', 'a   ',
     'sad', -1, NULL, false),
    ('-Infinity', '-Infinity', '-Infinity', 0, '5874897-12-31', '294276-12-31 23:59:59', '294276-12-31 23:59:59+00',
     '', '', NULL, 2, NULL, NULL),
    ('1e4000', 1.7976931348623157e308, 3.4e38, 1, '4713-01-01 BC', '4713-01-01 00:00:00 BC',
     '4713-01-02 00:00:00+00 BC', E'\\x01', NULL, 'ok', 3, NULL, true),
    ('-1e4000', 5e-324, 1e-45, -1, '2024-02-29', '2024-02-29 12:00:00', '2024-02-29 12:00:00+14',
     repeat('z', 100000), 'zz', 'ok', NULL, NULL, true),
    ('1e-4000', -5e-324, -1e-45, 7, NULL, NULL, NULL, 'é', NULL, NULL, NULL, NULL, NULL),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
"""


def test_types_are_read_from_the_catalogue_and_odd_ones_are_left_out(postgres_server: Server, database: str) -> None:
    postgres_server.run(HOSTILE, database)
    kinds = {field.name: field.kind for field in schema(place(postgres_server, database, "hostile"))}
    assert kinds["arr"] is kinds["j"] is None
    assert kinds["dom"] is Kind.INTEGER
    assert kinds["e"] is kinds["u"] is kinds["c"] is Kind.TEXT
    assert kinds["n"] is kinds["r"] is kinds["twice"] is Kind.REAL
    assert (kinds["d"], kinds["ts"], kinds["tz"]) == (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP)


def test_hostile_values_neither_raise_nor_pass_a_clamp(postgres_server: Server, database: str) -> None:
    postgres_server.run(HOSTILE, database)
    kinds = {field.name: field.kind for field in schema(place(postgres_server, database, "hostile")) if field.kind}
    also = {"d": Kind.TIMESTAMP, "ts": Kind.DATE, "i": Kind.REAL, "n": Kind.TEXT, "f": Kind.TEXT}
    for chosen in (kinds, {**kinds, **also}):
        columns = tuple(
            Column(name, kind, Bounds(Fraction(0), Fraction(10)) if kind.numeric else None)
            for name, kind in chosen.items()
        )
        scan = Scan(
            Table("hostile", columns, None),
            tuple(Col(c.name, c.kind, column_facts(c)) for c in columns),
            tuple(c.name for c in columns),
        )
        engine = opened(postgres_server, database, "hostile", *chosen.items())
        found = engine.run(render.relation(scan, POSTGRES)).through(dict)
        engine.close()
        for column in columns:
            values = np.ma.compressed(np.ma.asarray(found[column.name]))
            if column.kind.numeric:
                assert values.astype(float).min() >= 0, column
                assert values.astype(float).max() <= 10, column
            elif column.kind in (Kind.DATE, Kind.TIMESTAMP):
                years = np.asarray(values, dtype="datetime64[Y]").astype(int) + 1970
                assert years.min() >= 1
                assert years.max() <= 9999
    assert len(found["b"]) == 7


def test_texts_are_told_apart_by_their_bytes_whatever_the_collation(postgres_server: Server, database: str) -> None:
    postgres_server.run(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)", database
    )
    postgres_server.run("CREATE TABLE w (t text COLLATE loose)", database)
    postgres_server.run("INSERT INTO w VALUES ('a'), ('A'), ('á'), ('a')", database)
    column = Column("t", Kind.TEXT, values=("a",))
    scan = Scan(Table("w", (column,), None), (Col("t", Kind.TEXT),), ("t",))
    engine = opened(postgres_server, database, "w", ("t", Kind.TEXT))
    text = f"SELECT count(t) AS n FROM ({render.relation(scan, POSTGRES)}) AS r"
    assert engine.run(text).through(lambda found: int(found["n"][0])) == 2
    engine.close()


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("CREATE TABLE s.x (id int); ALTER TABLE s.x ENABLE ROW LEVEL SECURITY", "row-level security"),
        ("CREATE VIEW s.x AS SELECT id FROM s.base WHERE random() < 0.5", "random()"),
        (
            "CREATE VIEW s.inner_one AS SELECT id, clock_timestamp() AS t FROM s.base;"
            "CREATE VIEW s.x AS SELECT id FROM s.inner_one WHERE t IS NOT NULL",
            "clock_timestamp()",
        ),
        (
            "CREATE FUNCTION s.f(int) RETURNS int LANGUAGE sql AS 'SELECT $1';"
            "CREATE VIEW s.x AS SELECT s.f(id) AS id FROM s.base",
            "f()",
        ),
        ("CREATE SEQUENCE s.x", "not a local table or view"),
        (
            "CREATE EXTENSION postgres_fdw; CREATE SERVER away FOREIGN DATA WRAPPER postgres_fdw;"
            "CREATE TABLE s.x (id int) PARTITION BY LIST (id);"
            "CREATE FOREIGN TABLE s.part PARTITION OF s.x DEFAULT SERVER away",
            "foreign table",
        ),
        ("SELECT 1", "does not exist"),
        ("CREATE TABLE s.x (id int); REVOKE USAGE ON SCHEMA s FROM reader", "has no access to the schema"),
    ],
)
def test_what_could_not_be_asked_about_in_safety_is_refused_when_it_is_declared(
    postgres_server: Server, database: str, made: str, why: str
) -> None:
    postgres_server.run("DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    postgres_server.run("CREATE SCHEMA s; CREATE TABLE s.base (id int); GRANT USAGE ON SCHEMA s TO reader", database)
    postgres_server.run(made, database)
    postgres_server.run("GRANT SELECT ON ALL TABLES IN SCHEMA s TO reader", database)
    source = f"postgresql://reader@/{database}/s.x?host={postgres_server.home}"
    with pytest.raises(ConfigError) as refused:
        schema(locate(source, "source", base=Path(), name="x"))
    assert why in refused.value.message
    assert refused.value.remedy


def test_a_column_in_which_one_person_could_be_two_cannot_be_the_unit(postgres_server: Server, database: str) -> None:
    postgres_server.run(
        "CREATE EXTENSION citext; CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1',"
        " deterministic = false)",
        database,
    )
    postgres_server.run(
        "CREATE TABLE p (a citext, b text COLLATE loose, c numeric, d text, e bigint, f date)", database
    )
    unfit = {field.name: bool(field.unfit) for field in schema(place(postgres_server, database, "p"))}
    assert unfit == {"a": True, "b": True, "c": True, "d": False, "e": False, "f": True}


# --- what it may do ----------------------------------------------------------------------------------------------


def test_a_session_writes_nothing_and_finds_no_name_that_is_not_qualified(
    postgres_server: Server, database: str
) -> None:
    """As a superuser even: the session itself is read-only, one statement at a time."""
    postgres_server.run("CREATE TABLE x (id int); CREATE SEQUENCE q; INSERT INTO x VALUES (1)", database)
    engine = opened(postgres_server, database, "x")
    for attempt in (
        "DELETE FROM public.x",
        "SELECT nextval('public.q') AS n",
        "SELECT 1 AS n; DROP TABLE public.x",
        "WITH gone AS (DELETE FROM public.x RETURNING id) SELECT * FROM gone",
        "SELECT count(*) AS n FROM q",
        "COPY public.x TO '/tmp/x'",
        "SELECT set_config('transaction_read_only', 'off', true)",
    ):
        with pytest.raises(RunError):
            engine.run(attempt)
    # a setting of the session can be changed, and changes nothing: every transaction is read-only by itself
    engine.run("SELECT set_config('default_transaction_read_only', 'off', false) AS n")
    with pytest.raises(RunError):
        engine.run("DELETE FROM public.x")
    assert engine.run('SELECT count(*) AS n FROM "x" AS s').through(lambda found: int(found["n"][0])) == 1
    engine.close()


def test_a_slow_query_ends_at_its_time_and_the_next_one_runs(postgres_server: Server, database: str) -> None:
    postgres_server.run("CREATE TABLE x (id int)", database)
    engine = opened(postgres_server, database, "x", seconds=1)
    began = time.monotonic()
    with pytest.raises(RunError):
        engine.run("SELECT count(*) AS n FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b")
    assert time.monotonic() - began < 20
    assert engine.run('SELECT count(*) AS n FROM "x" AS s').through(lambda found: int(found["n"][0])) == 0
    engine.close()


def test_an_interrupt_stops_one_callers_query(postgres_server: Server, database: str) -> None:
    postgres_server.run("CREATE TABLE x (id int)", database)
    engine = opened(postgres_server, database, "x", seconds=60)
    heard: list[type[BaseException]] = []

    def ask() -> None:
        try:
            engine.run("SELECT count(*) AS n FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b")
        except RunError as error:
            heard.append(type(error))

    asking = threading.Thread(target=ask)
    asking.start()
    deadline = time.monotonic() + 30
    while asking.is_alive() and time.monotonic() < deadline:
        engine.interrupt(asking.ident)
        asking.join(0.1)
    assert heard == [RunError]
    engine.close()


# --- when the server goes ------------------------------------------------------------------------------------------


def test_a_failure_has_no_words_and_no_cause(postgres_server: Server, database: str) -> None:
    postgres_server.run("CREATE TABLE x (t text); INSERT INTO x VALUES ('CANARY')", database)
    engine = opened(postgres_server, database, "x")
    with pytest.raises(RunError) as failed:
        engine.run('SELECT CAST(t AS integer) AS n FROM "x" AS s')
    assert "CANARY" not in str(failed.value)
    assert failed.value.__cause__ is failed.value.__context__ is None
    engine.close()


def test_a_session_that_was_cut_is_replaced(postgres_server: Server, database: str) -> None:
    postgres_server.run("CREATE TABLE x (id int)", database)
    engine = opened(postgres_server, database, "x")
    engine.run('SELECT count(*) AS n FROM "x" AS s')
    postgres_server.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{database}' AND application_name = 'hubbub'"
    )
    assert engine.run('SELECT count(*) AS n FROM "x" AS s').through(lambda found: int(found["n"][0])) == 0
    engine.close()


def test_what_changed_since_it_was_declared_is_said_before_a_query(postgres_server: Server, database: str) -> None:
    postgres_server.run("CREATE TABLE x (id int, v text)", database)
    engine = opened(postgres_server, database, "x")
    engine.fingerprint("x")
    for change, why in (
        ("ALTER TABLE x ALTER v TYPE int USING 0", "cannot be read as text|have changed"),
        ("ALTER TABLE x DROP COLUMN v", "no longer exists"),
        ("DROP TABLE x", "does not exist"),
    ):
        postgres_server.run(change, database)
        with pytest.raises(UnreachableError, match=why):
            engine.fingerprint("x")
    engine.close()


def test_the_fingerprint_follows_changes_of_the_tables_under_a_view(postgres_server: Server, database: str) -> None:
    postgres_server.run("CREATE TABLE base (id int); CREATE VIEW x AS SELECT id FROM base WHERE id > 0", database)
    engine = opened(postgres_server, database, "x")
    seen = {engine.fingerprint("x").through(bytes.hex)}
    assert engine.fingerprint("x").through(bytes.hex) in seen
    for change in ("INSERT INTO base VALUES (1)", "UPDATE base SET id = 2", "DELETE FROM base", "TRUNCATE base"):
        postgres_server.run(change, database)
        deadline = time.monotonic() + 20
        while (now := engine.fingerprint("x").through(bytes.hex)) in seen and time.monotonic() < deadline:
            time.sleep(0.1)
        assert now not in seen, change
        seen.add(now)
    engine.close()


def test_a_declared_version_column_decides_alone(postgres_server: Server, database: str) -> None:
    postgres_server.run("CREATE TABLE x (id int, at timestamptz); INSERT INTO x VALUES (1, '2024-01-01')", database)
    shown = View("x", place(postgres_server, database, "x"), (("id", Kind.INTEGER),), "at")
    engine = PostgresEngine([shown], limits=EngineLimits())
    first = engine.fingerprint("x").through(bytes.hex)
    postgres_server.run("INSERT INTO x VALUES (2, '2023-01-01')", database)
    assert engine.fingerprint("x").through(bytes.hex) == first
    postgres_server.run("INSERT INTO x VALUES (2, '2025-01-01')", database)
    assert engine.fingerprint("x").through(bytes.hex) != first
    engine.close()


def test_a_public_table_travels_with_the_query(postgres_server: Server, database: str) -> None:
    postgres_server.run("CREATE TABLE x (region text); INSERT INTO x VALUES ('N'), ('N'), ('É''s')", database)
    columns = (("region", Kind.TEXT), ("share", Kind.REAL), ("since", Kind.DATE), ("open", Kind.BOOLEAN))
    arrays = {
        "region": np.array(["N", "É's", None], dtype=object),
        "share": np.array([0.1, float("inf"), float("nan")]),
        "since": np.array(["2024-02-29", "0001-01-01", "NaT"], dtype="datetime64[D]"),
        "open": np.array([True, False, True]),
    }
    arrays["region"] = np.ma.MaskedArray(arrays["region"], [False, False, True])
    arrays["since"] = np.ma.MaskedArray(arrays["since"], [False, False, True])
    shared = Upload(View("areas", place(postgres_server, database, "x"), columns), lambda: arrays)
    own = view(postgres_server, database, "x")
    engine = PostgresEngine([own], limits=EngineLimits(), uploads=[shared])
    text = 'SELECT count(*) AS n, min(since) AS d, max(share) AS s FROM "x" AS s JOIN "areas" AS a USING (region)'
    found = engine.run(text).through(dict)
    assert int(found["n"][0]) == 3
    assert str(found["d"][0]).startswith("0001-01-01")
    assert float(found["s"][0]) == float("inf")
    engine.close()
