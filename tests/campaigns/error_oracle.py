"""Error oracles: hostile queries reveal nothing about neighbors through errors; only the noisy numbers may differ.

Two clinics differ in one patient, whose rows contain every value on which databases fail, and canaries. Each hostile
query is sent to both. Acceptance, message, columns and charge must be equal, nothing may fail after the charge, and no
message or log may contain a canary. The same queries sent to plain DuckDB show that they are effective. The table is
stored as Parquet, as CSV and in a real PostgreSQL.

Resource queries (`rig/heavy_queries.py`) are sent to two more clinics under small limits of memory and time; there the
patient has far more rows than the declarations allow. With the planted error (no truncation, no size limits) she is
detected.
"""

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import duckdb
from tests.campaigns.frame import Report, run
from tests.campaigns.rig import heavy_queries as heavy
from tests.campaigns.rig.hostile_sql import CONTEXTS, EXPRESSIONS, WHOLE
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server

from hubbub.core.secret import Secret
from hubbub.curator.session import Session, open_session
from hubbub.engines.base import Arrays, Engine
from hubbub.engines.multi_engine import engine_for
from hubbub.errors import HubbubError
from hubbub.sql import fanout
from hubbub.sql import row_cost as work

CANARIES = ("CANARY7431", "8123456789012345", "31415926.53", "5867-04-03")

YAML = """
version: 1
engine: {threads: 1, seconds: 30}
datasets:
  t:
    source: t.parquet
    unit: {column: patient, groups: 2, rows: 2}
    columns: &columns
      patient: {type: integer}
      x: {type: real, bounds: [-100, 100]}
      free: {type: real}
      i: {type: integer, bounds: [0, 1000]}
      k: {type: integer}
      word: {type: text}
      key: {type: text, values: [a, b], other: c}
      day: {type: date}
      moment: {type: timestamp}
      flag: {type: boolean}
    budget: {epsilon: 1000000, delta: 0.001}
  c:
    source: c.csv
    unit: {column: patient, groups: 2, rows: 2}
    columns: *columns
    budget: {epsilon: 1000000, delta: 0.001}
  p:
    source: SOURCE
    unit: {column: patient, groups: 2, rows: 2}
    columns: *columns
    budget: {epsilon: 1000000, delta: 0.001}
analysts:
  eve: {t: {epsilon: 1000000}, c: {epsilon: 1000000}, p: {epsilon: 1000000}}
"""

#: One patient's rows: values that databases reject, wrap around, or treat as special.
NASTY = (
    "(8123456789012345, 'nan', 'nan', 0, 0, 'CANARY7431', 'CANARY7431', NULL, NULL, NULL)",
    "(8123456789012345, 'inf', '-inf', -9223372036854775808, 9223372036854775807, '', '', '5867-04-03', NULL, true)",
    "(8123456789012345, 1.7976931348623157e308, 5e-324, 9223372036854775807, -9223372036854775808, '1e999', 'a',"
    " '0001-01-01', '294246-01-01 00:00:00', false)",
    "(8123456789012345, 31415926.53, -0.0, 7, 7, repeat('Z', 20000), 'a', 'infinity', 'infinity', true)",
    "(8123456789012345, -31415926.53, 0.0, -7, 3, '☃%_\\''\"[(*+', 'b', '-infinity', '-infinity', NULL)",
    "(8123456789012345, 0, 0, 1000, 1, '2020-02-30', 'a', '2020-02-29', '1970-01-01 00:00:00', true)",
)


@dataclass(frozen=True)
class Response:
    """Everything that an analyst learns from a query, except its noisy numbers."""

    what: str
    words: str
    facts: tuple[object, ...] = ()


class LogListener(logging.Handler):
    """Collects every line of every log."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage() + str(record.exc_info))


def queries() -> Iterator[str]:
    """Yield every expression in every context, for the table in every source, and whole statements."""
    yield from WHOLE
    for table, context, expression in product(("t", "c", "p"), CONTEXTS, EXPRESSIONS):
        yield context.format(t=table, e=expression)


def fill(made: duckdb.DuckDBPyConnection, *, patient: bool) -> None:
    """Create the table of one of the two neighbors."""
    columns = (
        "patient BIGINT, x DOUBLE, free DOUBLE, i BIGINT, k BIGINT, word VARCHAR, key VARCHAR, day DATE,"
        " moment TIMESTAMP, flag BOOLEAN"
    )
    made.execute(f"CREATE TABLE t ({columns})")
    made.execute(
        "INSERT INTO t SELECT n % 40, n % 90 - 45, n / 7.0, n % 900, n, 'w' || n % 5, ['a', 'b', 'z'][1 + n % 3],"
        " DATE '2020-01-01' + CAST(n % 400 AS INTEGER), TIMESTAMP '2020-01-01' + to_hours(n), n % 2 = 0"
        " FROM range(200) r(n)"
    )
    if patient:
        made.execute(f"INSERT INTO t VALUES {', '.join(NASTY)}")


def clinic(folder: Path, server: Server, *, patient: bool) -> None:
    """Write one of the two neighbors."""
    database = f"clinic_{folder.name}"
    server.run(f"CREATE DATABASE {database}")
    folder.mkdir()
    with duckdb.connect() as made:
        fill(made, patient=patient)
        made.execute(f"COPY t TO '{folder}/t.parquet'")
        made.execute(f"COPY t TO '{folder}/c.csv' (HEADER)")
        postgres.copied(made, ["t"], server, database)
    if patient:
        with (folder / "c.csv").open("a") as file:
            file.write('8123456789012345,CANARY7431,0x1F,1e3,"","unclosed,,,,\n8123456789012345,1,2\n')
    (folder / "hubbub.yaml").write_text(YAML.replace("SOURCE", postgres.address(server, database, "public.t")))


def ask(session: Session, sql: str, key: str, delta: str | None = None) -> Response:
    """Send a query; any exception that is not a HubbubError counts as a crash."""
    given = {"?": ("CANARY",), "$2": ("CANARY", 0), "$1": ("CANARY",)}
    parameters = next((values for mark, values in given.items() if mark in sql), ())
    try:
        release = session.query(sql, epsilon="0.01", delta=delta, key=key, parameters=parameters)
    except HubbubError as error:
        what = "failed" if error.code.startswith("HB9") else "refused"
        return Response(what, str(error))
    except Exception as error:  # noqa: BLE001 - this is what the campaign looks for
        return Response("crashed", f"{type(error).__name__}: {error}")
    paper = release.receipt
    discovered = any(draw["kind"] in ("threshold", "weights") for draw in paper["draws"])
    kinds = tuple(output.kind for output in release.outputs)
    rows = None if discovered else len(release.ratio)
    facts = (release.columns, kinds if rows else None, rows, release.epsilon, release.delta, str(paper["event"]))
    return Response("answered", "", facts)


def bites(folder: Path, other: Path, sql: str) -> bool:
    """Return whether plain DuckDB distinguishes the neighbors by an error, or prints a canary."""
    heard = []
    for place in (folder, other):
        with duckdb.connect() as plain:
            plain.execute(f"CREATE VIEW t AS FROM '{place}/t.parquet'")
            plain.execute(f"CREATE VIEW c AS FROM read_csv('{place}/c.csv', all_varchar = true)")
            words = ""
            try:
                plain.execute(sql).fetchall()
            except duckdb.Error as error:
                words = str(error)
            heard.append(words)
    return heard[0] != heard[1] or any(canary in words for canary in CANARIES for words in heard)


#: Planted errors: casts that can fail, and values that are not clamped.
CARELESS = {"duckdb": ("TRY_CAST(", "CAST("), "postgres": ("float8larger(", "float8pl(")}


class CarelessEngine:
    """An engine with a planted error."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.dialect = engine.dialect
        self.fingerprint = engine.fingerprint
        self.content_hash = engine.content_hash
        self.interrupt = engine.interrupt
        self.close = engine.close

    def run(self, sql: str) -> Secret[Arrays]:
        """Run SQL with the planted error."""
        return self._engine.run(sql.replace(*CARELESS[self.dialect]))


def planted(one: Session, other: Session) -> int:
    """Count the queries that distinguish the neighbors on the careless engines."""
    found = 0
    for table, sql in (
        ("t", "SELECT COUNT(*) AS n FROM t WHERE TRY_CAST(word AS DATE) IS NOT NULL AND word LIKE '2%'"),
        ("p", "SELECT SUM(x) AS s FROM p"),
    ):
        engines = [session._curator.engine for session in (one, other)]
        for session in (one, other):
            session._curator.engine = CarelessEngine(engine_for(session._curator.engine, [table]))
        found += ask(one, sql, f"planted {table}") != ask(other, sql, f"planted {table}")
        for session, engine in zip((one, other), engines, strict=True):
            session._curator.engine = engine
    return found


#: Queries that distinguish the clinics without truncation and limits; their guesses join the heavy patient's rows.
UNBOUNDED = (
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.patient = b.patient JOIN t AS c ON a.patient = c.patient"
    " WHERE a.secret = 7",
    f"SELECT COUNT(*) AS n FROM t{''.join(f' JOIN p AS p{i} ON t.y = p{i}.y' for i in range(15))} WHERE secret = 7",
)


@contextmanager
def unbounded() -> Iterator[None]:
    """Plant the error: no truncation of relations and no size limits."""
    with (
        patch.object(fanout, "bound_joins", lambda rel, _: fanout.BoundedRelation(rel, None)),
        patch.object(work, "check_row_cost"),
    ):
        yield


def resources(report: Report, folder: Path, server: Server | None) -> None:
    """Send resource queries to two clinics, one of them with the heavy patient, on PostgreSQL if `server` is given."""
    rows, prefix = report.scale(ci=3_000, full=30_000), "resources" if server is None else "resources_on_postgres"
    places = [("heavy", 30), ("light", 30), ("heavy_late", 2), ("light_late", 2)]
    paths = [
        heavy.clinic(folder / name, patient="heavy" in name, rows=rows, server=server, seconds=seconds)
        for name, seconds in places
    ]
    texts = list(heavy.queries())[:: report.scale(ci=2 if server is None else 6, full=1)]
    differ, failed, counts = 0, 0, {"answered": 0, "refused": 0, "failed": 0, "crashed": 0}
    with open_session(paths[0]) as one, open_session(paths[1]) as other:
        for number, sql in enumerate(report.progress(texts, prefix.replace("_", " "))):
            first, second = (ask(each, sql, f"heavy {number}", "1e-7") for each in (one, other))
            counts[first.what] += 1
            failed += first.what in ("failed", "crashed") or second.what in ("failed", "crashed")
            if first != second:
                differ += 1
                report.say(f"differs: {sql[:300]}\n  {first}\n  {second}")
            elif first.what in ("failed", "crashed"):
                report.say(f"{first.what}: {sql[:300]}\n  {first.words}")
    with open_session(paths[2]) as one, open_session(paths[3]) as other, unbounded():
        apart = sum(ask(one, sql, f"uncut {i}") != ask(other, sql, f"uncut {i}") for i, sql in enumerate(UNBOUNDED))
    for what, count in counts.items():
        report.figure(f"{prefix}_{what}", count)
    report.target(f"{prefix}_told_apart", differ, at_most=0)
    report.target(f"{prefix}_failed_after_the_charge", failed, at_most=0)
    report.target(f"{prefix}_accepted", counts["answered"], at_least=len(texts) // 3)
    report.target(f"{prefix}_planted_missing_cuts_told_apart", apart, at_least=len(UNBOUNDED))


def campaign(report: Report) -> None:
    """Send every query to both neighbors and compare the responses."""
    with TemporaryDirectory(prefix="hubbub-heavy-") as folder, Server(fsync="off") as server:
        for place in (None, server):
            home = Path(folder) / ("files" if place is None else "postgres")
            home.mkdir()
            resources(report, home, place)
    errors(report)


def errors(report: Report) -> None:
    """Send every query that may raise an error that depends on the data."""
    texts = list(queries())
    whole = len(WHOLE)
    chosen = texts[:whole] + random.Random(1).sample(texts[whole:], report.scale(ci=100, full=1500))
    listener = LogListener()
    root = logging.getLogger()
    root.addHandler(listener)
    root.setLevel(logging.DEBUG)
    differ: list[str] = []
    loud: list[str] = []
    counts = {"answered": 0, "refused": 0, "failed": 0, "crashed": 0}
    biting = 0
    with TemporaryDirectory(prefix="hubbub-oracle-") as folder, Server(fsync="off") as server:
        here, there = Path(folder) / "with", Path(folder) / "without"
        clinic(here, server, patient=True)
        clinic(there, server, patient=False)
        with open_session(here / "hubbub.yaml") as one, open_session(there / "hubbub.yaml") as other:
            for number, sql in enumerate(report.progress(chosen, "hostile queries")):
                first, second = ask(one, sql, str(number)), ask(other, sql, str(number))
                counts[first.what] += 1
                if first != second:
                    differ.append(sql)
                    report.say(f"differs: {sql}\n  {first}\n  {second}")
                if first.what in ("failed", "crashed"):
                    report.say(f"{first.what}: {sql}\n  {first.words}")
                said = first.words + second.words + " ".join(listener.lines)
                listener.lines.clear()
                if any(canary in said for canary in CANARIES if canary not in sql):
                    loud.append(sql)
                    report.say(f"canary: {sql}\n  {said[:300]}")
                if number % 4 == 0:
                    with suppress(duckdb.Error):
                        biting += bites(here, there, sql)
            report.target("planted_errors_told_apart", planted(one, other), at_least=2)
    root.removeHandler(listener)
    report.figure("queries", len(chosen))
    for what, count in counts.items():
        report.figure(what, count)
    report.target("told_apart", len(differ), at_most=0)
    report.target("canaries_heard", len(loud), at_most=0)
    report.target("failed_after_the_charge", counts["failed"], at_most=0)
    report.target("errors_of_our_own", counts["crashed"], at_most=0)
    report.target("accepted", counts["answered"], at_least=report.scale(ci=10, full=120))
    report.target("plain_duckdb_tells_apart", biting, at_least=report.scale(ci=3, full=30))


if __name__ == "__main__":
    run(campaign)
