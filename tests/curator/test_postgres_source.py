"""A dataset that stays in PostgreSQL, through the whole path: charged before it is touched, right after failures."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import psycopg
import pytest
from tests.fixtures.postgres_server import Server

from hubbub.answers.release import Release
from hubbub.cli import main
from hubbub.config import examine, load
from hubbub.curator.session import Session, open_session
from hubbub.engines.multi_engine import engine_for
from hubbub.errors import ConfigError, HubbubError, LedgerError, QueryError, RunError

YAML = """
version: 1
engine: {{seconds: 2, hash: portable}}
datasets:
  visits:
    source: postgresql://reader:{password}@/{database}/clinic.visits?host={home}
    unit: {{column: patient, entity: patient, groups: 3, rows: 4}}
    columns:
      patient: {{}}
      region: {{values: [North, South, East]}}
      cost: {{bounds: [0, 1000], step: 0.5}}
      at: {{}}
    budget: {{epsilon: 100}}
  labs:
    source: postgresql://reader:{password}@/{database}/clinic.labs?host={home}
    unit: {{column: patient, entity: patient, groups: 3, rows: 4}}
    columns: {{patient: {{}}, result: {{bounds: [-5, 5]}}}}
    budget: {{epsilon: 100}}
  letters:
    source: letters.csv
    unit: {{column: patient, entity: patient}}
    columns: {{patient: {{type: integer}}}}
    budget: {{epsilon: 100}}
  regions: {{source: regions.csv, public: true}}
  wards: {{source: 'postgresql://reader:{password}@/{database}/clinic.wards?host={home}', public: true}}
analysts:
  ana: {{visits: {{epsilon: 100}}, labs: {{epsilon: 100}}, letters: {{epsilon: 100}}}}
"""
PASSWORD = "s3cr3t-passw0rd"
MADE = """
CREATE SCHEMA clinic;
CREATE TABLE clinic.base AS SELECT i % 300 AS patient, (ARRAY['North', 'South', 'East'])[1 + i % 3] AS region,
    ((i * 37) % 900 / 2.0)::float8 AS cost, timestamptz '2024-01-01' + i * interval '1 hour' AS at
    FROM generate_series(0, 999) AS i;
CREATE VIEW clinic.visits AS SELECT * FROM clinic.base WHERE cost IS NOT NULL;
CREATE TABLE clinic.labs AS SELECT i % 300 AS patient, i % 9 - 4 AS result FROM generate_series(0, 499) AS i;
CREATE TABLE clinic.wards AS
    SELECT * FROM (VALUES ('North', 1, date '2020-01-01'), ('South', 2, NULL)) AS w(region, n, since);
"""
COUNT = "SELECT region, count(*) AS n FROM visits GROUP BY region ORDER BY region"


@dataclass
class Clinic:
    """The database, and the folder of hubbub.yaml."""

    server: Server
    database: str
    folder: Path

    def run(self, statement: str) -> None:
        self.server.run(statement, self.database)

    @property
    def yaml(self) -> Path:
        return self.folder / "hubbub.yaml"

    def open(self) -> Session:
        return open_session(self.yaml)


@pytest.fixture
def clinic(postgres_server: Server, tmp_path: Path) -> Iterator[Clinic]:
    with postgres_server.database() as dsn:
        yield furnished(postgres_server, str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]), tmp_path)


def furnished(server: Server, database: str, folder: Path) -> Clinic:
    found = Clinic(server, database, folder)
    server.run("DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    found.run(MADE)
    found.run("GRANT USAGE ON SCHEMA clinic TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO reader")
    (folder / "regions.csv").write_text("region,size\nNorth,large\nSouth,small\nEast,large\n")
    (folder / "letters.csv").write_text("patient\n1\n2\n")
    found.yaml.write_text(YAML.format(password=PASSWORD, database=database, home=server.home))
    return found


def spent(session: Session, dataset: str = "visits") -> float:
    """Add up the charges of the ledger."""
    return float(sum(each.epsilon or 0 for each in session.releases() if each.dataset == dataset))


def numbers(release: Release, column: int = 0) -> list[float]:
    return [float(row[column]) for row in release.rows]  # type: ignore[arg-type]


def test_tables_that_the_owner_lets_copy_are_asked_about_here(
    clinic: Clinic, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts to within 30 at ε = 50 and 12 rows a patient: noise of scale 0.24 exceeds that with odds below e⁻¹⁰⁰."""
    assert main(["check", "--config", str(clinic.yaml)]) == 0
    clinic.yaml.write_text(clinic.yaml.read_text().replace("hash: portable", "hash: portable, copy: true, disk: 4321"))
    assert main(["check", "--config", str(clinic.yaml)]) == 0
    assert "4,321 MB of disk" in capsys.readouterr().out
    with clinic.open() as session:
        assert engine_for(session._curator.engine, ["visits"]).dialect == "duckdb"
        found = session.query(COUNT, epsilon=50)
        assert [row[0] for row in found.rows] == ["East", "North", "South"]
        assert all(abs(n - 333) < 30 for n in numbers(found, 1))
        joined = session.query(
            "SELECT size, count(*) AS n FROM visits JOIN regions USING (region) GROUP BY size ORDER BY size", epsilon=40
        )
        assert all(abs(n - right) < 30 for n, right in zip(numbers(joined, 1), (667, 333), strict=True))


def test_a_view_is_asked_about_where_it_is(clinic: Clinic) -> None:
    with clinic.open() as session:
        found = session.query(COUNT, epsilon=50)
        assert [row[0] for row in found.rows] == ["East", "North", "South"]
        assert all(abs(n - 333) < 30 for n in numbers(found, 1))
        assert session.query(COUNT, epsilon=50).replayed
        total = session.query("SELECT sum(cost) AS s, avg(cost) AS a FROM visits WHERE at < '2025-01-01'", epsilon=20)
        assert 0 <= numbers(total, 1)[0] <= 1000


def test_a_list_column_is_disabled_and_a_type_that_cannot_be_read_is_said_by_check(clinic: Clinic) -> None:
    clinic.run("ALTER TABLE clinic.labs ADD names text[], ADD facts jsonb, ADD n numeric")
    text = clinic.yaml.read_text()
    listed = "{patient: {}, names: {}, facts: {}, result: {bounds: [-5, 5]}}"
    clinic.yaml.write_text(text.replace("{patient: {}, result: {bounds: [-5, 5]}}", listed))
    with clinic.open() as session:
        assert session.query("SELECT count(*) AS n FROM labs", epsilon=5).columns == ("n",)
        assert session.describe("labs").column("names") is None
    for declared in ("names: {type: text}", "facts: {type: integer}", "n: {type: integer}"):
        clinic.yaml.write_text(text.replace("result: {bounds: [-5, 5]}", declared))
        _, problems = examine(clinic.yaml)
        assert [problem.code for problem in problems] == ["HB414"]
        assert "cannot be read as" in problems[0].message


def test_two_tables_are_joined_on_the_unit_and_public_tables_of_both_places_are_seen(clinic: Clinic) -> None:
    with clinic.open() as session:
        joined = session.query("SELECT count(*) AS n FROM visits JOIN labs USING (patient)", epsilon=5)
        assert numbers(joined)[0] > 0
        travelled = session.query(
            "SELECT r.size, count(*) AS n FROM visits v JOIN regions r ON v.region = r.region GROUP BY r.size",
            epsilon=20,
        )
        assert [row[0] for row in travelled.rows] == ["large", "small"]
        assert all(abs(n - expected) < 60 for n, expected in zip(numbers(travelled, 1), (667, 333), strict=True))
        beside = session.query(
            "SELECT w.n, count(*) AS c FROM visits v JOIN wards w ON v.region = w.region GROUP BY w.n", epsilon=20
        )
        assert [row[0] for row in beside.rows] == [1, 2]
        assert session.query("SELECT count(*) AS n FROM letters", epsilon=5).columns == ("n",)


def test_public_tables_of_both_places_are_answered_together_exactly_and_for_free(clinic: Clinic) -> None:
    with clinic.open() as session:
        wards = session.query("SELECT * FROM wards ORDER BY n DESC")
        assert wards.rows == [("South", 2, None), ("North", 1, date(2020, 1, 1))]
        both = session.query("SELECT r.size, w.n FROM regions r JOIN wards w USING (region) ORDER BY w.n")
        assert both.rows == [("large", 1), ("small", 2)]
        assert both.epsilon == 0
        with pytest.raises(HubbubError):
            session.query("SELECT * FROM wards, clinic.base")
        assert session.releases() == ()


def test_private_tables_of_different_places_are_refused_before_the_charge(clinic: Clinic) -> None:
    with clinic.open() as session:
        with pytest.raises(QueryError) as refused:
            session.query("SELECT count(*) AS n FROM visits v JOIN letters l ON v.patient = l.patient", epsilon=1)
        assert refused.value.code in ("HB575", "HB520", "HB521", "HB522", "HB523")
        assert refused.value.remedy
        assert spent(session) == 0


def test_a_public_file_that_is_too_large_to_travel_is_refused_before_the_charge(clinic: Clinic) -> None:
    rows = "".join(f"R{i},{i}\n" for i in range(100_001))
    (clinic.folder / "regions.csv").write_text("region,size\n" + rows)
    with clinic.open() as session:
        with pytest.raises(QueryError, match="HB575") as refused:
            session.query("SELECT count(*) AS n FROM visits v JOIN regions r ON v.region = r.region", epsilon=1)
        assert "100,000" in refused.value.remedy
        assert spent(session) == 0


def test_what_cannot_be_total_there_is_refused_before_the_charge(clinic: Clinic) -> None:
    with clinic.open() as session:
        with pytest.raises(QueryError, match="HB574"):
            session.query("SELECT count(*) AS n FROM visits WHERE CAST(region AS INTEGER) = 1", epsilon=1)
        assert spent(session) == 0


# --- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DROP VIEW clinic.visits", "does not exist"),
        ("REVOKE SELECT ON clinic.visits FROM reader", "cannot be read"),
        ("REVOKE USAGE ON SCHEMA clinic FROM reader", "has no access to the schema"),
        (
            "DROP VIEW clinic.visits; "
            "CREATE VIEW clinic.visits AS SELECT patient, region, cost::text, at FROM clinic.base"
            "; GRANT SELECT ON clinic.visits TO reader",
            "cannot be read as|have changed",
        ),
        ("CREATE OR REPLACE VIEW clinic.visits AS SELECT * FROM clinic.base WHERE random() < 2", "random"),
    ],
)
def test_before_the_charge_a_failure_is_frank_and_costs_nothing(clinic: Clinic, change: str, why: str) -> None:
    with clinic.open() as session:
        session.query(COUNT, epsilon=1)
        clinic.run(change)
        with pytest.raises(LedgerError, match=why) as refused:
            session.query("SELECT count(*) AS n FROM visits", epsilon=1)
        assert refused.value.code == "HB318"
        assert PASSWORD not in str(refused.value)
        assert spent(session) == 1


def test_a_slow_query_fails_with_the_constant_and_the_next_is_answered(clinic: Clinic) -> None:
    with clinic.open() as session:
        session.query(COUNT, epsilon=1)
        slow = "CREATE OR REPLACE VIEW clinic.visits AS SELECT * FROM clinic.base WHERE cost IS NOT NULL AND "
        many = " CROSS JOIN ".join(f"generate_series(1, 100000) AS s{i}" for i in range(3))
        clinic.run(slow + f"(SELECT count(*) FROM {many}) > 0")
        with pytest.raises(RunError):
            session.query("SELECT count(*) AS n FROM visits", epsilon=1)
        assert spent(session) == 2
        clinic.run(slow + "TRUE")
        assert numbers(session.query("SELECT count(*) AS n FROM visits", epsilon=1))[0] > 0


def test_a_lost_connection_in_the_midst_of_a_query_is_the_constant_and_the_pool_recovers(clinic: Clinic) -> None:
    with clinic.open() as session:
        session.query(COUNT, epsilon=1)
        engine = session._curator.engine.engine_for(["visits"])  # type: ignore[attr-defined]
        inner: Callable[[str], object] = engine._run

        def cut(sql: str) -> object:
            clinic.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hubbub'"
                f" AND datname = '{clinic.database}'"
            )
            raise psycopg.OperationalError("CANARY")

        engine._run = cut
        with pytest.raises(RunError) as failed:
            session.query("SELECT count(*) AS n FROM visits", epsilon=1)
        assert "CANARY" not in str(failed.value)
        engine._run = inner
        assert spent(session) == 2
        # the same question goes on with the charge that it made
        assert numbers(session.query("SELECT count(*) AS n FROM visits", epsilon=1))[0] > 0
        assert spent(session) == 2


def test_a_restarted_server_is_found_again(tmp_path: Path) -> None:
    with Server() as server:
        server.run("CREATE DATABASE clinic")
        clinic = furnished(server, "clinic", tmp_path)
        with clinic.open() as session:
            session.query(COUNT, epsilon=1)
            server.stop(crash=True)
            with pytest.raises(LedgerError, match="is unreachable") as refused:
                session.query("SELECT count(*) AS n FROM visits", epsilon=1)
            assert PASSWORD not in str(refused.value)
            assert spent(session) == 1
            server.start()
            assert session.query(COUNT, epsilon=1).replayed  # the counters are lost, and the rows are the same
            assert spent(session) == 1
            assert numbers(session.query("SELECT count(*) AS n FROM visits", epsilon=1))[0] > 0
            assert spent(session) == 2


# --- versions ------------------------------------------------------------------------------------------------------


def test_a_change_makes_a_new_version_and_refresh_makes_one_by_hand(
    clinic: Clinic, capsys: pytest.CaptureFixture[str]
) -> None:
    with clinic.open() as session:
        session.query(COUNT, epsilon=1)
        assert session.query(COUNT, epsilon=1).replayed
        clinic.run("INSERT INTO clinic.base VALUES (7, 'North', 5, now())")
        deadline = time.monotonic() + 20
        while session.query(COUNT, epsilon=1).replayed and time.monotonic() < deadline:
            time.sleep(0.2)
        assert spent(session) == 2
        assert session.query(COUNT, epsilon=1).replayed
    assert main(["admin", "refresh", "visits", "--config", str(clinic.yaml)]) == 0
    assert "visits has a new version" in capsys.readouterr().out
    with clinic.open() as session:
        assert not session.query(COUNT, epsilon=1).replayed
        assert session.query(COUNT, epsilon=1).replayed
    assert main(["admin", "refresh", "nobody", "--config", str(clinic.yaml)]) != 0


# --- words ---------------------------------------------------------------------------------------------------------


def test_a_password_in_a_source_is_shown_nowhere(clinic: Clinic, capsys: pytest.CaptureFixture[str]) -> None:
    config = load(clinic.yaml)
    assert PASSWORD not in repr(config.datasets)
    assert main(["check", "--config", str(clinic.yaml)]) == 0
    with clinic.open() as session:
        release = session.query(COUNT, epsilon=1)
        assert PASSWORD not in repr(release.receipt)
        assert PASSWORD not in str(session.estimate(COUNT, epsilon=1))
    clinic.run("DROP SCHEMA clinic CASCADE")
    assert main(["check", "--config", str(clinic.yaml)]) == 1
    said = capsys.readouterr()
    assert PASSWORD not in said.out + said.err
    assert "clinic.visits" in said.out + said.err


@pytest.mark.parametrize(
    "source",
    [
        f"postgresql://u:{PASSWORD}@h",
        f"postgresql://u:{PASSWORD}@h/db",
        f"postgresql://u:{PASSWORD}@h:port/db/s.t",
        f"postgresql://u:{PASSWORD}@h/db/a/b",
        f"postgresql://u:{PASSWORD}@127.0.0.1:1/db/s.t",
    ],
)
def test_an_address_that_leads_nowhere_is_refused_without_its_password(tmp_path: Path, source: str) -> None:
    path = tmp_path / "hubbub.yaml"
    path.write_text(f"version: 1\ndatasets: {{v: {{source: '{source}', unit: row, budget: {{epsilon: 1}}}}}}\n")
    _, problems = examine(path)
    assert isinstance(problems[0], ConfigError)
    assert all(PASSWORD not in str(problem) for problem in problems)
    with pytest.raises(HubbubError) as refused:
        load(path)
    assert PASSWORD not in repr(refused.value)
