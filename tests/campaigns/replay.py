"""Retry every key, within a process and across crashes: there is one charge, and the answer has the same bytes.

Several threads send the same keys at once to a process that is killed at a random time. The next process receives all
keys again, until each was answered by at least two processes. Each answer draws fresh noise unless the ledger has one,
so a second charge or a second answer would be visible.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.replay
"""

import random
import tempfile
import threading
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tests.campaigns.frame import Report, run
from tests.campaigns.rig.killable_process import KillableProcess, Messenger, prepare
from tests.campaigns.rig.small_ledger import Expectations, LedgerPlace, serve
from tests.fixtures.postgres_server import Server

from hubbub.accounting.ledger import Ledger

LIFE = 0.3  # maximum life of a process in seconds; longer if the machine is too busy to answer anything by then
AT_ONCE = 100  # number of keys that one process receives


def live(say: Messenger, place: LedgerPlace, keys: list[str], seed: int) -> None:
    """Serve all keys on three threads, each in another order."""

    def some(ledger: Ledger, own: list[str]) -> None:
        for key in own:
            say(f"tries {key}")
            serve(ledger, key, say)

    chance = random.Random(seed)
    with place.ledger() as ledger:
        team = [threading.Thread(target=some, args=(ledger, chance.sample(keys, len(keys)))) for _ in range(3)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()


def retried(place: LedgerPlace, keys: list[str], chance: random.Random) -> tuple[Expectations, int, int]:
    """Send all keys until two processes answered each; return the expectations, the answers and the kills."""
    promises = Expectations()
    answered: defaultdict[str, set[int]] = defaultdict(set)
    answers = kills = number = 0
    life = LIFE
    while left := [key for key in keys if len(answered[key]) < 2]:
        number += 1
        alone = replace(place, alone=chance.random() < 0.5)
        victim = KillableProcess(live, alone, chance.sample(left, min(AT_ONCE, len(left))), chance.getrandbits(32))
        victim.go()
        said = victim.finish(within=chance.uniform(life / 6, life), kill=True)
        life = max(LIFE, life / 2) if any(line.startswith("released") for line in said) else 1.5 * life
        kills += victim.killed
        promises.hear(said)
        for line in said:
            if line.startswith("released"):
                answers += 1
                answered[line.split(" ")[1]].add(number)
    with place.ledger() as ledger, ledger.snapshot() as snapshot:
        promises.check(snapshot)
    if set(promises.charged) != set(keys) or set(promises.released) != set(keys):
        promises.broken.append("some keys were never answered")
    return promises, answers, kills


def body(report: Report) -> None:
    prepare("tests.campaigns.rig.small_ledger")
    keys, of_each = report.scale(ci=160, full=10_000), report.scale(ci=80, full=500)
    chance = random.Random(7)
    broken: list[str] = []
    answers = kills = 0
    with Server() as server:
        for number in report.progress(range(keys // of_each), "ledgers of retried keys"):
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-replay-")))
                dsn = stack.enter_context(server.database()) if number % 2 else None
                names = [f"key-{number}-{each}" for each in range(of_each)]
                promises, some_answers, some_kills = retried(LedgerPlace(folder, dsn), names, chance)
            broken += promises.broken
            answers += some_answers
            kills += some_kills
    for text in broken[:20]:
        report.say(text)
    report.figure("keys", keys)
    report.figure("answers", answers)
    report.target("kills", kills, at_least=keys // of_each)
    report.target("second_charges_or_other_bytes", len(broken), at_most=0)


if __name__ == "__main__":
    run(body)
