"""Delta Lake tables: one snapshot of the table's log says which Parquet files hold its rows, and DuckDB reads them.

The log is read by the package `deltalake`, and the files by DuckDB's own reader, so no extension is loaded and limits,
interrupts and locks are those of every Parquet file. A snapshot never changes, so a query cannot see half of a commit.

Tested in tests/engines/test_delta.py.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote

from hubbub.core.schema import Kind
from hubbub.engines.base import (
    LOOSE_COLLATION,
    DataSource,
    Field,
    UnreachableError,
    rounding_reason,
)
from hubbub.engines.duckdb.delta_log import read_log
from hubbub.engines.duckdb.snapshot import Snapshot

#: Delta's types: the name in DuckDB, the type that files are read as, and the kind. Files may hold a narrower integer
#: than the log declares, never a wider one; the widest type cannot overflow in the reader, whatever they hold.
_TYPES: Mapping[str, tuple[str, str, Kind]] = {
    "byte": ("TINYINT", "BIGINT", Kind.INTEGER),
    "short": ("SMALLINT", "BIGINT", Kind.INTEGER),
    "integer": ("INTEGER", "BIGINT", Kind.INTEGER),
    "long": ("BIGINT", "BIGINT", Kind.INTEGER),
    "float": ("FLOAT", "DOUBLE", Kind.REAL),
    "double": ("DOUBLE", "DOUBLE", Kind.REAL),
    "boolean": ("BOOLEAN", "BOOLEAN", Kind.BOOLEAN),
    "string": ("VARCHAR", "VARCHAR", Kind.TEXT),
    "date": ("DATE", "DATE", Kind.DATE),
    "timestamp": ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE", Kind.TIMESTAMP),
    "timestamp_ntz": ("TIMESTAMP", "TIMESTAMP", Kind.TIMESTAMP),
}
#: Features of tables that change nothing about how the Parquet files are read.
_READABLE = frozenset({"columnMapping", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_REMEDY = (
    "Switch the feature off and rewrite the table, or read it with Spark: spark:sc://host:15002/catalog.schema.table."
)


def read_snapshot(source: DataSource) -> Snapshot:
    """Read the newest version of a table from its log, never a row.

    Theorem (One number, one state). Two snapshots with the same fingerprint have the same rows.
    Proof    A commit of Delta Lake is one new file of the log, whose number is the version; files of data are never
             changed. The fingerprint holds the identifier of the table, the version, and the bytes of the newest file
             of the log: commits name new files at random, so a table that was restored from a backup and went on
             differently has other bytes under the same number.
    Assumes  nothing but Delta Lake writes to the folder.
    Charges  nothing: the protocol and columns of a table are its owner's declarations.
    Tested   tests/engines/test_delta.py::test_every_commit_is_a_version
             tests/engines/test_delta.py::test_a_table_in_the_place_of_another_is_another_version
    """
    folder = source.path.resolve()
    log = read_log(folder)
    _check_protocol(log["reader"], log["features"], log["configuration"])
    state = blake2b(f"delta {log['id']} {log['version']} ".encode(), digest_size=32)
    commit = folder / "_delta_log" / f"{log['version']:020}.json"
    if commit.exists():  # the log is cleaned up behind its checkpoints
        state.update(commit.read_bytes())
    return Snapshot(
        tuple(map(_field, log["columns"])),
        state.digest(),
        {each["name"]: _type_names(each["type"])[1] for each in log["columns"]},
        folder,
        tuple(unquote(path.removeprefix("file://")) for path in log["paths"]),
        tuple(log["partitioned_by"]),
        tuple(map(tuple, log["partitions"])),
    )


def _check_protocol(version: int, features: Any, configuration: Mapping[str, str | None]) -> None:
    """Raise an error if the rows of a table are not simply those of its files."""
    unknown = sorted(set(features) - _READABLE)
    if configuration.get("delta.columnMapping.mode", "none") not in (None, "none"):
        unknown.append("columnMapping")
    if unknown or version > 3:
        what = f"the feature {unknown[0]}" if unknown else f"version {version} of the protocol for readers"
        raise UnreachableError(f"its Delta Lake table uses {what}, which hubbub does not read", _REMEDY)


def _field(column: Mapping[str, Any]) -> Field:
    name, kind = str(column["name"]), column["type"]
    shown, _ = _type_names(kind)
    known = _TYPES.get(kind) if isinstance(kind, str) else None
    found = known[2] if known is not None else Kind.REAL if shown.startswith("DECIMAL") else None
    # Delta Lake notes the collation of a text beside its type
    loose = "__COLLATIONS" in (column.get("metadata") or {})
    return Field(name, shown, found, LOOSE_COLLATION if loose else rounding_reason(shown))


def _type_names(kind: object) -> tuple[str, str]:
    """Return DuckDB's name of a type of Delta Lake, and the type that files are read as."""
    if not isinstance(kind, str):
        return "STRUCT", "STRUCT"
    if kind.startswith("decimal"):
        return kind.upper(), kind.upper()
    shown, read, _ = _TYPES.get(kind, (kind.upper(), kind.upper(), None))
    return shown, read
