"""What the machine has: memory and free disk space, as far as this process may use them.

Tested in tests/core/test_machine.py.
"""

import os
import shutil
from functools import cache
from pathlib import Path

#: Where the kernel tells how much memory a control group may use: version 2, version 1.
_CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_MB = 1_000_000


def memory() -> int:
    """Return the memory in MB that this process may use: the machine's, or less in a container."""
    return _memory(_CGROUPS)


@cache  # every plan asks for it, and it is read from files
def _memory(limits: tuple[Path, ...]) -> int:
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    sizes += [limit for path in limits if (limit := _limit(path)) is not None]
    return min(sizes) // _MB


def free_disk(folder: Path) -> int:
    """Return the free disk space in MB where a folder is."""
    return shutil.disk_usage(folder).free // _MB


def disk(folder: Path) -> int:
    """Return the size in MB of the disk where a folder is."""
    return shutil.disk_usage(folder).total // _MB


def _limit(path: Path) -> int | None:
    """Read a limit in bytes; None if there is none, which version 2 writes as "max"."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() and int(text) > 0 else None
