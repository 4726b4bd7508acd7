"""What is shown of a group is a function of its equality class: whose row came first cannot be read from a key."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg
import pytest
from tests.fixtures.postgres_server import Server, postgres_server

from hubbub.curator.session import Session, open_session

__all__ = ["postgres_server"]

YAML = """
version: 1
datasets:
  t:
    source: {source}
    unit: {unit}
    columns: {{pid: {{}}, who: {{}}, x: {{bounds: [-9, 9]}}}}
    budget: {{epsilon: 100000, delta: 0.01}}
analysts:
  ana: {{t: {{epsilon: 100000, delta: 0.01}}}}
"""
MADE = "CREATE TABLE t AS SELECT CAST(i AS BIGINT) AS pid, CAST(i AS INTEGER) AS who, CAST(1 AS DOUBLE PRECISION) AS x"
#: The guess "the bit of this person is set", as a key: a person of whom it is true has the other zero.
ASKED = "SELECT CASE WHEN who = {who} THEN -(x * 0) ELSE x * 0 END AS k, count(*) AS n FROM t GROUP BY k"
UNITS = pytest.mark.parametrize("unit", ["row", "{column: pid, groups: 1, rows: 1}"])


@contextmanager
def opened(folder: Path, source: str, unit: str) -> Iterator[Session]:
    (folder / "hubbub.yaml").write_text(YAML.format(source=source, unit=unit))
    with open_session(folder / "hubbub.yaml", analyst="ana") as session:
        yield session


def keys(session: Session) -> set[str]:
    """Ask about each person in turn, and about nobody: the texts of all keys that were shown."""
    asked = [session.query(ASKED.format(who=who), epsilon=1000, delta="1e-6") for who in range(-1, 20)]
    return {repr(row[0]) for release in asked for row in release.rows}


@UNITS
def test_the_sign_of_a_zero_key_tells_nobodys_bit_on_duckdb(tmp_path: Path, unit: str) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.execute(f"{MADE} FROM range(20) AS r(i)")
    with opened(tmp_path, "duckdb:t.duckdb#t", unit) as session:
        assert keys(session) == {"0.0"}


@UNITS
def test_the_sign_of_a_zero_key_tells_nobodys_bit_on_postgres(
    postgres_server: Server, tmp_path: Path, unit: str
) -> None:
    with postgres_server.database() as dsn:
        name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
        postgres_server.run(f"{MADE} FROM generate_series(0, 19) AS r(i)", name)
        with opened(tmp_path, f"postgresql://hubbub@/{name}/t?host={postgres_server.home}", unit) as session:
            assert keys(session) == {"0.0"}
