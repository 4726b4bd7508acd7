"""Joins of units on PostgreSQL: whether one side is read does not depend on whether anybody is on the other."""

from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server

from hubbub.curator.session import open_session

YAML = """
version: 1
datasets:
  t:
    source: SOURCE
    unit: {column: patient, groups: 2, rows: 5}
    columns: {patient: {type: integer}, secret: {type: integer, bounds: [0, 10]}, word: {type: text}}
    budget: {epsilon: 1000, delta: 0.001}
analysts: {eve: {t: {epsilon: 1000}}}
"""
ONE = "(SELECT patient, MAX(secret) AS s FROM t GROUP BY patient) AS a"
WORDS = "(SELECT patient, MAX(CASE WHEN lower(word) LIKE '%q_%' THEN 1 ELSE 0 END) AS m FROM t GROUP BY patient) AS b"
QUERIES = (
    f"SELECT COUNT(*) AS n FROM {ONE} JOIN {WORDS} ON a.patient = b.patient WHERE a.s = 7 AND b.m = 1",
    f"SELECT COUNT(*) AS n FROM t AS a JOIN {WORDS} ON a.patient = b.patient WHERE a.secret = 7 AND b.m = 1",
    "SELECT COUNT(*) AS n FROM (SELECT patient, MAX(secret) AS s FROM t WHERE secret = 7 GROUP BY patient) AS a "
    f"LEFT JOIN {WORDS} ON a.patient = b.patient WHERE b.m IS NULL",
    "SELECT COUNT(*) AS n FROM t WHERE secret = 7 AND patient IN (SELECT patient FROM t WHERE lower(word) LIKE '%q_%')",
)


def test_no_side_of_a_join_is_left_out_where_nobody_is_on_the_other(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guess that is wrong of everybody: what PostgreSQL "never executed" it would have, had it been right."""
    with duckdb.connect() as made:
        made.execute(
            "CREATE TABLE t AS SELECT n::BIGINT AS patient, 0 AS secret, 'w' || n AS word FROM range(500) r(n)"
        )
        postgres_server.run("CREATE DATABASE joins")
        postgres.copied(made, ["t"], postgres_server, "joins")
    source = postgres.address(postgres_server, "joins", "public.t")
    (tmp_path / "hubbub.yaml").write_text(YAML.replace("SOURCE", source))
    steps: list[str] = []
    run: Any = psycopg.RawCursor.execute

    def explained(cursor: Any, text: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(text, bytes):
            run(cursor, b"EXPLAIN ANALYZE " + text, *rest)
            steps.extend(line for (line,) in cursor.fetchall())
        return run(cursor, text, *rest, **options)

    monkeypatch.setattr(psycopg.RawCursor, "execute", explained)
    with open_session(tmp_path / "hubbub.yaml", analyst="eve") as session:
        for sql in QUERIES:
            steps.clear()
            session.query(sql, epsilon="0.1")
            assert any("Join" in line or "Nested" in line for line in steps), sql
            assert [line for line in steps if "never executed" in line] == [], sql
