"""COPY … TO STDOUT: rows as text, CSV, or binary.

Tested in tests/gateway/test_copy.py.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from hubbub.gateway import wire
from hubbub.gateway.result import PgColumns
from hubbub.gateway.statements import Copy
from hubbub.gateway.values import encode_binary, encode_text

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_END = struct.pack(">h", -1)
_ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\b": r"\b", "\f": r"\f", "\v": r"\v"}


def response(copy: Copy, columns: PgColumns, rows: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    """Write the messages of a response."""
    binary = copy.form == "binary"
    forms = struct.pack(">bh", binary, len(columns)) + struct.pack(">h", binary) * len(columns)
    yield wire.message(b"H", forms)
    for line in _binary(columns, rows) if binary else _lines(copy, columns, rows):
        yield wire.message(b"d", line)
    yield wire.COPY_DONE


def _binary(columns: PgColumns, rows: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    start = _SIGNATURE  # in one message with the first row, because clients expect it there
    kinds = [kind for _, kind in columns]
    for row in rows:
        values = [encode_binary(value, kind) for value, kind in zip(row, kinds, strict=True)]
        parts = [b"\xff\xff\xff\xff" if each is None else struct.pack(">i", len(each)) + each for each in values]
        yield start + struct.pack(">h", len(parts)) + b"".join(parts)
        start = b""
    yield start + _END


def _lines(copy: Copy, columns: PgColumns, rows: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    if copy.header:
        yield _line(copy, [name for name, _ in columns], force=False)
    for row in rows:
        texts = [None if value is None else (encode_text(value) or b"").decode() for value in row]
        yield _line(copy, texts, force=copy.force_quote)


def _line(copy: Copy, texts: Sequence[str | None], *, force: bool) -> bytes:
    csv = copy.form == "csv"
    cells = [
        copy.null if text is None else _csv(copy, text, force=force) if csv else _text(copy, text) for text in texts
    ]
    return (copy.delimiter.join(cells) + "\n").encode(errors="replace")


def _text(copy: Copy, text: str) -> str:
    escapes = {ord(char): written for char, written in ({copy.delimiter: "\\" + copy.delimiter} | _ESCAPES).items()}
    return text.translate(escapes)


def _csv(copy: Copy, text: str, *, force: bool) -> str:
    special = {copy.delimiter, copy.quote, "\n", "\r"}
    if not (force or text == copy.null or text == r"\." or set(text) & special):
        return text
    inner = text.replace(copy.escape, copy.escape * 2) if copy.escape != copy.quote else text
    return copy.quote + inner.replace(copy.quote, copy.escape + copy.quote) + copy.quote
