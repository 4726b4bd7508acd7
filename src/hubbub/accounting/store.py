"""The interface between the ledger and a database.

A store has three tables: the entries (append-only), the releases, and the running total of each cap. One transaction
writes at a time: `begin` waits for the writer lock of all processes and gives the newest entry under that lock; the
ledger compares its cached state with it before using it.

Tested in tests/accounting/test_failures.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hubbub.accounting.chain import Entry, Kind
from hubbub.errors import LedgerError

#: Called with the name of each step of a transaction: see `STEPS`. Stress tests stop the process there.
OnStep = Callable[[str], None]

#: The steps of one transaction, in order. Between `committing` and `committed` the entries become durable.
STEPS: tuple[str, ...] = ("begun", "entries", "releases", "totals", "committing", "committed", "anchored")


#: Totals, and SQLite's keys, can be derived from the entries, and storing them costs as much as deciding a charge. They
#: are therefore stored only with commits that reach or pass a multiple of LAG, by any process: the tables include at
#: least all entries up to the last multiple, and the rest is read from the entries.
LAG = 64


#: SQLite stores blobs below 1e9 bytes and PostgreSQL below 2³⁰; half of that leaves room for encoding.
MAX_RELEASE_BYTES = 500_000_000

#: The code of an error after which certainly nothing was written: see `Store`.
REFUSED = "HB331"


def row_refused(why: str) -> LedgerError:
    """Make the error of a row that the database rejected; raise it after the rollback."""
    return LedgerError(
        REFUSED,
        f"The ledger database rejected the entry ({why}). Nothing was written.",
        "Request a smaller result. If this happens again, check the memory and disk space of the database.",
    )


def stored_until(sequence: int) -> int:
    """Give the entry up to which totals and keys are stored at least, in a ledger of this length.

    >>> stored_until(63), stored_until(64), stored_until(130)
    (0, 64, 128)
    """
    return sequence - sequence % LAG


class Head(NamedTuple):
    """The newest entry of a chain: its number, hash and time (0 and the genesis hash if there is none).

    `config` is the hash of the policy in force.
    """

    sequence: int
    hash: bytes
    time: int
    config: bytes


class ChargeRecord(NamedTuple):
    """The charge of a key, and its release, if there is one."""

    entry: Entry
    release: bytes | None


class StoredTotal(NamedTuple):
    """The total of one cap: a privacy cost in canonical form, and the newest entry that it includes."""

    spent: str
    sequence: int


class LockedState(NamedTuple):
    """What a writer reads under the lock: the newest entry, the charges of its keys, and new entries.

    `news` has the new entries above the last multiple of LAG: those that the stored totals may not include.
    """

    head: Head
    charges: Mapping[tuple[str, str], ChargeRecord]
    news: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries to read; all by default.

    Times are microseconds, from `since` up to but excluding `until`; sequence numbers are below `before`.
    """

    kind: Kind | None = None
    analyst: str | None = None
    dataset: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None

    def where(self, placeholder: str) -> tuple[str, list[str | int]]:
        """Give the conditions in SQL, each preceded by AND, and their parameters.

        >>> EntryFilter(analyst="ana", since=5).where("?")
        (' AND analyst = ? AND time >= ?', ['ana', 5])
        """
        terms = {
            "kind = ": self.kind,
            "analyst = ": self.analyst,
            "dataset = ": self.dataset,
            "time >= ": self.since,
            "time < ": self.until,
            "sequence < ": self.before,
        }
        given = {term: value for term, value in terms.items() if value is not None}
        return "".join(f" AND {term}{placeholder}" for term in given), list(given.values())


class Snapshot(Protocol):
    """A consistent view of the whole database, independent of concurrent writes."""

    @property
    def ledger(self) -> str:
        """The random identity of the ledger."""
        ...

    def head(self) -> Head:
        """Give the newest entry's position."""
        ...

    def entries(self, which: EntryFilter, *, after: int = 0, newest_first: bool = False) -> Iterator[Entry]:
        """Read the entries after `after`, in the order of the chain or its reverse."""
        ...

    def released(self, low: int, high: int) -> set[int]:
        """Say which charges from `low` to `high` have a release."""
        ...

    def body(self, charge: int) -> bytes | None:
        """Read the release of one charge, if it is recorded."""
        ...

    def releases(self) -> Iterator[tuple[int, bytes]]:
        """Read every release: the number of its charge, and its bytes."""
        ...

    def totals(self) -> Mapping[str, StoredTotal]:
        """Read every total."""
        ...

    def problems(self) -> list[str]:
        """List the problems of the database itself: pages, indexes, schema."""
        ...


class Store(Protocol):
    """The database of a ledger. All errors are `LedgerError`.

    After HB303 (busy) from `begin`, nothing has happened, and the ledger continues. After HB331 from `commit`,
    certainly nothing was written: the database rejected a row before COMMIT and has rolled back. After any other error
    inside a transaction the ledger stops for good, because the state of the disk is unknown.
    """

    @property
    def ledger(self) -> str:
        """The random identity of the ledger."""
        ...

    @property
    def where(self) -> str:
        """The location, for messages."""
        ...

    def begin(self, keys: Sequence[tuple[str, str]], after: int) -> LockedState:
        """Take the writer lock, or raise HB303 if another process holds it for too long.

        Under the lock, read the newest entry, the charges of these (analyst, key) pairs, and the entries after `after`.
        """
        ...

    def totals(self, labels: Iterable[str]) -> Mapping[str, StoredTotal]:
        """Under the lock, read the stored totals of these caps."""
        ...

    def policy(self, config: bytes) -> str:
        """Under the lock, read the policy with this hash."""
        ...

    def commit(
        self,
        entries: Sequence[Entry],
        totals: Mapping[str, StoredTotal],
        releases: Mapping[int, bytes],
        on_step: OnStep,
    ) -> None:
        """Add entries and releases (by charge), set totals, make everything durable, and release the lock."""
        ...

    def rollback(self) -> None:
        """Release the lock without writing."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent view of the whole database."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...
