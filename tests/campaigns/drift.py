"""Charge a million random rational costs to the ledger, and check that the totals are exact.

Costs have up to 30 decimal places or denominators up to 1000. The expected sum is computed separately, as one integer
over the common denominator; the ledger's totals are running sums of fractions, written and read as text. The Rényi
totals, integers at sixteen orders, are also summed separately. The ledger is reopened on the way, which computes the
totals a third time from the entries.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.drift
"""

import math
import random
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

from tests.campaigns.frame import Report, run
from tests.campaigns.rig.small_ledger import LedgerPlace, request, totals
from tests.fixtures.postgres_server import Server

from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.ledger import Ledger
from hubbub.core.events import LaplaceEvent
from hubbub.core.loss import ORDERS

DENOMINATOR = 10**30 * math.lcm(*range(1, 1001))
THREADS = 64
PARTS = 20


def prices(chance: random.Random, count: int) -> list[Fraction]:
    """Draw costs between 0 and 1: decimals of any length, and fractions."""
    found = []
    for _ in range(count):
        if chance.random() < 0.5:
            places = chance.randint(3, 30)
            found.append(Fraction(chance.randrange(10 ** (places - 3), 10**places), 10**places))
        else:
            bottom = chance.randint(2, 1000)
            found.append(Fraction(chance.randrange(1, bottom), bottom))
    return found


def spend(ledger: Ledger, pool: list[Fraction], count: int, seed: int) -> Counter[Fraction]:
    """Make `count` charges from the pool on many threads; return how often each cost was charged."""
    counts = [Counter[Fraction]() for _ in range(THREADS)]

    def some(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        for each in range(number, count, THREADS):
            one = chance.choice(pool)
            ledger.charge(request(f"{seed}.{each}")._replace(event=LaplaceEvent(1, 1 / one)))
            counts[number][one] += 1

    team = [threading.Thread(target=some, args=(number,)) for number in range(THREADS)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    return sum(counts, Counter[Fraction]())


def wrong_totals(ledger: Ledger, counts: Counter[Fraction]) -> int:
    """Count the totals that are not the sum."""
    pure = sum(number * (one.numerator * (DENOMINATOR // one.denominator)) for one, number in counts.items())
    curves = {one: privacy_cost(LaplaceEvent(1, 1 / one)).renyi for one in counts}
    renyi = tuple(sum(number * curves[one][order] for one, number in counts.items()) for order in range(len(ORDERS)))
    with ledger.snapshot() as snapshot:
        spends = list(totals(snapshot).values())
    wrong = [
        total
        for total in spends
        if total.pure is None or total.pure * DENOMINATOR != pure or total.renyi != renyi or total.delta
    ]
    return len(wrong) + abs(len(spends) - 3)


def body(report: Report) -> None:
    wrong = 0
    sizes = {"sqlite": report.scale(ci=6_000, full=1_000_000), "postgres": report.scale(ci=2_000, full=100_000)}
    pool = prices(random.Random(5), report.scale(ci=300, full=5_000))
    for store, size in sizes.items():
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-drift-")))
            dsn = None
            if store == "postgres":
                dsn = stack.enter_context(stack.enter_context(Server()).database())
            place = LedgerPlace(folder, dsn, "1000000", alone=True)
            counts = Counter[Fraction]()
            for part in report.progress(range(PARTS), f"charges on {store}"):
                if part % 5 == 0:  # a start derives the totals from the entries, and compares
                    ledger = stack.enter_context(place.ledger())
                counts += spend(ledger, pool, size // PARTS, part)
                if part % 5 == 4:
                    ledger.close()
            begun = time.perf_counter()
            ledger = stack.enter_context(place.ledger())
            report.figure(f"{store}_seconds_to_open_and_verify", round(time.perf_counter() - begun, 2))
            wrong += wrong_totals(ledger, counts)
            report.figure(f"{store}_spends", counts.total())
            report.target(f"{store}_verified", ledger.verify().sound, at_least=1)
    report.figure("distinct_prices", len(set(pool)))
    report.target("totals_that_are_not_the_exact_sum", wrong, at_most=0)


if __name__ == "__main__":
    run(body)
