"""Earlier releases whose noisy sums other answers can be derived from, as the ledger has them.

Which releases there are is looked up for each analyst apart: how long it takes, and what is kept, depends on the
charges of those whose releases the analyst may see, and on nobody else's. Tested in tests/curator/test_reuse.py.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from threading import Lock
from typing import Any

from hubbub.accounting.chain import Entry, canonical
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.core import chunked_json
from hubbub.core.asked import once
from hubbub.core.chunked_json import dumps
from hubbub.core.events import Event, GaussianEvent, LaplaceEvent, from_facts
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.measured import CUBE_FORMAT, FORMAT, Described
from hubbub.sql.noise import AnyNoise, NoNoise
from hubbub.sql.source_index import SourceIndex, candidates
from hubbub.sql.terms import Source

#: How many charges of an analyst on a dataset are looked at, the newest first.
MOST = 1_000
#: Maximum number of bytes of a release that is a source.
LARGEST = 8_000_000
#: Keys of derived answers start with this word.
DERIVED = "derived"


@dataclass
class _Known:
    """The charges of one analyst on one dataset, and what their releases measured, once it was read.

    order    the newest charges, the oldest first
    waiting  those whose release was not read yet: they still run, or the data has another version now
    names    those whose release was read, by analyst and key
    indexes  what was read, by the version of the data
    """

    last: int = 0
    order: deque[int] = field(default_factory=deque)
    waiting: dict[int, Entry] = field(default_factory=dict)
    names: dict[tuple[str, str], int] = field(default_factory=dict)
    indexes: dict[str, SourceIndex] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)  #: of these charges alone: nobody waits for what others read

    def take(self, entry: Entry) -> None:
        """Take in a new charge, and let go of the oldest one if there are too many."""
        self.order.append(entry.sequence)
        self.waiting[entry.sequence] = entry
        if len(self.order) > MOST:
            oldest = self.order.popleft()
            self.waiting.pop(oldest, None)
            for index in self.indexes.values():
                index.remove(oldest)


class EarlierReleases:
    """The sources in a ledger, read when they are needed. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Known] = {}

    def sources(
        self,
        snapshot: Snapshot,
        owners: Iterable[str],
        dataset: str,
        version: str,
        unseen: Set[tuple[str, str]],
        *,
        described: Described,
        data: Mapping[str, Any],
        key: Hashable,
    ) -> list[Source]:
        """Give the sources of these analysts on a dataset in one version that can help a query, by their charges.

        `data` are the facts that the meaning of sums depends on, and `key` says which query of the analyst it is.
        """
        with ExitStack() as locks:
            indexes = list[tuple[SourceIndex, Set[int]]]()
            for owner in sorted(set(owners)):  # in one order, so that two threads never wait for each other
                known = self._known.setdefault((owner, dataset), _Known())
                locks.enter_context(known.lock)
                self._read(known, snapshot, owner, dataset, version, unseen)
                hidden = {known.names[name] for name in unseen if name in known.names}
                indexes.append((known.indexes.setdefault(version, SourceIndex()), hidden))
            stamp = tuple((id(index), index.changes, frozenset(hidden)) for index, hidden in indexes)
            return once(("sources", key, dumps(data), stamp), lambda: candidates(described, data, indexes), weigh=len)

    def _read(
        self,
        known: _Known,
        snapshot: Snapshot,
        owner: str,
        dataset: str,
        version: str,
        unseen: Set[tuple[str, str]],
    ) -> None:
        """Read the releases that are new; one that must not show yet is not looked at."""
        which = EntryFilter(kind="charge", analyst=owner, dataset=dataset)
        newest = list(islice(snapshot.entries(which, after=known.last, newest_first=True), MOST))
        if newest:
            known.last = newest[0].sequence
        for entry in reversed(newest):
            if not entry.key.startswith(f"{DERIVED} "):
                known.take(entry)
        for number, entry in list(known.waiting.items()):
            name = entry.analyst, entry.key.removesuffix(f" {entry.dataset}")
            if entry.version != version or name in unseen:
                continue
            body = snapshot.body(number)
            if body is None:
                continue  # still running, or it never ended
            del known.waiting[number]
            # a larger release has more cells than can be a source, and parsing it would take long
            small = len(body) <= LARGEST
            source = read_source(number, chunked_json.loads(body)["receipt"]) if small else None
            if source is not None:
                known.names[name] = number
                known.indexes.setdefault(version, SourceIndex()).add(source)


def read_source(number: int, receipt: Mapping[str, Any]) -> Source | None:
    """Read what a release measured, and the noise of each sum; None if it cannot be a source."""
    measured = receipt.get("measured")
    if measured is None or measured["form"] not in (FORMAT, CUBE_FORMAT):
        return None
    sets = len(measured.get("sets", ()))
    if "noises" in measured:
        noises = tuple(tuple(_sampled(from_facts(facts)) for facts in each) for each in measured["noises"])
    else:
        noises = tuple((_noise(draw),) * sets for draw in receipt["draws"][: len(measured["measures"])])
    facts = {name: value for name, value in measured.items() if name not in ("sums", "noises")}
    return Source(number, facts, noises)


def _noise(draw: Mapping[str, Any]) -> AnyNoise:
    if draw["kind"] == "public":
        return NoNoise()
    if draw["kind"] != "sum":
        raise AssertionError("only sums have a description")
    return _sampled(from_facts(draw["noise"]))


@lru_cache(maxsize=1024)
def _sampled(event: Event) -> AnyNoise:
    """Return the noise of an event: one object for equal ones, whose variance is computed once."""
    if isinstance(event, LaplaceEvent):
        return Laplace(sensitivity=event.sensitivity, scale=event.scale)
    if isinstance(event, GaussianEvent):
        return Gaussian(sensitivity_squared=event.sensitivity_squared, variance=event.variance)
    raise AssertionError("a sum has Laplace or Gaussian noise")


def measured_hash(receipt: Mapping[str, Any]) -> str:
    """Hash what a release measured, with its sums."""
    return sha256(canonical(receipt["measured"]).encode()).hexdigest()
