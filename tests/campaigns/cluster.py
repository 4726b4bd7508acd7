"""A standalone Spark cluster of real processes: equal integers, and what happens when parts of it die in a query.

A query is stopped at a known place, not by luck: as soon as an executor has written shuffled rows, it is stopped, so
that the query cannot end before the executor, its worker or the Connect server is killed. Spark's own log of events
says whether tasks were lost and run again.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.cluster       all parts
    HUBBUB_PARTS=corpus,order,worker,all,connect                          some parts (CI has worker and all)
"""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from tests.campaigns import parity
from tests.campaigns import spark as on_one_machine
from tests.campaigns.frame import Report, run
from tests.fixtures import spark_cluster
from tests.fixtures.spark_cluster import Cluster, Member, waited

import hubbub
from hubbub.accounting.store import EntryFilter
from hubbub.answers.release import Release
from hubbub.audit.receipt import check_receipt
from hubbub.curator.session import Session
from hubbub.engines.base import EngineLimits
from hubbub.engines.spark.connection import SparkEngine
from hubbub.errors import HubbubError, RunError

PARTS = ("corpus", "order", "worker", "all", "connect")
IN_CI = ("worker", "all")
SECONDS = 300
YAML = """
version: 1
engine: {{seconds: {seconds}, hash: portable}}
datasets:
  visits:
    source: "{source}"
    unit: {{column: patient, groups: 2, rows: 3}}
    columns: {{patient: {{}}, region: {{values: [north, south, east, west]}}, cost: {{bounds: [0, 100], step: 0.01}}}}
    budget: {{epsilon: 1000}}
analysts:
  ana: {{visits: {{epsilon: 1000}}}}
"""
ASKED = "SELECT region, count(*) AS n, sum(cost) AS s, avg(cost) AS a FROM visits GROUP BY region"

#: What must differ from one order of the rows to another, or the equal integers would show nothing.
FLOATS = (
    "SELECT `region`, sum(s) AS s FROM (SELECT `patient`, `region`, sum(`cost`) AS s FROM {t} GROUP BY 1, 2) GROUP BY 1"
)
CHANCE = (
    "SELECT `region`, CAST(sum(round(100 * `cost`)) AS BIGINT) AS s FROM (SELECT *, row_number() OVER"
    " (PARTITION BY `patient` ORDER BY rand()) AS place FROM {t}) WHERE place <= 3 GROUP BY 1"
)


def write(folder: Path, *, rows: int, files: int) -> None:
    """Write visits, twenty to a patient, into files whose names are not those of their URLs."""
    folder.mkdir()
    with duckdb.connect(":memory:", config={"threads": 1}) as made:
        made.execute("SELECT setseed(0.5)")
        made.execute(
            "CREATE TABLE t AS SELECT CAST(floor(random() * ?) AS BIGINT) AS patient, round(random() * 100, 2) AS cost,"
            " ['north', 'south', 'east', 'west'][1 + CAST(floor(random() * 4) AS INTEGER)] AS region FROM range(?)",
            [rows // 20, rows],
        )
        for number in range(files):
            made.execute(f"COPY (FROM t WHERE rowid % {files} = {number}) TO '{folder}/part {number}%20é[x].parquet'")


@dataclass
class Clinic:
    """A session over the cluster, and the integers before noise of each run of its engine."""

    session: Session
    engine: SparkEngine
    place: Path
    seen: list[list[Any]] = field(default_factory=list)

    def ask(self, key: str) -> Release:
        """Ask as the analyst; `seen` has the integers of this query afterwards."""
        self.seen.clear()
        return self.session.query(ASKED, epsilon=1, key=key)

    def charges(self) -> int:
        """Count the charges in the ledger."""
        with self.session._curator.ledger.snapshot() as snapshot:
            return len(list(snapshot.entries(EntryFilter(kind="charge"))))

    def failures(self) -> int:
        """Count the failures that the owner sees."""
        with self.session._curator.ledger.snapshot() as snapshot:
            return len(list(snapshot.entries(EntryFilter(kind="failure"))))


@contextmanager
def clinic(cluster: Cluster, folder: Path) -> Iterator[Clinic]:
    """Open a session with a ledger of its own over the folder of visits."""
    place = folder / f"clinic-{token_hex(4)}"
    place.mkdir()
    text = YAML.format(seconds=SECONDS, source=f"spark:{cluster.connect_address}/{folder / 'visits'}")
    (place / "hubbub.yaml").write_text(text)
    with hubbub.open(place / "hubbub.yaml", analyst="ana") as session:
        engine = session._curator.engine
        assert isinstance(engine, SparkEngine)
        made = Clinic(session, engine, place)
        watch(engine, made.seen)
        yield made


def watch(engine: Any, seen: list[list[Any]]) -> None:
    """Keep the integers before noise of each statement."""
    plain = engine.run

    def watched(sql: str) -> Any:
        found = plain(sql)
        seen.append(found.through(parity.rows))
        return found

    engine.run = watched


class Asking(threading.Thread):
    """A query in a thread of its own: its release or its error."""

    def __init__(self, asked: Clinic, key: str) -> None:
        super().__init__(daemon=True)
        self._ask = partial(asked.ask, key)
        self.release: Release | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Ask."""
        try:
            self.release = self._ask()
        except Exception as error:  # noqa: BLE001 - it is looked at
            self.error = error

    def end(self) -> Release | Exception | None:
        """Wait for the end."""
        self.join(SECONDS * 2)
        assert not self.is_alive(), "the query did not end"
        return self.release or self.error


def stopped(cluster: Cluster, asked: Clinic, key: str) -> tuple[Asking, Member, int]:
    """Ask, and stop an executor once it has written rows for others, so that the query cannot end without it."""
    places = [(worker, pid, place) for worker in cluster.workers for pid, place in worker.executors().items()]
    before = {pid: set(_shuffled(place)) for _, pid, place in places}
    asking = Asking(asked, key)

    def look() -> tuple[Member, int] | None:
        assert asking.is_alive(), f"ended too early: {asking.release or asking.error}"
        for worker, pid, place in places:
            if set(_shuffled(place)) - before[pid]:
                os.kill(pid, signal.SIGSTOP)
                return worker, pid
        return None

    found = waited(look, SECONDS)
    time.sleep(0.2)
    assert found is not None
    assert asking.is_alive(), "it did not need the executor that was stopped"
    return asking, found[0], found[1]


def _shuffled(place: Path) -> list[Path]:
    return list(place.glob("blockmgr-*/*/shuffle_*.data"))


def lost_tasks(cluster: Cluster) -> int:
    """Count the tasks that Spark ran again because what had run them, or had their rows, was gone."""
    reasons = [each.get("Task End Reason", {}).get("Reason") for each in cluster.happenings()]
    return sum(reason in ("ExecutorLostFailure", "Resubmitted", "FetchFailed") for reason in reasons)


def is_sound(release: object) -> bool:
    """Whether a query ended with a release whose receipt verifies."""
    return isinstance(release, Release) and check_receipt(release.document()).sound


# --- the parts -------------------------------------------------------------------------------------------------------


def order(report: Report, cluster: Cluster, folder: Path) -> None:
    """Ask with 1, 3 and 200 partitions: the integers must be DuckDB's each time."""
    results: dict[str, list[list[Any]]] = {"integers": [], "floats": [], "chance": []}
    table = f"parquet.`{folder / 'visits'}`"
    with clinic(cluster, folder) as asked:
        asked.ask(token_hex())
        for partitions in (1, 3, 200):
            session = asked.engine._current.session  # type: ignore[union-attr]
            session.conf.set("spark.sql.shuffle.partitions", str(partitions))
            asked.ask(token_hex())
            results["integers"].append([*asked.seen])
            for name, sql in (("floats", FLOATS), ("chance", CHANCE)):
                if (name, partitions) == ("chance", 200):
                    continue  # two are enough to differ
                found = session.sql(sql.format(t=table)).toArrow().to_pylist()
                results[name].append(sorted(map(repr, found)))
    expected = in_duckdb(asked, folder)
    wrong = sum(found != expected for found in results["integers"])
    report.target("cluster: answers that depend on the number of partitions", wrong, at_most=0)
    for name in ("floats", "chance"):
        different = len({repr(found) for found in results[name]})
        report.target(f"cluster: planted: {name}: different answers", different, at_least=2)


def in_duckdb(asked: Clinic, folder: Path) -> list[list[Any]]:
    """Ask DuckDB for the same integers: the same ledger, and so the same rows of each patient."""
    file, seen = folder / "visits.parquet", list[list[Any]]()
    duckdb.execute(f"COPY (FROM '{folder}/visits/*.parquet') TO '{file}'")
    config = asked.place / "hubbub.yaml"
    config.write_text(re.sub('source: ".*"', f'source: "{file}"', config.read_text()))
    with hubbub.open(config, analyst="ana") as session:
        watch(session._curator.engine, seen)
        session.query(ASKED, epsilon=1, key=token_hex())
    return seen


def worker(report: Report, cluster: Cluster, folder: Path) -> None:
    """Kill executors and workers in the middle of queries: Spark runs the lost tasks again, under one charge."""
    wrong, unsound, charged, lost = 0, 0, 0, lost_tasks(cluster)
    rounds = report.scale(ci=1, full=20)
    with clinic(cluster, folder) as asked:
        asked.ask("undisturbed")
        calm = [*asked.seen]
        for number in report.progress(range(rounds), "killed workers"):
            asking, member, pid = stopped(cluster, asked, f"killed {number}")
            if number % 2:
                os.kill(pid, signal.SIGKILL)
            else:
                member.kill()
                cluster.workers.remove(member)
            release = asking.end()
            wrong += asked.seen != calm
            unsound += not is_sound(release)
            again = asked.ask(f"killed {number}")
            unsound += not (isinstance(release, Release) and again.rows == release.rows)
            charged += asked.charges() != number + 2
            if len(cluster.workers) < 2 and number + 1 < rounds:
                cluster.add_worker()
        report.target("cluster: killed in the middle: failures counted", asked.failures(), at_most=0)
        # planted: an answer that is asked for again is charged again
        curator = type(asked.session._curator)
        plain = curator._charge
        curator._charge = lambda self, *a, **k: plain(self, *(*a[:4], token_hex(), *a[5:]), **k)  # type: ignore[method-assign]
        try:
            asked.ask(f"killed {rounds - 1}")
        finally:
            curator._charge = plain  # type: ignore[method-assign]
        report.target("cluster: planted: charged again", asked.charges() - rounds - 1, at_least=1)
    report.figure("cluster: workers and executors killed in the middle", rounds)
    report.target("cluster: tasks that were lost and run again", lost_tasks(cluster) - lost, at_least=rounds)
    report.target("cluster: killed in the middle: other integers", wrong, at_most=0)
    report.target("cluster: killed in the middle: answers that do not verify, or differ", unsound, at_most=0)
    report.target("cluster: killed in the middle: other than one charge", charged, at_most=0)


def everything(report: Report, cluster: Cluster, folder: Path) -> None:
    """Kill all workers in the middle: one charge, the constant failure after the limit, and recovery under it."""
    with clinic(cluster, folder) as asked:
        asked.ask("before")
        calm, over = [*asked.seen], limit_in_hand(asked.engine)
        asking, _, _ = stopped(cluster, asked, "lost")
        for member in cluster.workers:
            member.kill()
        cluster.workers.clear()
        asking.join(2)
        report.target("cluster: all workers lost: the query waits", asking.is_alive(), at_least=1)
        over.set()
        report.target("cluster: all workers lost: the constant failure", _failed(asking), at_least=1)
        report.target("cluster: all workers lost: charges", asked.charges(), at_least=2, at_most=2)
        report.target("cluster: all workers lost: failures counted", asked.failures(), at_least=1, at_most=1)
        asked.engine._limits, told = EngineLimits(seconds=5), ""
        try:
            asked.ask("nobody there")
        except HubbubError as error:
            told = str(error)
        report.target("cluster: no workers: refused before the charge", "in time" in told, at_least=1)
        report.target("cluster: no workers: charges", asked.charges(), at_least=2, at_most=2)
        asked.engine._limits = EngineLimits(seconds=SECONDS)
        over.clear()
        for _ in range(report.scale(ci=1, full=2)):
            cluster.add_worker()
        _recovered(report, asked, "all workers lost", calm)


def connect(report: Report, cluster: Cluster, folder: Path) -> None:
    """Kill the Connect server in the middle: one charge, the constant failure at once, and recovery under it."""
    with clinic(cluster, folder) as asked:
        asked.ask("before")
        calm = [*asked.seen]
        asking, _, _ = stopped(cluster, asked, "lost")
        cluster.connect.kill()
        report.target("cluster: server lost: the constant failure", _failed(asking), at_least=1)
        report.target("cluster: server lost: charges", asked.charges(), at_least=2, at_most=2)
        report.target("cluster: server lost: failures counted", asked.failures(), at_least=1, at_most=1)
        for member in cluster.workers:  # one executor of the dead server is still stopped
            for pid in member.executors():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        cluster.start_connect()
        _recovered(report, asked, "server lost", calm)


def _failed(asking: Asking) -> bool:
    error = asking.end()
    return (
        isinstance(error, RunError) and str(error) == str(RunError()) and error.__cause__ is error.__context__ is None
    )


def limit_in_hand(engine: SparkEngine) -> threading.Event:
    """Let the time limit of queries pass when the event is set, and not before."""
    over, submit = threading.Event(), engine._workers.submit

    def submitted(*given: Any) -> Future[Any]:
        made = submit(*given)
        result = made.result

        def waits(timeout: float | None = None) -> Any:
            while not over.is_set():
                with suppress(Late):
                    return result(0.1)
            return result(0.1)

        made.result = waits  # type: ignore[method-assign]
        return made

    engine._workers.submit = submitted  # type: ignore[assignment,method-assign]
    return over


def _recovered(report: Report, asked: Clinic, what: str, calm: list[list[Any]]) -> None:
    """Ask again with the key of the failed query: the same charge, the integers of the query before."""
    right = is_sound(asked.ask("lost")) and asked.seen == calm
    report.target(f"cluster: {what}: answered later under its charge", right, at_least=1)
    report.target(f"cluster: {what}: charges in the end", asked.charges(), at_least=2, at_most=2)


def corpus(report: Report, cluster: Cluster, folder: Path) -> None:
    """Run queries of the corpus on DuckDB and on the cluster."""
    with on_one_machine.side(cluster.connect_address, folder) as there:
        ask = partial(on_one_machine.corpus, sample=1)
        on_one_machine.compared(report, there, "queries of the corpus on a cluster", ask)


def body(report: Report) -> None:
    parts = {"corpus": corpus, "order": order, "worker": worker, "all": everything, "connect": connect}
    chosen = report.parts(*PARTS)
    with TemporaryDirectory(prefix="hubbub-cluster-") as name, spark_cluster.running() as cluster:
        folder = Path(name)
        write(folder / "visits", rows=report.scale(ci=24_000, full=2_000_000), files=report.scale(ci=6, full=24))
        for part in chosen:
            if part not in IN_CI and not report.full and "HUBBUB_PARTS" not in os.environ:
                continue  # CI has the corpus on one machine (spark.py), and a killed driver (test_spark.py)
            parts[part](report, cluster, folder)
            report.say(f"{part}: {len(cluster.happenings()):,} events")


if __name__ == "__main__":
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    run(body)
