"""Stop a charge's run at every step, try it again, and see that it never draws anew.

Every analysis, every kind of query and a function of the owner's own are stopped, by a kill or by an error, before and
after each statement, at each step that shows, and before and after the release is recorded; each is tried again on its
charge until it ends. Processes are killed by SIGKILL, with another seed for Python's hashes in each; a real server's
jobs are cancelled by DELETE, and the server is killed. The words of all tries of a charge are the same, in the same
order between the same statements and steps. A charge whose seed is lost, or whose data changed, draws nothing. No seed
is in the ledger's files, be they SQLite's or those of a PostgreSQL server.

What an analyst can make of it: with d different draws of the first split of a decision tree, seen for one charge, the
likelihoods of neighbors differ by d times the loss of one selection. It must stay within the charge.

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
from tests.accounting.postgres_server import Server
from tests.analyses.conftest import EXAMPLES
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.pairs import _town
from tests.campaigns.rig.redraw_served import served
from tests.campaigns.rig.redrawing import QUERIES, Trace, asked, attempt, every_stop, first_selection, likelihood
from tests.campaigns.rig.redrawing import found as groups
from tests.campaigns.rig.town import url

import hubbub
import hubbub.curator as curating
from hubbub.curator import Curator
from hubbub.curator.draws import Draw, Draws, made_of
from hubbub.curator.question import Question
from hubbub.curator.seeds import Seed, Seeds
from hubbub.sql import partition_selection as discover

#: What takes seconds is stopped at these points alone, at the small scale.
SLOW = {"synthetic": (1, 6)}
#: The issue's attack: many tries of one tree. Its charge, and what one selection of it may lose.
TREE, PRICE, TRIES = EXAMPLES["decision_tree"], "0.5", 16

_VICTIM = """
import os, signal, sys
from tests.campaigns.rig.redrawing import Trace, asked, attempt
import hubbub
name, path, stop = sys.argv[1], sys.argv[2], int(sys.argv[3])
trace = Trace(stop=stop)
def die():
    print(trace.ended, file=sys.stderr)
    print("\\n".join(" ".join(each) for each in trace.events), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
point = Trace.point
def deadly(self):
    try:
        point(self)
    except BaseException:
        die()
Trace.point = deadly
with hubbub.open(path, analyst="ana") as session:
    attempt(session._curator, dict(asked())[name], "killed " + name, trace)
die()
"""


@contextmanager
def town(folder: Path, *, side: int = 0, ledger: str = "") -> Iterator[Curator]:
    """Open a town of its own; its owner lets many runs fail."""
    folder.mkdir()
    _town(folder, "add_remove", side)
    path = folder / "hubbub.yaml"
    text = path.read_text().replace("    unit:", "    failures: 1000\n    unit:")
    path.write_text(text + ledger)
    with hubbub.open(path, analyst="ana") as session:
        yield session._curator


def differing(name: str, tries: list[Trace]) -> Iterator[str]:
    """Say which tries of one charge did not go as the last one did."""
    ran = [each for each in tries if each.events]
    whole = max(ran, key=lambda each: len(each.events), default=Trace())
    yield from (f"{name}: try {n} went another way" for n, each in enumerate(ran) if not each.begins(whole))
    if not whole.drawn and not name.startswith("stream"):
        yield f"{name}: nothing was drawn"


def embedded(report: Report, curator: Curator) -> tuple[list[str], int]:
    """Stop everything at every point, in this process."""
    broken: list[str] = []
    stops = 0
    for number, (name, question) in enumerate(report.progress(list(asked()), "stopped at every point")):
        few = None if report.full else SLOW.get(name)
        tries, release = every_stop(curator, question, f"stopped {number}", few or range(1000))
        stops += len(tries) - 1
        broken += differing(name, tries)
        if release is None:
            broken.append(f"{name}: it never ended ({tries[-1].ended})")
        if few is None and tries[-1].events:
            broken.append(f"{name}: after its release was recorded, it ran once more")
    return broken, stops


def killed(report: Report, folder: Path, chance: random.Random) -> tuple[list[str], int]:
    """Kill processes at points of their runs, and go on here."""
    names = [name for name, _ in asked()]
    chosen = names if report.full else ["decision_tree", QUERIES[2]]
    broken: list[str] = []
    kills = 0
    with town(folder) as curator:
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
                tries.append(Trace(events=events))
                kills += 1
                if events and events[-1][0] == "record":
                    break
            last = Trace()
            attempt(curator, dict(asked())[name], f"killed {name}", last)
            broken += differing(name, [*tries, last])
    return broken, kills


def lost_and_changed(curator: Curator, number: int) -> list[str]:
    """Lose the seed of one charge, and change the data under another: neither may draw again."""
    question = Question(TREE, epsilon=PRICE)
    broken = []
    for name, code in (("lost", "HB901"), ("changed", "HB902")):
        first, second = Trace(stop=3), Trace()
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
    """Try one tree often on both neighbors: the loss of all draws that were seen, the charge, how many they were."""
    selections, different = [], 0
    for curator in (one, other):
        with first_selection() as noted:
            traces = [Trace(stop=3) for _ in range(tries)]
            for trace in traces:
                attempt(curator, Question(TREE, epsilon=PRICE), key, trace)
        selections.append(noted[0])
        different = max(different, len({trace.drawn[0] for trace in traces}))
    (mechanism, here), (_, there) = selections
    return different * likelihood(float(mechanism.rate), here, there), float(PRICE), different


def draws_anew(_: Curator) -> Callable[[], None]:
    """Plant an error: every run draws from a seed of its own."""
    real = Draws.begin

    def begin(self: Draws, *rest: object) -> Draw | None:
        found = real(self, *rest)  # type: ignore[arg-type]
        return None if found is None else Draw(self.sources(os.urandom(32)), retried=found.retried)

    Draws.begin = begin  # type: ignore[method-assign, assignment]
    return lambda: setattr(Draws, "begin", real)


def seeds_anew(curator: Curator) -> Callable[[], None]:
    """Plant an error: where a charge has no seed, another one is made."""
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
    """Plant an error: nobody looks whether a retry is on the same data."""
    real = made_of
    setattr(curating, "made_of", lambda *_: bytes(32))  # noqa: B010 - another module's own name
    return lambda: setattr(curating, "made_of", real)


def draws_as_rows_come() -> Callable[[], None]:
    """Plant an error: groups that are found are numbered as the engine gives them."""
    real = discover._ranks
    setattr(discover, "_ranks", lambda column: np.arange(len(column)))  # noqa: B010 - another module's own name
    return lambda: setattr(discover, "_ranks", real)


def planted(curator: Curator, neighbor: Curator) -> dict[str, bool]:
    """Say of each planted error whether it was found."""
    found = {}
    undo = draws_as_rows_come()
    try:
        tries, _ = every_stop(curator, groups(), "planted order")
        found[draws_as_rows_come.__name__] = bool(list(differing("groups", tries)))
    finally:
        undo()
    for number, plant in enumerate((draws_anew, seeds_anew, ignores_changes), 1):
        undo = plant(curator)
        try:
            tries, _ = every_stop(curator, Question(TREE, epsilon=PRICE), f"planted {number}")
            found[plant.__name__] = bool([*differing("tree", tries), *lost_and_changed(curator, number)])
            if plant is draws_anew:
                seen, charged, _ = loss(curator, neighbor, TRIES, "planted loss")
                found["loss of draws anew"] = seen > charged
        finally:
            undo()
    return found


def at_rest(report: Report, base: Path, server: Server) -> tuple[int, int]:
    """Look for seeds in the files of both kinds of ledgers, and where they are kept; give how many were found."""
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
                with town(base / name, ledger=where) as curator:
                    for number in range(report.scale(ci=3, full=40)):
                        question = Question("SELECT COUNT(*) AS n FROM people", epsilon=PRICE)
                        attempt(curator, question, f"{number}", Trace(stop=number % 3))
                        if number % 2:
                            attempt(curator, question, f"{number}", Trace())
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
        with town(base / "one") as one, town(base / "other", side=1) as other:
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
