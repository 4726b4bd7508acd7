"""Let many processes and threads compete for the same budget, and check that exactly the budget is granted.

64 processes of 4 threads each, and one process of 256 threads, request the same small cost. Exactly ⌊B/ε⌋ requests must
be granted, on SQLite and on PostgreSQL. A naive ledger, which reads first and then writes, gets the same load and must
overspend; otherwise the load would prove nothing.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.race
"""

import math
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from tests.campaigns.frame import Report, run
from tests.campaigns.rig.killable_process import KillableProcess, Messenger, prepare
from tests.campaigns.rig.naive_ledger import NaivePostgres, NaiveSqlite
from tests.campaigns.rig.small_ledger import PRICE, LedgerPlace, request, totals
from tests.fixtures.postgres_server import Server

from hubbub.accounting.store import EntryFilter
from hubbub.errors import BudgetError

PATIENCE = 1800.0  # seconds for a whole run

Attempt = Callable[[str], bool]


def contend(say: Messenger, place: LedgerPlace, name: str, threads: int, attempts: int) -> None:
    """Make charges on each thread, each under a new key, and return how many were granted."""
    with place.ledger() as ledger:

        def attempt(key: str) -> bool:
            try:
                ledger.charge(request(key))
            except BudgetError:
                return False
            return True

        say(str(_granted(lambda _: attempt, name, threads, attempts)))


def contend_naively(say: Messenger, place: LedgerPlace, units: int, name: str, threads: int, attempts: int) -> None:
    """Do the same on a ledger that reads first and then writes."""

    def naive(_: int) -> Attempt:
        ledger = NaiveSqlite(place.database, units) if place.dsn is None else NaivePostgres(place.dsn, units)
        return lambda _: ledger.charge()

    say(str(_granted(naive, name, threads, attempts)))


def _granted(make: Callable[[int], Attempt], name: str, threads: int, attempts: int) -> int:
    counts = [0] * threads

    def ask(number: int) -> None:
        attempt = make(number)
        counts[number] = sum(attempt(f"{name}.{number}.{each}") for each in range(attempts))

    team = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    return sum(counts)


def spent(place: LedgerPlace) -> tuple[int, Fraction]:
    """Open the ledger, which verifies it; return its number of charges and its largest total."""
    with place.ledger() as ledger, ledger.snapshot() as snapshot:
        charges = sum(1 for _ in snapshot.entries(EntryFilter(kind="charge")))
        spends = [total.pure for total in totals(snapshot).values()]
    return charges, max(each for each in spends if each is not None)


@contextmanager
def places(server: Server | None, budget: str) -> Iterator[LedgerPlace]:
    """An empty ledger on SQLite or on the server."""
    with tempfile.TemporaryDirectory(prefix="hubbub-race-") as folder:
        if server is None:
            yield LedgerPlace(Path(folder), None, budget)
        else:
            with server.database() as dsn:
                yield LedgerPlace(Path(folder), dsn, budget)


def body(report: Report) -> None:
    prepare("tests.campaigns.rig.small_ledger", "tests.campaigns.rig.naive_ledger")
    processes, threads = report.scale(ci=8, full=64), 4
    crowd = report.scale(ci=32, full=256)
    attempts, units = report.scale(ci=1_600, full=100_000), report.scale(ci=400, full=5_000)
    budget = PRICE * units + PRICE / 2  # half a price is left over: the last grant must leave it
    for store in ("sqlite", "postgres"):
        with Server(max_connections="400") as server:
            over = naive = 0
            for members, each in ((processes, threads), (1, crowd)):
                share = math.ceil(attempts / (members * each))
                report.say(f"{store}: {members} processes of {each} threads, {share} attempts each")
                where = server if store == "postgres" else None
                with places(where, str(float(budget))) as place:
                    team = [KillableProcess(contend, place, f"p{n}", each, share) for n in range(members)]
                    granted = _run(team)
                    charges, total = spent(place)
                exact = granted == charges == units and total == PRICE * units
                over += abs(granted - units) + abs(charges - units) + (not exact)
                report.figure(f"{store}_{members}x{each}_granted", granted)
                with places(where, str(float(budget))) as place:
                    fools = [
                        KillableProcess(contend_naively, place, units, f"p{n}", each, share) for n in range(members)
                    ]
                    naive += _run(fools) - units
            report.target(f"{store}_grants_above_or_below_the_budget", over, at_most=0)
            report.target(f"{store}_naive_ledger_overspends_by", naive, at_least=1)
    report.figure("attempts_of_each_run_at_least", attempts)
    report.figure("grants_expected", units)


def _run(team: list[KillableProcess]) -> int:
    for victim in team:
        victim.go()
    return sum(int(line) for victim in team for line in victim.finish(within=PATIENCE, kill=False))


if __name__ == "__main__":
    run(body)
