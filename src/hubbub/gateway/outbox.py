"""Messages to a client that wait to be written.

Tested in tests/gateway/test_session.py.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

#: Bytes that are written before the client has to read.
_CHUNK = 1 << 16
#: Seconds within which a client has to read what was written.
WRITE_SECONDS = 60.0


@dataclass
class Outbox:
    """What is to be written, in parts."""

    writer: asyncio.StreamWriter
    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, part: bytes) -> None:
        """Add a message."""
        self.parts.append(part)
        self.size += len(part)

    async def flush(self) -> None:
        """Write everything; wait until the client reads."""
        if self.parts:
            if self.writer.is_closing():  # a closed TLS transport fails in its own way when it is written to
                raise ConnectionResetError
            self.writer.write(b"".join(self.parts))
            self.parts.clear()
            self.size = 0
            async with asyncio.timeout(WRITE_SECONDS):
                await self.writer.drain()

    async def add_all(self, parts: Iterable[bytes]) -> None:
        """Add many messages, writing as they come."""
        for part in parts:
            self.add(part)
            if self.size > _CHUNK:
                await self.flush()
                await asyncio.sleep(0)
