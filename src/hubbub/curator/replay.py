"""The key of a charge: two queries with the same key are the same, so the second is answered from the ledger for free.

The key is a stored format (docs/formats.md). It is computed from the query and the declarations, never from how this
program writes a plan or words an explanation, so that a reworded sentence or a renamed class costs nobody a charge.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import Any

from hubbub.accounting.chain import Entry, canonical, facts_text, request_hash
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.core import wire
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

    Pass tables as analysts see them: a hash of hidden columns would let them check guesses.
    """
    facts = [_declared(table) for table in sorted(tables, key=lambda table: table.name)]
    return sha256(canonical(facts).encode()).hexdigest()


def _declared(table: Table) -> dict[str, Any]:
    """Give what an answer about a table depends on. A field that is added later is omitted where it has no effect."""
    unit = table.unit
    auto = {"auto": True} if unit is not None and unit.auto else {}
    return {
        "name": table.name,
        "unit": None if unit is None else {"column": unit.column, "groups": unit.groups, "rows": unit.rows} | auto,
        "relation": table.relation.value,
        "columns": [_column(column) for column in sorted(table.columns, key=lambda column: column.name)],
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
    }
    return {"name": column.name} | {name: fact for name, fact in facts.items() if fact is not None}


class EarlierCharges:
    """Charges of queries whose events depend on the version, indexed by query: they are still answered for free.

    The event is part of a key. How groups (and with which default δ) and candidates are selected, and how many rows of
    a unit count in a join of private tables, has changed between versions.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._charges: dict[tuple[str, str, str, str], list[Entry]] = {}
        for entry in snapshot.entries(EntryFilter(kind="charge")):
            selects = '"mechanism":"threshold"' in entry.facts or '"mechanism":"selection"' in entry.facts
            if selects or " JOIN " in entry.query:
                self._charges.setdefault((entry.analyst, entry.dataset, entry.version, entry.query), []).append(entry)

    def find(
        self,
        snapshot: Snapshot,
        analyst: str,
        text: str,
        dataset: str,
        version: str,
        *,
        charges: Sequence[dict[str, str]],
    ) -> Iterator[Entry]:
        """Give the charges of this query whose release states one of these pairs of ε and δ, newest first."""
        for entry in reversed(self._charges.get((analyst, dataset, version, text), [])):
            body = snapshot.body(entry.sequence)
            if body is not None and json.loads(body)["receipt"]["charge"] in charges:
                yield entry


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
