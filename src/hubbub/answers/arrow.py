"""Releases as Arrow tables, and the files that hold them.

Tested in tests/answers/test_formats.py.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.answers.columns import Column, export
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.answers.release import Release

#: The Arrow type of each kind of column: the types depend on the kinds alone, not on the values.
_TYPES = {"boolean": "bool_", "integer": "int64", "real": "float64", "text": "string", "date": "date32"}
#: Endings of files, and so the formats that only files can have.
FILES = (".csv", ".parquet", ".arrow")


def to_arrow(release: Release, *, intervals: bool = True) -> Any:
    """Return a pyarrow Table with the receipt in its metadata; each noisy column is followed by its interval."""
    arrow = library("pyarrow")
    columns = release.flat(intervals=intervals)
    kinds = [arrow.timestamp("us") if c.kind == "timestamp" else getattr(arrow, _TYPES[c.kind])() for c in columns]
    arrays = [arrow.array(c.entries(), type=kind) for c, kind in zip(columns, kinds, strict=True)]
    metadata = {"hubbub": json.dumps(dict(release.receipt), ensure_ascii=False)}
    fields = [arrow.field(column.name, kind) for column, kind in zip(columns, kinds, strict=True)]
    return arrow.Table.from_arrays(arrays, schema=arrow.schema(fields, metadata=metadata))


def write_file(parts: Mapping[str, tuple[str, Sequence[Any]]], path: str | Path) -> None:
    """Write columns, by name with their kinds, to a file whose name ends in .csv, .parquet or .arrow."""
    file = Path(path)
    if file.suffix not in FILES:
        raise ParameterError(
            "HB126", f"{file.name} has no known format.", "Use a name that ends in .csv, .parquet or .arrow."
        )
    if file.suffix != ".arrow":
        export(parts, file)
        return
    arrow, feather = library("pyarrow"), library("pyarrow.feather")
    columns = [arrow.array(entries(values)) for _, values in parts.values()]
    feather.write_feather(arrow.table(columns, names=list(parts)), str(file))


def entries(values: Sequence[Any]) -> Any:
    """Return values as an array where they are one, and as a list otherwise."""
    if isinstance(values, Column) and not values.null.any():
        return values.array
    return list(values)


def library(name: str) -> Any:
    """Import an optional library."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ParameterError("HB130", f"{package} is not installed.", f"Run pip install {package}.") from None
