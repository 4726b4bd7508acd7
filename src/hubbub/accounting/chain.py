"""Entries of the ledger, their canonical bytes, and the hash that links each entry to all earlier ones.

The hash of an entry is SHA-256 over the previous hash, two more hashes of fixed length, and the text fields joined by
NUL, which no field may contain; so different entries never have the same bytes. Numbers are written in decimal, facts
as JSON with sorted keys and no spaces. This paragraph and the file are enough to check a ledger.
"""

import json
import secrets
from hashlib import sha256
from typing import Literal, NamedTuple

from hubbub.core.blocks import BlockSet
from hubbub.core.events import Event, to_facts

Kind = Literal["policy", "charge", "release", "forfeit", "failure", "reviewed", "decision", "publication"]

#: The request hash of an entry without a request (a policy, a forfeit).
NO_HASH = bytes(32)

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class Mark(NamedTuple):
    """A position in the chain of one ledger, as an anchor stores it."""

    ledger: str
    sequence: int
    hash: bytes


class Entry(NamedTuple):
    """One stored entry. Entries are never changed or removed."""

    sequence: int
    kind: Kind
    time: int  # microseconds since 1970, UTC, by the clock of the writer
    analyst: str
    dataset: str
    version: str
    facts: str  # of a charge: the mechanism; of a release: its length and hash; a policy; a forfeit
    query: str
    key: str
    charge: int  # of a release or failure: the charge it belongs to; otherwise 0
    request: bytes
    config: bytes
    previous: bytes
    hash: bytes


def canonical(value: object) -> str:
    """Write JSON in the canonical form that is hashed.

    >>> canonical({"b": 1, "a": ["ε", None]})
    '{"a":["ε",null],"b":1}'
    """
    return _encode(value)


def facts_text(event: Event, blocks: BlockSet | None = None) -> str:
    """Write the facts of an event in canonical form, with the blocks that it is charged to, where a dataset has some.

    >>> from hubbub.core.events import ResponseEvent
    >>> facts_text(ResponseEvent(2, 1), BlockSet("month", ((0, 1),)))
    '{"answers":2,"blocks":{"by":"month","ranges":[["1970-01","1970-02"]]},"epsilon":1,"mechanism":"response"}'
    """
    return canonical(to_facts(event) if blocks is None else {**to_facts(event), "blocks": blocks.to_json()})


def new_identity() -> str:
    """Return a random name for a new ledger. It also salts the order in which rows of a unit are kept."""
    return secrets.token_hex(16)


def genesis(ledger: str) -> bytes:
    """Give the hash before the first entry of a ledger."""
    return sha256(f"hubbub ledger\0{ledger}".encode()).digest()


def request_hash(dataset: str, facts: str, query: str) -> bytes:
    """Hash a request: dataset, mechanism and query.

    The version of the data is not included, because the analyst does not choose it: a retry after an update of the
    data is the same request, and returns the release of the first one.
    """
    return sha256(f"{dataset}\0{facts}\0{query}".encode()).digest()


def link(
    previous: bytes,
    config: bytes,
    request: bytes,
    sequence: int,
    kind: str,
    time: int,
    analyst: str,
    dataset: str,
    version: str,
    facts: str,
    query: str,
    key: str,
    charge: int,
) -> bytes:
    """Hash the canonical bytes of an entry.

    Theorem (Hash chain). Two ledgers of the same identity and the same newest hash hold the same entries in the same
    order, unless a collision of SHA-256 is at hand: the bytes determine all fields, so equal hashes mean equal fields,
    equal `previous` among them, and so on down to the genesis.
    Assumes  collision resistance of SHA-256; no field contains NUL (rejected on input).
    Tested   tests/accounting/test_chain.py::test_every_field_is_bound_by_the_hash
             tests/accounting/test_verify.py::test_every_single_edit_of_an_entry_is_found
    """
    text = (f"{sequence}\0{kind}\0{time}\0{analyst}\0{dataset}\0{version}\0{facts}\0{query}\0{key}\0{charge}").encode()
    return sha256(previous + config + request + text).digest()


def append(
    previous: bytes,
    sequence: int,
    kind: Kind,
    time: int,
    *,
    config: bytes,
    facts: str,
    analyst: str = "",
    dataset: str = "",
    version: str = "",
    query: str = "",
    key: str = "",
    charge: int = 0,
    request: bytes = NO_HASH,
) -> Entry:
    """Make the entry that follows `previous`."""
    digest = link(previous, config, request, sequence, kind, time, analyst, dataset, version, facts, query, key, charge)
    return Entry(
        sequence, kind, time, analyst, dataset, version, facts, query, key, charge, request, config, previous, digest
    )
