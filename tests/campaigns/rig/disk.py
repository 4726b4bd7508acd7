"""Simulate power failures: record the writes of a real run, then rebuild files that a power failure could leave.

`kill -9` proves little about durability, because the page cache outlives the process. Here a run is recorded by strace
(every write with its bytes, every sync, rename and unlink, in order), and the files are rebuilt as they could stand on
disk had the power failed at a given moment. Everything that a finished fsync covers is present. Of the rest, every
512-byte sector, every file size and every name in the folder has, independently, any of its versions since its last
sync, so writes are dropped, torn and reordered. This is more hostile than a journaling file system, which keeps the
order of names and sizes. SQLite's -shm file is ignored: it is shared memory, rebuilt when it is opened first.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes passed to the kernel between two moments; if `data` is None, the size is set instead."""

    begun: int
    ended: int
    offset: int
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Sync:
    """An fsync: writes that ended before it began are on disk once it ends."""

    begun: int
    ended: int


@dataclass(slots=True)
class Inode:
    """A file without its names: its writes, its syncs, and its size as seen by the process."""

    writes: list[Write] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    size: int = 0

    def write(self, write: Write) -> None:
        self.writes.append(write)
        self.size = write.offset if write.data is None else max(self.size, write.offset + len(write.data))


#: Chooses how many of n versions after the last synced one reach the disk.
Choice = Callable[[int], int]


@dataclass(slots=True)
class Recording:
    """Everything a run did to one folder, and what it acknowledged in the file `acks` outside of it."""

    moments: int = 0
    names: dict[str, list[tuple[int, Inode | None]]] = field(default_factory=dict)
    folder_syncs: list[Sync] = field(default_factory=list)
    acks: list[tuple[int, str]] = field(default_factory=list)

    def acknowledged(self, cut: int) -> list[str]:
        """Return what the process had acknowledged before the failure."""
        return [text for moment, text in self.acks if moment <= cut]

    def as_left(self) -> dict[str, bytes]:
        """Return the files without any loss: equal to the files on disk if the recording is right."""
        newest = {name: versions[-1][1] for name, versions in self.names.items()}
        return {name: _content(inode, self.moments, lambda pending: pending) for name, inode in newest.items() if inode}

    def rebuild(self, cut: int, chance: random.Random, into: Path) -> None:
        """Write the folder as a power failure at this moment could leave it."""
        choose = _fashion(chance)
        synced = _synced(self.folder_syncs, cut)
        for name, versions in self.names.items():
            past = [(moment, inode) for moment, inode in versions if moment <= cut]
            safe = sum(moment <= synced for moment, _ in past)
            kept = safe + choose(len(past) - safe)
            inode = past[kept - 1][1] if kept else None
            if inode is not None:
                (into / name).write_bytes(_content(inode, cut, choose))


def _fashion(chance: random.Random) -> Choice:
    """Choose how a disk fails: it loses everything, little, or random parts."""
    loss = chance.choice((0.0, 0.02, 0.5, 0.5, 0.98, 1.0))

    def choose(pending: int) -> int:
        if pending == 0 or chance.random() < loss:
            return chance.randrange(pending) if pending and loss < 1 else 0
        return pending

    return choose


def _synced(syncs: Sequence[Sync], cut: int) -> int:
    return max((sync.begun for sync in syncs if sync.ended <= cut), default=-1)


def _content(inode: Inode, cut: int, choose: Choice) -> bytes:
    synced = _synced(inode.syncs, cut)
    past = [write for write in inode.writes if write.begun <= cut]
    content = bytearray()
    for write in past:
        if write.ended <= synced:
            _apply(content, write)
    pending = [write for write in past if write.ended > synced]
    sizes = list(_sizes(len(content), pending))
    sizes_left = choose(sum(before != after for before, after in sizes))
    touched: dict[int, int] = {}
    for write in pending:
        for sector, _, _ in _sectors(write):
            touched[sector] = touched.get(sector, 0) + 1
    versions_left = {sector: choose(count) for sector, count in touched.items()}
    for write, (before, after) in zip(pending, sizes, strict=True):
        if before != after and sizes_left:
            sizes_left -= 1
            _resize(content, after)
        for sector, start, data in _sectors(write):
            if versions_left[sector]:
                versions_left[sector] -= 1
                fits = max(0, len(content) - start)
                content[start : start + len(data)] = data[:fits]
    return bytes(content)


def _sizes(size: int, writes: Sequence[Write]) -> Iterator[tuple[int, int]]:
    for write in writes:
        after = write.offset if write.data is None else max(size, write.offset + len(write.data))
        yield size, after
        size = after


def _sectors(write: Write) -> Iterator[tuple[int, int, bytes]]:
    data = write.data or b""
    start = write.offset
    while data:
        room = SECTOR - start % SECTOR
        yield start // SECTOR, start, data[:room]
        start, data = start + room, data[room:]


def _resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def _apply(content: bytearray, write: Write) -> None:
    if write.data is None:
        _resize(content, write.offset)
        return
    end = write.offset + len(write.data)
    if len(content) < end:
        _resize(content, end)
    content[write.offset : end] = write.data
