"""A desk: one ledger of a test, that can be opened, closed, damaged and opened again."""

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hubbub.accounting.anchor import FileAnchor, former_path
from hubbub.accounting.calls import Charge, ChargeRequest
from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import PrivacyCost
from hubbub.accounting.ledger import Ledger, no_step, now
from hubbub.accounting.policy import Policy
from hubbub.accounting.postgres import PostgresStore
from hubbub.accounting.postgres import set_aside as set_aside_schema
from hubbub.accounting.refusal import CapError
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.sqlite_schema import set_aside
from hubbub.accounting.store import OnStep
from hubbub.accounting.verify import verify
from hubbub.config.policy import parse_policy
from hubbub.core.events import Event, LaplaceEvent

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


TABLES = ("identity", "head", "entries", "releases", "totals")

#: What was kept of a database: the bytes of its file, or the rows of its tables.
Backup = bytes | dict[str, list[tuple[Any, ...]]]


def as_document(policy: Policy) -> str:
    """Give a recorded policy as the text of hubbub.yaml: without what only the record has."""
    return policy.text.replace('"filters":2,', "")


class Desk:
    """Where a test keeps its ledger."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "ledger.sqlite"
        self.anchor = former_path(self.database)
        self.policy: Policy = parse_policy(POLICY)
        self._numbers = itertools.count(1)
        self._open: list[Ledger] = []

    def store(self, **options: bool | float) -> SqliteStore | PostgresStore:
        return SqliteStore(self.database, **options)  # type: ignore[arg-type]

    def open(
        self, *, policy: Policy | str | None = None, clock: Callable[[], int] = now, on_step: OnStep = no_step
    ) -> Ledger:
        if policy is not None:
            self.policy = parse_policy(policy) if isinstance(policy, str) else policy
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
        self,
        epsilon: str = "0.1",
        *,
        analyst: str = "ana",
        dataset: str = "visits",
        query: str = "count",
        key: str = "",
        event: Event | None = None,
        version: str = "v1",
    ) -> ChargeRequest:
        event = event or LaplaceEvent(sensitivity=1, scale=1 / Fraction(epsilon))
        return ChargeRequest(analyst, dataset, version, event, query, key or f"key-{next(self._numbers)}")

    def spend(
        self,
        ledger: Ledger,
        epsilon: str = "0.1",
        *,
        analyst: str = "ana",
        dataset: str = "visits",
        query: str = "count",
        key: str = "",
    ) -> Charge:
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

    def totals(self) -> tuple[dict[str, Fraction | None], dict[str, Fraction | None]]:
        """Give the pure loss of each cap: as it is stored, and as it is with what the stored totals do not hold yet."""
        store = self.store(read_only=True)
        try:
            with store.snapshot() as snapshot:
                stored, ahead = snapshot.totals(), verify(snapshot, None).ahead
        finally:
            store.close()
        pure = [
            {cap: PrivacyCost.from_json(json.loads(total.spent)).pure for cap, total in totals.items()}
            for totals in (stored, {**stored, **ahead})
        ]
        return pure[0], pure[1]

    def set_aside(self) -> str:
        return set_aside(self.database)

    def lies_aside(self, where: str) -> bool:
        return Path(where).exists()

    def backup(self) -> Backup:
        return self.database.read_bytes()

    def restore(self, backup: Backup) -> None:
        assert isinstance(backup, bytes)
        self.database.write_bytes(backup)

    def destroy(self) -> None:
        self.database.unlink()

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(query).fetchall()

    def literal(self, value: bytes) -> str:
        return f"x'{value.hex()}'"

    def put(self, entries: Sequence[Entry]) -> None:
        """Put these in the place of all entries, behind the ledger's back."""
        self.edit("DELETE FROM entries", *(self._insert("entries", entry) for entry in entries))

    def _insert(self, table: str, row: Sequence[str | int | bytes]) -> str:
        values = [
            self.literal(value)
            if isinstance(value, bytes)
            else str(value)
            if isinstance(value, int)
            else "'" + value.replace("'", "''") + "'"
            for value in row
        ]
        return f"INSERT INTO {table} VALUES ({', '.join(values)})"

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


class PostgresDesk(Desk):
    """The same with a database on a server."""

    def __init__(self, folder: Path, dsn: str) -> None:
        super().__init__(folder)
        self.dsn = dsn

    def store(self, **options: bool | float) -> PostgresStore:
        return PostgresStore(self.dsn, **options)  # type: ignore[arg-type]

    def set_aside(self) -> str:
        return set_aside_schema(self.dsn)

    def lies_aside(self, where: str) -> bool:
        return bool(self.ask(f"SELECT 1 FROM pg_namespace WHERE nspname = '{where.split()[-1]}'"))

    def backup(self) -> Backup:
        return {table: self.ask(f"SELECT * FROM {table}") for table in TABLES}

    def restore(self, backup: Backup) -> None:
        assert isinstance(backup, dict)
        inserts = [self._insert(table, row) for table, rows in backup.items() for row in rows]
        self.edit(*(f"DELETE FROM {table}" for table in TABLES), *inserts)

    def destroy(self) -> None:
        self.edit("DROP SCHEMA hubbub CASCADE", triggers=True)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, options="-c search_path=hubbub") as connection:
            return connection.execute(query.encode()).fetchall()

    def literal(self, value: bytes) -> str:
        return f"'\\x{value.hex()}'"

    def put(self, entries: Sequence[Entry]) -> None:
        super().put(entries)
        last = entries[-1]
        hashes = f"hash = {self.literal(last.hash)}, config = {self.literal(last.config)}"
        self.edit(f"UPDATE head SET sequence = {last.sequence}, time = {last.time}, {hashes}")

    def edit(self, *statements: str, triggers: bool = False) -> None:
        with psycopg.connect(self.dsn, options="-c search_path=hubbub") as connection:
            guarded = () if triggers else ("identity", "entries", "releases")
            for table in guarded:
                connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER only_added_to".encode())
            for statement in statements:
                connection.execute(statement.encode())
            for table in guarded:
                connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER only_added_to".encode())


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    """A desk of either kind: what it is asked must hold on every store."""
    if request.param == "sqlite":
        desk = Desk(tmp_path)
    else:
        desk = PostgresDesk(tmp_path, request.getfixturevalue("postgres_dsn"))
    yield desk
    desk.close()


@pytest.fixture
def postgres_desk(tmp_path: Path, postgres_dsn: str) -> Iterator[PostgresDesk]:
    """A desk for what is done to a server."""
    desk = PostgresDesk(tmp_path, postgres_dsn)
    yield desk
    desk.close()


@pytest.fixture
def file_desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk for what is done to files."""
    desk = Desk(tmp_path)
    yield desk
    desk.close()
