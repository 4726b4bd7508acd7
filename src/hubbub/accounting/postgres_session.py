"""One session with a PostgreSQL server: durable or not at all, and with little between Python and the wire.

Statements are prepared once and run by libpq's own calls (`psycopg.pq`), values and results in binary form: through
psycopg's cursors each would cost more here than on the server. Those that need not wait for each other's answers travel
together (libpq's pipeline mode), so that a charge takes two round trips: one that locks and looks, one that writes and
commits. The server runs them one after the other all the same, and none after one that failed.
"""

from collections.abc import Sequence
from itertools import count
from select import POLLIN, POLLOUT, poll
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hubbub.errors import LedgerError

try:
    import psycopg
    from psycopg import Error, OperationalError, conninfo, errors, pq
except ModuleNotFoundError as _missing:
    raise LedgerError(
        "HB321",
        "a ledger in PostgreSQL needs the library psycopg, which is not installed here.",
        "pip install 'hubbub[postgres]'",
    ) from _missing

if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]

__all__ = ["Error", "OperationalError", "Row", "Session", "Value", "address", "integer", "meaning", "text"]

Value = str | int | bytes
Row = list[bytes | None]

#: Every query of a ledger finds its rows by an index, so a plan made while it was small must do so too; without the
#: just-in-time compiler, which takes the penalty on other plans for a reason to start.
_SETTINGS = (
    "SET synchronous_commit = on; SET statement_timeout = 0; SET lock_timeout = {lock_timeout}; "
    "SET default_transaction_read_only = off; SET default_transaction_isolation = 'read committed'; "
    "SET search_path = pg_catalog; SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan"
)
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "server_encoding": "UTF8"}

#: A server that vanished without a word is noticed in seconds: libpq and the kernel would wait for many minutes.
_NOTICED = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}

_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Session:
    """A connection, its settings checked, with the statements that were prepared on it."""

    def __init__(self, dsn: str, *, patience: float) -> None:
        """Connect; locks are waited for as long as `patience` says, in seconds."""
        known = conninfo.conninfo_to_dict(dsn)
        noticed: dict[str, Any] = {name: value for name, value in _NOTICED.items() if name not in known}
        self.connection: Connection = psycopg.connect(dsn, autocommit=True, application_name="hubbub ledger", **noticed)
        self._server = self.connection.pgconn
        self._prepared: dict[str, bytes] = {}
        self._names = count()
        self._flight: list[str | None] = []  # what is on its way: a statement that is being prepared, or None
        self._server.nonblocking = 1
        self._socket = poll()
        self._socket.register(self._server.socket, POLLIN)
        self.broken = False
        self._watched = _Watch(self)
        try:
            self.do(_SETTINGS.format(lock_timeout=round(patience * 1000)).encode())
            for name, wanted in _DURABLE.items():
                if self.ask("SELECT current_setting($1)", (name,)) != [[wanted.encode()]]:
                    raise LedgerError(
                        "HB322",
                        f"the PostgreSQL server does not keep what it says: {name} is not {wanted}. "
                        "Nothing was charged.",
                        f"Set {name} = {wanted}, or take another server.",
                    )
        except (Error, LedgerError):
            self.close()
            raise

    def do(self, statements: bytes) -> None:
        """Run statements without values."""
        with self._watched:
            _check(self._server.exec_(statements))

    def undo(self) -> None:
        """Roll back; where we were interrupted in the middle of a flight, by hanging up, which gives the locks back."""
        if self._server.pipeline_status == pq.PipelineStatus.OFF:
            self.do(b"ROLLBACK")
        else:
            self.close()

    def ask(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a statement; give the rows, each value as the server sends it in binary."""
        self.send(statement, values)
        return self.land()[0]

    def send(self, statement: str, values: Sequence[Value] = ()) -> None:
        """Put a statement on its way behind those sent before; nothing is known of any of them until `land`."""
        sent = [value if isinstance(value, bytes) else str(value).encode() for value in values]
        forms = [isinstance(value, bytes) for value in values]
        server = self._server
        with self._watched:
            if not self._flight:
                server.enter_pipeline_mode()
            name = self._prepared.get(statement)
            if name is None:
                # a name is never used twice: after a failed flight the server may know it or not
                name = self._prepared[statement] = b"hubbub_%d" % next(self._names)
                self._flight.append(statement)
                server.send_prepare(name, statement.encode())
            self._flight.append(None)
            server.send_query_prepared(name, sent, forms, 1)

    def flush(self) -> None:
        """Let the server begin with what was sent."""
        with self._watched:
            self._flush()

    def land(self) -> list[list[Row]]:
        """Wait for all that was sent; give the rows of each statement, or raise the error of the first that failed."""
        flight, self._flight = self._flight, []
        found: list[list[Row]] = []
        server = self._server
        with self._watched:
            try:
                server.pipeline_sync()
                self._flush()
                for preparing in flight:
                    result = self._arrived()
                    if preparing is None:
                        width = range(result.nfields)
                        found.append([[result.get_value(r, c) for c in width] for r in range(result.ntuples)])
                    while self._next() is not None:
                        pass
                self._arrived(pq.ExecStatus.PIPELINE_SYNC)
            except Error:
                for statement in flight:
                    self._prepared.pop(statement or "", None)
                self._drain()
                raise
            server.exit_pipeline_mode()
        return found

    def _arrived(self, *also: pq.ExecStatus) -> "pq.abc.PGresult":
        result = self._next()
        if result is None:
            raise OperationalError("the server said nothing")
        return _check(result, *also)

    def _next(self) -> "pq.abc.PGresult | None":
        # libpq's own waiting would keep every other thread of this process waiting too, also one that holds our lock
        server = self._server
        while server.is_busy():
            self._socket.poll()
            server.consume_input()
        return server.get_result()

    def _flush(self) -> None:
        """Send all; read meanwhile, or a server that cannot get rid of its answers would take no more questions."""
        server = self._server
        while server.flush():
            self._socket.modify(server.socket, POLLIN | POLLOUT)
            self._socket.poll()
            self._socket.modify(server.socket, POLLIN)
            server.consume_input()

    def _drain(self) -> None:
        """After an error, read on to the end of the flight, so that the session can be used again."""
        server = self._server
        while server.status == pq.ConnStatus.OK:
            result = self._next()
            if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                server.exit_pipeline_mode()
                return

    def close(self) -> None:
        """Let go of the server."""
        self.connection.close()


class _Watch:
    """Notices when the server has gone, which libpq itself may know only at the next call."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, OperationalError) and (error.sqlstate is None or isinstance(error, _GOING)):
            self._session.broken = True


_GOING = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)


def _check(result: pq.abc.PGresult, *also: pq.ExecStatus) -> pq.abc.PGresult:
    if result.status in _GOOD or result.status in also:
        return result
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    words = result.error_message.decode("utf-8", "replace").strip()
    try:
        kind = errors.lookup(state)
    except KeyError:
        kind = OperationalError
    raise kind(words)


def address(dsn: str) -> str:
    """Say where a connection string leads, without user and password; raise LedgerError where it leads nowhere."""
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except Error:  # its words quote the address, with the password
        raise LedgerError(
            "HB302",
            "the address of the ledger's database is not one of PostgreSQL. Nothing was charged.",
            "Write postgresql://user@host/database, without spaces.",
        ) from None
    return f"postgresql://{parts.get('host') or 'localhost'}/{parts.get('dbname') or ''}"


def integer(value: bytes | None) -> int:
    """Read a bigint."""
    return int.from_bytes(value or b"", "big", signed=True)


def text(value: bytes | None) -> str:
    """Read a text."""
    return (value or b"").decode()


def meaning(error: Error) -> tuple[str, str, str] | None:
    """Give the code, the reason and the remedy of an error that has one; None where only a restart helps."""
    for kinds, code, why, remedy in _MEANING:
        if isinstance(error, kinds):
            return code, why, remedy
    if isinstance(error, OperationalError) and (error.sqlstate is None or isinstance(error, _GOING)):
        # these words are about the connection (no such database, wrong password), and so hold nothing of a query
        words = str(error).strip().splitlines()[0].rpartition("failed: ")[2]
        return "HB302", f"the server does not answer, or not to us ({words})", "Check host, database, user and server."
    return None


_MEANING: tuple[tuple[tuple[type[Error], ...], str, str, str], ...] = (
    (
        (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled),
        "HB303",
        "another process kept it locked",
        "Try again, or end it.",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        "HB302",
        "it is read-only (a standby?)",
        "Connect to the primary server, with the right to write.",
    ),
    (
        (errors.InsufficientPrivilege,),
        "HB302",
        "this user may not do that there",
        "Make the user the owner of the database, or of its schema hubbub.",
    ),
    (
        (errors.InvalidAuthorizationSpecification, errors.InvalidPassword),
        "HB302",
        "the server refuses this user or password",
        "Check both, and pg_hba.conf on the server.",
    ),
    ((errors.InvalidCatalogName,), "HB302", "there is no such database", "Make it: createdb."),
    (
        (errors.TooManyConnections, errors.CannotConnectNow),
        "HB302",
        "the server takes no more connections now",
        "Try again, or raise max_connections.",
    ),
)
