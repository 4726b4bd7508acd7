"""Data in PostgreSQL behind PgBouncer with transaction pooling; a ledger there is refused by name."""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.fixtures.postgres_server import Server

import hubbub
from hubbub.accounting.postgres import PostgresStore
from hubbub.errors import HubbubError, LedgerError

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(
        PROGRAM is None, reason="PgBouncer is not installed: apt-get install pgbouncer (make test does it)"
    ),
]

YAML = """
version: 1
datasets:
  visits:
    source: postgresql://hubbub@/{database}/visits?host={host}&port=6432
    unit: {{column: patient, groups: 1, rows: 1}}
    columns:
      patient: {{}}
      region: {{values: [North, South]}}
      age: {{bounds: [0, 110]}}
    budget: {{epsilon: 100000, delta: 1e-6}}
  regions: {{source: "postgresql://hubbub@/{database}/regions?host={host}&port=6432", public: true}}
analysts:
  ana: {{visits: {{epsilon: 100000, delta: 1e-6}}}}
"""


@contextmanager
def pooled(server: Server, mode: str) -> Iterator[Path]:
    """Start PgBouncer in front of a server, with two connections to it at most; yields the folder of its socket."""
    folder = Path(server.home) / f"bouncer-{mode}"
    folder.mkdir()
    settings = f"""
[databases]
* = host={server.home} user=hubbub
[pgbouncer]
listen_port = 6432
unix_socket_dir = {folder}
auth_type = any
pool_mode = {mode}
default_pool_size = 2
logfile = {folder}/log
pidfile = {folder}/pid
"""
    (folder / "pgbouncer.ini").write_text(settings)
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    as_user = [] if user is None else [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    command = ["setpriv", *as_user, "--pdeathsig=INT", str(PROGRAM), "-q", str(folder / "pgbouncer.ini")]
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
    try:
        deadline = time.monotonic() + 20
        while not (folder / ".s.PGSQL.6432").exists():
            assert process.poll() is None, (folder / "errors").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield folder
    finally:
        process.kill()
        process.wait(20)
        shutil.rmtree(folder)


@pytest.fixture
def database(postgres_server: Server) -> Iterator[str]:
    name = "pooled"
    postgres_server.run(f"CREATE DATABASE {name}")
    with psycopg.connect(postgres_server.dsn(name), autocommit=True) as connection:
        connection.execute("CREATE TABLE visits (patient text, region text, age integer)")
        connection.execute(
            "INSERT INTO visits SELECT 'p' || i, CASE WHEN i % 3 = 0 THEN 'North' ELSE 'South' END, i % 100 "
            "FROM generate_series(1, 300) AS t(i)"
        )
        connection.execute("CREATE TABLE regions (region text, coast boolean)")
        connection.execute("INSERT INTO regions VALUES ('North', TRUE), ('South', FALSE)")
    yield name
    postgres_server.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_data_behind_transaction_pooling_is_answered(postgres_server: Server, database: str, tmp_path: Path) -> None:
    """Sessions are not kept between transactions, and two connections serve all."""
    with pooled(postgres_server, "transaction") as folder:
        (tmp_path / "hubbub.yaml").write_text(YAML.format(database=database, host=folder))
        with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as session:
            text = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
            assert session.query(text, epsilon=1000).rows == [("North", 100), ("South", 200)]
            joined = "SELECT COUNT(*) AS n FROM visits JOIN regions USING (region) WHERE coast"
            assert session.query(joined, epsilon=1000).rows == [(100,)]
            older = "SELECT COUNT(*) AS n FROM visits WHERE age > (SELECT AVG(age) FROM visits)"
            assert session.query(older, epsilon=20_000).rows == [(150,)]
            assert session.query("SELECT MEDIAN(age) AS m FROM visits", epsilon=1000).rows in ([(49,)], [(50,)])


def test_data_behind_statement_pooling_is_refused_by_name(
    postgres_server: Server, database: str, tmp_path: Path
) -> None:
    """Nothing can be read in one transaction there."""
    with pooled(postgres_server, "statement") as folder:
        (tmp_path / "hubbub.yaml").write_text(YAML.format(database=database, host=folder))
        with pytest.raises(HubbubError, match="the connection pool rejects transactions"):
            hubbub.open(tmp_path / "hubbub.yaml", analyst="ana")


@pytest.mark.parametrize("mode", ["transaction", "session", "statement"])
def test_a_ledger_behind_a_pooler_is_refused_by_name(postgres_server: Server, database: str, mode: str) -> None:
    """Its settings, prepared statements and locks belong to one session, which a pooler may take away."""
    with pooled(postgres_server, mode) as folder:
        with pytest.raises(LedgerError) as caught:
            PostgresStore(f"host={folder} port=6432 user=hubbub dbname={database} connect_timeout=10")
        assert caught.value.code == "HB322"
        assert "PgBouncer" in str(caught.value)
    with psycopg.connect(postgres_server.dsn(database)) as connection:
        found = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'hubbub'").fetchone()
    assert found == (0,), "nothing was created"


def test_a_direct_connection_is_no_pooler(postgres_dsn: str) -> None:
    store = PostgresStore(postgres_dsn)
    store.close()
