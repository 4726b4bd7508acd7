"""Connections: their limits, cancellation, slow clients, and the end of the server."""

import struct
import threading
import time
from contextlib import ExitStack

import psycopg
import pytest
from tests.gateway.conftest import Port, Starter, port
from tests.gateway.raw import RawClient

from hubbub.curator import Curator
from hubbub.gateway import listener, wire

SLOW = "SELECT COUNT(*) AS n FROM health WHERE age > 13"


def test_connections_are_limited(start_port: Starter) -> None:
    port = start_port(configured={"connections": 2})
    first, second = psycopg.connect(port.dsn()), psycopg.connect(port.dsn())
    with pytest.raises(psycopg.OperationalError, match="HB807"):
        psycopg.connect(port.dsn())
    first.close()
    second.close()
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(port.dsn()).close()
            break
        except psycopg.OperationalError:
            assert time.monotonic() < deadline


def test_strangers_cannot_keep_others_out(start_port: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "SIGN_IN_SECONDS", 0.5)
    port = start_port()
    with ExitStack() as stack:
        silent = [stack.enter_context(RawClient(port.number)) for _ in range(listener.MAX_STRANGERS_OF_ONE + 5)]
        for client in silent:
            with pytest.raises((EOFError, ConnectionError)):
                client.take(1)  # closed, because nothing came in time
        assert port.connect().execute("SELECT 1").fetchone() == (1,)


def test_connections_beyond_all_limits_are_closed_at_once(start_port: Starter) -> None:
    port = start_port()
    with ExitStack() as stack:
        most = listener.MAX_STRANGERS_OF_ONE * 2
        silent = [stack.enter_context(RawClient(port.number)) for _ in range(most + 20)]
        began = time.monotonic()
        for client in silent[most:]:
            with pytest.raises((EOFError, ConnectionError)):
                client.take(1)
        assert time.monotonic() - began < listener.SIGN_IN_SECONDS / 2
        for client in silent[:most]:  # those that were there first are waited for
            client.socket.settimeout(0.001)
            with pytest.raises(TimeoutError):
                client.take(1)


def test_a_client_that_sends_byte_by_byte_is_given_up(start_port: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MESSAGE_SECONDS", 0.3)
    port = start_port()
    with RawClient(port.number) as client:
        client.sign_in(port.tokens["ana"])
        client.send(b"Q" + struct.pack(">i", 100) + b"SELECT")
        with pytest.raises((EOFError, ConnectionError)):
            client.until()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Queries wait until this is set; then they are answered as ever."""
    go, answer = threading.Event(), Curator.query

    def wait(self: Curator, analyst: str, *args: object, **options: object) -> object:
        assert go.wait(30)
        return answer(self, analyst, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Curator, "query", wait)
    return go


def test_a_query_is_cancelled_by_its_own_client_alone(start_port: Starter, waiting: threading.Event) -> None:
    port = start_port()
    connection = port.connect(options="-c hubbub.epsilon=0.1")
    number = connection.pgconn.backend_pid
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            connection.execute(SLOW)
        except psycopg.Error as error:
            raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not port.service.pool.counts()[0]:
        time.sleep(0.01)
    for secret in (b"", b"\0\0\0\0"):
        with RawClient(port.number) as client:
            client.send(struct.pack(">iii", 12 + len(secret), wire.CANCEL_REQUEST, number) + secret)
            with pytest.raises((EOFError, ConnectionError)):
                client.take(1)
    assert thread.is_alive()
    connection.cancel_safe()
    thread.join(20)
    waiting.set()
    assert isinstance(raised[0], psycopg.errors.QueryCanceled)
    assert "HB811" in str(raised[0])
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_the_end_of_the_server_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    with port(tmp_path_factory.mktemp("end")) as running:
        client = RawClient(running.number)
        client.sign_in(running.tokens["ana"])
    kind, content = client.receive()
    client.socket.close()
    assert kind == b"E"
    assert b"57P01" in content
    assert b"HB815" in content


def test_answers_come_on_the_quantum(start_port: Starter) -> None:
    port = start_port(quantum=0.4)
    connection = port.connect(options="-c hubbub.epsilon=0.1")
    connection.execute("SELECT 1")
    for sql in (SLOW, SLOW, "SELECT COUNT(*) AS n FROM health WHERE age > 1 AND visits > 2"):
        began = time.monotonic()
        connection.execute(sql)
        took = time.monotonic() - began
        assert took >= 0.39  # also for a free repetition


def test_settings_can_be_stated_at_the_start(shared_port: Port) -> None:
    connection = shared_port.connect(options="-c hubbub.within=5% -c nothing.known=1")
    assert connection.execute("SHOW hubbub.within").fetchone() == ("5%",)
