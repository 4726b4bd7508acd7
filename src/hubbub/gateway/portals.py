"""Prepared statements, portals, and the messages that describe and carry their rows.

Tested in tests/gateway/test_session.py.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.gateway import statements, wire
from hubbub.gateway.result import PgColumns, PgResult
from hubbub.gateway.values import BINARY, STRING, Parameter, encode_binary, encode_text

Row = tuple[Any, ...]
Parameters = tuple[Parameter, ...]


@dataclass(eq=False)
class Prepared:
    """A prepared statement; `columns` are those that the client was told, if it asked."""

    text: str
    statement: statements.Statement | None
    kinds: Sequence[int]
    columns: PgColumns | None = None
    described: bool = False


@dataclass(eq=False)
class Portal:
    """A statement with its parameters, and as much of its result as was not sent yet."""

    prepared: Prepared
    parameters: Parameters = ()
    formats: Sequence[int] = ()
    columns: PgColumns | None = None
    result: PgResult | None = None
    sent: int = 0


def show_columns(statement: statements.Show) -> PgColumns:
    """Name the columns of SHOW."""
    names = ("name", "setting", "description") if statement.name == "all" else (statement.name,)
    return tuple((name, STRING) for name in names)


def _format(formats: Sequence[int], place: int) -> int:
    return 0 if not formats else formats[0] if len(formats) == 1 else formats[place] if place < len(formats) else 0


def describe_rows(columns: PgColumns | None, formats: Sequence[int]) -> bytes:
    """Write the description of rows, or that there are none."""
    if columns is None:
        return wire.NO_DATA
    parts = [struct.pack(">h", len(columns))]
    for place, (name, kind) in enumerate(columns):
        facts = struct.pack(">IhIhih", 0, 0, kind.oid, kind.size, -1, _format(formats, place))
        parts.append(wire.text(name) + facts)
    return wire.message(b"T", b"".join(parts))


def data_rows(rows: Sequence[Row], columns: PgColumns, formats: Sequence[int]) -> Iterable[bytes]:
    """Write rows, each column in its format."""
    binary = [_format(formats, place) == BINARY for place in range(len(columns))]
    if not any(binary):
        for row in rows:
            yield wire.data_row([encode_text(value) for value in row])
        return
    kinds = [kind for _, kind in columns]
    for row in rows:
        yield wire.data_row(
            [
                encode_binary(value, kind) if wanted else encode_text(value)
                for value, kind, wanted in zip(row, kinds, binary, strict=True)
            ]
        )
