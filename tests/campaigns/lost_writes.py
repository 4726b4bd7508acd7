"""Simulate power failures at random moments of a recorded run, and check that acknowledged writes survive.

The writes of real runs are recorded with strace. For many random moments the files are rebuilt as a power failure could
leave them: synced writes are there; of the rest, sectors, sizes and names are lost, torn and reordered at random (see
`rig/disk.py`). Then the ledger is opened as an owner would: it must verify, agree with its anchor, contain every
acknowledged charge and release, and accept the next charge. The same with `PRAGMA synchronous = OFF` must fail;
otherwise this campaign would prove nothing.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.lost_writes
"""

import os
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from tests.campaigns.frame import Report, run
from tests.campaigns.rig.disk import Recording
from tests.campaigns.rig.small_ledger import Expectations, LedgerPlace, request, serve
from tests.campaigns.rig.strace import record

from hubbub.accounting.ledger import Ledger
from hubbub.errors import LedgerError

#: The recorded runs: sessions of a ledger, each with a number of threads and of keys per thread. The second run is long
#: enough that SQLite merges its log into the file and restarts it in the middle of a session.
RUNS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 60), (8, 20), (1, 15), (3, 30)),
    ((1, 10), (1, 900), (1, 300), (2, 5)),
)


class Careless(sqlite3.Connection):
    """A connection that never syncs, as a hurried owner might configure it."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute a statement, with one pragma replaced."""
        return super().execute("PRAGMA synchronous = OFF" if "synchronous" in sql else sql, parameters)


def child(folder: Path, acks: Path, sessions: tuple[tuple[int, int], ...], *, careless: bool) -> None:
    """Serve sessions and write acknowledgments to a file; runs under strace."""
    if careless:
        connect = sqlite3.connect
        sqlite3.connect = lambda *args, **options: connect(*args, **options, factory=Careless)  # type: ignore[assignment]
    descriptor = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def say(line: str) -> None:
        os.write(descriptor, line.encode() + b"\n")

    def some(ledger: Ledger, keys: list[str]) -> None:
        for key in keys:
            say(f"tries {key}")
            serve(ledger, key, say)

    for session, (threads, keys) in enumerate(sessions):
        with LedgerPlace(folder, alone=bool(session % 2)).ledger() as ledger:
            team = [
                threading.Thread(target=some, args=(ledger, [f"k{session}.{thread}.{key}" for key in range(keys)]))
                for thread in range(threads)
            ]
            for thread in team:
                thread.start()
            for thread in team:
                thread.join()


def recorded(base: Path, which: int, *, careless: bool) -> Recording:
    """Record one run, starting with an empty folder."""
    base.mkdir()
    folder, acks = base / "folder", base / "acks"
    folder.mkdir()
    command = [sys.executable, "-m", "tests.campaigns.lost_writes", str(folder), str(acks), str(which)]
    recording = record([*command, *(["careless"] if careless else [])], folder, acks, base / "trace")
    if recording.as_left() != {path.name: path.read_bytes() for path in folder.iterdir()}:
        raise AssertionError("the recording does not lead to the files that the run left")
    shutil.rmtree(base)
    return recording


def moment(recording: Recording, chance: random.Random) -> int:
    """Choose when the power fails: at any time or, most critically, just after an acknowledgment."""
    if chance.random() < 0.5:
        return chance.randrange(recording.moments + 1)
    return chance.choice(recording.acks)[0] + chance.randrange(3)


def broken(recording: Recording, chance: random.Random, folder: Path) -> list[str]:
    """Simulate one power failure, open the ledger again, and list what was lost."""
    cut = moment(recording, chance)
    folder.mkdir()
    recording.rebuild(cut, chance, folder)
    promises = Expectations()
    promises.hear(recording.acknowledged(cut))
    try:
        with LedgerPlace(folder).ledger() as ledger:
            with ledger.snapshot() as snapshot:
                promises.check(snapshot)
            ledger.charge(request("after"))
            if not ledger.verify().sound:
                promises.broken.append("not sound after the next charge")
    except LedgerError as error:
        promises.broken.append(f"locked out: {error.code}")
    shutil.rmtree(folder)
    return promises.broken


def body(report: Report) -> None:
    recordings = report.scale(ci=2, full=10)
    cuts = report.scale(ci=60, full=100)
    with tempfile.TemporaryDirectory(prefix="hubbub-lost-") as folder:
        base = Path(folder)
        failures: dict[bool, int] = {False: 0, True: 0}
        calls = 0
        for careless in (False, True):
            label = "cuts with synchronous = OFF" if careless else "power cuts"
            for number in report.progress(range(recordings if not careless else 1), label):
                chance = random.Random(1000 * careless + number)
                recording = recorded(base / "run", number % len(RUNS), careless=careless)
                calls += recording.moments
                for _ in range(cuts):
                    found = broken(recording, chance, base / "rebuilt")
                    failures[careless] += bool(found)
                    if found and not careless:
                        report.say(f"{found[0]} ({len(found)} in all)")
    report.figure("recorded_calls", calls)
    report.figure("cuts", recordings * cuts)
    report.target("cuts_that_broke_a_promise", failures[False], at_most=0)
    report.target("share_of_cuts_that_break_it_without_sync", failures[True] / cuts, at_least=0.2)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(Path(sys.argv[1]), Path(sys.argv[2]), RUNS[int(sys.argv[3])], careless="careless" in sys.argv)
    else:
        run(body)
