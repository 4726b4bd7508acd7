"""Edit a ledger in a thousand ways and its receipts in a hundred thousand, and check that each edit is detected.

Rows are changed, deleted, swapped, truncated and rehashed behind the triggers, on SQLite and PostgreSQL; files have
bits flipped, and pages swapped, blanked and truncated; older copies of the database, its log, or both are restored next
to the newer anchor. The next start must reject every edit with a hubbub error. An edit of bytes that changes no value
of the ledger (such as a flip in an unused part of a page) may pass: it is counted separately, and shown to be harmless
by comparing the whole ledger with the original.

In receipts every number, word and part is changed, and the hash of the answer corrected. Compared with the ledger, all
must be rejected; alone, the receipt checker may accept only receipts that cost no more than stated.
HUBBUB_PARTS=receipts runs only this part.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.tamper
"""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Literal

import psycopg
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.forged_receipts import Receipts, judge
from tests.campaigns.rig.ledger_tampering import BYTE_EDITS, ROW_EDITS, Rows, cut_short, flip_bits, read, write
from tests.campaigns.rig.small_ledger import LedgerPlace, request, totals
from tests.fixtures.postgres_server import Server

from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.errors import LedgerError

CHARGES = 60
COPIES = 12  # older copies, taken on the way

SPENT = privacy_cost(request("").event).times(CHARGES)

Outcome = Literal["refused", "harmless", "missed", "untidy"]


def everything(snapshot: Snapshot) -> tuple[object, ...]:
    """The contents of a ledger, except totals, which a server may store later, and policies."""
    entries = [entry for entry in snapshot.entries(EntryFilter()) if entry.kind != "policy"]
    return (snapshot.ledger, entries, list(snapshot.releases()))


def build(place: LedgerPlace, copy: Callable[[], None]) -> tuple[object, ...]:
    """Create a ledger in two sessions, with copies on the way and one at the end; return its contents."""
    for half in (0, CHARGES // 2):
        with place.ledger() as ledger:
            for number in range(half, half + CHARGES // 2):
                charge = ledger.charge(request(f"k{number}"))
                if number % 4:
                    ledger.record(charge, b"answer %d" % number)
                if number % (CHARGES // COPIES) == 0 or number == CHARGES - 1:
                    copy()
            with ledger.snapshot() as snapshot:
                all_of_it = everything(snapshot)
    return all_of_it


def outcome(place: LedgerPlace, original: tuple[object, ...], report: Report, what: str) -> Outcome:
    """Open the edited ledger."""
    try:
        with place.ledger() as ledger:
            with ledger.snapshot() as snapshot:
                same = everything(snapshot) == original and list(totals(snapshot).values()) == 3 * [SPENT]
            if same and all(ledger.charge(request(f"k{number}")).replayed for number in range(CHARGES)):
                return "harmless"
    except LedgerError:
        return "refused"
    except Exception as error:  # noqa: BLE001 (the point is that there is none)
        report.say(f"untidy: {what}: {error!r}")
        return "untidy"
    report.say(f"missed: {what}")
    return "missed"


class Files:
    """Edits of a ledger in SQLite; `open` has its files before the log is merged, `closed` after."""

    def __init__(self, base: Path) -> None:
        self._base = base
        first = LedgerPlace(base / "first", alone=True)
        first.folder.mkdir()
        numbers = count()
        self.original = build(first, lambda: self._copy(first, base / f"copy{next(numbers)}"))
        self._copy(first, base / "closed")

    def _copy(self, place: LedgerPlace, to: Path) -> None:
        shutil.copytree(place.folder, to, ignore=shutil.ignore_patterns("*-shm", "*.lock"))

    def edit(self, chance: random.Random) -> tuple[LedgerPlace, str]:
        """Edit a fresh copy in one random way; return a description."""
        folder = self._base / "edited"
        shutil.rmtree(folder, ignore_errors=True)
        state = chance.choice(("closed", f"copy{COPIES}"))
        shutil.copytree(self._base / state, folder)
        place = LedgerPlace(folder)
        kind = chance.choice(("rows", "rows", "bytes", "bytes", "old", "anchor"))
        if kind == "rows":
            change = chance.choice(ROW_EDITS)
            rows = read(place)
            change(rows, chance)
            write(place, rows)
            return place, f"{change.__name__} ({state})"
        if kind == "bytes":
            path = chance.choice([path for path in folder.iterdir() if path.name != place.anchor.name])
            alter = chance.choice(BYTE_EDITS)
            alter(path, chance)
            return place, f"{alter.__name__} of {path.name} ({state})"
        if kind == "old":
            return place, self._old(folder, place, chance)
        alter = chance.choice((flip_bits, cut_short))
        alter(place.anchor, chance)
        return place, f"{alter.__name__} of the anchor ({state})"

    def _old(self, folder: Path, place: LedgerPlace, chance: random.Random) -> str:
        """Restore an older database, log, or both; the anchor stays the newest."""
        number = chance.randrange(COPIES)
        older = self._base / f"copy{number}"
        parts = chance.choice((("", "-wal"), ("",), ("-wal",)))
        if "" in parts:
            (folder / f"{place.database.name}-wal").unlink(missing_ok=True)
        for part in parts:
            name = place.database.name + part
            if (older / name).exists():
                shutil.copy(older / name, folder / name)
        return f"copy {number} of {parts}"


class Databases:
    """Edits of a ledger in PostgreSQL, on clones of its database."""

    def __init__(self, base: Path, server: Server) -> None:
        self._server = server
        self._folder = base / "postgres"
        self._folder.mkdir()
        server.run("CREATE DATABASE original")
        place = LedgerPlace(self._folder, server.dsn("original"))
        # a database can be cloned only while nobody is connected to it; its rows do as well
        self._copies: list[Rows] = []
        self.original = build(place, lambda: self._copies.append(read(place)))

    def edit(self, chance: random.Random) -> tuple[LedgerPlace, str]:
        """Edit a clone in one random way; return a description."""
        self._server.run("DROP DATABASE IF EXISTS edited WITH (FORCE)")
        self._server.run("CREATE DATABASE edited TEMPLATE original")
        place = LedgerPlace(self._folder, self._server.dsn("edited"))
        if chance.random() < 0.2:
            number = chance.randrange(COPIES)
            write(place, self._copies[number])
            return place, f"copy {number} of the database"
        change = chance.choice(ROW_EDITS)
        rows = read(place)
        change(rows, chance)
        try:
            write(place, rows)
        except psycopg.errors.UniqueViolation:
            return self.edit(chance)  # the database does not let that one pass: take another
        return place, f"{change.__name__} (PostgreSQL)"


def body(report: Report) -> None:
    chosen = report.parts("ledger", "receipts")
    if "ledger" in chosen:
        edit_ledgers(report)
    if "receipts" in chosen:
        forge_receipts(report)


def forge_receipts(report: Report) -> None:
    forged = report.scale(ci=1_500, full=100_000)
    with tempfile.TemporaryDirectory(prefix="hubbub-forge-") as base:
        counts, passed = judge(
            Receipts(Path(base)), report.progress(range(forged), "forged receipts"), random.Random(12)
        )
    for what, document in passed[:5]:
        report.say(f"{what}: {document}")
    report.figure("receipts_forged", forged)
    report.figure("receipts_refused_by_themselves", counts["refused"])
    report.figure("receipts_refused_by_the_ledger", counts["by the ledger alone"])
    report.target("forged_receipts_believed", counts["believed"], at_most=0)
    report.target("forged_receipts_that_cost_more_than_they_say", counts["costs more"], at_most=0)
    report.target("forged_receipts_without_a_clear_error", counts["untidy"], at_most=0)
    report.target("forged_receipts_refused_by_themselves_share", counts["refused"] / forged, at_least=0.5)


def edit_ledgers(report: Report) -> None:
    edits = report.scale(ci=120, full=1_000)
    chance = random.Random(11)
    counts: Counter[Outcome] = Counter()
    harmless: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="hubbub-tamper-") as base, Server() as server:
        files, databases = Files(Path(base)), Databases(Path(base), server)
        for number in report.progress(range(edits), "edits"):
            target = databases if number % 5 == 0 else files
            place, what = target.edit(chance)
            found = outcome(place, target.original, report, what)
            counts[found] += 1
            if found == "harmless":
                harmless[what.split(" (")[0]] += 1
    report.figure("edits", edits)
    report.figure("refused", counts["refused"])
    report.figure("harmless", counts["harmless"])
    report.figure("harmless_by_kind", dict(harmless))
    report.target("refused_without_a_clear_error", counts["untidy"], at_most=0)
    report.target("edits_missed", counts["missed"], at_most=0)
    report.target("refused_share", counts["refused"] / edits, at_least=0.6)


if __name__ == "__main__":
    run(body)
