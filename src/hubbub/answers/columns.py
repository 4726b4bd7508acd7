"""Columns of large answers as arrays, and their stored form: compressed columns in the Parquet format.

A large answer has no Python object per cell: its columns are arrays from the noise to the file, and cells become
objects when they are read. Small answers are lists and JSON, as ever.

Tested in tests/answers/test_columns.py.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hubbub.core import deadline

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    from numpy.typing import NDArray

#: The stored form of an answer whose columns are a Parquet file.
FORM = "parquet 1"
#: Cells that become objects in one step.
_STEP = 1 << 14
#: The type of each kind of column in the file.
TYPES = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


class Column(Sequence[Any]):
    """The cells of a long column: an array in which NaN and masked entries are None, or texts and None."""

    __slots__ = ("array",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self._plain(self.array[place]) if isinstance(place, slice) else self._plain(self.array[[place]])[0]

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), _STEP):
            deadline.check()
            yield from self[start : start + _STEP]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"<{len(self):,} cells: {shown}{', …' if len(self) > 3 else ''}>"

    @property
    def null(self) -> NDArray[np.bool_]:
        """Which cells are None."""
        import numpy as np  # here, because the light client does without

        masked: NDArray[np.bool_] = np.ma.getmaskarray(self.array)
        data: NDArray[Any] = np.ma.getdata(self.array)
        match data.dtype.kind:
            case "f":
                masked = masked | np.isnan(data)
            case "M":
                masked = masked | np.isnat(data)
            case "O":
                masked = masked | np.asarray(data == None, dtype=bool)  # noqa: E711 - of every entry
        return masked

    def _plain(self, part: NDArray[Any]) -> list[Any]:
        import numpy as np

        null, data = Column(part).null, np.ma.getdata(part)
        if not null.any():
            return list(data.tolist())
        objects = data.astype(object)
        objects[null] = None
        return list(objects.tolist())


def numbers(values: NDArray[Any]) -> Column:
    """Make a column of real numbers; NaN and infinite ones become None."""
    import numpy as np

    plain = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    return Column(np.where(np.isfinite(plain), plain, np.nan))


def pack(parts: Mapping[str, tuple[str, Sequence[Any]]]) -> str:
    """Write columns, each of a kind, as a Parquet file in base64."""
    import numpy as np

    arrays: dict[str, NDArray[Any]] = {}
    outputs = []
    for name, (kind, values) in parts.items():
        column = values if isinstance(values, Column) else Column(np.array(list(values), dtype=object))
        null, data = column.null, np.ma.getdata(column.array)
        value = f'CAST("{name}" AS {TYPES[kind]})'
        if data.dtype.kind == "M":
            dated = kind == "date"
            data = data.astype("datetime64[D]" if dated else "datetime64[us]").astype(np.int64)
            data[null] = 0
            value = f"DATE '1970-01-01' + CAST(\"{name}\" AS INTEGER)" if dated else f'make_timestamp("{name}")'
        arrays[name] = data
        if null.any() and data.dtype != object:
            arrays[f"{name}?"] = null
            value = f'CASE WHEN "{name}?" THEN NULL ELSE {value} END'
        outputs.append(f'{value} AS "{name}"')
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.parquet"
        connection = _database()
        try:
            connection.register("columns", arrays)
            options = "FORMAT parquet, COMPRESSION zstd"
            text = f"SELECT {', '.join(outputs)} FROM columns"  # noqa: S608 - names are those of this file
            connection.execute(f"COPY ({text}) TO {_quoted(path)} ({options})")
        finally:
            connection.close()
        return base64.b64encode(path.read_bytes()).decode()


def unpack(packed: str, kinds: Mapping[str, str]) -> dict[str, Column]:
    """Read the columns of such a file; raise ValueError if it has others, or of other types."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.parquet"
        path.write_bytes(base64.b64decode(packed, validate=True))
        connection = _database()
        try:
            described = connection.execute(f"DESCRIBE FROM read_parquet({_quoted(path)})").fetchall()
            if {name: kind for name, kind, *_ in described} != {name: TYPES[kind] for name, kind in kinds.items()}:
                raise ValueError("the file has other columns than the answer")
            arrays: Mapping[str, Any] = connection.execute(f"FROM read_parquet({_quoted(path)})").fetchnumpy()
        finally:
            connection.close()
    return {name: _read(arrays[name], kind) for name, kind in kinds.items()}


def export(parts: Mapping[str, tuple[str, Sequence[Any]]], path: Path) -> None:
    """Write columns to a CSV or Parquet file."""
    options = "HEADER, DELIMITER ','" if path.suffix == ".csv" else "FORMAT parquet, COMPRESSION zstd"
    names = dict(zip((f"c{place}" for place in range(len(parts))), parts, strict=True))
    packed = pack({place: parts[name] for place, name in names.items()})
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "answer.parquet"
        source.write_bytes(base64.b64decode(packed))
        outputs = ", ".join(f'{place} AS "{name.replace(chr(34), chr(34) * 2)}"' for place, name in names.items())
        connection = _database()
        try:
            text = f"SELECT {outputs} FROM read_parquet({_quoted(source)})"  # noqa: S608 - names are quoted
            connection.execute(f"COPY ({text}) TO {_quoted(path)} ({options})")
        finally:
            connection.close()


def _read(array: NDArray[Any], kind: str) -> Column:
    import numpy as np

    if kind == "real":
        return numbers(array)
    if kind == "text":
        texts = np.ma.getdata(array).astype(object)
        texts[np.ma.getmaskarray(array)] = None
        return Column(texts)
    if kind == "date":
        array = array.astype("datetime64[D]")
    return Column(array if np.ma.getmaskarray(array).any() else np.ma.getdata(array))


def _database() -> duckdb.DuckDBPyConnection:
    import duckdb  # here, because most answers are short

    connection = duckdb.connect(":memory:", config={"python_enable_replacements": False})
    # objects are texts, whatever the first ones look like
    connection.execute("SET pandas_analyze_sample = 0")
    connection.execute("SET enable_progress_bar = false")
    return connection


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
