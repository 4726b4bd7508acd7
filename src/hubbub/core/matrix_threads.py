"""How many threads of the linear algebra library compute: one, for whatever an answer follows from.

OpenBLAS splits a product over all cores. The last digits of its result depend on how many there are, and a search that
starts from them may end at other integers: the strategy for 1,024 running totals under Laplace noise did. Its
sensitivity, its event and its receipt would then depend on the number of cores. And where cores are busy, the parts
wait for each other by spinning: 0.2 s of work took 10 s.

Tested in tests/core/test_matrix_threads.py.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

_PREFIXES, _SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "")


@dataclass(frozen=True)
class _Library:
    get: Callable[[], int]
    set: Callable[[int], None]


@dataclass
class _Users:
    """How many calls want one thread now, and how many threads each library had before."""

    count: int = 0
    before: tuple[int, ...] = ()


_lock = Lock()
_users = _Users()


def limit() -> None:
    """Use one thread from now on."""
    for library in _libraries():
        library.set(1)


@contextmanager
def one_matrix_thread() -> Iterator[None]:
    """Use one thread until the end. Other threads of the process get one as well, for so long."""
    with _lock:
        if not _users.count:
            _users.before = tuple(library.get() for library in _libraries())
            limit()
        _users.count += 1
    try:
        yield
    finally:
        with _lock:
            _users.count -= 1
            if not _users.count:
                for library, threads in zip(_libraries(), _users.before, strict=True):
                    library.set(threads)


@cache  # it reads a list of all files that the process has mapped
def _libraries() -> tuple[_Library, ...]:
    """Find the libraries that are loaded; none where the system does not list them."""
    import numpy  # noqa: F401 - loads its library

    maps = ""
    with suppress(OSError):
        maps = Path("/proc/self/maps").read_text()
    return tuple(found for path in _paths(maps) if (found := _library(path)) is not None)


def _paths(maps: str) -> list[str]:
    """List the files with OpenBLAS among those that a process has mapped.

    >>> _paths("7f0-7f1 r-xp 00000000 fe:00 12   /opt/my libraries/libscipy_openblas64_.so")
    ['/opt/my libraries/libscipy_openblas64_.so']
    """
    mapped = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "openblas" in line}
    return sorted(path for path in mapped if not path.endswith(" (deleted)"))


def _library(path: str) -> _Library | None:
    try:
        loaded = ctypes.CDLL(path)
    except OSError:  # the file was replaced
        return None
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            names = [f"{prefix}_{what}_num_threads{suffix}" for what in ("get", "set")]
            if all(hasattr(loaded, name) for name in names):
                return _Library(*(getattr(loaded, name) for name in names))
    return None
