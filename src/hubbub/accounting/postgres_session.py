"""A durable, fast session with a PostgreSQL server.

Statements are prepared once and run by libpq calls (`psycopg.pq`) in binary form: psycopg's cursors would cost more
than the server itself. Statements that do not depend on each other's results are sent together (libpq's pipeline mode),
so that a charge takes two round trips: one that locks and reads, one that writes and commits. The server still runs
them in order, and none after one that failed.

Tested in tests/accounting/test_postgres.py.
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
        "A ledger in PostgreSQL requires the package psycopg, which is not installed.",
        "Run: pip install 'hubbub[postgres]'",
    ) from _missing

if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]

__all__ = ["Error", "OperationalError", "PostgresSession", "Row", "Value", "address", "explain", "integer", "text"]

Value = str | int | bytes
Row = list[bytes | None]

#: Every query of a ledger can use an index, so plans made while it is small must use it too. The just-in-time compiler
#: is off because it takes the cost penalty on other plans for a reason to start.
_SETTINGS = (
    "SET synchronous_commit = on; SET statement_timeout = 0; SET lock_timeout = {lock_timeout}; "
    "SET default_transaction_read_only = off; SET default_transaction_isolation = 'read committed'; "
    "SET search_path = pg_catalog; SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan"
)
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "server_encoding": "UTF8"}

#: Notice a server that disappeared within seconds; the defaults of libpq and the kernel wait for many minutes.
_TIMEOUTS = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}

_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class PostgresSession:
    """A connection with checked settings and its prepared statements."""

    def __init__(self, dsn: str, *, patience: float) -> None:
        """Connect; `patience` is the lock timeout in seconds."""
        known = conninfo.conninfo_to_dict(dsn)
        timeouts: dict[str, Any] = {name: value for name, value in _TIMEOUTS.items() if name not in known}
        self.connection: Connection = psycopg.connect(
            dsn, autocommit=True, application_name="hubbub ledger", **timeouts
        )
        self._server = self.connection.pgconn
        self._prepared: dict[str, bytes] = {}
        self._names = count()
        self._flight: list[str | None] = []  # sent but not received: a statement that is being prepared, or None
        self._server.nonblocking = 1
        self._socket = poll()
        self._socket.register(self._server.socket, POLLIN)
        self.broken = False
        self._watched = _Watch(self)
        try:
            self._refuse_pooler()
            self.do(_SETTINGS.format(lock_timeout=round(patience * 1000)).encode())
            for name, wanted in _DURABLE.items():
                if self.ask("SELECT current_setting($1)", (name,)) != [[wanted.encode()]]:
                    raise LedgerError(
                        "HB322",
                        f"PostgreSQL is not configured for durable commits: {name} must be {wanted}. "
                        "Nothing was charged.",
                        f"Set {name} = {wanted}, or use another server.",
                    )
        except (Error, LedgerError):
            self.close()
            raise

    def _refuse_pooler(self) -> None:
        """Raise if somebody between us and the server hands out its sessions: a pooler gives us a number of its own.

        Settings, prepared statements and advisory locks belong to a session, which a pooler may change or share.
        """
        with self._watched:
            result = self._server.exec_(b"SELECT pg_backend_pid()")
            _check(result)
        if result.get_value(0, 0) != str(self._server.backend_pid).encode():
            raise LedgerError(
                "HB322",
                "The connection of the ledger goes through a pooler such as PgBouncer, which can change its session: "
                "its settings and locks would not hold. Nothing was charged.",
                "Connect to the server itself, with its own host and port (often 5432).",
            )

    def do(self, statements: bytes) -> None:
        """Run statements without parameters."""
        with self._watched:
            _check(self._server.exec_(statements))

    def undo(self) -> None:
        """Roll back; in the middle of a pipeline, close the connection instead, which releases the locks."""
        if self._server.pipeline_status == pq.PipelineStatus.OFF:
            self.do(b"ROLLBACK")
        else:
            self.close()

    def ask(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a statement and return its rows, in binary form."""
        self.send(statement, values)
        return self.land()[0]

    def send(self, statement: str, values: Sequence[Value] = ()) -> None:
        """Send a statement after those sent before; the results come with `land`."""
        sent = [value if isinstance(value, bytes) else str(value).encode() for value in values]
        forms = [isinstance(value, bytes) for value in values]
        server = self._server
        with self._watched:
            if not self._flight:
                server.enter_pipeline_mode()
            name = self._prepared.get(statement)
            if name is None:
                # never reuse a name: after a failed pipeline the server may or may not know it
                name = self._prepared[statement] = b"hubbub_%d" % next(self._names)
                self._flight.append(statement)
                server.send_prepare(name, statement.encode())
            self._flight.append(None)
            server.send_query_prepared(name, sent, forms, 1)

    def flush(self) -> None:
        """Let the server start with the statements sent so far."""
        with self._watched:
            self._flush()

    def land(self) -> list[list[Row]]:
        """Wait for all results; return the rows of each statement, or raise the error of the first that failed."""
        flight, self._flight = self._flight, []
        results: list[list[Row]] = []
        server = self._server
        with self._watched:
            try:
                server.pipeline_sync()
                self._flush()
                for preparing in flight:
                    result = self._arrived()
                    if preparing is None:
                        width = range(result.nfields)
                        results.append([[result.get_value(r, c) for c in width] for r in range(result.ntuples)])
                    while self._next() is not None:
                        pass
                self._arrived(pq.ExecStatus.PIPELINE_SYNC)
            except Error:
                for statement in flight:
                    self._prepared.pop(statement or "", None)
                self._drain()
                raise
            server.exit_pipeline_mode()
        return results

    def _arrived(self, *also: pq.ExecStatus) -> "pq.abc.PGresult":
        result = self._next()
        if result is None:
            raise OperationalError("the server sent no result")
        return _check(result, *also)

    def _next(self) -> "pq.abc.PGresult | None":
        # waiting inside libpq would block all other threads of this process, even one that holds our lock
        server = self._server
        while server.is_busy():
            self._socket.poll()
            server.consume_input()
        return server.get_result()

    def _flush(self) -> None:
        """Send everything; read meanwhile, because a server with a full output buffer accepts no more input."""
        server = self._server
        while server.flush():
            self._socket.modify(server.socket, POLLIN | POLLOUT)
            self._socket.poll()
            self._socket.modify(server.socket, POLLIN)
            server.consume_input()

    def _drain(self) -> None:
        """After an error, read to the end of the pipeline, so that the session can be used again."""
        server = self._server
        while server.status == pq.ConnStatus.OK:
            result = self._next()
            if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                server.exit_pipeline_mode()
                return

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class _Watch:
    """Notice a lost server at once, which libpq may report only at the next call."""

    __slots__ = ("_session",)

    def __init__(self, session: PostgresSession) -> None:
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
    """Give the address in a connection string, without user and password; raise LedgerError if it is invalid."""
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except Error:  # its message quotes the address with the password
        raise LedgerError(
            "HB302",
            "The address of the ledger database is not a PostgreSQL address. Nothing was charged.",
            "Write postgresql://user@host/database, without spaces.",
        ) from None
    return f"postgresql://{parts.get('host') or 'localhost'}/{parts.get('dbname') or ''}"


def integer(value: bytes | None) -> int:
    """Decode a bigint."""
    return int.from_bytes(value or b"", "big", signed=True)


def text(value: bytes | None) -> str:
    """Decode a text."""
    return (value or b"").decode()


def explain(error: Error) -> tuple[str, str, str] | None:
    """Give the code, reason and remedy of a known error; None if only a restart helps."""
    for kinds, code, why, remedy in _MEANING:
        if isinstance(error, kinds):
            return code, why, remedy
    if isinstance(error, OperationalError) and (error.sqlstate is None or isinstance(error, _GOING)):
        # these messages are about the connection (no such database, wrong password), so they do not quote a query
        words = str(error).strip().splitlines()[0].rpartition("failed: ")[2]
        return "HB302", f"could not connect to the server ({words})", "Check host, database, user and server."
    return None


_MEANING: tuple[tuple[tuple[type[Error], ...], str, str, str], ...] = (
    (
        (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled),
        "HB303",
        "another process kept it locked",
        "Try again, or stop the other process.",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        "HB302",
        "it is read-only (a standby?)",
        "Connect to the primary server with write permission.",
    ),
    (
        (errors.InsufficientPrivilege,),
        "HB302",
        "this user lacks the required permission",
        "Make the user the owner of the database, or of its schema hubbub.",
    ),
    (
        (errors.InvalidAuthorizationSpecification, errors.InvalidPassword),
        "HB302",
        "the server rejected this user or password",
        "Check both, and pg_hba.conf on the server.",
    ),
    ((errors.InvalidCatalogName,), "HB302", "the database does not exist", "Create it with createdb."),
    (
        (errors.TooManyConnections, errors.CannotConnectNow),
        "HB302",
        "the server accepts no more connections",
        "Try again, or raise max_connections.",
    ),
)
