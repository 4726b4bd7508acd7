"""The key of a charge: two queries with the same key are the same, so the second is answered from the ledger for free.

The key is a stored format (docs/formats.md). It is computed from the query and the declarations, never from how this
program writes a plan or words an explanation, so that a reworded sentence or a renamed class costs nobody a charge.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np

from hubbub.accounting.chain import Entry, canonical, facts_text, request_hash
from hubbub.accounting.cost import event_of_facts
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.analyses.base import PreparedAnalysis
from hubbub.core import chunked_json, wire
from hubbub.core.asked import Same, once
from hubbub.core.events import Event, to_facts
from hubbub.core.schema import Column, Table

#: The format of new keys. Format 1 hashed the plan as Python wrote it and cannot be computed any more.
FORMAT = 2

_FIRST = re.compile(r"plan [0-9a-f]{64}")


def key(text: str, *, event: Event, epsilon: Fraction, tables: Iterable[Table], versions: Mapping[str, str]) -> str:
    """Compute the key of a query in canonical form, at a privacy cost, on declared tables with known versions."""
    facts = {
        "format": FORMAT,
        "query": text,
        "event": to_facts(event),
        "epsilon": str(epsilon),
        "tables": [_declared(table) for table in sorted(tables, key=lambda table: table.name)],
        "versions": dict(versions),
    }
    return f"replay {FORMAT} {sha256(canonical(facts).encode()).hexdigest()}"


def declared_hash(tables: Iterable[Table]) -> str:
    """Hash what is declared about tables, so that a receipt can be compared with today's declarations.

    Hidden columns are left out: with a hash of them, analysts could check guesses.
    """
    listed = tuple(tables)

    def hashed() -> str:
        facts = [_declared(table.shown()) for table in sorted(listed, key=lambda table: table.name)]
        return sha256(canonical(facts).encode()).hexdigest()

    # a table that was made for one query is kept with the key
    return once(
        ("declared", *map(Same, listed)), hashed, weigh=lambda _: 100 * sum(len(each.columns) for each in listed)
    )


def _declared(table: Table) -> dict[str, Any]:
    """Give what an answer about a table depends on. A field that is added later is omitted where it has no effect."""
    unit = table.unit
    auto: dict[str, Any] = {"auto": True} if unit is not None and unit.auto else {}
    if unit is not None and unit.rows_total is not None:
        auto["rows_total"] = unit.rows_total
    if unit is not None and unit.path is not None:
        auto["path"] = unit.path.to_json()
    if unit is not None and unit.period is not None:
        auto["period"] = unit.period.to_json()
    return {
        "name": table.name,
        "unit": None if unit is None else {"column": unit.column, "groups": unit.groups, "rows": unit.rows} | auto,
        "relation": table.relation.value,
        "columns": [_column(column) for column in sorted(table.columns, key=lambda column: column.name)],
        **({"others": [each.to_json() for each in table.others]} if table.others else {}),
        **({} if table.blocks is None else {"blocks": table.blocks.to_json()}),
    }


def _column(column: Column) -> dict[str, Any]:
    facts = {
        "kind": column.kind.value,
        "bounds": None if column.bounds is None else [str(column.bounds.low), str(column.bounds.high)],
        "step": wire.optional_text(column.step),
        "values": None if column.values is None else [wire.value(value) for value in column.values],
        "other": None if column.other is None else wire.value(column.other),
        "nullable": True if column.nullable else None,
        "auto": True if column.auto else None,
        "required": True if column.required else None,
    }
    return {"name": column.name} | {name: fact for name, fact in facts.items() if fact is not None}


class EarlierCharges:
    """Charges made before this process started, indexed by query: an earlier version may have planned them otherwise.

    The event is part of a key. How groups and candidates are selected, which bounds follow from conditions, and how
    many rows of a unit count in a join has changed between versions; such queries are still answered for free.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        hashes, numbers = array("Q"), array("q")
        for entry in snapshot.entries(EntryFilter(kind="charge")):
            hashes.append(_short_hash(entry.analyst, entry.dataset, entry.version, entry.query))
            numbers.append(entry.sequence)
        order = np.argsort(np.asarray(hashes, dtype=np.uint64), kind="stable")
        self._hashes = np.asarray(hashes, dtype=np.uint64)[order]
        self._numbers = np.asarray(numbers, dtype=np.int64)[order]

    def numbers(self, analyst: str, text: str, dataset: str, version: str) -> list[int]:
        """Give the numbers of charges that may be of this query, newest first."""
        if not len(self._hashes):
            return []
        wanted = np.uint64(_short_hash(analyst, dataset, version, text))
        first, last = (np.searchsorted(self._hashes, wanted, side=side) for side in ("left", "right"))
        return list(reversed(self._numbers[first:last].tolist()))

    def find(self, snapshot: Snapshot, analyst: str, text: str, dataset: str, version: str) -> Iterator[Entry]:
        """Give the charges of this query, newest first."""
        for number in self.numbers(analyst, text, dataset, version):
            for entry in snapshot.entries(EntryFilter(kind="charge", before=number + 1), after=number - 1):
                if (entry.analyst, entry.dataset, entry.version, entry.query) == (analyst, dataset, version, text):
                    yield entry


def _short_hash(*parts: str) -> int:
    return int.from_bytes(sha256(canonical(list(parts)).encode()).digest()[:8], "big")


class FirstFormat:
    """Charges under keys of format 1, indexed by request: the same request on the same data version is the same charge.

    Their keys cannot be computed any more, but their requests can: each entry hashes dataset, mechanism and query.
    Public tables have no entry, so a charge that read one counts only while that table has its first version.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._keys: dict[tuple[str, str, str, bytes], str] = {}
        for entry in snapshot.entries(EntryFilter(kind="charge")):
            base = entry.key.removesuffix(f" {entry.dataset}")
            if _FIRST.fullmatch(base):
                self._keys[entry.analyst, entry.dataset, entry.version, entry.request] = base

    def key(
        self, analyst: str, text: str, *, event: Event, tables: Sequence[Table], versions: Mapping[str, str]
    ) -> str | None:
        """Give the key under which a query was charged, if it was."""
        if not self._keys or any(table.public and versions[table.name] != "1" for table in tables):
            return None
        facts, private = facts_text(event), [table.name for table in tables if not table.public]
        known = {self._keys.get((analyst, name, versions[name], request_hash(name, facts, text))) for name in private}
        return known.pop() if len(known) == 1 else None


class ReplayKeys:
    """The keys of queries in one ledger, with those that earlier versions of hubbub charged."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        with ledger.snapshot() as snapshot:
            self._first_format = FirstFormat(snapshot)
            self._earlier = EarlierCharges(snapshot)

    def key(self, analyst: str, planned: PreparedAnalysis, text: str, versions: Mapping[str, str], event: Event) -> str:
        """Give the ledger's key for this query on this version of the data."""
        earlier = self._first_format.key(analyst, text, event=event, tables=planned.tables, versions=versions)
        return earlier or key(text, event=event, epsilon=planned.epsilon, tables=planned.tables, versions=versions)

    def earlier_event(
        self,
        analyst: str,
        planned: PreparedAnalysis,
        text: str,
        versions: Mapping[str, str],
        deltas: Iterable[Fraction],
    ) -> Event | None:
        """Give the event of an earlier charge of this query, at one of these δ, that differs and has a release."""
        charges = [{"epsilon": str(planned.epsilon), "delta": str(delta)} for delta in deltas]
        name = planned.private[0].name
        if not self._earlier.numbers(analyst, text, name, versions[name]):
            return None  # the usual case, without reading the ledger
        with self._ledger.snapshot() as snapshot:
            for entry in self._earlier.find(snapshot, analyst, text, name, versions[name]):
                event = event_of_facts(entry.facts)
                if event == planned.event:
                    return None
                if entry.key == f"{self.key(analyst, planned, text, versions, event)} {name}":
                    body = snapshot.body(entry.sequence)
                    if body is not None and chunked_json.loads(body)["receipt"]["charge"] in charges:
                        return event
        return None
