"""Partitioned folders of Parquet files (`hive`): which files there are now, and the columns that they have.

Tested in tests/engines/test_hive.py.
"""

import tempfile
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from hubbub.core.schema import Kind
from hubbub.engines import files
from hubbub.engines.base import FOLDER_TEXT, DataSource, Field
from hubbub.engines.duckdb.snapshot import Snapshot
from hubbub.engines.hive import LayoutError, MixedColumnsError, listed
from hubbub.errors import ConfigError

#: Reads the columns of a Parquet file.
Describe = Callable[[Path], tuple[Field, ...]]

#: Integers that a BIGINT can hold, and real numbers that a DOUBLE can hold.
_WIDER = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "BIGINT"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "DOUBLE"),
}


def read_folder(source: DataSource, describe: Describe) -> Snapshot:
    """List the files of a folder and read their columns, never a row.

    Theorem (One folder, one state). Two snapshots of a folder with the same fingerprint have the same rows.
    Proof    The fingerprint is a hash of the names of the partition columns and, for each file in the order of the
             paths, of its path and of a hash of its content. Rows, and the values of partition columns, are functions
             of these.
    Assumes  what `files.digest_of` assumes of large files; files with unchanged metadata have unchanged content.
    Charges  nothing: the columns of a table are its owner's declarations.
    Tested   tests/engines/test_hive.py::test_every_change_is_another_state
    """
    folder = source.path.resolve()
    listing = listed(folder)
    state = blake2b(repr(listing.keys).encode(), digest_size=32)
    found: dict[str, Field] = {}
    for part in listing.parts:
        path = folder / part.path
        now = files.signature_of(path)
        state.update(repr(part.path).encode() + _content(path, now))
        try:
            fields = _columns(path, now, describe)
        except ConfigError:
            raise LayoutError(
                "its folder has a file that is not readable Parquet", "Write the file again.", where=part.path
            ) from None
        for field in fields:
            found[field.name] = _merged(found.get(field.name, field), field, part.path)
    _check_names([*listing.keys, *found])
    if not listing.parts:
        raise LayoutError("its folder has no Parquet file", "Write the data first, or correct the path.")
    return Snapshot(
        (*found.values(), *(Field(key, FOLDER_TEXT, None) for key in listing.keys)),
        state.digest(),
        {name: field.type for name, field in found.items()},
        folder,
        tuple(part.path for part in listing.parts),
        listing.keys,
        tuple(part.values for part in listing.parts),
    )


@lru_cache(maxsize=1 << 16)
def _content(path: Path, signature: tuple[int, ...]) -> bytes:  # noqa: ARG001 - a file is hashed again if this changes
    """Hash a file, once for each state of it: an append hashes the new files alone."""
    return files.digest_of([path])


@lru_cache(maxsize=1 << 14)
def _columns(path: Path, signature: tuple[int, ...], describe: Describe) -> tuple[Field, ...]:  # noqa: ARG001
    """Read the footer of a file through a link with a plain name, because DuckDB would expand a `*` in its own."""
    with tempfile.TemporaryDirectory(prefix="hubbub-") as links:
        link = Path(links) / "part.parquet"
        link.symlink_to(path)
        return describe(link)


def _merged(one: Field, other: Field, path: str) -> Field:
    """Return a column that holds the values of two files."""
    if one.type == other.type:
        return one
    wider = _WIDER.get(one.type)
    if wider is None or wider != _WIDER.get(other.type):
        raise MixedColumnsError(
            f"its files have column {one.name} as {one.type} and as {other.type}",
            "Write all files with the same types.",
            where=path,
        )
    return Field(one.name, wider, Kind.INTEGER if wider == "BIGINT" else Kind.REAL, one.unfit or other.unfit)


def _check_names(names: list[str]) -> None:
    """Raise an error if a column is in the files and in the names of folders, or if names differ in case alone."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other is not name:
            raise MixedColumnsError(
                f"{other} and {name} are names of one column"
                if other != name
                else f"column {name} is in its files and in the names of its folders",
                "Write the files without the partition columns, and each column with one name.",
            )
