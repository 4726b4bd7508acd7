"""A small ledger for campaigns: its location, its requests, and the invariants that must always hold."""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.calls import ChargeRequest
from hubbub.accounting.cost import PrivacyCost
from hubbub.accounting.ledger import Ledger, no_step
from hubbub.accounting.postgres import PostgresStore
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import EntryFilter, OnStep, Snapshot, Store
from hubbub.accounting.verify import verify
from hubbub.config.policy import parse_policy
from hubbub.core.events import LaplaceEvent

#: Cost of each charge, chosen so that the expected sum needs no accountant.
PRICE = Fraction(1, 10)
EVENT = LaplaceEvent(1, 1 / PRICE)

POLICY = """
version: 1
datasets: {{visits: {{budget: {{epsilon: {budget}}}}}}}
analysts: {{ana: {{visits: {{epsilon: {budget}}}}}}}
groups: {{interns: {{members: [ana], visits: {{epsilon: {budget}}}}}}}
"""


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """The location of a ledger: a folder for its anchor, and its database there or on a server."""

    folder: Path
    dsn: str | None = None
    budget: str = "100000"
    alone: bool = False  # whether a server has exclusive access, and stores totals and keys only from time to time

    @property
    def database(self) -> Path:
        """The file of the database."""
        return self.folder / "ledger.sqlite"

    @property
    def anchor(self) -> Path:
        """The file of the anchor."""
        return self.folder / "ledger.anchor"

    def store(self) -> Store:
        """Open the database."""
        if self.dsn is None:
            return SqliteStore(self.database, exclusive=self.alone)
        return PostgresStore(self.dsn, exclusive=self.alone)

    def ledger(self, on_step: OnStep = no_step) -> Ledger:
        """Open and verify the ledger."""
        policy = parse_policy(POLICY.format(budget=self.budget))
        return Ledger.open(self.store(), policy=policy, anchor=FileAnchor(self.anchor), on_step=on_step)


def request(key: str) -> ChargeRequest:
    """Return a request for one count with a key."""
    return ChargeRequest("ana", "visits", "v1", EVENT, "SELECT count(*) FROM visits WHERE age > 30", key)


def serve(ledger: Ledger, key: str, say: Callable[[str], None]) -> None:
    """Charge, answer with fresh noise, record and release; report each step once it is durable."""
    charge = ledger.charge(request(key))
    say(f"charged {key} {charge.sequence} {charge.entry.hash.hex()}")
    # fresh bytes for every attempt, so that a second answer to one key would be visible
    release = ledger.record(charge, os.urandom(24) if charge.release is None else charge.release)
    say(f"released {key} {sha256(release).hexdigest()}")


@dataclass(slots=True)
class Expectations:
    """What all processes reported about one ledger, and must therefore hold."""

    charged: dict[str, tuple[int, str]] = field(default_factory=dict)
    released: dict[str, str] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)

    def hear(self, lines: list[str]) -> None:
        """Record what a process reported; contradictions are violations."""
        for line in lines:
            match line.split(" "):
                case ["tries", key]:
                    self.tried.add(key)
                case ["charged", key, sequence, digest]:
                    self._same(self.charged.setdefault(key, (int(sequence), digest)), (int(sequence), digest), line)
                case ["released", key, digest]:
                    self._same(self.released.setdefault(key, digest), digest, line)

    def _same(self, first: object, now: object, line: str) -> None:
        if first != now:
            self.broken.append(f"said otherwise before: {line}")

    def check(self, snapshot: Snapshot) -> None:
        """Compare the reports with the ledger."""
        entries = list(snapshot.entries(EntryFilter(kind="charge")))
        kept = {charge: sha256(body).hexdigest() for charge, body in snapshot.releases()}
        held = {entry.key: (entry.sequence, entry.hash.hex()) for entry in entries}
        counts = Counter(entry.key for entry in entries)
        self.broken += [f"double charge: {key}" for key, count in counts.items() if count > 1]
        self.broken += [f"charge of nobody: {key}" for key in held.keys() - self.tried]
        self.broken += [f"lost or changed charge: {key}" for key, said in self.charged.items() if held.get(key) != said]
        numbers = {sequence for sequence, _ in held.values()}
        self.broken += [f"release without a charge: {charge}" for charge in kept.keys() - numbers]
        for key, digest in self.released.items():
            if key not in held or kept.get(held[key][0]) != digest:
                self.broken.append(f"lost or changed release: {key}")
        self.broken += _wrong_totals(snapshot, PRICE * len(entries))


def totals(snapshot: Snapshot) -> dict[str, PrivacyCost]:
    """Return the charges of each cap: the stored totals plus the newest entries."""
    found = {**snapshot.totals(), **verify(snapshot, None).ahead}
    return {cap: PrivacyCost.from_json(json.loads(total.spent)) for cap, total in found.items()}


def _wrong_totals(snapshot: Snapshot, expected: Fraction) -> list[str]:
    spent = {cap: total.pure for cap, total in totals(snapshot).items()}
    wanted = 3 if expected else 0
    wrong = [cap for cap, each in spent.items() if each != expected]
    return [f"wrong totals: {wrong or list(spent)}"] if wrong or len(spent) != wanted else []
