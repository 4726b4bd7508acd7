"""Kill a server under load, a thousand times, and see that what clients were told over HTTP still holds.

A real `hubbub serve` answers several clients who retry, with the same Idempotency-Key, whatever was not answered. It is
killed by SIGKILL at random times, also while it starts. A kill between a charge and its seed spends the charge (HB901):
such keys are counted, and have no answer ever after. After each kill the ledger is opened as it lies there: it
verifies, every answer that a client got has its charge and is kept byte for byte, and nothing was charged twice. The
next server is ready in under 5 seconds and gives the same answers to the same keys.

Servers of two workers lose one of them at random times, while the other goes on and gets the retries.

The campaign has an error planted too: a server that answers first and records a moment later. It must be caught.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.http_crash
"""

import os
import random
import re
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from tests.campaigns.frame import Report, run
from tests.fixtures.postgres_server import Server
from tests.fixtures.server_config import ANALYSTS, ServerFolder, charge, kept
from tests.fixtures.server_process import Caller, ForkedServer, SpawnedServer, await_ready, free_port, prepare

from hubbub.accounting.ledger import Ledger, examine
from hubbub.accounting.store import EntryFilter
from hubbub.config import load
from hubbub.curator.opening import anchor_of, store_of
from hubbub.errors import LedgerError

READY = 5.0  # seconds that a start may take
LIFE = 25  # answers that a server gives at most, or so
PATIENCE = 5.0  # seconds that it has for them
KILLS_A_LEDGER = 25
THREADS = 2  # for each analyst
COLD = 20  # each so-manieth server is started from nothing


@dataclass(slots=True)
class Told:
    """What the clients of one town tried, and were told."""

    tried: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    answers: dict[tuple[str, str], bytes] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    spent: set[tuple[str, str]] = field(default_factory=set)  # a kill between charge and seed leaves these
    retried: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, who: tuple[str, str], answer: bytes) -> None:
        """Take an answer in; one that differs from an earlier one to the same key is a broken promise."""
        with self.lock:
            self.spent.discard(who)
            first = self.answers.setdefault(who, answer)
            self.retried += first is not answer
        if first != answer:
            self.broken.append(f"two answers to the key {who[1]} of {who[0]}")


class Clients:
    """Several threads that ask until they are told to stop; what breaks off is asked again later, under its key."""

    def __init__(self, town: ServerFolder, told: Told, port: int, chance: random.Random) -> None:
        self._town, self._told, self._port = town, told, port
        self._over = threading.Event()
        seeds = [(analyst, chance.getrandbits(64)) for analyst in ANALYSTS for _ in range(THREADS)]
        self._threads = [threading.Thread(target=self._some, args=each) for each in seeds]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait for all of them."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _some(self, analyst: str, seed: int) -> None:
        chance = random.Random(seed)
        caller = Caller(self._port, self._town.tokens[analyst], patience=30)
        key = self._choose(analyst, chance)
        while not self._over.is_set():
            try:
                ask(caller, self._told, (analyst, key))
                key = self._choose(analyst, chance)
            except (OSError, HTTPException):
                time.sleep(0.02)  # the server is not there yet, or no more
        caller.close()

    def _choose(self, analyst: str, chance: random.Random) -> str:
        """Take a key that has no answer yet, at times one that has, else a new one."""
        told = self._told
        with told.lock:
            mine = [key for who, key in told.tried if who == analyst]
            open_ones = [key for key in mine if (analyst, key) not in told.answers.keys() | told.spent]
            if open_ones and chance.random() < 0.5:
                return chance.choice(open_ones)
            if mine and chance.random() < 0.2:
                return chance.choice(mine)
            key = f"{analyst}-{len(told.tried)}"
            told.tried[analyst, key] = self._town.question(len(told.tried), own_key=chance.random() < 0.5)
            return key


def ask(caller: Caller, told: Told, who: tuple[str, str]) -> None:
    """Ask once and keep the answer. "Too busy" and "failed after the charge" are asked again; all else is broken."""
    reply = caller.query(told.tried[who], who[1])
    if reply.status == 200:
        told.hear(who, kept(reply))
    elif reply.status == 424 and reply.json()["code"] == "HB901":
        with told.lock:
            told.spent.add(who)
    elif reply.status not in (424, 429, 503):
        told.broken.append(f"status {reply.status} for {who[1]}: {reply.body[:200]!r}")


@dataclass(slots=True)
class Episode:
    """One ledger through many servers."""

    town: ServerFolder
    chance: random.Random
    plant: Callable[[], None] | None = None
    workers: int = 1
    told: Told = field(default_factory=Told)
    ready: dict[type, list[float]] = field(default_factory=lambda: {ForkedServer: [], SpawnedServer: []})
    kills: int = 0
    serving: int = 0
    starts: int = 0
    ledger: bool = False  # whether there was one to look at

    def live(self) -> None:
        """Start a server, load it, kill it, and look at what it left."""
        port = free_port()
        server = self._start(port)
        before = len(self.told.answers)
        clients = Clients(self.town, self.told, port, self.chance)
        try:
            if self.chance.random() < 0.9:
                self._await(port, server)
                self._let_answer(before + self.chance.randint(0, LIFE))
            else:
                time.sleep(self.chance.uniform(0, 0.5))
        finally:
            code = server.end(signal.SIGKILL)
            clients.stop()
        if code != -signal.SIGKILL:
            self.told.broken.append(f"a server ended by itself, with {code}")
        self.kills += 1
        self.serving += len(self.told.answers) > before
        self.look()

    def lose_workers(self, kills: int) -> None:
        """Start a server of several workers, load it, kill one worker after the other, and stop it in good order."""
        port = free_port()
        server = self._start(port)
        clients = Clients(self.town, self.told, port, self.chance)
        try:
            self._await(port, server)
            for _ in range(kills):
                self._let_all_run(server)
                before = len(self.told.answers)
                self._let_answer(before + self.chance.randint(1, LIFE))
                os.kill(self.chance.choice(server.workers()), signal.SIGKILL)
                self.kills += 1
                self.serving += len(self.told.answers) > before
            self._let_all_run(server)
        finally:
            clients.stop()
            code = server.end(signal.SIGTERM)
        if code != 0:
            self.told.broken.append(f"the supervisor ended with {code}")
        self.look()

    def _let_all_run(self, server: SpawnedServer | ForkedServer) -> None:
        until = time.monotonic() + 60
        while len(server.workers()) < self.workers:
            if time.monotonic() > until:
                raise TimeoutError("a worker was not replaced")
            time.sleep(0.01)

    def _await(self, port: int, server: SpawnedServer | ForkedServer) -> None:
        self.ready[type(server)].append(await_ready(port, server))

    def _let_answer(self, enough: int) -> None:
        """Wait until there are so many answers, and a random moment longer."""
        until = time.monotonic() + PATIENCE
        while len(self.told.answers) < enough and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(self.chance.uniform(0, 0.02))

    def failures(self) -> Counter[str]:
        """Read in the logs why queries failed after their charge: the kind of the error, which is all they say."""
        text = "".join(path.read_text() for path in self.town.folder.glob("server-*.log"))
        return Counter(re.findall(r"has no release: (\w+)", text))

    def end(self) -> None:
        """Start once more, ask everything again that was ever asked, and stop in good order."""
        port = free_port()
        server = self._start(port)
        try:
            self._await(port, server)
            callers = {analyst: Caller(port, self.town.tokens[analyst]) for analyst in ANALYSTS}
            for who in list(self.told.tried):
                ask(callers[who[0]], self.told, who)
            for caller in callers.values():
                caller.close()
        finally:
            code = server.end(signal.SIGTERM)
        if code not in (0, -signal.SIGTERM):
            self.told.broken.append(f"a stop in good order ended with {code}")
        if missing := len(self.told.tried.keys() - self.told.answers.keys() - self.told.spent):
            self.told.broken.append(f"{missing} keys have no answer after everything")
        if len(self.told.spent) > self.kills * THREADS * len(ANALYSTS):
            self.told.broken.append(f"{len(self.told.spent)} charges are spent, more than kills can explain")
        self.look()

    def _start(self, port: int) -> SpawnedServer | ForkedServer:
        self.starts += 1
        cold = self.plant is None and self.starts % COLD == 0
        if cold:
            return SpawnedServer(self.town.config, port, self.workers)
        return ForkedServer(self.town.config, port, self.plant, self.workers)

    def look(self) -> None:
        """Open the ledger as it was left, beside no server, and compare it with what was told."""
        config, told = load(self.town.config), self.told
        try:
            store = store_of(config, read_only=True)
        except LedgerError as error:
            # killed before the first start had made it: then nobody can have been answered
            if told.answers or self.ledger:
                told.broken.append(f"the ledger cannot be opened: {error}")
            return
        self.ledger = True
        try:
            verification = examine(store, anchor_of(config))
            with store.snapshot() as snapshot:
                charges = {entry.sequence: entry for entry in snapshot.entries(EntryFilter(kind="charge"))}
                bodies = dict(snapshot.releases())
        finally:
            store.close()
        if not verification.sound:
            told.broken.append(f"the ledger does not verify: {verification.report()}")
        twice = Counter((entry.analyst, entry.query) for entry in charges.values())
        told.broken += [f"charged twice: {who}" for who, count in twice.items() if count > 1]
        if len(charges) > len(told.tried):
            told.broken.append("there are more charges than questions")
        for (analyst, key), answer in told.answers.items():
            sequence, digest = charge(answer)
            entry = charges.get(sequence)
            if entry is None or entry.analyst != analyst or entry.hash.hex() != digest:
                told.broken.append(f"answered and not charged: {key} of {analyst}")
            elif bodies.get(sequence) != answer:
                told.broken.append(f"answered otherwise than recorded: {key} of {analyst}")


def answer_before_recording() -> None:
    """Plant an error: the answer leaves at once, and is recorded a moment later."""
    honest = Ledger.record

    def hasty(ledger: Ledger, charge: object, release: bytes) -> bytes:
        threading.Timer(0.2, honest, (ledger, charge, release)).start()
        return release

    Ledger.record = hasty  # type: ignore[method-assign, assignment]


@dataclass(slots=True)
class Campaign:
    """Opens towns, one after the other, and adds up what became of them."""

    base: Path
    server: Server
    chance: random.Random = field(default_factory=lambda: random.Random(20_261_115))
    broken: list[str] = field(default_factory=list)
    ready: dict[type, list[float]] = field(default_factory=lambda: {ForkedServer: [], SpawnedServer: []})
    kills: int = 0
    serving: int = 0
    answers: int = 0
    retried: int = 0
    towns: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    spent: int = 0

    def run(self, report: Report, wanted: int, label: str, *, postgres: bool) -> None:
        """Kill so many servers, on a new ledger now and then."""
        with ExitStack() as databases:
            episode: Episode | None = None
            for number in report.progress(range(wanted), label):
                if number % KILLS_A_LEDGER == 0:
                    self.close(episode)
                    dsn = databases.enter_context(self.server.database()) if postgres else None
                    episode = self.open(dsn)
                if episode is not None:
                    episode.live()
            self.close(episode)

    def lose_workers(self, report: Report, wanted: int, label: str, *, postgres: bool) -> None:
        """Kill so many workers, each of two."""
        with ExitStack() as databases:
            for number in report.progress(range(0, wanted, KILLS_A_LEDGER), label):
                dsn = databases.enter_context(self.server.database()) if postgres else None
                episode = self.open(dsn, workers=2)
                episode.lose_workers(min(KILLS_A_LEDGER, wanted - number))
                self.close(episode)

    def open(self, dsn: str | None, plant: Callable[[], None] | None = None, workers: int = 1) -> Episode:
        """Begin with an empty ledger."""
        self.towns += 1
        town = ServerFolder(self.base / str(self.towns), dsn=dsn)
        return Episode(town, random.Random(self.chance.getrandbits(64)), plant, workers)

    def close(self, episode: Episode | None) -> None:
        """End an episode and add it up."""
        if episode is None:
            return
        episode.end()
        self.broken += episode.told.broken
        for kind, spans in episode.ready.items():
            self.ready[kind] += spans
        self.kills += episode.kills
        self.serving += episode.serving
        self.answers += len(episode.told.answers)
        self.retried += episode.told.retried
        self.failures += episode.failures()
        self.spent += len(episode.told.spent)
        shutil.rmtree(episode.town.folder)

    def planted(self, most: int) -> int:
        """Let the hasty server live, and say after how many kills it was found out; 0 if never."""
        episode = self.open(None, answer_before_recording)
        for _ in range(most):
            episode.live()
            if episode.told.broken:
                break
        found = episode.kills if episode.told.broken else 0
        shutil.rmtree(episode.town.folder)
        return found


def body(report: Report) -> None:
    prepare()
    with tempfile.TemporaryDirectory(prefix="hubbub-http-") as base, Server() as server:
        campaign = Campaign(Path(base), server)
        campaign.run(report, report.scale(ci=6, full=900), "kills, SQLite", postgres=False)
        campaign.run(report, report.scale(ci=2, full=100), "kills, PostgreSQL", postgres=True)
        campaign.lose_workers(report, report.scale(ci=2, full=100), "kills of a worker, SQLite", postgres=False)
        campaign.lose_workers(report, report.scale(ci=1, full=25), "kills of a worker, PostgreSQL", postgres=True)
        found = campaign.planted(20)
    report.figure("kills", campaign.kills)
    report.figure("ledgers", campaign.towns)
    report.figure("answers", campaign.answers)
    report.figure("retries_answered_again", campaign.retried)
    report.figure("charges_spent_by_a_kill", campaign.spent)
    report.figure("failed_after_the_charge", dict(campaign.failures))
    for text in campaign.broken[:20]:
        report.say(text)
    report.target("kills_of_one_that_answered", campaign.serving, at_least=campaign.kills // 4)
    report.target("broken_promises", len(campaign.broken), at_most=0)
    report.figure("median_start_seconds", round(statistics.median(campaign.ready[ForkedServer]), 3))
    if report.full:
        report.target("slowest_start_seconds", round(max(campaign.ready[ForkedServer]), 3), at_most=READY)
        report.target(
            "slowest_start_seconds_with_imports",
            round(max(campaign.ready[SpawnedServer], default=0.0), 3),
            at_most=READY,
        )
    else:  # beside other tests, one start of eight may have to wait for the machine
        report.target("quickest_start_seconds", round(min(campaign.ready[ForkedServer]), 3), at_most=READY)
    report.target("kills_until_the_planted_error_was_found", found, at_least=1)


if __name__ == "__main__":
    run(body)
