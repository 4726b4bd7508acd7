"""What a ledger needs of a database: one class that has these methods is a store.

A store keeps three tables: the entries (only ever added to), the bodies of the releases, and the running total of each
cap. Writing is one transaction at a time: `begin` takes the writer's lock, whatever process holds it now, and gives the
newest place of the chain as it is under that lock; nothing the ledger remembers is used before it was compared with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hubbub.accounting.chain import Entry, Kind
from hubbub.errors import LedgerError

#: Called with the name of the point that the ledger has reached: see `STEPS`. Campaigns stop a process there.
OnStep = Callable[[str], None]

#: The points of one transaction, in order. Between `committing` and `committed` the disk is made to hold the entries.
STEPS: tuple[str, ...] = ("begun", "entries", "releases", "totals", "committing", "committed", "anchored")


#: Totals, and SQLite's keys, can be derived from the entries, and storing them costs as much as all that is decided for
#: a charge. So they are stored with the commits that reach or pass a multiple of LAG, by whichever process makes those:
#: what stands in the tables holds at least all entries up to the last multiple; the rest is read from the entries.
LAG = 64


#: Bytes of a release. SQLite keeps a blob below 1e9 bytes and PostgreSQL one below 2³⁰; half of that leaves room for
#: what travels around it.
MOST_RELEASE = 500_000_000

#: The code of an error after which nothing of a transaction is in the database, for certain: see `Store`.
REFUSED = "HB331"


def refused(why: str) -> LedgerError:
    """Make the error of a row that a database does not take; whoever raises it has rolled back."""
    return LedgerError(
        REFUSED,
        f"the ledger's database does not take what was to be written ({why}). Nothing of it was written.",
        "Ask for less at once. If it goes on, check the memory and the disk of the database.",
    )


def stored_until(sequence: int) -> int:
    """Give the entry up to which totals and keys are stored at least, in a ledger with so many entries.

    >>> stored_until(63), stored_until(64), stored_until(130)
    (0, 64, 128)
    """
    return sequence - sequence % LAG


class Head(NamedTuple):
    """The newest entry of a chain: its number, hash and time (0 and the genesis hash where there is none).

    Every entry has the hash of the policy in force, so the head's `config` is the policy that the ledger is under.
    """

    sequence: int
    hash: bytes
    time: int
    config: bytes


class Found(NamedTuple):
    """A charge that a key belongs to, and the release that it paid for, where there is one."""

    entry: Entry
    release: bytes | None


class Total(NamedTuple):
    """What was charged to one cap: a price in canonical form, and the newest entry that is in it."""

    spent: str
    sequence: int


class Begun(NamedTuple):
    """What a writer finds under the lock: the newest entry, the charges that its keys belong to, and what is new.

    `news` has the entries after the one that the ledger remembers, as far as they are not surely in the stored totals:
    those above the last multiple of LAG.
    """

    head: Head
    found: Mapping[tuple[str, str], Found]
    news: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries to read: all, where nothing is said.

    Times are microseconds, from `since` up to before `until`; `before` asks for smaller numbers than this.
    """

    kind: Kind | None = None
    analyst: str | None = None
    dataset: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None

    def where(self, placeholder: str) -> tuple[str, list[str | int]]:
        """Give the conditions in SQL, each led by AND, and their parameters.

        >>> Filter(analyst="ana", since=5).where("?")
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
    """One consistent view of the whole database, whatever is written meanwhile."""

    @property
    def ledger(self) -> str:
        """The identity that was drawn when the ledger was made."""
        ...

    def head(self) -> Head:
        """Give the newest entry's place."""
        ...

    def entries(self, which: Filter, *, after: int = 0, newest_first: bool = False) -> Iterator[Entry]:
        """Read entries in the order of the chain (or its reverse), those with a number above `after`."""
        ...

    def released(self, low: int, high: int) -> set[int]:
        """Say which charges from `low` to `high` have a release."""
        ...

    def body(self, charge: int) -> bytes | None:
        """Read what one charge paid for, where that is recorded."""
        ...

    def releases(self) -> Iterator[tuple[int, bytes]]:
        """Read every release: the number of its charge, and its bytes."""
        ...

    def totals(self) -> Mapping[str, Total]:
        """Read every total."""
        ...

    def problems(self) -> list[str]:
        """Say what is wrong with the database itself: its pages, its indexes, its schema."""
        ...


class Store(Protocol):
    """Where a ledger is kept. Errors come as `LedgerError`.

    After an error of `begin` with the code HB303 (busy) nothing has happened, and the ledger goes on. After an error of
    `commit` with the code HB331 nothing was written, for certain: the database refused a row, before it was told to
    commit, and has rolled back. After any other error inside a transaction the ledger stops for good, since nobody
    knows what the disk has.
    """

    @property
    def ledger(self) -> str:
        """The identity that was drawn when the ledger was made."""
        ...

    @property
    def where(self) -> str:
        """Say to a person where it is."""
        ...

    def begin(self, keys: Sequence[tuple[str, str]], after: int) -> Begun:
        """Wait for the writer's lock and take it, or raise HB303 where another keeps it too long.

        Under the lock, look up the newest entry, the charges that belong to these (analyst, key) pairs, and the entries
        with a number above `after`.
        """
        ...

    def totals(self, labels: Iterable[str]) -> Mapping[str, Total]:
        """Under the lock, read the totals of these caps, as far as they are stored."""
        ...

    def policy(self, config: bytes) -> str:
        """Under the lock, read the policy of this hash."""
        ...

    def commit(
        self, entries: Sequence[Entry], totals: Mapping[str, Total], releases: Mapping[int, bytes], on_step: OnStep
    ) -> None:
        """Add entries and releases (by charge), set totals, make all of it durable, and give the lock back."""
        ...

    def rollback(self) -> None:
        """Give the lock back; nothing was written."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Look at the whole database as it is now."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...
