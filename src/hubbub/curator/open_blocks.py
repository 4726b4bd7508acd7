"""Which blocks of a dataset exist and are open: by the calendar, and by what the ledger has closed.

Tested in tests/curator/test_blocks.py.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from threading import Lock

from hubbub.accounting.blocks import closed_by
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.core.blocks import BlockSet
from hubbub.core.schema import Table

#: The budgets of so many blocks are listed.
SHOWN = 100


class OpenBlocks:
    """The closed blocks of a ledger, and today's date by its clock. Thread-safe.

    It remembers the last entry that it read, so that an update reads only the newer ones.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._closed: dict[str, frozenset[str]] = {}
        self._read = 0
        self._lock = Lock()

    def closed(self) -> Mapping[str, frozenset[str]]:
        """Give the names of the closed blocks of each dataset."""
        with self._ledger.snapshot() as snapshot:
            self._take_in(snapshot)
        with self._lock:
            return dict(self._closed)

    def _take_in(self, snapshot: Snapshot) -> None:
        with self._lock:
            for entry in snapshot.entries(EntryFilter(kind="forfeit"), after=self._read):
                for dataset, name in closed_by(json.loads(entry.facts)):
                    self._closed[dataset] = self._closed.get(dataset, frozenset()) | {name}
            self._read = snapshot.head().sequence

    def today(self) -> date:
        """Give the date of a charge that is made now, in UTC."""
        return datetime.fromtimestamp(self._ledger.time() / 1_000_000, UTC).date()

    def of(self, tables: Mapping[str, Table]) -> dict[str, Table]:
        """Give tables with their open blocks; a table that has none is refused."""
        if all(table.blocks is None for table in tables.values()):
            return dict(tables)
        closed, today = self.closed(), self.today()
        return {name: _reading(table, closed, today) for name, table in tables.items()}

    def shown(self, table: Table) -> BlockSet:
        """Give the newest blocks of a table that exist, open or closed."""
        if table.blocks is None:
            return BlockSet("day", ())
        existing = table.blocks.existing(self.today())
        return existing.between(existing.ranges[-1][1] - SHOWN + 1, None) if existing.ranges else existing


def _reading(table: Table, closed: Mapping[str, frozenset[str]], today: date) -> Table:
    blocks = table.blocks
    if blocks is None:
        return table
    existing, shut = blocks.existing(today), closed.get(table.name, frozenset())
    read = existing.without(block for block, name in zip(existing, existing.names(), strict=True) if name in shut)
    return replace(table, blocks=blocks.reading(read))
