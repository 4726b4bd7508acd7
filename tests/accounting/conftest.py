"""A desk: one ledger of a test, that can be opened, closed, damaged and opened again."""

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.accounting.anchor import FileAnchor, beside
from hubbub.accounting.calls import Charge, Request
from hubbub.accounting.contract import parse
from hubbub.accounting.ledger import Ledger, no_step, now
from hubbub.accounting.policy import Policy
from hubbub.accounting.refusal import CapError
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import OnStep
from hubbub.core.events import Event, Laplace

POLICY = """
version: 1
datasets:
  visits: {source: visits.parquet, budget: {epsilon: 6, delta: 1e-9, per_query: 0.5}}
  wards: {source: wards.csv, budget: {epsilon: 1}}
analysts:
  ana: {visits: {epsilon: 2}, wards: {epsilon: 1}}
  cleo: {visits: {epsilon: 6}}
groups:
  interns: {members: [ana, ben], visits: {epsilon: 3}}
"""


class Desk:
    """Where a test keeps its ledger."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "ledger.sqlite"
        self.anchor = beside(self.database)
        self.policy: Policy = parse(POLICY)
        self._numbers = itertools.count(1)
        self._open: list[Ledger] = []

    def store(self, **options: bool | float) -> SqliteStore:
        return SqliteStore(self.database, **options)  # type: ignore[arg-type]

    def open(
        self, *, policy: Policy | str | None = None, clock: Callable[[], int] = now, on_step: OnStep = no_step
    ) -> Ledger:
        if policy is not None:
            self.policy = parse(policy) if isinstance(policy, str) else policy
        store = self.store()
        try:
            ledger = Ledger.open(
                store, policy=self.policy, anchor=FileAnchor(self.anchor), clock=clock, on_step=on_step
            )
        except BaseException:
            store.close()
            raise
        self._open.append(ledger)
        return ledger

    def request(
        self, epsilon: str = "0.1", *, analyst: str = "ana", dataset: str = "visits", query: str = "count",
        key: str = "", event: Event | None = None, version: str = "v1",
    ) -> Request:  # fmt: skip
        event = event or Laplace(sensitivity=1, scale=1 / Fraction(epsilon))
        return Request(analyst, dataset, version, event, query, key or f"key-{next(self._numbers)}")

    def spend(
        self, ledger: Ledger, epsilon: str = "0.1", *, analyst: str = "ana", dataset: str = "visits",
        query: str = "count", key: str = "",
    ) -> Charge:  # fmt: skip
        return ledger.charge(self.request(epsilon, analyst=analyst, dataset=dataset, query=query, key=key))

    def exhaust(
        self, ledger: Ledger, epsilon: str, *, analyst: str = "ana", dataset: str = "visits"
    ) -> tuple[int, CapError]:
        """Spend until it is refused; say how often it was granted, and the refusal."""
        for granted in range(10_000):
            try:
                self.spend(ledger, epsilon, analyst=analyst, dataset=dataset)
            except CapError as refusal:
                return granted, refusal
        raise AssertionError("never refused")

    def edit(self, *statements: str, triggers: bool = False) -> None:
        """Change the database behind the ledger's back; its triggers come back as they were."""
        with closing(sqlite3.connect(self.database, isolation_level=None)) as connection:
            guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards if not triggers else []:
                connection.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                connection.execute(statement)
            for _, sql in guards if not triggers else []:
                connection.execute(sql)

    def close(self) -> None:
        for ledger in self._open:
            ledger.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()
