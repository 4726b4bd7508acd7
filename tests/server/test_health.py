"""/readyz writes for real, answers in time, and recovers: from a full disk, and from a PostgreSQL that was away."""

import asyncio
import errno
import os
import subprocess
import time
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.postgres_server import Server
from tests.fixtures.server_config import ServerFolder

from hubbub.server import health
from hubbub.server.health import Readiness, scratch
from hubbub.server.service import Service


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """Fill a disk to the last byte."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
                without_end(file, size)
    return path


def without_end(file: RawIOBase, size: int) -> None:
    while file.write(b"x" * size):
        pass


def looked(readiness: Readiness) -> tuple[dict[str, bool], float]:
    begun = time.monotonic()
    found = asyncio.run(readiness.check())
    return found, time.monotonic() - begun


def until(readiness: Readiness, *, ready: bool, seconds: float) -> float:
    """Ask until it is ready (or not), at most so long; give the seconds that took. Every answer comes within 2 s."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        found, taken = looked(readiness)
        assert taken < 2.0
        if found["ready"] == ready:
            return time.monotonic() - begun
        time.sleep(0.1)
    raise AssertionError(f"ready is not {ready} after {seconds} s: {found}")


def test_a_full_disk_is_not_ready_and_one_with_room_is_again(small_disk: Path) -> None:
    town = ServerFolder(small_disk / "town")
    service = Service.open(town.config)
    try:
        readiness = Readiness(service)
        until(readiness, ready=True, seconds=20)
        filler = fill(small_disk)
        until(readiness, ready=False, seconds=10)
        time.sleep(health._WRITTEN_HOLDS + health._HOLDS)  # by now the ledger's disk was tried too
        found, _ = looked(readiness)
        assert (found["ledger"], found["state"]) == (False, False)
        filler.unlink()
        until(readiness, ready=True, seconds=5)
        assert service.current.curator.ledger.verify().sound
    finally:
        service.close()


def test_a_disk_is_written_to_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def noted(file: int) -> None:
        synced.append(os.fstat(file).st_size)
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    scratch(tmp_path)
    assert synced == [health._SCRATCH]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
def test_whatever_a_disk_says_nothing_is_left(tmp_path: Path, kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(kind, os.strerror(kind))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=os.strerror(kind)):
        scratch(tmp_path)
    assert not list(tmp_path.iterdir())


def test_probing_often_costs_one_look_a_second(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    readiness = Readiness(app.service)
    looks: list[float] = []
    ledger = readiness._ledger

    def noted() -> bool:
        looks.append(time.monotonic())
        return ledger()

    monkeypatch.setattr(readiness, "_ledger", noted)

    async def many() -> None:
        await asyncio.gather(*(readiness.check() for _ in range(200)))

    asyncio.run(many())
    asyncio.run(many())
    assert len(looks) == 1


def test_without_its_postgresql_it_answers_within_two_seconds_and_recovers_within_five(tmp_path: Path) -> None:
    with Server() as server:
        server.run("CREATE DATABASE ready")
        town = ServerFolder(tmp_path / "town", dsn=server.dsn("ready"))
        service = Service.open(town.config)
        try:
            readiness = Readiness(service)
            until(readiness, ready=True, seconds=20)
            for crash in (False, True):
                server.stop(crash=crash)
                until(readiness, ready=False, seconds=5)
                for _ in range(3):
                    found, taken = looked(readiness)
                    assert taken < 2.0
                    assert not found["ready"]
                server.start()
                until(readiness, ready=True, seconds=5)
            assert service.current.curator.ledger.verify().sound
        finally:
            service.close()
