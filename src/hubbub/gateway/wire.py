"""Messages of the PostgreSQL protocol: reading them with limits, and writing them.

Tested in tests/gateway/test_wire.py.
"""

import asyncio
import struct
from collections.abc import Sequence

from hubbub.errors import ServerError

#: Protocol 3.0; the highest minor version that is spoken is 3.2.
MAJOR, MINOR = 3, 2
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
#: Maximum bytes of the first message, and of one that arrives before the client has signed in.
MAX_STARTUP = 10_000
MAX_UNKNOWN = 8192
#: Maximum bytes of one message afterwards, as of an HTTP request.
MAX_MESSAGE = 1 << 20
#: Seconds within which a message must arrive once it has begun.
MESSAGE_SECONDS = 30.0


def violation(what: str) -> ServerError:
    """Return the error for a client that does not follow the protocol."""
    return ServerError(
        "HB805", f"The client does not follow the PostgreSQL protocol: {what}.", "Use a PostgreSQL client."
    )


class Body:
    """The content of a message, read from the start to the end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self._at + size
        if size < 0 or end > len(self._content):
            raise violation("a message is too short")
        part = self._content[self._at : end]
        self._at = end
        return part

    def int16(self) -> int:
        """Return the next 16 bits as a signed number."""
        return int(struct.unpack(">h", self.take(2))[0])

    def int32(self) -> int:
        """Return the next 32 bits as a signed number."""
        return int(struct.unpack(">i", self.take(4))[0])

    def count(self) -> int:
        """Return the number of the items that follow."""
        number = self.int16() & 0xFFFF
        if number > len(self._content):
            raise violation("a message is too short")
        return number

    def text(self) -> str:
        """Return the next text, which a zero byte ends."""
        end = self._content.find(b"\0", self._at)
        if end < 0:
            raise violation("a text has no end")
        part = self._content[self._at : end]
        self._at = end + 1
        try:
            return part.decode()
        except UnicodeDecodeError:
            raise violation("a text is not UTF-8") from None

    def value(self) -> bytes | None:
        """Return the next value with its length; None for NULL."""
        size = self.int32()
        if size == -1:
            return None
        return self.take(size)

    def rest(self) -> bytes:
        """Return everything that is left."""
        return self.take(len(self._content) - self._at)

    def end(self) -> None:
        """Raise unless all was read."""
        if self._at != len(self._content):
            raise violation("a message is too long")


async def read_message(
    reader: asyncio.StreamReader, most: int, patience: float | None = None
) -> tuple[bytes, Body] | None:
    """Return the kind and the content of the next message, or None at the end of the stream.

    A message may take `patience` seconds to begin (None: any time), and `MESSAGE_SECONDS` to arrive.
    """
    try:
        async with asyncio.timeout(patience):
            kind = await reader.readexactly(1)
        async with asyncio.timeout(MESSAGE_SECONDS if patience is None else min(patience, MESSAGE_SECONDS)):
            size = struct.unpack(">i", await reader.readexactly(4))[0]
            if not 4 <= size <= most:
                raise violation(f"a message states a length of {size} bytes; the maximum is {most}")
            return kind, Body(await reader.readexactly(size - 4))
    except asyncio.IncompleteReadError:
        return None


async def read_startup(reader: asyncio.StreamReader) -> Body | None:
    """Return the content of a first message, which has no kind, or None at the end of the stream."""
    try:
        size = struct.unpack(">i", await reader.readexactly(4))[0]
        if not 8 <= size <= MAX_STARTUP:
            raise violation("the first message has an invalid length")
        return Body(await reader.readexactly(size - 4))
    except asyncio.IncompleteReadError:
        return None


def message(kind: bytes, content: bytes = b"") -> bytes:
    """Write a message."""
    return kind + struct.pack(">i", len(content) + 4) + content


def text(value: str) -> bytes:
    """Write a text, with a zero byte at its end."""
    return value.replace("\0", "").encode(errors="replace") + b"\0"


def fields(kind: bytes, values: dict[str, str]) -> bytes:
    """Write an error or a notice."""
    return message(kind, b"".join(name.encode() + text(value) for name, value in values.items()) + b"\0")


def ready(status: bytes) -> bytes:
    """Write ReadyForQuery."""
    return message(b"Z", status)


def parameter_status(name: str, value: str) -> bytes:
    """Write ParameterStatus."""
    return message(b"S", text(name) + text(value))


def complete(tag: str) -> bytes:
    """Write CommandComplete."""
    return message(b"C", text(tag))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """Write DataRow."""
    parts = [struct.pack(">h", len(values))]
    for value in values:
        parts.append(b"\xff\xff\xff\xff" if value is None else struct.pack(">i", len(value)) + value)
    return message(b"D", b"".join(parts))


PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
NO_DATA = message(b"n")
EMPTY_QUERY = message(b"I")
PORTAL_SUSPENDED = message(b"s")
COPY_DONE = message(b"c")
