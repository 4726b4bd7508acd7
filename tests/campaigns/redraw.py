"""Interrupt the run of a charge at every step and retry it: the retries never sample fresh noise.

Every analysis, every kind of query and a user-defined function are interrupted, by a kill or by an error, before and
after each statement, at each visible step, and before and after the release is recorded; each is retried on its charge
until it finishes. Processes are killed by SIGKILL, each with another hash seed of Python; jobs of a real server are
canceled by DELETE, and the server is killed. The random words of all attempts of a charge are the same, in the same
order between the same statements and steps. A charge whose seed is lost, or whose data changed, samples nothing. The
files of the ledger contain no seed, neither in SQLite nor in PostgreSQL.

The attack: an analyst who sees d different samples of the first split of a decision tree for one charge could increase
the likelihood ratio of neighbors by d times the loss of one selection. It must stay within the charge.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.redraw
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from tests.analyses.conftest import EXAMPLES, IN_ADVANCE
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.interrupted_runs import (
    QUERIES,
    RunTrace,
    all_queries,
    attempt,
    every_stop,
    first_selection,
    likelihood,
)
from tests.campaigns.rig.interrupted_runs import discovery_query as groups
from tests.campaigns.rig.redraw_server import served
from tests.fixtures.neighboring_data import _town
from tests.fixtures.postgres_server import Server
from tests.fixtures.server_config import url

import hubbub
import hubbub.curator as curating
from hubbub.curator import Curator
from hubbub.curator.draws import Draw, Draws, run_hash
from hubbub.curator.question import Question
from hubbub.curator.seeds import Seed, Seeds
from hubbub.sql import partition_selection as discover

#: Slow analyses are interrupted only at these points at the small scale.
SLOW = {"synthetic": (1, 6)}
#: The attack: many attempts of one tree; its charge, and the number of attempts.
TREE, PRICE, TRIES = EXAMPLES["decision_tree"], "0.5", 16

_VICTIM = """
import os, signal, sys
from tests.campaigns.rig.interrupted_runs import RunTrace, all_queries, attempt
import hubbub
name, path, stop = sys.argv[1], sys.argv[2], int(sys.argv[3])
trace = RunTrace(stop=stop)
def die():
    print(trace.ended, file=sys.stderr)
    print("\\n".join(" ".join(each) for each in trace.events), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
point = RunTrace.point
def deadly(self):
    try:
        point(self)
    except BaseException:
        die()
RunTrace.point = deadly
with hubbub.open(path, analyst="ana") as session:
    attempt(session._curator, dict(all_queries())[name], "killed " + name, trace)
die()
"""


@contextmanager
def open_curator(folder: Path, *, side: int = 0, ledger: str = "") -> Iterator[Curator]:
    """Open a curator on a new dataset that allows many failures."""
    folder.mkdir()
    _town(folder, "add_remove", side)
    path = folder / "hubbub.yaml"
    text = path.read_text().replace("    unit:", "    failures: 1000\n    unit:")
    path.write_text(text + ledger)
    with hubbub.open(path, analyst="ana") as session:
        yield session._curator


def differences(name: str, tries: list[RunTrace]) -> Iterator[str]:
    """Yield the attempts of one charge that differ from the last one."""
    ran = [each for each in tries if each.events]
    whole = max(ran, key=lambda each: len(each.events), default=RunTrace())
    yield from (f"{name}: try {n} went another way" for n, each in enumerate(ran) if not each.begins(whole))
    if not whole.drawn and name not in IN_ADVANCE:
        yield f"{name}: nothing was drawn"


def embedded(report: Report, curator: Curator) -> tuple[list[str], int]:
    """Interrupt everything at every point, in this process."""
    broken: list[str] = []
    stops = 0
    for number, (name, question) in enumerate(report.progress(list(all_queries()), "stopped at every point")):
        few = None if report.full else SLOW.get(name)
        tries, release = every_stop(curator, question, f"stopped {number}", few or range(1000))
        stops += len(tries) - 1
        broken += differences(name, tries)
        if release is None:
            broken.append(f"{name}: it never ended ({tries[-1].ended})")
        if few is None and tries[-1].events:
            broken.append(f"{name}: after its release was recorded, it ran once more")
    return broken, stops


def killed(report: Report, folder: Path, chance: random.Random) -> tuple[list[str], int]:
    """Kill processes at points of their runs, and retry here."""
    names = [name for name, _ in all_queries()]
    chosen = names if report.full else ["decision_tree", QUERIES[2]]
    broken: list[str] = []
    kills = 0
    with open_curator(folder) as curator:
        path = curator.config.path
        for name in report.progress(chosen, "killed processes"):
            tries = []
            for stop in range(100) if report.full and name not in SLOW else [chance.randint(1, 2)]:
                line = [sys.executable, "-c", _VICTIM, name, str(path), str(stop)]
                ended = subprocess.run(line, capture_output=True, text=True, check=False)
                if ended.returncode != -signal.SIGKILL:
                    broken.append(f"{name}: {ended.stderr[-300:]}")
                    break
                events = [
                    (kind, what) for kind, what in (text.split(" ", 1) for text in ended.stdout.split("\n") if text)
                ]
                if not events and stop:
                    broken.append(f"{name}: a process ended before its point: {ended.stderr[-300:]}")
                    break
                tries.append(RunTrace(events=events))
                kills += 1
                if events and events[-1][0] == "record":
                    break
            last = RunTrace()
            attempt(curator, dict(all_queries())[name], f"killed {name}", last)
            broken += differences(name, [*tries, last])
    return broken, kills


def lost_and_changed(curator: Curator, number: int) -> list[str]:
    """Delete the seed of one charge and change the data of another: neither may sample again."""
    question = Question(TREE, epsilon=PRICE)
    broken = []
    for name, code in (("lost", "HB901"), ("changed", "HB902")):
        first, second = RunTrace(stop=3), RunTrace()
        attempt(curator, question, f"{name} {number}", first)
        data = curator.config.path.parent / "people.csv"
        if name == "lost":
            for file in curator._draws.seeds.folder.glob(f"{curator._draws.seeds._ledger}-*"):
                file.unlink()
        else:
            data.write_text(data.read_text() + "0.5,0.5,1,1,yes,North,N1\n")
        attempt(curator, question, f"{name} {number}", second)
        if second.drawn or second.ended != code:
            broken.append(f"{name}: {len(second.drawn)} draws after it, and it ended in {second.ended or 'an answer'}")
    return broken


def loss(one: Curator, other: Curator, tries: int, key: str) -> tuple[float, float, int]:
    """Retry one tree on both neighbors; return the loss of all visible draws, the charge, and their number."""
    selections, different = [], 0
    for curator in (one, other):
        with first_selection() as noted:
            traces = [RunTrace(stop=3) for _ in range(tries)]
            for trace in traces:
                attempt(curator, Question(TREE, epsilon=PRICE), key, trace)
        selections.append(noted[0])
        different = max(different, len({trace.drawn[0] for trace in traces}))
    (mechanism, here), (_, there) = selections
    return different * likelihood(float(mechanism.rate), here, there), float(PRICE), different


def draws_anew(_: Curator) -> Callable[[], None]:
    """Plant an error: every run uses a new seed."""
    real = Draws.begin

    def begin(self: Draws, *rest: object) -> Draw | None:
        found = real(self, *rest)  # type: ignore[arg-type]
        return None if found is None else Draw(self.sources(os.urandom(32)), retried=found.retried)

    Draws.begin = begin  # type: ignore[method-assign, assignment]
    return lambda: setattr(Draws, "begin", real)


def seeds_anew(curator: Curator) -> Callable[[], None]:
    """Plant an error: a charge without a seed gets a new one."""
    real = Seeds.find

    def find(self: Seeds, charge: object) -> Seed | None:
        return real(self, charge) or self.make(charge, bytes(32))  # type: ignore[arg-type]

    undo = ignores_changes(curator)

    def mend() -> None:
        Seeds.find = real  # type: ignore[method-assign]
        undo()

    Seeds.find = find  # type: ignore[method-assign]
    return mend


def ignores_changes(_: Curator) -> Callable[[], None]:
    """Plant an error: a retry does not check whether the data changed."""
    real = run_hash
    setattr(curating, "run_hash", lambda *_: bytes(32))  # noqa: B010 - another module's own name
    return lambda: setattr(curating, "run_hash", real)


def draws_as_rows_come() -> Callable[[], None]:
    """Plant an error: discovered groups are numbered in the order of the engine."""
    real = discover._ranks
    setattr(discover, "_ranks", lambda column: np.arange(len(column)))  # noqa: B010 - another module's own name
    return lambda: setattr(discover, "_ranks", real)


def planted(curator: Curator, neighbor: Curator) -> dict[str, bool]:
    """Return for each planted error whether it was detected."""
    found = {}
    undo = draws_as_rows_come()
    try:
        tries, _ = every_stop(curator, groups(), "planted order")
        found[draws_as_rows_come.__name__] = bool(list(differences("groups", tries)))
    finally:
        undo()
    for number, plant in enumerate((draws_anew, seeds_anew, ignores_changes), 1):
        undo = plant(curator)
        try:
            tries, _ = every_stop(curator, Question(TREE, epsilon=PRICE), f"planted {number}")
            found[plant.__name__] = bool([*differences("tree", tries), *lost_and_changed(curator, number)])
            if plant is draws_anew:
                seen, charged, _ = loss(curator, neighbor, TRIES, "planted loss")
                found["loss of draws anew"] = seen > charged
        finally:
            undo()
    return found


def at_rest(report: Report, base: Path, server: Server) -> tuple[int, int]:
    """Search for seeds in the files of both kinds of ledgers and in the seed folder; return the counts."""
    made: list[bytes] = []
    real = Seeds.make

    def make(self: Seeds, *rest: object) -> Seed:
        made.append((seed := real(self, *rest)).secret)  # type: ignore[arg-type]
        return seed

    Seeds.make = make  # type: ignore[method-assign, assignment]
    seen = held = 0
    try:
        with ExitStack() as stack:
            dsn = stack.enter_context(server.database())
            ledger = f'ledger: {{database: "{url(dsn)}", anchor: l.anchor}}\n'
            for name, where in (("sqlite", ""), ("postgres", ledger)):
                with open_curator(base / name, ledger=where) as curator:
                    for number in range(report.scale(ci=3, full=40)):
                        question = Question("SELECT COUNT(*) AS n FROM people", epsilon=PRICE)
                        attempt(curator, question, f"{number}", RunTrace(stop=number % 3))
                        if number % 2:
                            attempt(curator, question, f"{number}", RunTrace())
                    files = [*(base / name).rglob("*"), *(server.home / "data").rglob("*")]
                    texts = [path.read_bytes() for path in files if path.is_file()]
                    seen += sum(secret in text for secret in made for text in texts)
                    folder = [path.read_bytes() for path in curator._draws.seeds.folder.iterdir()]
                    held += sum(secret in text for secret in made for text in folder)
    finally:
        Seeds.make = real  # type: ignore[method-assign]
    report.figure("seeds_looked_for", len(made))
    return seen, held


def body(report: Report) -> None:
    chance = random.Random(11)
    with tempfile.TemporaryDirectory(prefix="hubbub-redraw-") as name, Server() as server:
        base = Path(name)
        with open_curator(base / "one") as one, open_curator(base / "other", side=1) as other:
            broken, stops = embedded(report, one)
            seen, charged, different = loss(one, other, TRIES, "loss")
            report.figure("different_draws_of_one_charge", different)
            report.target("loss_of_all_tries", round(seen, 4), at_most=charged)
            broken += lost_and_changed(one, 0)
            found = planted(one, other)
        some, kills = killed(report, base / "killed", chance)
        more, cancels = served(report, base / "served")
        rest, held = at_rest(report, base, server)
    broken += some + more
    for text in broken[:20]:
        report.say(text)
    report.target("stops", stops, at_least=100)
    report.target("kills", kills, at_least=2)
    report.target("cancelled_or_killed_over_http", cancels, at_least=3)
    report.target("tries_that_drew_or_showed_something_else", len(broken), at_most=0)
    report.target("seeds_in_the_files_of_a_ledger", rest, at_most=0)
    report.target("seeds_seen_where_they_are_kept", held, at_least=1)
    report.figure("planted", {name: "found" if yes else "MISSED" for name, yes in found.items()})
    report.target("planted_errors_missed", sum(not yes for yes in found.values()), at_most=0)


if __name__ == "__main__":
    run(body)
