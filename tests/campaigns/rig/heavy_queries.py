"""Resource queries: self-joins, fan-out through public tables, long texts, deep expressions, very many groups.

Two clinics differ in one patient, who exceeds the declared contribution bounds: far more rows than are counted, and
texts of a megabyte. Each query does its work only if a guess about her is right. Memory and time are small, so work
that one person can multiply fails; both neighbors must be answered or refused alike.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server

#: Memory in MB: enough for the rows that a plan allows per unit, and for little else.
YAML = """
version: 1
engine: {threads: 1, memory: 700, disk: 200, seconds: SECONDS}
datasets:
  t:
    source: SOURCE_T
    unit: {column: patient, groups: 2, rows: 5}
    columns:
      patient: {type: integer}
      x: {type: real, bounds: [0, 10]}
      y: {type: integer, bounds: [0, 10]}
      secret: {type: integer, bounds: [0, 10]}
      word: {type: text}
      key: {type: text, values: [a, b]}
    budget: {epsilon: 1000000, delta: 0.001}
  p: {public: true, source: SOURCE_P, columns: {y: {type: integer}, z: {type: text}, n: {type: integer}}}
analysts:
  eve: {t: {epsilon: 1000000}}
"""


def fill(made: duckdb.DuckDBPyConnection, *, patient: bool, rows: int) -> None:
    """Create the tables of one neighbor; the patient has `rows` rows, a tenth of them with long texts."""
    made.execute(
        "CREATE TABLE t AS SELECT CAST(n % 40 AS BIGINT) AS patient, n % 10 + 0.5 AS x, n % 10 AS y, 0 AS secret, "
        "'w' || n % 5 AS word, ['a', 'b'][1 + n % 2] AS key FROM range(80) AS r(n)"
    )
    if patient:
        made.execute(
            "INSERT INTO t SELECT 999, n % 7 + 0.25, n % 10, 7, CASE WHEN n % 10 = 0 AND n < 300 THEN "
            f"repeat('Éa', 500000) ELSE 'v' || n END, 'a' FROM range({rows}) AS r(n)"
        )
    # each value of y has four rows, each of z twenty
    made.execute("CREATE TABLE p AS SELECT n % 10 AS y, ['Éa', 'w1'][1 + n % 2] AS z, n FROM range(40) AS r(n)")


def clinic(folder: Path, *, patient: bool, rows: int, server: Server | None, seconds: int) -> Path:
    """Write one neighbor, as files or with the private table in PostgreSQL; return the path of hubbub.yaml."""
    folder.mkdir()
    source = "t.parquet"
    with duckdb.connect() as made:
        fill(made, patient=patient, rows=rows)
        for name in ("t", "p"):
            made.execute(f"COPY {name} TO '{folder}/{name}.parquet'")
        if server is not None:
            database = f"heavy_{folder.name}"
            server.run(f"CREATE DATABASE {database}")
            postgres.copied(made, ["t"], server, database)
            source = postgres.address(server, database, "public.t")
    path = folder / "hubbub.yaml"
    text = YAML.replace("SECONDS", str(seconds)).replace("SOURCE_T", source).replace("SOURCE_P", "p.parquet")
    path.write_text(text)
    return path


def nested(once: Callable[[str], str], times: int, inner: str) -> str:
    """Apply a text function to its own result, repeatedly."""
    for _ in range(times):
        inner = once(inner)
    return inner


GUESS = "a.secret = 7"


def queries() -> Iterator[str]:
    """Yield all queries: at the limit of what is accepted, and far beyond it."""
    for count in (2, 3, 6, 7, 16):
        names = [f"a{i}" for i in range(1, count)]
        joins = "".join(f" JOIN t AS {name} ON a.patient = {name}.patient" for name in names)
        yield f"SELECT COUNT(*) AS n FROM t AS a{joins} WHERE {GUESS}"
        yield f"SELECT a.key, SUM(a.x * {names[-1]}.x) AS s FROM t AS a{joins} WHERE {GUESS} GROUP BY a.key"
    for count in (1, 2, 5, 9, 15):
        joins = "".join(f" JOIN p AS p{i} ON a.y = p{i}.y" for i in range(count))
        yield f"SELECT COUNT(*) AS n FROM t AS a{joins} WHERE {GUESS}"
        yield f"SELECT MEDIAN(a.x) AS m FROM t AS a{joins} WHERE {GUESS}"
    public = "JOIN p ON a.y * 0 = p.n * 0 JOIN p AS q ON left(a.word, 2) = q.z"
    yield f"SELECT COUNT(*) AS n FROM t AS a {public} WHERE {GUESS}"
    parts = " UNION ALL ".join(["SELECT patient, x, secret FROM t"] * 7)
    yield f"SELECT COUNT(*) AS n FROM ({parts}) AS a JOIN ({parts}) AS b ON a.patient = b.patient WHERE {GUESS}"
    yield f"SELECT b.word, COUNT(*) AS n FROM t AS a JOIN t AS b ON a.patient = b.patient WHERE {GUESS} GROUP BY b.word"
    for times in (3, 4, 12):
        source = nested(lambda inner: f"(SELECT patient, secret, word || word AS word FROM {inner} AS s)", times, "t")
        yield f"SELECT COUNT(*) AS n FROM {source} AS a WHERE {GUESS} AND word <> 'q'"
    for count in (1, 5):
        each = nested(lambda inner: f"lower(upper({inner}))", 5, "a.word")
        whole = " OR ".join(f"{each} LIKE '%É{i}_%a_%'" for i in range(count))
        yield f"SELECT COUNT(*) AS n FROM t AS a WHERE {GUESS} AND ({whole})"
    yield f"SELECT COUNT(DISTINCT word) AS n FROM t AS a WHERE {GUESS}"
    yield f"SELECT word, COUNT(*) AS n FROM t AS a WHERE {GUESS} GROUP BY word"
    yield f"SELECT word || key, x, COUNT(*) AS n, SUM(x) AS s FROM t AS a WHERE {GUESS} GROUP BY word || key, x"
    yield f"SELECT COUNT(*) AS n FROM t AS a WHERE {GUESS} AND word = word || '' AND word LIKE '%a%a%a%a%a%a%_b%'"
    for times in (4, 8, 11):
        deep = nested(lambda inner: f"greatest(0.5, a.x / {inner})", times, "a.x")
        yield f"SELECT COUNT(*) AS n FROM t AS a WHERE CASE WHEN {GUESS} THEN {deep} ELSE 0 END > 1"
    both = "t AS a JOIN t AS b ON a.patient = b.patient"
    yield f"SELECT COUNT(*) AS n FROM {both} WHERE {GUESS} GROUP BY CUBE (a.key, b.key)"
    distinct = (
        "(SELECT patient, secret, COUNT(DISTINCT word) AS n, MIN(word) AS w FROM t GROUP BY patient, secret) AS a"
    )
    yield f"SELECT COUNT(*) AS n FROM {distinct} WHERE {GUESS} AND lower(w) = 'v' AND n > 3"
