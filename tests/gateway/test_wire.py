"""Messages: what is too short, too long or no text is refused, and nothing is read beyond its limit."""

import asyncio
import struct

import pytest

from hubbub.errors import ServerError
from hubbub.gateway import wire
from hubbub.gateway.wire import Body


def read(content: bytes, most: int = 100) -> tuple[bytes, Body] | None:
    async def run() -> tuple[bytes, Body] | None:
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        return await wire.read_message(reader, most, 1.0)

    return asyncio.run(run())


def test_a_message_is_read_as_it_was_written() -> None:
    received = read(wire.message(b"Q", wire.text("SELECT 1")))
    assert received is not None
    kind, body = received
    assert (kind, body.text()) == (b"Q", "SELECT 1")
    body.end()


@pytest.mark.parametrize("size", [3, 101, 2**31 - 1, -1, -(2**31)])
def test_a_length_that_cannot_be_right_is_refused_before_anything_is_kept(size: int) -> None:
    with pytest.raises(ServerError, match="HB805"):
        read(b"Q" + struct.pack(">i", size) + b"x" * 10)


def test_a_stream_that_ends_within_a_message_is_the_end() -> None:
    assert read(b"") is None
    assert read(b"Q\0\0\0\x20abc") is None


@pytest.mark.parametrize(
    "take",
    [
        lambda body: body.take(4),
        lambda body: body.take(-1),
        lambda body: body.int32(),
        lambda body: body.text(),
        lambda body: body.count(),
        lambda body: body.end(),
    ],
)
def test_a_body_gives_nothing_that_it_does_not_have(take: object) -> None:
    with pytest.raises(ServerError, match="HB805"):
        take(Body(b"\xff\xff"))  # type: ignore[operator]


def test_a_value_of_an_invalid_length_is_refused() -> None:
    assert Body(struct.pack(">i", -1)).value() is None
    for size in (-2, 5):
        with pytest.raises(ServerError, match="HB805"):
            Body(struct.pack(">i", size) + b"abc").value()


def test_a_row_has_lengths_and_marks_null() -> None:
    assert wire.data_row([b"a", None]) == b"D" + struct.pack(">ih", 4 + 2 + 5 + 4, 2) + b"\0\0\0\x01a" + b"\xff" * 4
