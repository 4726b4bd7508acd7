"""Folders of Parquet files whose names hold the values of columns: `visits/region=North/month=2026-01/0.parquet`.

Nothing here reads a file. Names in a folder are data, so what an analyst may see of an error (`why`) has none of them.

Tested in tests/engines/test_hive.py.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from hubbub.engines.base import UnreachableError

#: What Hive and Spark write for NULL.
NULL = "__HIVE_DEFAULT_PARTITION__"
#: More files than this take too long to list before every query.
MAX_FILES = 20_000
_MAX_DEPTH = 16


class LayoutError(UnreachableError):
    """A folder that cannot be read as one table; only the owner may see `where`."""

    def __init__(self, why: str, remedy: str, *, where: str = "") -> None:
        super().__init__(why, remedy)
        self.where = f": {where}" if where else ""


class MixedColumnsError(LayoutError):
    """Files and folders whose columns contradict each other."""


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """One file: its path below the folder, and the values of the partition columns, None for NULL."""

    path: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """The partition columns of a folder, from the outermost, and its files in the order of their paths."""

    keys: tuple[str, ...]
    parts: tuple[PartitionFile, ...]


def listed(folder: Path) -> Listing:
    """List the files of a folder, each with the values that the names of its folders hold.

    Every file has the same partition columns in the same order. Symbolic links are refused, so that no name leads out
    of the folder; a value is never used as a path. Names that begin with `_` or `.` are not data, as for Spark.
    """
    found: list[tuple[tuple[str, ...], PartitionFile]] = []
    waiting: list[tuple[str, tuple[tuple[str, str | None], ...]]] = [("", ())]
    while waiting:
        below, pairs = waiting.pop()
        for entry in _entries(folder / below):
            path = f"{below}/{entry.name}" if below else entry.name
            if entry.is_symlink():
                raise LayoutError("its folder has a symbolic link", "Replace links by files.", where=path)
            if entry.is_dir(follow_symlinks=False):
                waiting.append((path, (*pairs, _pair(entry.name, pairs, path))))
                continue
            if not entry.is_file(follow_symlinks=False) or Path(entry.name).suffix.lower() not in (".parquet", ".pq"):
                raise LayoutError(
                    "its folder has a file that is not Parquet",
                    "Keep only Parquet files there, with names that end in .parquet.",
                    where=path,
                )
            found.append((tuple(key for key, _ in pairs), PartitionFile(path, tuple(value for _, value in pairs))))
        if len(found) > MAX_FILES:
            raise LayoutError(f"its folder has more than {MAX_FILES:,} files", "Write fewer, larger files.")
    keys = found[0][0] if found else ()
    for other, part in found:
        if other != keys:
            raise LayoutError(
                "its files have different partition columns",
                "Give every file the same folders, such as month=2026-01, in the same order.",
                where=part.path,
            )
    return Listing(keys, tuple(sorted((part for _, part in found), key=lambda part: part.path)))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        found = list(entries)
    if any(each.name == "_delta_log" for each in found):
        raise LayoutError("its folder is a Delta Lake table", "Write delta: before the path.")
    hidden = {each.name for each in found if each.name[0] == "." or (each.name[0] == "_" and "=" not in each.name)}
    return [each for each in found if each.name not in hidden]


def _pair(name: str, pairs: tuple[tuple[str, str | None], ...], path: str) -> tuple[str, str | None]:
    """Read the name of a folder, in which other characters than letters and digits may be written as %2F."""
    key, equals, value = name.partition("=")
    if not key or not equals or not value:
        raise LayoutError(
            "a folder in it is not named column=value",
            "Name folders like month=2026-01, or move the files into one such folder.",
            where=path,
        )
    try:
        key, value = (unquote(text, errors="strict").encode().decode() for text in (key, value))
    except UnicodeError:
        key = "\0"
    if "\0" in key + value:
        raise LayoutError("the name of a folder in it is not UTF-8 text", "Rename it.", where=repr(path))
    # DuckDB's column names are not case-sensitive
    if len(pairs) >= _MAX_DEPTH or key.lower() in (other.lower() for other, _ in pairs):
        raise LayoutError(
            "a path in it has a partition column twice, or too many of them", "Remove one of its folders.", where=path
        )
    return key, None if value == NULL else value
