"""Sequences of messages that client libraries do not send."""

import struct

import pytest
from tests.gateway.conftest import Port
from tests.gateway.raw import RawClient

from hubbub.gateway import session, wire


def parse(text: str, name: str = "") -> bytes:
    return wire.message(b"P", wire.text(name) + wire.text(text) + struct.pack(">h", 0))


def bind(portal: str = "", name: str = "") -> bytes:
    return wire.message(b"B", wire.text(portal) + wire.text(name) + struct.pack(">hhh", 0, 0, 0))


def execute(portal: str = "", rows: int = 0) -> bytes:
    return wire.message(b"E", wire.text(portal) + struct.pack(">i", rows))


def describe(kind: bytes, name: str = "") -> bytes:
    return wire.message(b"D", kind + wire.text(name))


SYNC = wire.message(b"S")
BY_SITE = "SELECT site, COUNT(*) AS n FROM health GROUP BY site"


@pytest.fixture
def client(shared_port: Port) -> RawClient:
    made = shared_port.stack.enter_context(RawClient(shared_port.number))
    made.sign_in(shared_port.tokens["ana"], options="-c hubbub.epsilon=0.05")
    return made


def kinds(messages: list[tuple[bytes, bytes]]) -> str:
    return b"".join(kind for kind, _ in messages).decode()


def test_a_portal_is_paged_and_charged_once(client: RawClient, shared_port: Port) -> None:
    client.send(wire.message(b"Q", wire.text("BEGIN")))
    client.until()
    client.send(parse(BY_SITE), bind("p"), describe(b"P", "p"), execute("p", 2), execute("p", 3), execute("p"), SYNC)
    answered = kinds(client.until())
    assert answered.replace("N", "") == "12TDDsDDDsDCZ"
    before = shared_port.spent()
    client.send(execute("p"), SYNC)
    assert kinds(client.until()) == "CZ"
    assert shared_port.spent() == before


def test_after_an_error_everything_up_to_sync_is_skipped(client: RawClient, shared_port: Port) -> None:
    before = shared_port.spent()
    client.send(parse("SELECT age FROM health"), bind(), execute(), parse(BY_SITE), bind(), execute(), SYNC)
    assert kinds(client.until()) == "12EZ"
    client.send(bind("p", "missing"), parse("SELECT COUNT(*) AS n FROM health WHERE age > 64"), bind(), execute(), SYNC)
    assert kinds(client.until()) == "EZ"
    assert shared_port.spent() == before


def test_describing_charges_nothing(client: RawClient, shared_port: Port) -> None:
    before = shared_port.spent()
    client.send(parse("SELECT AVG(age) AS a FROM health WHERE site = $1", "d"), describe(b"S", "d"), SYNC)
    answered = client.until()
    assert kinds(answered) == "1tTZ"
    assert answered[1][1] == struct.pack(">hI", 1, 20)
    assert shared_port.spent() == before


def test_what_was_not_prepared_cannot_be_used(client: RawClient) -> None:
    for message, code in (
        (bind("p", "missing"), b"HB812"),
        (execute("missing"), b"HB816"),
        (describe(b"S", "missing"), b"HB812"),
        (describe(b"P", "missing"), b"HB816"),
    ):
        client.send(message, SYNC)
        answered = client.until()
        assert kinds(answered) == "EZ"
        assert code in answered[0][1]
    client.send(parse("SELECT 1", "twice"), parse("SELECT 1", "twice"), SYNC)
    assert kinds(client.until()) == "1EZ"


def test_a_connection_keeps_a_bounded_number_of_statements_and_portals(
    client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_PREPARED", 3)
    monkeypatch.setattr(session, "MAX_PORTALS", 2)
    client.send(*(parse("SELECT 1", f"s{i}") for i in range(5)), SYNC)
    answered = client.until()
    assert kinds(answered) == "111EZ"
    assert b"HB819" in answered[3][1]
    client.send(*(bind(f"p{i}", "s1") for i in range(5)), SYNC)
    assert kinds(client.until()) == "22EZ"


@pytest.mark.parametrize(
    "message",
    [
        wire.message(b"B", b""),
        wire.message(b"B", b"\0\0" + struct.pack(">h", -1)),
        wire.message(b"P", b"\0SELECT 1\0" + struct.pack(">h", 32767)),
        wire.message(b"E", b"p"),
        wire.message(b"D", b"Xp\0"),
        wire.message(b"F", b"abc"),
        wire.message(b"?", b""),
        wire.message(b"Q", b"SELECT 1"),
        wire.message(b"Q", b"\xff\0"),
        wire.message(b"S", b"more"),
    ],
)
def test_a_malformed_message_is_an_error_and_never_a_charge(
    client: RawClient, shared_port: Port, message: bytes
) -> None:
    before = shared_port.spent()
    client.send(message, SYNC)
    assert client.receive()[0] == b"E"
    assert shared_port.spent() == before


def test_an_empty_query_and_several_statements(client: RawClient) -> None:
    client.send(wire.message(b"Q", b"\0"))
    assert kinds(client.until()) == "IZ"
    client.send(wire.message(b"Q", wire.text("SELECT 1; SELECT nonsense(); SELECT 2")))
    assert kinds(client.until()) == "TDCEZ"
    client.send(parse(""), bind(), execute(), SYNC)
    assert kinds(client.until()) == "12IZ"
    client.send(parse("SELECT 1; SELECT 2"), SYNC)
    assert kinds(client.until()) == "EZ"
