"""Two servers on one PostgreSQL ledger: kill one under load, again and again, and see what clients notice.

Each client knows both addresses. It sends a query with an Idempotency-Key to one of them, and what breaks off at once
to the other one, under the same key. Neither server is a leader. The servers share the ledger's database, the folder
beside hubbub.yaml and the folder of seeds, as docs/deploy.md describes it.

While one server runs, no error lasts longer than a retry: a request that the killed server had is answered by the
other one at the first attempt there. So a server is killed only when both are ready and every request is over that
began before they were: one that has already moved to the other server must not be killed there, too. Nothing is
charged twice, no cap is passed, and no answered key changes its answer. A kill between a charge and its seed spends
the charge (HB901); there can be one for each request that was under way.

Two errors are planted and must be found: a client that repeats a query under another key is charged twice, and a
request while no server runs is not answered.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.failover
"""

import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from tests.campaigns.frame import Report, run
from tests.fixtures.postgres_server import Server
from tests.fixtures.server_config import ANALYSTS, ServerFolder, charge, kept
from tests.fixtures.server_process import Caller, ForkedServer, await_ready, free_port, prepare

from hubbub.accounting.ledger import examine
from hubbub.accounting.store import EntryFilter
from hubbub.config import load
from hubbub.curator.opening import anchor_of, store_of

THREADS = 2  # for each analyst
LIFE = 12  # answers between two kills
PATIENCE = 60.0  # seconds for these


@dataclass(slots=True)
class Heard:
    """What the clients were told."""

    answers: dict[tuple[str, str], bytes] = field(default_factory=dict)
    spent: set[tuple[str, str]] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)
    under_way: set[str] = field(default_factory=set)
    moved: int = 0
    slowest: float = 0.0
    attempts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Pair:
    """The two servers, of which at least one runs at any time."""

    def __init__(self, town: ServerFolder) -> None:
        self.town = town
        self.ports = [free_port(), free_port()]
        self.servers = [ForkedServer(town.config, port) for port in self.ports]
        for port, server in zip(self.ports, self.servers, strict=True):
            await_ready(port, server)

    def kill(self, place: int) -> None:
        """Kill one of them."""
        code = self.servers[place].end(signal.SIGKILL)
        if code != -signal.SIGKILL:
            raise RuntimeError(f"a server ended by itself, with {code}")

    def restart(self, place: int) -> None:
        """Start it again at its address."""
        self.servers[place] = ForkedServer(self.town.config, self.ports[place])
        await_ready(self.ports[place], self.servers[place])

    def stop(self) -> None:
        """Stop both in good order."""
        for server in self.servers:
            server.end(signal.SIGTERM)


class Clients:
    """Several threads that ask one new question after the other, of either server."""

    def __init__(self, pair: Pair, heard: Heard, chance: random.Random) -> None:
        self._pair, self._heard = pair, heard
        self._over = threading.Event()
        self._numbers = iter(range(10**9))
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
        callers = callers_of(self._pair, analyst, patience=30)
        while not self._over.is_set():
            with self._heard.lock:
                number = next(self._numbers)
                key = f"{analyst}-{number:08}-failover"
                self._heard.under_way.add(key)
            question = self._pair.town.question(number, own_key=chance.random() < 0.5)
            try:
                ask(callers, analyst, question, key, chance.randrange(2), self._heard)
            finally:
                with self._heard.lock:
                    self._heard.under_way.remove(key)
        for caller in callers:
            caller.close()


def callers_of(pair: Pair, analyst: str, *, patience: float = PATIENCE) -> list[Caller]:
    """Return a client for each server."""
    return [Caller(port, pair.town.tokens[analyst], patience=patience) for port in pair.ports]


def ask(callers: list[Caller], analyst: str, question: object, key: str, first: int, heard: Heard) -> None:
    """Ask one server; where it is gone, ask the other one once."""
    begun = None
    for attempt, place in enumerate((first, 1 - first), 1):
        try:
            reply = callers[place].query(question, key)
        except (OSError, HTTPException):
            begun = begun or time.monotonic()
            continue
        with heard.lock:
            heard.attempts = max(heard.attempts, attempt)
            if begun is not None:
                heard.moved += 1
                heard.slowest = max(heard.slowest, time.monotonic() - begun)
            if reply.status == 200:
                heard.answers[analyst, key] = kept(reply)
            elif reply.status == 424 and reply.json()["code"] == "HB901":
                heard.spent.add((analyst, key))
            else:
                heard.broken.append(f"status {reply.status} for {key} at attempt {attempt}: {reply.body[:200]!r}")
        return
    heard.broken.append(f"both servers failed for {key}")


def look(town: ServerFolder, heard: Heard) -> list[str]:
    """Compare the ledger with what the clients were told."""
    config = load(town.config)
    store = store_of(config, read_only=True)
    try:
        verification = examine(store, anchor_of(config))
        with store.snapshot() as snapshot:
            charges = {entry.sequence: entry for entry in snapshot.entries(EntryFilter(kind="charge"))}
            bodies = dict(snapshot.releases())
    finally:
        store.close()
    found = [] if verification.sound else [f"the ledger does not verify: {verification.report()}"]
    twice = Counter((entry.analyst, entry.query) for entry in charges.values())
    found += [f"charged twice: {who}" for who, count in twice.items() if count > 1]
    for (analyst, key), answer in heard.answers.items():
        sequence, digest = charge(answer)
        entry = charges.get(sequence)
        if entry is None or entry.hash.hex() != digest or entry.analyst != analyst:
            found.append(f"{key} was answered without its charge")
        elif bodies.get(sequence) != answer:
            found.append(f"{key} has another answer in the ledger")
    return found


def wait_until(done: Callable[[], bool], heard: Heard, what: str) -> None:
    """Wait until this is so, or a request was broken."""
    until = time.monotonic() + PATIENCE
    while not done() and not heard.broken:
        if time.monotonic() > until:
            heard.broken.append(f"not within {PATIENCE:g} s: {what}")
        time.sleep(0.002)


def wait_for(heard: Heard, more: int) -> None:
    """Wait until there are so many more answers."""
    wanted = len(heard.answers) + more
    wait_until(lambda: len(heard.answers) >= wanted, heard, f"{more} answers")


def settle(heard: Heard) -> None:
    """Wait until every request is over that is under way now."""
    with heard.lock:
        earlier = set(heard.under_way)
    wait_until(lambda: earlier.isdisjoint(heard.under_way), heard, f"an end of {sorted(earlier)}")


def asked_again(pair: Pair, heard: Heard) -> None:
    """Ask both servers for every answer again: it is the same, byte for byte."""
    callers = {name: callers_of(pair, name) for name in ANALYSTS}
    for (analyst, key), answer in list(heard.answers.items())[-20:]:
        number = int(key.split("-")[1])
        for caller in callers[analyst]:
            replies = [caller.query(pair.town.question(number, own_key=own), key) for own in (False, True)]
            if answer not in [kept(reply) for reply in replies if reply.status == 200]:
                heard.broken.append(f"another answer for {key} when asked again")
    for each in callers.values():
        for caller in each:
            caller.close()


def charged_again(pair: Pair) -> bool:
    """Tell whether a client is found that repeats its query under a key of its own."""
    heard = Heard()
    for place, caller in enumerate(callers_of(pair, "ana")):
        question = pair.town.question(99_999, own_key=False) | {"key": f"another-key-each-time-{place}"}
        if caller.query(question, f"another-header-{place}").status != 200:
            raise RuntimeError("the planted client was not answered")
        caller.close()
    return any("charged twice" in text for text in look(pair.town, heard))


def unanswered(pair: Pair) -> bool:
    """Tell whether a request is found that no server answers."""
    heard = Heard()
    question = pair.town.question(99_998, own_key=False)
    ask(callers_of(pair, "ana"), "ana", question, "nobody-is-there", 0, heard)
    return len(heard.broken) == 1


def body(report: Report) -> None:
    prepare()
    chance, heard = random.Random(26), Heard()
    with tempfile.TemporaryDirectory(prefix="hubbub-pair-") as base, Server() as server, server.database() as dsn:
        pair = Pair(ServerFolder(Path(base) / "town", dsn=dsn))
        kills = report.scale(ci=2, full=60)
        clients = Clients(pair, heard, chance)
        try:
            for number in report.progress(range(kills), "kills of one of two servers"):
                wait_for(heard, chance.randint(1, LIFE))
                pair.kill(number % 2)
                wait_for(heard, LIFE)
                pair.restart(number % 2)
                settle(heard)
        finally:
            clients.stop()
        asked_again(pair, heard)
        broken = [*heard.broken, *look(pair.town, heard)]
        twice = charged_again(pair)
        pair.stop()
        outage = unanswered(pair)
    for text in broken[:20]:
        report.say(text)
    report.figure("kills", kills)
    report.figure("answers", len(heard.answers))
    report.figure("requests_that_changed_servers", heard.moved)
    report.figure("slowest_change_seconds", round(heard.slowest, 3))
    report.figure("charges_spent_by_a_kill", len(heard.spent))
    report.target("requests_after_a_kill", heard.moved, at_least=1)
    report.target("attempts_at_most", heard.attempts, at_most=2)
    report.target("broken_promises", len(broken), at_most=0)
    report.target("charges_spent_each_kill", len(heard.spent) / kills, at_most=THREADS * len(ANALYSTS))
    report.target("planted_double_charge_found", twice, at_least=1)
    report.target("planted_outage_found", outage, at_least=1)


if __name__ == "__main__":
    run(body)
