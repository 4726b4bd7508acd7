"""Earlier releases whose noisy sums other answers can be derived from, as the ledger has them.

Which releases there are is looked up for each analyst apart: how long it takes, and what is kept, depends on the
charges of those whose releases the analyst may see, and on nobody else's. Tested in tests/curator/test_reuse.py.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from threading import Lock
from typing import Any

from hubbub.accounting.chain import Entry, canonical
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.core import chunked_json
from hubbub.core.events import Event, GaussianEvent, LaplaceEvent, from_facts
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.measured import CUBE_FORMAT, FORMAT
from hubbub.sql.noise import AnyNoise, NoNoise
from hubbub.sql.terms import Source

#: How many charges of an analyst on a dataset are looked at, the newest first.
MOST = 1_000
#: Maximum number of bytes of a release that is a source.
LARGEST = 8_000_000
#: Keys of derived answers start with this word.
DERIVED = "derived"


@dataclass
class _Known:
    """The charges of one analyst on one dataset, and what their releases measured, once it was read."""

    last: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)
    sources: dict[int, Source | None] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)  #: of these charges alone: nobody waits for what others read


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
    ) -> list[Source]:
        """Give the sources of these analysts on a dataset in one version, in the order of their charges."""
        found: list[Source] = []
        for owner in owners:
            known = self._known.setdefault((owner, dataset), _Known())
            with known.lock:
                found += self._of(known, snapshot, owner, dataset, version, unseen)
        return sorted(found, key=lambda source: source.number)

    def _of(
        self,
        known: _Known,
        snapshot: Snapshot,
        owner: str,
        dataset: str,
        version: str,
        unseen: Set[tuple[str, str]],
    ) -> Iterable[Source]:
        which = EntryFilter(kind="charge", analyst=owner, dataset=dataset)
        newest = list(islice(snapshot.entries(which, after=known.last, newest_first=True), MOST))
        if newest:
            known.last = newest[0].sequence
        for entry in reversed(newest):
            if not entry.key.startswith(f"{DERIVED} "):
                known.entries[entry.sequence] = entry
        while len(known.entries) > MOST:
            oldest = next(iter(known.entries))
            del known.entries[oldest]
            known.sources.pop(oldest, None)
        for number, entry in known.entries.items():
            hidden = (entry.analyst, entry.key.removesuffix(f" {entry.dataset}")) in unseen
            if entry.version != version or hidden:
                continue
            if number not in known.sources:
                body = snapshot.body(number)
                if body is None:
                    continue  # still running, or it never ended
                # a larger release has more cells than can be a source, and parsing it would take long
                small = len(body) <= LARGEST
                known.sources[number] = read_source(number, chunked_json.loads(body)["receipt"]) if small else None
            source = known.sources[number]
            if source is not None:
                yield source


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


def _sampled(event: Event) -> AnyNoise:
    if isinstance(event, LaplaceEvent):
        return Laplace(sensitivity=event.sensitivity, scale=event.scale)
    if isinstance(event, GaussianEvent):
        return Gaussian(sensitivity_squared=event.sensitivity_squared, variance=event.variance)
    raise AssertionError("a sum has Laplace or Gaussian noise")


def measured_hash(receipt: Mapping[str, Any]) -> str:
    """Hash what a release measured, with its sums."""
    return sha256(canonical(receipt["measured"]).encode()).hexdigest()
