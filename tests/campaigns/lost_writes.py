"""Cut the power of a recorded run at random moments, and see that what was acknowledged is there.

The writes of real runs are recorded (strace). For many random moments the files are rebuilt as a power cut could have
left them: what was synced is there; of the rest, sectors, sizes and names are lost, torn and re-ordered at random (see
`rig/disk.py`). Then the ledger is opened as an owner would: it must verify, not be locked out by its anchor, hold every
acknowledged charge and release, and accept the next charge. The same with `PRAGMA synchronous = OFF` must fail, or this
campaign would show nothing.

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
from tests.campaigns.rig.service import Place, Promises, request, serve
from tests.campaigns.rig.trace import record

from hubbub.accounting.ledger import Ledger
from hubbub.errors import LedgerError

#: What is recorded: sessions of a ledger, one after the other, each with so many threads and keys a thread. The second
#: is long enough that SQLite folds its log into the file and begins it anew, in the middle of a session.
RUNS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 60), (8, 20), (1, 15), (3, 30)),
    ((1, 10), (1, 900), (1, 300), (2, 5)),
)


class Careless(sqlite3.Connection):
    """A connection that lets no one turn on the sync: what a hurried owner might do to be faster."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute, but for one pragma."""
        return super().execute("PRAGMA synchronous = OFF" if "synchronous" in sql else sql, parameters)


def child(folder: Path, acks: Path, sessions: tuple[tuple[int, int], ...], *, careless: bool) -> None:
    """Serve in some sessions, acknowledging to a file; runs under strace."""
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
        with Place(folder, alone=bool(session % 2)).ledger() as ledger:
            team = [
                threading.Thread(target=some, args=(ledger, [f"k{session}.{thread}.{key}" for key in range(keys)]))
                for thread in range(threads)
            ]
            for thread in team:
                thread.start()
            for thread in team:
                thread.join()


def recorded(base: Path, which: int, *, careless: bool) -> Recording:
    """Record one run from an empty folder on."""
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
    """Choose when the power fails: any time, or, where most is at stake, just after something was acknowledged."""
    if chance.random() < 0.5:
        return chance.randrange(recording.moments + 1)
    return chance.choice(recording.acks)[0] + chance.randrange(3)


def broken(recording: Recording, chance: random.Random, folder: Path) -> list[str]:
    """Cut the power once, start again, and say which promises were broken."""
    cut = moment(recording, chance)
    folder.mkdir()
    recording.rebuild(cut, chance, folder)
    promises = Promises()
    promises.hear(recording.acknowledged(cut))
    try:
        with Place(folder).ledger() as ledger:
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
