"""Connections: accepting them with limits, TLS, cancellation requests, and the end of the server.

Before a client has signed in, its messages have at most a few kilobytes, and it has `SIGN_IN_SECONDS`.

Tested in tests/gateway/test_listener.py.
"""

import asyncio
import contextlib
import errno
import hmac
import logging
import secrets
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hubbub.errors import AccessError, ConfigError
from hubbub.gateway import failures, wire
from hubbub.gateway.asker import Asker
from hubbub.gateway.catalog.database import Catalogs
from hubbub.gateway.session import PgSession
from hubbub.gateway.sign_in import Channel, Startup, binding_of, negotiation, read_startup, sign_in, tls_context
from hubbub.gateway.wire import Body
from hubbub.server.app import Beside
from hubbub.server.limits import address
from hubbub.server.postgres_settings import PostgresSettings, loopback
from hubbub.server.service import PATIENCE, Service
from hubbub.server.settings import Settings

#: Seconds within which a client has to sign in.
SIGN_IN_SECONDS = 15.0
#: Connections that have not signed in yet, of one address, and of all. Others may only cancel a query.
MAX_STRANGERS_OF_ONE, MAX_STRANGERS = 40, 200
#: So many times these limits, connections are closed at once: otherwise they could use up the files of the process.
_HOPELESS = 2
_BACKLOG = 512
_TLS_HANDSHAKE = 0x16

_log = logging.getLogger("hubbub.gateway")


@dataclass(eq=False)
class _Open:
    """An open connection: the secret that cancels its query, and its session once the client has signed in."""

    secret: bytes
    session: PgSession | None = None
    task: "asyncio.Task[None] | None" = None


class Gateway:
    """Serves PostgreSQL clients from one service, in the event loop that it is started in."""

    def __init__(self, service: Service, sockets: list[socket.socket]) -> None:
        if service.settings.postgres is None:
            raise AssertionError("the port is configured")
        self._service = service
        self._configured: PostgresSettings = service.settings.postgres
        self._sockets = sockets
        self._catalogs = Catalogs()
        self._open: dict[int, _Open] = {}
        self._strangers: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        settings = service.settings
        self._context, self._binding = None, None
        if settings.certificate is not None and settings.key is not None:
            self._context = tls_context(str(settings.certificate), str(settings.key))
            self._binding = binding_of(settings.certificate.read_bytes())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept connections while the block lasts; then let queries finish, and end all connections."""
        accepting = [asyncio.create_task(self._accept(each)) for each in self._sockets]
        other = await self._listen_to_workers()
        try:
            yield
        finally:
            self._closing = True
            for task in accepting:
                task.cancel()
            if other is not None:
                other.close()
            await self._finish()
            for task in accepting:
                with suppress(asyncio.CancelledError):
                    await task

    async def _finish(self) -> None:
        sessions = [each.session for each in self._open.values() if each.session is not None]
        for session in sessions:
            session.closing = True
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while any(session.busy for session in sessions) and loop.time() < until:
            await asyncio.sleep(0.02)
        for session in sessions:
            with suppress(OSError, TimeoutError, RuntimeError):
                await asyncio.wait_for(session.end(), 1)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        listening.setblocking(False)  # noqa: FBT003
        while True:
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ECONNABORTED):
                    raise
                await asyncio.sleep(0.1)
                continue
            task = loop.create_task(self._handle(accepted, str(peer[0]) if peer else ""))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _handle(self, accepted: socket.socket, where: str) -> None:
        """Serve one connection, whatever its client sends."""
        accepted.setblocking(False)  # noqa: FBT003
        with suppress(OSError):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        name = address(where)
        writer: asyncio.StreamWriter | None = None
        strangers = self._strangers[name] / MAX_STRANGERS_OF_ONE, self._strangers.total() / MAX_STRANGERS
        if max(strangers) >= _HOPELESS:
            accepted.close()
            return
        self._strangers[name] += 1
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(self._forget_stranger, name)
                full = self._strangers[name] > MAX_STRANGERS_OF_ONE or self._strangers.total() > MAX_STRANGERS
                async with asyncio.timeout(SIGN_IN_SECONDS):
                    reader, writer, channel = await self._stream(accepted, where)
                    session = None if reader is None else await self._begin(reader, writer, channel, full=full)
                stack.close()
                if session is not None:
                    await session.run()
        except (OSError, TimeoutError, EOFError, asyncio.IncompleteReadError):
            pass  # the client has gone, or is too slow
        except Exception as error:  # noqa: BLE001 - one connection must not end the others
            message = failures.error(error, severity="FATAL")
            if writer is not None:
                writer.write(message)
        finally:
            await self._close(accepted, writer)

    def _forget_stranger(self, name: str) -> None:
        self._strangers[name] -= 1
        if not self._strangers[name]:
            del self._strangers[name]

    @staticmethod
    async def _close(accepted: socket.socket, writer: asyncio.StreamWriter | None) -> None:
        if writer is None:
            accepted.close()
            return
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(2):
                await writer.drain()
        writer.close()
        with suppress(OSError, TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(2):
                await writer.wait_closed()
        if writer.transport is not None:
            writer.transport.abort()

    async def _stream(
        self, accepted: socket.socket, where: str
    ) -> tuple[asyncio.StreamReader | None, asyncio.StreamWriter, Channel]:
        """Answer requests for encryption, and return the stream.

        What comes before TLS is read byte for byte from the socket, so that nothing sent before the handshake can be
        taken for a part of what is encrypted.
        """
        loop = asyncio.get_running_loop()
        head, encrypt = b"", False
        for _ in range(3):
            head = await self._first_bytes(accepted)
            if not head:
                encrypt = True  # TLS begins at once
                break
            code = struct.unpack(">ii", head)
            if code == (8, wire.GSS_REQUEST) or (code == (8, wire.SSL_REQUEST) and self._context is None):
                await loop.sock_sendall(accepted, b"N")
                head = b""
                continue
            if code == (8, wire.SSL_REQUEST):
                await loop.sock_sendall(accepted, b"S")
                head, encrypt = b"", True
            break
        if encrypt and self._context is None:
            raise ConnectionResetError
        reader = asyncio.StreamReader(limit=1 << 16)
        if head:
            reader.feed_data(head)
        protocol = asyncio.StreamReaderProtocol(reader)
        options = {"ssl": self._context, "ssl_handshake_timeout": SIGN_IN_SECONDS} if encrypt else {}
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted, **options)  # type: ignore[arg-type]
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        return reader, writer, Channel(where, tls=encrypt, binding=self._binding if encrypt else None)

    async def _first_bytes(self, accepted: socket.socket) -> bytes:
        """Return the first eight bytes, or nothing if they begin a handshake of TLS, which stays unread."""
        loop = asyncio.get_running_loop()
        await _readable(loop, accepted)
        try:
            start = accepted.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            raise ConnectionResetError from None
        if start and start[0] == _TLS_HANDSHAKE:
            return b""
        head = b""
        while len(head) < 8:
            part = await loop.sock_recv(accepted, 8 - len(head))
            if not part:
                raise ConnectionResetError
            head += part
        return head

    async def _begin(
        self, reader: asyncio.StreamReader | None, writer: asyncio.StreamWriter, channel: Channel, *, full: bool
    ) -> PgSession | None:
        """Let a client sign in; return its session, or None if it wanted nothing more."""
        body = None if reader is None else await wire.read_startup(reader)
        if body is None or reader is None:
            return None
        version = body.int32()
        if version == wire.CANCEL_REQUEST:
            await self._cancel(body, channel.where)
            return None
        if full or self._closing or len(self._open) >= self._configured.connections:
            raise AccessError("HB807", "There are too many connections.", "Close some, and try again in a minute.", 2)
        startup = read_startup(version, body)
        self._check_encrypted(channel)
        writer.write(negotiation(startup))
        principal = await sign_in(reader, writer, self._service, startup, channel)
        number, opened = self._register(startup)
        asker = Asker(
            self._service,
            self._catalogs,
            principal,
            (startup.user, startup.database, number),
            address(channel.where),
        )
        for name, value in startup.parameters.items():
            if name not in ("user", "database", "options", "replication"):
                asker.variables.start(name, value)
        for name, value in _options(startup.parameters.get("options", "")):
            asker.variables.start(name, value)
        for name, value in asker.variables.announced():
            writer.write(wire.parameter_status(name, value))
        writer.write(wire.message(b"K", struct.pack(">i", number) + opened.secret))
        opened.session = PgSession(reader, writer, asker)
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(lambda _: self._open.pop(number, None))
        _log.info("signed in", extra={"fields": {"who": principal.name, "role": principal.role}})
        return opened.session

    def _check_encrypted(self, channel: Channel) -> None:
        if not (channel.tls or _is_local(channel.where) or self._configured.cleartext):
            raise AccessError(
                "HB806", "This connection is not encrypted.", "Connect with sslmode=require, or better verify-full."
            )

    def _register(self, startup: Startup) -> tuple[int, _Open]:
        """Give the connection a number, which tells its worker, and a secret."""
        worker = self._service.worker
        place = 0 if worker is None else worker.number
        while True:
            number = secrets.randbelow(1 << 24) << 6 | place
            if number and number not in self._open:
                break
        opened = self._open[number] = _Open(secrets.token_bytes(32 if startup.minor >= 2 else 4))
        return number, opened

    # Cancellation.

    async def _cancel(self, body: Body, where: str) -> None:
        """Cancel the query of a connection, here or at another worker. The client is not told whether it worked."""
        wait = self._service.attempts_limit.wait(address(where))
        if wait:
            return
        number, secret = body.int32(), body.rest()
        worker = self._service.worker
        place = number & 63
        if worker is None or place == worker.number:
            if not self._cancel_here(number, secret):
                self._service.attempts_limit.take(address(where))
        elif place < worker.count:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(5):
                    reader, writer = await asyncio.open_unix_connection(str(self._path(place)))
                    writer.write(struct.pack(">i", number) + secret[:256])
                    writer.write_eof()
                    answer = await reader.read(1)
                    writer.close()
                if answer == b"0":
                    self._service.attempts_limit.take(address(where))

    def _cancel_here(self, number: int, secret: bytes) -> bool:
        """Cancel a query; return False for a wrong secret, which is a guess."""
        opened = self._open.get(number)
        if opened is None:
            return True  # it has just ended
        if not hmac.compare_digest(opened.secret, secret):
            return False
        if opened.session is not None:
            opened.session.cancel()
        return True

    def _path(self, place: int) -> Path:
        worker = self._service.worker
        if worker is None:
            raise AssertionError("there are several workers")
        return worker.folder / f"{place}.cancel.sock"

    async def _listen_to_workers(self) -> asyncio.AbstractServer | None:
        """Take cancellation requests that reached another worker; their folder is private to this user."""
        worker = self._service.worker
        if worker is None:
            return None
        path = self._path(worker.number)
        path.unlink(missing_ok=True)

        async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, TimeoutError, struct.error):
                async with asyncio.timeout(5):
                    content = await reader.read(300)
                right = self._cancel_here(struct.unpack(">i", content[:4])[0], content[4:])
                writer.write(b"1" if right else b"0")
                await writer.drain()
            writer.close()

        return await asyncio.start_unix_server(receive, str(path))


def _is_local(where: str) -> bool:
    return loopback(where.partition("%")[0].removeprefix("::ffff:"))


async def _readable(loop: asyncio.AbstractEventLoop, accepted: socket.socket) -> None:
    """Wait until there is something to read."""
    future: asyncio.Future[None] = loop.create_future()
    handle = accepted.fileno()
    loop.add_reader(handle, _set, future)
    try:
        await future
    finally:
        loop.remove_reader(handle)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _options(text: str) -> list[tuple[str, str]]:
    """Read the startup parameter `options`: -c name=value.

    >>> _options("-c hubbub.epsilon=0.1 --statement_timeout=5")
    [('hubbub.epsilon', '0.1'), ('statement_timeout', '5')]
    """
    listed = []
    words = text[:4000].replace("-c ", "-c").split()
    for word in words:
        name, equal, value = word.removeprefix("--").removeprefix("-c").partition("=")
        if equal:
            listed.append((name.replace("-", "_"), value))
    return listed


def listen(settings: Settings, *, share: bool = False) -> list[socket.socket]:
    """Open the socket of the port; with `share`, other processes can open it as well."""
    configured = settings.postgres
    if configured is None:
        return []
    host = configured.host or settings.host
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, configured.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        opened.bind(where)
        opened.listen(_BACKLOG)
    except OSError as error:
        raise ConfigError(
            "HB420",
            f"The address {host}:{configured.port} for PostgreSQL clients cannot be used ({error.strerror}).",
            "Choose another --pg-port, or stop the server that uses it.",
        ) from error
    return [opened]


def beside(service: Service, sockets: list[socket.socket]) -> Beside:
    """Return what runs beside the HTTP application: this port, or nothing if it is not configured."""
    if service.settings.postgres is None or not sockets:
        return contextlib.nullcontext
    return partial(_run, service, sockets)


@asynccontextmanager
async def _run(service: Service, sockets: list[socket.socket]) -> AsyncIterator[None]:
    async with Gateway(service, sockets).running():
        yield
