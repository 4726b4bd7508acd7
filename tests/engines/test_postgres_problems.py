"""What fails in a connection to PostgreSQL is said: which host, port, role and database, and never the password."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Kind
from hubbub.engines.base import EngineLimits, UnreachableError, View, locate
from hubbub.engines.postgres.catalog import connect, transaction
from hubbub.engines.postgres.connection import PostgresEngine, schema
from hubbub.engines.postgres.problems import explain_error
from hubbub.errors import ConfigError

pytestmark = pytest.mark.postgres

PASSWORD = "s3cr3t-passw0rd"
ACCESS = """
local all all trust
host clinic reader 127.0.0.1/32 scram-sha-256
hostssl secure reader 127.0.0.1/32 scram-sha-256
host nodb reader 127.0.0.1/32 trust
host clinic nobody 127.0.0.1/32 trust
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server that listens on the loopback interface, with passwords, and with TLS under a certificate of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with Server(listen_addresses="127.0.0.1", port=str(free)) as server:
        administrate(server)
        yield free


def administrate(server: Server) -> None:
    data = server.home / "data"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", "/CN=elsewhere.example.org", "-keyout", data / "server.key", "-out", data / "server.crt"),
        ],
        check=True,
        capture_output=True,
    )
    (data / "pg_hba.conf").write_text(ACCESS)
    for name in ("server.key", "server.crt"):
        (data / name).chmod(0o600)
        shutil.chown(data / name, data.owner(), data.group())
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as session:
        session.execute("CREATE DATABASE clinic")
        session.execute("CREATE DATABASE secure")
        session.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'".encode())
        session.execute("ALTER SYSTEM SET ssl = on")
        session.execute("SELECT pg_reload_conf()")


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No passwords or certificates of the user who runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("reader:wr0ng@127.0.0.1:{port}/clinic", "rejected the password"),
        ("reader@127.0.0.1:{port}/clinic", "requires a password"),
        ("nobody:wr0ng@127.0.0.1:{port}/clinic", "the role does not exist"),
        ("reader:wr0ng@127.0.0.1:{port}/nodb", "the database does not exist"),
        ("reader:wr0ng@127.0.0.1:{port}/other", "no pg_hba.conf entry"),
        ("reader:wr0ng@127.0.0.1:1/clinic", "nothing listens at its host and port"),
        ("reader:wr0ng@127.0.0.1:1,127.0.0.1:2/clinic", "nothing listens at its host and port"),
        ("reader:wr0ng@nowhere.invalid:{port}/clinic", "host name cannot be resolved"),
        (f"reader:{PASSWORD}@127.0.0.1:{{port}}/secure?sslmode=disable", "for an unencrypted connection"),
        (f"reader:{PASSWORD}@127.0.0.1:{{port}}/clinic?sslmode=verify-full", "TLS failed: the certificate"),
        (f"reader:{PASSWORD}@127.0.0.1:{{port}}/clinic?target_session_attrs=standby", "target_session_attrs"),
    ],
)
def test_the_owner_is_told_what_failed_and_where(port: int, address: str, why: str) -> None:
    user, host, database = "nobody" if "nobody" in address else "reader", "127.0.0.1", address.split("/")[1]
    source, _, options = address.format(port=port).partition("?")
    with pytest.raises(ConfigError, match="HB411") as refused:
        schema(locate(f"postgresql://{source}/public.x?{options}", "source", base=Path(), name="x"))
    assert why in refused.value.message
    assert refused.value.remedy
    facts = (f"role {user}", f"database {database.partition('?')[0]}")
    assert all(fact in refused.value.message for fact in facts), refused.value.message
    assert host in refused.value.message or "nowhere.invalid" in refused.value.message
    assert "wr0ng" not in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_an_analyst_is_told_neither_host_nor_role(port: int) -> None:
    source = locate(f"postgresql://reader:wr0ng@127.0.0.1:{port}/clinic/x", "source", base=Path(), name="x")
    engine = PostgresEngine([View("x", source, (("id", Kind.INTEGER),))], limits=EngineLimits())
    with pytest.raises(UnreachableError) as refused:
        engine.fingerprint("x")
    assert "rejected the password" in refused.value.why
    assert not any(word in f"{refused.value.why} {refused.value.remedy}" for word in ("127", "wr0ng", str(port)))
    engine.close()


def test_a_pool_that_allows_no_transactions_is_named() -> None:
    error = psycopg.errors.ProtocolViolation("transaction blocks not allowed in statement pooling mode")
    assert "pool_mode = transaction" in explain_error(error)[1]


def test_several_hosts_are_tried_and_no_setting_outlives_a_transaction(postgres_server: Server) -> None:
    """As behind PgBouncer with pool_mode = transaction: what a session keeps may be anybody's at any time."""
    with postgres_server.database() as dsn:
        database = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        postgres_server.run("CREATE TABLE x (id int, at timestamptz); INSERT INTO x VALUES (1, now())", str(database))
        address = f"postgresql://hubbub@/{database}?host=/nowhere,{postgres_server.home}"
        mine = "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name <> 'client_encoding'"
        with connect(address) as session:
            before = session.execute(mine).fetchone()
            with transaction(session, EngineLimits()):
                session.execute("SELECT 1")
                inside = session.execute(
                    "SELECT current_setting('search_path'), current_setting('TimeZone')"
                ).fetchone()
            assert inside == ("pg_catalog", "UTC")
            assert session.execute(mine).fetchone() == before
            assert session.prepare_threshold is None
        source = locate(address.replace(f"/{database}", f"/{database}/x"), "source", base=Path(), name="x")
        engine = PostgresEngine([View("x", source, (("id", Kind.INTEGER),))], limits=EngineLimits())
        engine.fingerprint("x")
        for session in engine._idle:
            session.execute("DISCARD ALL")
            session.execute("SET search_path = public; SET row_security = on; SET TimeZone = 'Asia/Tokyo'")
        text = "SELECT current_setting('search_path') || current_setting('row_security') || current_setting('TimeZone')"
        assert engine.run(f"{text} AS s").through(lambda arrays: arrays["s"][0]) == "pg_catalogoffUTC"
        engine.close()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:s3cr%zz@127.0.0.1:1/db/public.t",
        "postgresql://u:s3cr et@127.0.0.1:1/db/public.t",
        "postgresql://u:s3cr@s3cret@127.0.0.1:1/db/public.t",
        "postgresql://u:s3cret@127.0.0.1:1/db/public.t?unknown=s3cret",
    ],
)
def test_a_malformed_address_does_not_show_its_password(address: str) -> None:
    """libpq quotes what it cannot read."""
    with pytest.raises(ConfigError) as caught:
        schema(locate(address, "source", base=Path(), name="x"))
    assert caught.value.code == "HB411"
    assert "s3cr" not in str(caught.value)
