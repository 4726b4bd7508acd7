"""Kill a process that uses the ledger, thousands of times, and check that the ledger stays correct.

A process makes charges and releases. It is killed by SIGKILL at random times, at every step that the ledger names, and
just before each kind of system call on its files; the next process continues and retries what was not acknowledged. On
PostgreSQL the server is crashed as well. System calls are also made to fail, as on a full or broken disk: from then on
the process must serve nothing. After each event: no acknowledged charge or release is lost, no key is charged twice or
answered in two ways, nothing is released without a charge, totals are exact, and the ledger verifies and is ready in
under 5 seconds.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.crash
"""

import math
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.campaigns.frame import Report, run
from tests.campaigns.rig.killable_process import KillableProcess, Messenger, prepare
from tests.campaigns.rig.small_ledger import Expectations, LedgerPlace, serve
from tests.fixtures.postgres_server import Server

from hubbub.accounting.store import STEPS
from hubbub.errors import LedgerError

LIFE = (
    0.1  # seconds that a victim of a random kill lives at most; longer where the machine is too busy to serve by then
)
KILLS_A_LEDGER = 6
KEYS = 6  # a victim that is to die at a point serves so many keys and then closes in good order
READY = 5.0

#: System calls on the ledger's files (by the end of the file's name), and how often a victim makes them at least; a
#: kill comes just before one of them.
CALLS: tuple[tuple[str, str, int], ...] = (
    ("pwrite64", ".sqlite-journal", 2),
    ("fdatasync", ".sqlite-journal", 2),
    ("unlink", ".sqlite-journal", 1),
    ("pwrite64", ".sqlite-wal", 40),
    ("fdatasync", ".sqlite-wal", 12),
    ("unlink", ".sqlite-wal", 1),
    ("pwrite64", ".sqlite", 3),
    ("fdatasync", ".sqlite", 2),
    ("openat", ".anchor", 1),
    ("pwrite64", ".anchor", 13),
    ("fsync", ".anchor", 2),
    ("fdatasync", ".anchor", 1),
)

#: Calls that fail instead, once: whoever shrugs that off would promise what the disk may not have.
FAULTS: tuple[tuple[str, str, str, int], ...] = (
    ("fdatasync", ".sqlite-wal", "EIO", 12),
    ("pwrite64", ".sqlite-wal", "ENOSPC", 40),
    ("fdatasync", ".anchor", "EIO", 1),
    ("pwrite64", ".anchor", "ENOSPC", 12),
)

#: Kills between a process and a PostgreSQL server: before a message leaves, and before an answer is read.
MESSAGES = (("sendto", 40), ("recvfrom", 30))


def live(say: Messenger, place: LedgerPlace, keys: list[str], threads: int, step: str, count: int) -> None:
    """Serve these keys on one or several threads; die when the ledger reaches a step for the n-th time."""
    reached: Counter[str] = Counter()

    def on_step(name: str) -> None:
        reached[name] += 1
        if name == step and reached[name] == count:
            os.kill(os.getpid(), signal.SIGKILL)

    def some(own: list[str]) -> None:
        try:
            for key in own:
                say(f"tries {key}")
                serve(ledger, key, say)
        except LedgerError as error:
            say(f"stopped {error.code}")

    try:
        with place.ledger(on_step) as ledger:
            team = [threading.Thread(target=some, args=(keys[start::threads],)) for start in range(threads)]
            for thread in team:
                thread.start()
            for thread in team:
                thread.join()
            say(f"closes {time.time()}")
    except LedgerError as error:
        say(f"stopped {error.code}")


@dataclass(slots=True)
class Episode:
    """One ledger through many crashes."""

    place: LedgerPlace
    chance: random.Random
    promises: Expectations = field(default_factory=Expectations)
    slowest: float = 0.0
    deaths: int = 0
    serving: int = 0
    life: float = LIFE
    next_key: int = 0
    stopped: bool = False  # whether the last victim said so
    closed_at: float = math.inf  # when it had served all, and began to close

    def victim(self, keys: int, *, step: str = "", count: int = 0) -> KillableProcess:
        """Start a process that serves `count` keys: first all without an answer, then new ones."""
        unanswered = sorted(self.promises.tried - self.promises.released.keys())
        new = [f"k{number}" for number in range(self.next_key, self.next_key + max(0, keys - len(unanswered)))]
        self.next_key += len(new)
        threads = self.chance.choice((1, 1, 1, 6))
        place = replace(self.place, alone=self.chance.random() < 0.5)
        return KillableProcess(live, place, (unanswered + new)[:keys], threads, step, count)

    def bury(self, victim: KillableProcess, *, within: float, kill: bool, may_stop: bool = False) -> bool:
        """Wait for its end. Usually check the ledger at once; sometimes let the next process open it first."""
        said = victim.finish(within=within, kill=kill)
        self.promises.hear(said)
        self.stopped = any(line.startswith("stopped") for line in said)
        self.closed_at = min((float(line.split()[1]) for line in said if line.startswith("closes")), default=math.inf)
        self.deaths += victim.killed
        served = any(line.startswith("charged") for line in said)
        self.serving += victim.killed and served
        self.life = max(LIFE, 0.9 * self.life) if served else 1.2 * self.life
        if not may_stop:
            self.promises.broken += [line for line in said if line.startswith("stopped")]
        if self.chance.random() < 0.75:
            self.look()
        return victim.killed

    def look(self) -> None:
        """Open the ledger as an owner would, and compare it with what was acknowledged."""
        begun = time.perf_counter()
        try:
            with self.place.ledger() as ledger:
                self.slowest = max(self.slowest, time.perf_counter() - begun)
                with ledger.snapshot() as snapshot:
                    self.promises.check(snapshot)
        except LedgerError as error:
            self.promises.broken.append(f"locked out: {error}")


class Campaign:
    """Open ledgers one after another, and add up the results."""

    def __init__(self, base: Path, server: Server) -> None:
        self._base = base
        self._server = server
        self._chance = random.Random(20_240_601)
        self._databases = ExitStack()
        self.broken: list[str] = []
        self.slowest = 0.0
        self.deaths = 0
        self.serving = 0
        self.ledgers = 0

    def episode(self, *, postgres: bool) -> Episode:
        """Start with an empty ledger."""
        self.ledgers += 1
        folder = self._base / str(self.ledgers)
        folder.mkdir()
        dsn = self._databases.enter_context(self._server.database()) if postgres else None
        return Episode(LedgerPlace(folder, dsn), random.Random(self._chance.getrandbits(64)))

    def end(self, episode: Episode) -> None:
        """Check the ledger one last time and close it."""
        episode.look()
        self.broken += episode.promises.broken
        self.slowest = max(self.slowest, episode.slowest)
        self.deaths += episode.deaths
        self.serving += episode.serving
        self._databases.close()
        shutil.rmtree(episode.place.folder)

    def random_kills(self, report: Report, wanted: int, *, postgres: bool) -> None:
        """Kill at random times."""
        label = "kills on PostgreSQL" if postgres else "kills on SQLite"
        episode = self.episode(postgres=postgres)
        for number in report.progress(range(wanted), label):
            if number % KILLS_A_LEDGER == KILLS_A_LEDGER - 1:
                self.end(episode)
                life, episode = episode.life, self.episode(postgres=postgres)
                episode.life = life  # a busy machine stays busy: most victims should have served when they die
            victim = episode.victim(2000)
            victim.go()
            episode.bury(victim, within=episode.chance.uniform(0, episode.life), kill=True)
        self.end(episode)

    def points(self, report: Report, wanted: int, *, postgres: bool) -> dict[str, int]:
        """Kill at each named step, several times each; return how often each was reached."""
        steps = [(f"step {step}", step, "", 2 * KEYS if step != "releases" else KEYS) for step in STEPS]
        if postgres:
            calls = [(f"before {call}", call, "", most) for call, most in MESSAGES]
        else:
            calls = [(f"before {call} of {ending}", call, ending, most) for call, ending, most in CALLS]
        reached: dict[str, int] = {}
        for name, what, ending, most in report.progress(steps + calls, "named points"):
            reached[name] = 0
            for attempt in range(wanted * 4):
                if attempt % 4 == 0:
                    episode = self.episode(postgres=postgres)
                reached[name] += self._one_point(episode, name, what, ending, most)
                if attempt % 4 == 3 or reached[name] == wanted:
                    self.end(episode)
                if reached[name] == wanted:
                    break
        return reached

    def _one_point(self, episode: Episode, name: str, what: str, ending: str, most: int) -> bool:
        count = episode.chance.randint(1, most)
        if name.startswith("step"):
            victim = episode.victim(KEYS, step=what, count=count)
        else:
            victim = episode.victim(KEYS)
            path = episode.place.folder / f"ledger{ending}" if ending else None
            victim.kill_before(what, when=count, path=path)
        victim.go()
        return episode.bury(victim, within=60, kill=False)

    def faults(self, report: Report, wanted: int) -> dict[str, int]:
        """Make system calls fail, several times each; return how often each failed."""
        reached: dict[str, int] = {}
        for call, ending, error, most in report.progress(FAULTS, "failing calls"):
            name = f"{error} of {call} of {ending}"
            reached[name] = 0
            for _ in range(wanted * 4):
                episode = self.episode(postgres=False)
                for _ in range(2):  # on a new ledger, and on one that was left after a fault
                    victim = episode.victim(KEYS)
                    path = episode.place.folder / f"ledger{ending}"
                    victim.fail(call, error, when=episode.chance.randint(1, most), path=path)
                    victim.go()
                    episode.bury(victim, within=60, kill=False, may_stop=True)
                    if victim.failed_at is None or victim.failed_at > episode.closed_at:
                        continue  # at the end, SQLite tidies up: what was promised is on the disk, and no more is
                    reached[name] += 1
                    if not episode.stopped:
                        episode.promises.broken.append(f"went on after {name}")
                self.end(episode)
                if reached[name] >= wanted:
                    break
        return reached

    def server_crashes(self, report: Report, wanted: int) -> None:
        """Crash the server instead of the process, which then waits for the restart, or stops for good."""
        episode = self.episode(postgres=True)
        for _ in report.progress(range(wanted), "crashes of the server"):
            victim = episode.victim(300)
            victim.go()
            time.sleep(episode.chance.uniform(0, 0.3))
            self._server.stop(crash=True)
            self._server.start()
            episode.bury(victim, within=60, kill=False, may_stop=True)
        self.end(episode)


def body(report: Report) -> None:
    # whatever this module imports: a victim runs it first
    prepare(
        "tests.campaigns.rig.small_ledger",
        "tests.campaigns.rig.killable_process",
        "tests.campaigns.frame",
        "tests.fixtures.postgres_server",
    )
    with tempfile.TemporaryDirectory(prefix="hubbub-crash-") as base, Server() as server:
        campaign = Campaign(Path(base), server)
        campaign.random_kills(report, report.scale(ci=40, full=10_000), postgres=False)
        campaign.random_kills(report, report.scale(ci=10, full=1_000), postgres=True)
        report.figure("random_kills", campaign.deaths)
        wanted = report.scale(ci=1, full=100)
        reached = campaign.points(report, wanted, postgres=False)
        reached |= {f"{name} (PostgreSQL)": n for name, n in campaign.points(report, wanted, postgres=True).items()}
        faults = campaign.faults(report, wanted)
        crashes = report.scale(ci=2, full=100)
        campaign.server_crashes(report, crashes)
    report.figure("server_crashes", crashes)
    report.figure("named_points", len(reached))
    report.figure("failing_calls", dict(faults))
    report.figure("kills", campaign.deaths)
    report.figure("kills_of_one_that_had_served", campaign.serving)
    report.figure("ledgers", campaign.ledgers)
    for text in campaign.broken[:20]:
        report.say(text)
    report.target("kills_at_the_least_reached_point", min(reached.values()), at_least=wanted)
    report.target("failures_of_the_least_reached_call", min(faults.values()), at_least=wanted)
    report.target("broken_promises", len(campaign.broken), at_most=0)
    report.target("slowest_restart_seconds", round(campaign.slowest, 3), at_most=READY)


if __name__ == "__main__":
    run(body)
