"""One session with a PostgreSQL server: durable or not at all, and with little between Python and the wire.

Statements are prepared once and run by libpq's own calls (`psycopg.pq`), values and results in binary form: a charge
takes five round trips, and through psycopg's cursors each of them would cost more here than on the server.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hubbub.errors import LedgerError

try:
    import psycopg
    from psycopg import Error, OperationalError, conninfo, errors, pq
except ModuleNotFoundError as _missing:
    raise LedgerError(
        "HB321", "a ledger in PostgreSQL needs the library psycopg, which is not installed here.",
        "pip install 'hubbub[postgres]'",
    ) from _missing  # fmt: skip

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

_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Session:
    """A connection, its settings checked, with the statements that were prepared on it."""

    def __init__(self, dsn: str, *, patience: float) -> None:
        """Connect; locks are waited for as long as `patience` says, in seconds."""
        self.connection: Connection = psycopg.connect(dsn, autocommit=True, application_name="hubbub ledger")
        self._server = self.connection.pgconn
        self._prepared: dict[str, bytes] = {}
        self.broken = False
        try:
            self.do(_SETTINGS.format(lock_timeout=round(patience * 1000)).encode())
            for name, wanted in _DURABLE.items():
                if self.ask("SELECT current_setting($1)", (name,)) != [[wanted.encode()]]:
                    raise LedgerError(
                        "HB322", f"the PostgreSQL server does not keep what it says: {name} is not {wanted}. "
                        "Nothing was charged.", f"Set {name} = {wanted}, or take another server.",
                    )  # fmt: skip
        except (Error, LedgerError):
            self.close()
            raise

    def do(self, statements: bytes) -> None:
        """Run statements without values."""
        with self._watched():
            _check(self._server.exec_(statements))

    def ask(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a statement, prepared at its first use; give the rows, each value as the server sends it in binary."""
        sent = [value if isinstance(value, bytes) else str(value).encode() for value in values]
        forms = [isinstance(value, bytes) for value in values]
        with self._watched():
            name = self._prepared.get(statement)
            if name is None:
                name = b"hubbub_%d" % len(self._prepared)
                _check(self._server.prepare(name, statement.encode()))
                self._prepared[statement] = name
            result = _check(self._server.exec_prepared(name, sent, forms, 1))
        width = range(result.nfields)
        return [[result.get_value(row, column) for column in width] for row in range(result.ntuples)]

    def close(self) -> None:
        """Let go of the server."""
        self.connection.close()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Notice when the server has gone, which libpq itself may know only at the next call."""
        try:
            yield
        except OperationalError as error:
            self.broken = self.broken or error.sqlstate is None or isinstance(error, _GOING)
            raise


_GOING = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)


def _check(result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status in _GOOD:
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
            "HB302", "the address of the ledger's database is not one of PostgreSQL. Nothing was charged.",
            "Write postgresql://user@host/database, without spaces.",
        ) from None  # fmt: skip
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
        "HB303", "another process kept it locked", "Try again, or end it.",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        "HB302", "it is read-only (a standby?)", "Connect to the primary server, with the right to write.",
    ),
    (
        (errors.InsufficientPrivilege,),
        "HB302", "this user may not do that there",
        "Make the user the owner of the database, or of its schema hubbub.",
    ),
    (
        (errors.InvalidAuthorizationSpecification, errors.InvalidPassword),
        "HB302", "the server refuses this user or password", "Check both, and pg_hba.conf on the server.",
    ),
    ((errors.InvalidCatalogName,), "HB302", "there is no such database", "Make it: createdb."),
    (
        (errors.TooManyConnections, errors.CannotConnectNow),
        "HB302", "the server takes no more connections now", "Try again, or raise max_connections.",
    ),
)  # fmt: skip
