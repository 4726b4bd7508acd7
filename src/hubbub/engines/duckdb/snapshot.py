"""One state of a table in a folder of Parquet files (`delta`, `hive`), and how DuckDB reads exactly its files.

Tested in tests/engines/test_delta.py and tests/engines/test_hive.py.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from hubbub.core.list_columns import part_of
from hubbub.core.schema import Kind
from hubbub.engines.base import Field, UnreachableError, View, identifier

#: A month, which stands for its first day where a partition column is a date.
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of a table: its columns and files, with the text of each file's partition columns.

    read_types  the type that each column is read as; a partition column that is not there has the declared one
    paths       of the files, below the folder
    """

    fields: tuple[Field, ...]
    fingerprint: bytes = field(repr=False)
    read_types: Mapping[str, str] = field(repr=False)
    folder: Path
    paths: tuple[str, ...] = field(repr=False)
    partitioned_by: tuple[str, ...]
    partitions: tuple[tuple[str | None, ...], ...] = field(repr=False)

    def relation(
        self, view: View, links: Path, declared_types: Mapping[Kind, str]
    ) -> tuple[str, list[Path], dict[str, str]]:
        """Write the rows of a snapshot as SQL; return it with the files that it reads and the type of each column.

        Every file gets a link with a plain name in a private folder: the name of a file may hold a value of a column
        (`region=…`), and DuckDB would expand a `*` in it. The values of partition columns are not in the files, so the
        name of a link ends in the number of its values.
        """
        kinds = {(part_of(name) or (name,))[0]: kind for name, kind in view.columns}
        wanted = list(kinds)
        types = {name: self.read_types.get(name) or declared_types[kind] for name, kind in kinds.items()}
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
        # a column that was added later is NULL in older files; DuckDB wants one, also where none is read
        declared = declared or "'$none': {name: '$none', type: 'BOOLEAN', default_value: NULL}"
        # the name of the file must not be that of a column, which DuckDB would refuse once the charge is made
        file = unused("$file", stored)
        listed = ", ".join(_text(str(path)) for path in paths)
        shown = [identifier(name) for name in stored]
        for place, name in enumerate(self.partitioned_by):
            if name in wanted:
                texts = ", ".join(constant(key[place], kinds[name]) for key in values)
                text = f"CAST([{texts}] AS VARCHAR[])[CAST(substr({identifier(file)}, -17, 9) AS BIGINT)]"
                shown.append(f"TRY_CAST({text} AS {types[name]}) AS {identifier(name)}")
        how = f"hive_partitioning = false, filename = {_text(file)}, schema = MAP {{{declared}}}"
        source = f"read_parquet([{listed}], {how})"
        return f"(SELECT {', '.join(shown) or 'NULL'} FROM {source})", paths, types  # noqa: S608

    def _inside(self, entry: str) -> Path:
        """Return a file, which must be in the folder of the table."""
        path = (self.folder / entry).resolve()
        if not path.is_relative_to(self.folder):
            raise ValueError("a file of the table is outside of its folder")
        return path


#: For databases without tables in folders.
NO_SNAPSHOTS: Mapping[str, Snapshot] = MappingProxyType({})


def check_columns(snapshot: Snapshot, view: View) -> None:
    """Raise an error if a column that hubbub.yaml was read with is gone: in every file it would be NULL."""
    known = {each.name for each in snapshot.fields if each.kind is not None or each.element or each.untyped}
    if not known >= {(part_of(name) or (name,))[0] for name, _ in view.columns}:
        raise UnreachableError("its files lack a declared column", "Run: hubbub check")


def constant(value: str | None, kind: Kind) -> str:
    """Write the value of a partition column as a text that is cast to its type."""
    if value is None:
        return "NULL"
    return _text(f"{value}-01" if kind in (Kind.DATE, Kind.TIMESTAMP) and _MONTH.fullmatch(value) else value)


def unused(name: str, columns: Sequence[str]) -> str:
    """Lengthen a name until no column has it; DuckDB's names are not case-sensitive.

    >>> unused("$file", ["id", "$FILE"])
    '$file$'
    """
    taken = {column.lower() for column in columns}
    while name in taken:
        name += "$"
    return name


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
