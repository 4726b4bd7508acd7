"""Delta Lake tables: one snapshot of the table's log says which Parquet files hold its rows, and DuckDB reads them.

The log is read by the package `deltalake`, and the files by DuckDB's own reader, so no extension is loaded and limits,
interrupts and locks are those of every Parquet file. A snapshot never changes, so a query cannot see half of a commit.

Tested in tests/engines/test_delta.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from hubbub.core.schema import Kind
from hubbub.engines.base import (
    LOOSE_COLLATION,
    DataSource,
    Field,
    UnreachableError,
    View,
    identifier,
    rounding_reason,
)
from hubbub.engines.duckdb.delta_log import read_log

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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table: its number, columns and files, with the text of each file's partition columns."""

    version: int
    fields: tuple[Field, ...]
    fingerprint: bytes = field(repr=False)
    read_types: Mapping[str, str] = field(repr=False)
    folder: Path
    paths: tuple[str, ...] = field(repr=False)
    partitioned_by: tuple[str, ...]
    partitions: tuple[tuple[str | None, ...], ...] = field(repr=False)

    def relation(self, view: View, links: Path) -> tuple[str, list[Path], dict[str, str]]:
        """Write the rows of a snapshot as SQL; return it with the files that it reads and the type of each column.

        Every file gets a link with a plain name in a private folder: the name of a file may hold a value of a column
        (`region=…`), and DuckDB would expand a `*` in it. The values of partition columns are in the log alone, so the
        name of a link is the number of its values.
        """
        wanted = [name for name, _ in view.columns]
        types = {name: self.read_types[name] for name in wanted}
        targets = [self._inside(path) for path in self.paths]
        if not targets:
            nothing = ", ".join(f"CAST(NULL AS {types[name]}) AS {identifier(name)}" for name in wanted)
            return f"(SELECT {nothing or 'NULL'} WHERE FALSE)", [], types
        values: dict[tuple[str | None, ...], int] = {}
        paths = []
        links.mkdir(mode=0o700)
        for place, (target, part) in enumerate(zip(targets, self.partitions, strict=True)):
            number = values.setdefault(part, len(values) + 1)
            paths.append(links / f"{place:09}-{number:09}.parquet")
            paths[-1].symlink_to(target)
        stored = [name for name in wanted if name not in self.partitioned_by]
        declared = ", ".join(
            f"{_text(name)}: {{name: {_text(name)}, type: {_text(types[name])}, default_value: NULL}}"
            for name in stored
        )
        # a column that was added later is NULL in older files
        how = f"schema = MAP {{{declared}}}" if stored else "union_by_name = true"
        listed = ", ".join(_text(str(path)) for path in paths)
        shown = [identifier(name) for name in stored]
        for place, name in enumerate(self.partitioned_by):
            if name in wanted:
                texts = ", ".join("NULL" if key[place] is None else _text(key[place] or "") for key in values)
                text = f"CAST([{texts}] AS VARCHAR[])[CAST(substr(filename, -17, 9) AS BIGINT)]"
                shown.append(f"TRY_CAST({text} AS {types[name]}) AS {identifier(name)}")
        source = f"read_parquet([{listed}], hive_partitioning = false, filename = true, {how})"
        return f"(SELECT {', '.join(shown) or 'NULL'} FROM {source})", paths, types  # noqa: S608

    def _inside(self, entry: str) -> Path:
        """Return the file of an entry of the log, which must be in the folder of the table."""
        path = (self.folder / unquote(entry.removeprefix("file://"))).resolve()
        if not path.is_relative_to(self.folder):
            raise ValueError("the log names a file outside of the folder of the table")
        return path


#: For databases without tables of Delta Lake.
NO_SNAPSHOTS: Mapping[str, Snapshot] = MappingProxyType({})


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
        log["version"],
        tuple(map(_field, log["columns"])),
        state.digest(),
        {each["name"]: _type_names(each["type"])[1] for each in log["columns"]},
        folder,
        tuple(log["paths"]),
        tuple(log["partitioned_by"]),
        tuple(map(tuple, log["partitions"])),
    )


def check_columns(snapshot: Snapshot, view: View) -> None:
    """Raise an error if a column that hubbub.yaml was read with is gone: in every file it would be NULL."""
    known = {each.name for each in snapshot.fields if each.kind is not None}
    if not known >= {name for name, _ in view.columns}:
        raise UnreachableError("its Delta Lake table lacks a declared column", "Run: hubbub check")


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


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
