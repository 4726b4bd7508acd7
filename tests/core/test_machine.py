"""Limits of a container, as the kernel writes them."""

import os
from pathlib import Path

import pytest

from hubbub.core import machine


def whole_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1_000_000


@pytest.mark.parametrize(
    ("written", "megabytes"),
    [
        ("2000000000\n", 2000),
        ("max\n", None),
        ("9223372036854771712\n", None),
        ("", None),
        ("-1", None),
        ("\xff", None),
    ],
)
def test_memory_is_that_of_the_container_if_it_is_limited(
    written: str, megabytes: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(written, encoding="latin-1")
    monkeypatch.setattr(machine, "_CGROUPS", (limit, tmp_path / "absent"))
    assert machine.memory() == (whole_machine() if megabytes is None else megabytes)


def test_disk_space_is_that_of_the_folder(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    assert machine.free_disk(tmp_path) == pytest.approx(disk.f_bavail * disk.f_frsize / 1e6, rel=0.05)
